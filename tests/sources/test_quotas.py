"""Who a CPU quota holds back: faked trees of both versions of control groups, and a real one where that may be made."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from capabilities import needs_root

from pmutop.sources.quotas import TREES, Quotas


def group(folder: Path, limit: str, ns: int, pids=(), version=2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("cpu.max" if version == 2 else "cpu.cfs_quota_us")).write_text(limit)
    time_line = f"throttled_usec {ns // 1000}" if version == 2 else f"throttled_time {ns}"
    (folder / "cpu.stat").write_text(f"nr_periods 7\nnr_throttled 3\n{time_line}\n")
    (folder / "cgroup.procs").write_text("\n".join(map(str, pids)))
    return folder


@pytest.mark.parametrize("version", [1, 2])
def test_only_limited_groups_that_were_throttled_are_told(tmp_path, version):
    (tmp_path / ("cgroup.controllers" if version == 2 else "x")).write_text("cpu")
    tree = tmp_path if version == 2 else tmp_path / "cpu"
    free, tight = ("max 100000", "20000 100000") if version == 2 else ("-1", "20000")
    group(tree, free, 0, version=version)
    group(tree / "free", free, 9_000_000, [1], version)
    slow = group(tree / "slow", tight, 5_000_000, [2], version)
    group(slow / "inner", free, 0, [3], version)
    quotas = Quotas(tmp_path)
    assert quotas.read() == {}  # what was before us is nobody's slice
    group(tree / "free", free, 99_000_000, [1], version)
    group(slow, tight, 12_000_000, [2], version)
    assert quotas.read() == {"throttled": [[7_000_000, [2, 3]]]}
    assert quotas.read() == {}


def test_without_control_groups_there_is_nothing(tmp_path):
    assert Quotas(tmp_path).read() == {}


def test_a_group_that_goes_is_forgotten(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu")
    slow = group(tmp_path / "slow", "20000 100000", 5_000_000, [2])
    quotas = Quotas(tmp_path)
    quotas.read()
    for path in slow.iterdir():
        path.unlink()
    slow.rmdir()
    assert quotas.read() == {}


@needs_root
def test_a_real_quota(tmp_path):
    tree, limit = next(
        (
            (Path("/sys/fs/cgroup", tree), limit)
            for tree, limit in TREES[1:]
            if Path("/sys/fs/cgroup", tree, "cpu.stat").exists()
        ),
        (Path("/sys/fs/cgroup"), "cpu.max"),
    )
    made = tree / f"pmutop-test-{os.getpid()}"
    try:
        made.mkdir()
        (made / limit).write_text("10000 100000" if limit == "cpu.max" else "10000")
    except OSError as error:
        pytest.skip(f"no control group may be made here: {error}")
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        quotas = Quotas()
        quotas.read()
        (made / "cgroup.procs").write_text(str(process.pid))
        found: dict = {}
        for _ in range(100):
            time.sleep(0.1)
            found = quotas.read()
            if found:
                break
        [[held, pids]] = [one for one in found["throttled"] if process.pid in one[1]]
        assert held > 0 and pids == [process.pid]
    finally:
        process.kill()
        process.wait()
        made.rmdir()
