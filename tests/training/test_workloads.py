"""The labelled workloads: they build everywhere, do what they say, cost what they should, and leave nobody behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pmutop.errors import PmutopError, UsageError
from pmutop.training import admission, catalogue, workloads
from pmutop.training.catalogue import HARDWARE_LABELS, SOFTWARE_LABELS, Caches, Workload

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
import expected

CPUS = tuple(sorted(os.sched_getaffinity(0)))
SMALL = Caches(first=16 << 10, second=64 << 10, third=256 << 10)  # short init phases
PROGRAMS = sorted(path.stem for path in workloads.PROGRAMS.glob("*.c"))

pytestmark = pytest.mark.skipif(
    not shutil.which("gcc"),
    reason="gcc is not installed: the training programs cannot be built",
)


@pytest.fixture(scope="module")
def executables(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


def one_of_each(rows):
    """The first row of each program and body, with its twin: the tables vary sizes and rates, not what is done."""
    first = {}
    for workload, twin in admission.pairs(rows):
        first.setdefault((workload.program, workload.body), (workload, twin))
    return [pair for pair in first.values() if not workloads.missing(pair[0], CPUS)]


def members(group: int) -> list[int]:
    """Living processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(pgrp) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


def gone(group: int, within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while members(group):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# ---- building ----


@pytest.mark.slow
def test_every_program_compiles_with_every_build_without_a_warning(executables):
    jobs = [(program, (*options, "-Werror")) for program in PROGRAMS for options in catalogue.BUILDS]
    jobs += [(str(unseen.source), ("-O2", "-Werror")) for unseen in expected.table()]
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda job: workloads.build(*job, folder=executables), jobs))
    assert all(os.access(path, os.X_OK) for path in built)


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc"), reason="aarch64-linux-gnu-gcc is not installed"
)
def test_every_program_compiles_for_another_processor(tmp_path):
    for program in PROGRAMS:
        source = workloads.PROGRAMS / f"{program}.c"
        compiler = ["aarch64-linux-gnu-gcc", *workloads.ALWAYS, "-Werror", "-O1"]
        done = subprocess.run(
            [*compiler, source, "-o", tmp_path / program, "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_a_build_is_made_once_and_the_process_keeps_the_programs_name(executables):
    first = workloads.build("os_fault", ("-O2",), executables)
    made = first.stat().st_mtime_ns
    assert workloads.build("os_fault", ("-O2",), executables) == first
    assert first.stat().st_mtime_ns == made
    assert workloads.build("os_fault", ("-Os",), executables) != first
    assert first.name == "os_fault"


def test_a_source_that_does_not_compile_says_so(tmp_path):
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(PmutopError, match=r"broken\.c.*nothing"):
        workloads.build(str(broken), folder=tmp_path)


def test_an_unknown_program_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no_such"):
        workloads.build("no_such", folder=tmp_path)


def test_without_gcc_the_hint_says_what_to_install(monkeypatch, tmp_path):
    workloads._compiler.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    try:
        with pytest.raises(PmutopError, match="gcc is not installed") as caught:
            workloads.build("os_fault", folder=tmp_path)
    finally:
        workloads._compiler.cache_clear()
    assert caught.value.hint.startswith("apt install gcc")


# ---- the tables ----


def test_the_catalogue_is_consistent():
    rows = (*catalogue.labelled(), *catalogue.hardware(every=True), *catalogue.applications())
    rows = tuple(dict.fromkeys(rows))
    by_name = {row.name: row for row in rows}
    assert len(by_name) == len(rows), "names are unique"
    known = SOFTWARE_LABELS.keys() | HARDWARE_LABELS.keys()
    for row in catalogue.labelled():
        assert {row.label, row.coarse} <= known, row.name
        assert row.who in ("all", "main", "family"), row.name
        assert row.needs <= {"two-cpus", "disk", "x86"}, row.name
        assert bool(row.twin) == (row.variant == "P"), row.name
    for workload, twin in admission.pairs(rows):
        assert not twin.pathological
        alike = replace(twin, name=workload.name, label=workload.label, coarse=workload.coarse)
        assert replace(alike, variant="P", who=workload.who, twin=workload.twin) == workload, (
            "only the variant differs"
        )


def test_every_program_and_every_label_is_in_the_catalogue():
    rows = (*catalogue.labelled(), *catalogue.applications())
    assert {row.program for row in rows} == {*PROGRAMS, "interpreter.py"}
    labels = {row.label for row in rows}
    assert labels >= SOFTWARE_LABELS.keys()
    assert {
        row.label for row in catalogue.hardware(Caches(32 << 10, 1 << 20, 32 << 20))
    } == HARDWARE_LABELS.keys()


def test_hold_outs_can_be_formed():
    """Each kind has several bodies, and each pathology of the hardware several sizes and builds."""
    for label in HARDWARE_LABELS:
        rows = [row for row in catalogue.hardware(Caches(32 << 10, 1 << 20, 32 << 20)) if row.label == label]
        assert len({row.body for row in rows}) >= 3
        assert len({row.build for row in rows}) >= 2
        assert label.endswith("CPU") or len({row.size for row in rows}) >= 2
    for label in SOFTWARE_LABELS:
        assert (
            len({(row.program, row.body, row.size) for row in catalogue.software() if row.label == label})
            >= 2
        )


def test_sizes_are_the_papers_on_the_papers_caches():
    sizes = Caches(first=48 << 10, second=1 << 20, third=32 << 20).sizes()
    assert (sizes["L2"][0], sizes["L2"][-1]) == (128 << 10, 256 << 10)
    assert (sizes["L3"][0], sizes["L3"][-1]) == (4 << 20, 8 << 20)
    assert (sizes["M"][0], sizes["M"][-1]) == (128 << 20, 256 << 20)


def test_caches_are_read_from_sysfs(tmp_path):
    for index, (level, kind, size) in enumerate(
        [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "36864K")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{value}\n")
    assert Caches.of_this_machine(tmp_path) == Caches(48 << 10, 2 << 20, 36 << 20)
    assert "L3" not in Caches(32 << 10, 1 << 20, 0).sizes(), "no third cache, no such working set"
    assert Caches.of_this_machine(tmp_path / "none").first > 0


def test_expected_labels_of_the_unseen_programs():
    rows = expected.table()
    assert {row.program for row in rows} == {path.stem for path in expected.HERE.glob("*.c")}
    assert len({row.program for row in rows}) >= 13
    for row in rows:
        assert {row.expected, *row.defensible} <= HARDWARE_LABELS.keys(), row.name


# ---- running ----


def run(workload: Workload, **limits):
    with workloads.start(workload, CPUS, nice=0, **limits) as running:
        running.wait_ready()
        return running.result(timeout=60)


@pytest.mark.parametrize(
    "pair", one_of_each([*catalogue.software(), *catalogue.hardware(SMALL)]), ids=lambda pair: pair[0].name
)
def test_variant_and_twin_do_the_same_work_per_unit(pair):
    """`check` is counted from results (bytes that arrived, counters under locks, exit codes, sums of memory)."""
    for workload in pair:
        result = run(workload, seconds=0.04)
        assert result["work"] > 0
        # what is still on its way when the time is up may be a batch
        assert result["check"] == pytest.approx(result["work"], rel=0.1), workload.name
        assert result["seconds"] >= 0.03


@pytest.mark.parametrize("workload", catalogue.applications(), ids=lambda workload: workload.name)
def test_applications_time_their_iterations(workload):
    short = tuple(
        "2" if before == "--repeat" else word
        for before, word in zip(("", *workload.arguments), workload.arguments)
    )
    if workloads.missing(workload, CPUS):
        pytest.skip(workloads.missing(workload, CPUS))
    result = run(replace(workload, arguments=(*short, "--iterations", "2")))
    repeat = 2 if "--repeat" in short else 1
    assert result["work"] == len(result["iterations"]) == 2
    assert sum(result["iterations"]) <= result["seconds"] + 1e-6  # both are rounded to a microsecond
    assert result["check"] == 2 * repeat


def test_a_duty_cycle_leaves_the_cpu_idle_for_its_part():
    matrix = next(row for row in catalogue.applications() if row.name == "MM-S")
    fault = next(
        row for row in catalogue.software() if row.program == "os_fault" and "--duty" not in row.arguments
    )
    for row in (matrix, fault):
        result = run(replace(row, arguments=(*row.arguments, "--duty", "25", "--period", "20")), seconds=0.5)
        assert result["cpu_seconds"] < 0.4 * result["seconds"]


def test_iterations_that_had_no_time_are_an_empty_list():
    matrix = next(row for row in catalogue.applications() if row.name == "MM-L")
    assert (
        run(replace(matrix, arguments=(*matrix.arguments, "--repeat", "1000")), seconds=0.01)["iterations"]
        == []
    )


def test_healthy_programs_work():
    first = {
        row.body: row
        for row in catalogue.software()
        if row.kind == "healthy" and not workloads.missing(row, CPUS)
    }
    for row in first.values():
        result = run(row, seconds=0.02)
        assert result["work"] == result["check"] > 0, row.name


@pytest.mark.slow
def test_unseen_programs_work(executables):
    for unseen in expected.table():
        small = tuple(
            word.replace("8M", "64K").replace("4M", "64K").replace("1M", "64K").replace("2M", "64K")
            for word in unseen.arguments
        )
        result = run(replace(unseen.workload(), arguments=small), seconds=0.05)
        assert result["work"] > 0, unseen.name
        if unseen.program != "regex":  # there the check is the number of matches
            assert result["check"] == result["work"], unseen.name


def test_a_fixed_amount_of_work_ends_the_program():
    fault = next(row for row in catalogue.software() if row.program == "os_fault")
    result = run(fault, work=1000)
    assert 1000 <= result["work"] < 1100


def test_an_option_that_does_not_exist_is_reported():
    fault = next(row for row in catalogue.software() if row.program == "os_fault")
    with pytest.raises(PmutopError, match=r"did not start.*--typo"):
        run(replace(fault, arguments=("--typo", "1")), seconds=0.1)


def several_processes() -> Workload:
    return next(row for row in catalogue.software() if row.program == "os_runqueue" and "4" in row.arguments)


def test_leaving_ends_the_whole_group():
    with workloads.start(several_processes(), CPUS) as running:
        running.wait_ready()
        assert len(members(running.pid)) == 4
        assert os.getpgid(running.pid) == running.pid != os.getpgid(0)
        assert os.readlink(f"/proc/{running.pid}/fd/0") == "/dev/null"
        assert os.getpriority(os.PRIO_PROCESS, running.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 5
    assert members(running.pid) == []


def test_a_stopped_program_still_says_what_it_did():
    with workloads.start(several_processes(), CPUS) as running:
        running.wait_ready()
        os.kill(running.pid, signal.SIGTERM)
        result = running.result(timeout=30)
        assert result["work"] == result["check"]  # 0 where it came before the first chunk
        assert running.process.returncode == 0


def test_a_killed_parent_leaves_no_orphans():
    script = (
        "import os, sys, time\n"
        "from pmutop.training import admission, catalogue, workloads\n"
        "row = next(r for r in catalogue.software() if r.program == 'os_switch')\n"
        "shared = next(r for r in catalogue.software() if r.program == 'os_runqueue')\n"
        "both = [workloads.start(w, tuple(os.sched_getaffinity(0))) for w in (row, shared)]\n"
        "[running.wait_ready() for running in both]\n"
        "print(*(running.pid for running in both), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        groups = [int(word) for word in parent.stdout.readline().split()]
        assert len(groups) == 2 and all(members(group) for group in groups)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert all(gone(group) for group in groups)


# ---- what /proc says of them ----


def trace(workload: Workload) -> dict[str, float]:
    """Per millisecond of CPU time, over the main process: what the kernel counted in /proc while it ran."""

    def read(pid):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        run, wait, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
        return {
            "minor": int(stat[7]) + int(stat[8]),
            "major": int(stat[9]),
            "system": int(stat[12]) * 1000 / os.sysconf("SC_CLK_TCK"),
            "voluntary": int(status[-2].split()[1]),
            "run": run / 1e6,
            "wait": wait / 1e6,
        }

    with workloads.start(workload, CPUS) as running:
        running.wait_ready()
        before, after = read(running.pid), {"run": 0}
        deadline = time.monotonic() + 30
        while after["run"] - before["run"] < 100 and time.monotonic() < deadline:
            time.sleep(0.1)
            after = read(running.pid)
    return {name: (after[name] - before[name]) / (after["run"] - before["run"]) for name in after}


@pytest.mark.parametrize(("name", "what", "more_than", "twin_less_than"), [
    ("fault-anonymous-16", "minor", 20, 1),
    ("fault-temporary-1-", "minor", 5, 1),
    ("major-fadvise-512", "major", 3, 0.1),
    ("switch-pipe-1-", "voluntary", 10, 5),
    ("migrate-self-32K", "voluntary", 5, 1),
    ("fork-fork-64K", "minor", 10, 1),
    ("syscall-getppid-1-", "system", 0.3, 0.25),
])  # fmt: skip
def test_the_trace_in_proc_tells_variant_from_twin(name, what, more_than, twin_less_than):
    pair = next(pair for pair in admission.pairs(catalogue.software()) if pair[0].name.startswith(name))
    if workloads.missing(pair[0], CPUS):
        pytest.skip(workloads.missing(pair[0], CPUS))
    ours, twins = trace(pair[0])[what], trace(pair[1])[what]
    assert ours > more_than
    assert twins < twin_less_than


def test_sharers_of_a_cpu_wait_for_it():
    assert trace(several_processes())["wait"] > 1.5
