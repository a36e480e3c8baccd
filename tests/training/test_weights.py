"""Control groups with a weight: what is written where, and that a neighbour that weighs three times gets three times the CPU."""

import os
import subprocess
import sys

import pytest

from pmutop.training.weights import allowed, weighed


@pytest.mark.parametrize("tree, file, text", [("cpu", "cpu.shares", "3072"), ("", "cpu.weight", "300")])
def test_the_weight_is_written_in_the_words_of_either_version(tmp_path, tree, file, text):
    (tmp_path / tree).mkdir(exist_ok=True)
    with weighed(300, tmp_path) as joined:
        (group,) = (tmp_path / tree).iterdir()
        assert (group / file).read_text() == text
        assert joined(["true", "x"])[3:] == [str(group / "cgroup.procs"), "true", "x"]
        (group / file).unlink()  # the kernel's files go with their folder
    assert not group.exists()


def test_where_no_group_may_be_made_it_says_so(tmp_path):
    with weighed(300, tmp_path / "nothing") as joined:
        assert joined is None


@pytest.mark.live
def test_a_neighbour_of_three_times_the_weight_gets_three_times_the_cpu():
    if not allowed():
        pytest.skip("no control group may be made here")
    cpu = min(os.sched_getaffinity(0))
    loop = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"]
    with weighed(300) as heavy, weighed(100) as usual:
        running = [subprocess.Popen(join(loop)) for join in (heavy, usual)]
        try:
            subprocess.run(["sleep", "3"], check=True)
            used = [int(open(f"/proc/{process.pid}/schedstat").read().split()[0]) for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
    assert 2 < used[0] / used[1] < 4.5
