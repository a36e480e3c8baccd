"""--progress for real: an event of the user's is counted beside the others, and tells by how much a program was slowed."""

import shutil
import subprocess

import pytest
from capabilities import may_count, needs_perf, needs_tracepoints

from pmutop.errors import UsageError
from pmutop.pipeline.engine import Engine
from pmutop.sources.attach import AttachSource
from pmutop.sources.system import SystemSource
from pmutop.sysfs import resolve

#: Fixed work per step; three times as much after SIGUSR1, with the same number of steps per work done told by `step`.
PROGRAM = r"""
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int slower = 1;
static volatile unsigned long sink;
static void slow(int number) { slower = 3; }
__attribute__((noinline)) void step(void)
{
    syscall(SYS_getppid);
    for (unsigned long i = 0; i < 200000ul * slower; i++)
        sink += i;
}
int main(void)
{
    signal(SIGUSR1, slow);
    for (;;)
        step();
}
"""
MOST = 60  # slices that a shared machine may need for a dozen in which the program ran enough


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("steps")
    (folder / "steps.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-o", folder / "steps", folder / "steps.c"], check=True)
    return folder / "steps"


@needs_perf
@needs_tracepoints
@pytest.mark.parametrize(
    "reader, kind", [(SystemSource, "uprobe"), (SystemSource, "tracepoint"), (AttachSource, "tracepoint")]
)  # the attach reader's uprobes work too, but one on every task takes the kernel many seconds
def test_a_program_slowed_threefold_is_found_by_its_own_progress(reader, kind, program):
    """Per CPU second, so that it holds however busy the machine is."""
    event = f"{program}:step" if kind == "uprobe" else "syscalls:sys_enter_getppid"
    if not may_count(event):
        pytest.skip(f"{kind}s may not be counted here")
    source = reader(0.2, progress=event)
    engine = Engine(source.header, [])
    factors = {False: [], True: []}
    process = subprocess.Popen([program])
    try:
        for number, raw in enumerate(source):
            moment = engine.moment(raw)
            row = next((at for at, task in enumerate(moment.tasks) if task.pid == process.pid), None)
            found = moment.interference.get(row)
            slowed = len(factors[False]) >= 8
            if found is not None and found.progress.factor is not None:
                factors[slowed].append(found.progress)
                if len(factors[False]) == 8 and not slowed:
                    process.send_signal(10)
            if len(factors[True]) >= 6 or number > MOST:
                break
    finally:
        process.kill()
        process.wait()
        source.close()
    assert source.header.progress == event and event in [one.name for one in source.header.events]
    after = factors[True][1:]  # the slice of the signal is of both kinds
    assert len(after) >= 4, f"only {factors} in {MOST} slices"
    assert all(one.verdict for one in after)
    middle = sorted(one.factor for one in after)[len(after) // 2]
    assert 2 < middle < 4.5


def test_a_function_is_found_by_name_or_told_which_there_are(program):
    event = resolve(f"{program}:step")
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(" T step"))
    assert event.path == str(program) and event.config2 == address  # a PIE: the text lies where it is mapped
    with pytest.raises(UsageError, match="has no function 'stap'") as told:
        resolve(f"{program}:stap")
    assert "did you mean step" in str(told.value.hint)
    with pytest.raises(UsageError, match="cannot read the file"):
        resolve("/nonexistent/program:step")
    bare = program.with_name("bare")
    subprocess.run(["strip", "-o", bare, program], check=True)
    with pytest.raises(UsageError, match="has no function 'step'"):
        resolve(f"{bare}:step")
