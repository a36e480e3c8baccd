"""Functions by sample, against a program whose functions take known shares of its time, and the simulator's places."""

import subprocess
import time

import pytest

from pmutop.errors import NoPermission
from pmutop.symbols import ElfFile, Symbols

# The rounds differ in length: with equal ones the sampler's period and the loop's can fall into step for seconds. The
# program says itself what CPU time its parts took: how fast a loop runs depends on where the linker put it.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void three_parts(int n) { for (int i = 0; i < 3 * n; i++) sink += i; }
__attribute__((noinline)) static void one_part(int n) { for (int i = 0; i < n; i++) sink += i; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void) {
    double three = 0, all = 0;
    for (;;) {
        int n = 50000 + random() % 100000;
        double start = now();
        three_parts(n);
        three += now() - start;
        one_part(n);
        all += now() - start;
        char line[32] = {0};
        snprintf(line, sizeof line, "%f", three / all);
        pwrite(1, line, sizeof line, 0);
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "parts.c").write_text(PROGRAM)
    try:
        subprocess.run(["gcc", "-O1", str(folder / "parts.c"), "-o", str(folder / "parts")], check=True)
    except FileNotFoundError:
        pytest.skip("there is no gcc")
    return folder / "parts"


def test_elf_symbols_are_those_that_nm_prints(program):
    elf = ElfFile(str(program))
    listed = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
    rows = {
        words[3]: int(words[0], 16)
        for line in listed.splitlines()
        if len(words := line.split()) == 4 and words[2] in "tT"
    }
    assert {"three_parts", "one_part", "main"} <= rows.keys()
    for name, address in rows.items():
        assert elf.functions.at(address) == name
    assert ElfFile("/proc/self/maps").functions.names == []


def test_map_files_name_jit_code(tmp_path):
    (tmp_path / "maps").mkdir()
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "maps").write_text("7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n")
    (tmp_path / "perf-77.map").write_text("7f0000000100 40 py::work:/job.py\n7f00000002")
    symbols = Symbols(tmp_path, tmp_path)
    assert symbols.name(77, 0x7F0000000120) == "py::work:/job.py"
    assert symbols.name(77, 0x7F0000000200) == "[unknown]"
    assert symbols.name(78, 1) == "[unknown]"


def shares(pid: int, places: list[tuple[int, int]]) -> tuple[float, int]:
    symbols = Symbols()
    names = [symbols.name(pid, address) for who, address in places if who == pid]
    counted = [name for name in names if name in ("three_parts", "one_part")]
    assert len(counted) > 0.9 * len(names)
    return counted.count("three_parts") / len(counted), len(counted)


def test_cpu_clock_samples_fall_where_the_time_goes(program, tmp_path):
    from pmutop.sources.sampling import Sampling

    try:
        sampling = Sampling()
    except NoPermission as error:
        pytest.skip(str(error))
    said = tmp_path / "share"
    with said.open("w") as out, subprocess.Popen([str(program)], stdout=out) as process:
        try:
            places = []
            deadline = time.monotonic() + 30
            while sum(pid == process.pid for pid, _ in places) < 200 and time.monotonic() < deadline:
                time.sleep(0.1)
                places += sampling.places()
            share, count = shares(process.pid, places)
        finally:
            process.kill()
            sampling.close()
    assert count > 100
    truth = float(said.read_text().rstrip("\0"))
    assert 0.2 < truth < 0.95, "both parts take a share worth telling apart"
    deviation = (truth * (1 - truth) / count) ** 0.5
    assert abs(share - truth) < 4 * deviation  # by chance in 1 run of 16,000


def test_the_simulators_places_fall_there_too(program):
    from pmutop.errors import PmutopError
    from pmutop.sources.simulated import SimulatedSource

    try:
        source = SimulatedSource(0.2)
    except PmutopError as error:
        pytest.skip(str(error))
    process, places = None, []
    try:
        for number, _ in enumerate(source):
            process = process or subprocess.Popen(source.wrap([str(program)]), stdout=subprocess.DEVNULL)
            places += source.places()
            if number >= 10:
                break
        share, count = shares(process.pid, [place for place in places])
    finally:
        process.kill()
        process.wait()
        source.close()
    assert count > 30
    assert 0.6 < share < 0.9  # by modelled cost, which no layout changes
