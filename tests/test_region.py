"""Marked regions of C and Python programs: one file format, and counts against work of a known size."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pmutop._perf import CountError, Group
from pmutop.events import PROC_EVENTS, generic
from pmutop.region import environment
from pmutop.wide import read_wide

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("page-faults", "task-clock")
PAGES = 500

C_PROGRAM = r"""
#include <pthread.h>
#include <sys/mman.h>
#include "pmutop_region.h"
static void touch(int pages) {
    char *p = mmap(0, pages * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, pages * 4096L, MADV_NOHUGEPAGE);
    for (int i = 0; i < pages; i++) p[i * 4096L] = 1;
}
static void *task(void *place) { pmutop_region_begin_at("task", place); touch(500); pmutop_region_end(); return 0; }
int main(void) {
    pthread_t thread;
    pmutop_region_begin("outer");
    pmutop_region_begin("inner"); touch(500); pmutop_region_end();
    pmutop_region_begin("inner"); pmutop_region_end();
    pmutop_region_end();
    pmutop_region_end(); /* one too many does no harm */
    pthread_create(&thread, 0, task, "0.7.1");
    pthread_join(thread, 0);
    return 0;
}
"""

PYTHON_PROGRAM = """
import mmap, threading
from pmutop.region import region
def touch(pages):
    block = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(pages):
        block[page * 4096] = 1
def task():
    with region("task", "0.7.1"):
        touch(500)
touch(1)
with region("outer"):
    with region("inner"):
        touch(500)
    with region("inner"):
        pass
thread = threading.Thread(target=task)
thread.start()
thread.join()
"""


@pytest.fixture(scope="module", autouse=True)
def countable():
    try:
        Group([generic(name) for name in NAMES], 0).close()
    except CountError as error:
        pytest.skip(f"software events cannot be counted here: {error}")


@pytest.fixture(params=["c", "python"])
def program(request, tmp_path):
    if request.param == "python":
        return [sys.executable, "-c", PYTHON_PROGRAM]
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    source = tmp_path / "program.c"
    source.write_text(C_PROGRAM)
    build = ["gcc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", f"-I{ROOT / 'pmutop'}"]
    subprocess.run([*build, str(source), "-o", str(tmp_path / "program")], check=True)
    return [str(tmp_path / "program")]


def run(program, variables):
    return subprocess.run(
        program, env={"PYTHONPATH": str(ROOT), **variables}, check=True, capture_output=True, text=True
    )


def test_regions_become_tasks_with_their_own_counts(program, tmp_path):
    output = tmp_path / "regions.csv"
    assert run(program, environment(output, [generic(name) for name in NAMES])).stderr == ""
    table = read_wide(output)
    assert table.events == NAMES
    assert table.path.tolist() == ["0.0.0", "0.0.1", "0.0", "0.7.1"]
    assert table.type.tolist() == ["inner", "inner", "outer", "task"]
    touched, idle, outer, other = table.column("page-faults")
    assert PAGES <= touched <= PAGES + 20 and idle <= 10
    assert touched + idle <= outer <= touched + idle + 20
    assert PAGES <= other <= PAGES + 20  # its own thread's group
    assert (table.column("task-clock") > 0).all()


def test_runs_append_and_without_the_variable_nothing_happens(program, tmp_path):
    output = tmp_path / "regions.csv"
    variables = environment(output, [generic("page-faults")])
    run(program, variables)
    run(program, variables)
    assert len(read_wide(output)) == 8
    run(program, {})
    assert len(read_wide(output)) == 8


def test_what_the_kernel_refuses_is_empty_and_said(program, tmp_path):
    output = tmp_path / "regions.csv"
    said = run(
        program, {"PMUTOP_REGIONS": str(output), "PMUTOP_EVENTS": "page-faults=1:2 nonsense=1:99"}
    ).stderr
    assert "pmutop region" in said
    assert output.read_text().splitlines()[1] == "inner,0.0.0,,"


def test_user_mode_only(program, tmp_path):
    output = tmp_path / "regions.csv"
    event = replace(generic("page-faults"), name="page-faults:u", mode="u")
    assert run(program, environment(output, [event, generic("page-faults")])).stderr == ""
    table = read_wide(output)
    assert (table.column("page-faults:u") <= table.column("page-faults")).all()
    assert table.column("page-faults:u")[0] >= PAGES


def test_an_event_that_needs_more_than_a_code_is_refused():
    with pytest.raises(ValueError, match="cannot be counted in a region"):
        environment("x", [generic("task-clock"), PROC_EVENTS[0]])
