"""Hot functions of one process while somebody looks: real samples, real symbols, judged by hand."""

import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest
from making import task

from pmutop.cli.spots import Spots
from pmutop.errors import NoPermission
from pmutop.moment import Label

SOURCE = """
volatile unsigned long sum;
__attribute__((noinline)) void spin_here(void) { for (long i = 0; i < 1000000; i++) sum += i; }
int main(void) { for (;;) spin_here(); }
"""
LIVE = SimpleNamespace(header=SimpleNamespace(source="attach"))


@pytest.fixture
def spinning(tmp_path):
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    subprocess.run(
        [compiler, "-O1", "-x", "c", "-", "-o", tmp_path / "spin"], input=SOURCE.encode(), check=True
    )
    with subprocess.Popen([tmp_path / "spin"]) as child:
        yield child.pid
        child.kill()


def moment(pid, label="P_CPU"):
    tasks = [task(1, comm="other"), task(2, pid, comm="spin")]
    return SimpleNamespace(tasks=tasks, labels={1: (Label(label, "", 0.9, "software", "test"),)})


def watched(spots, pid):
    wrong = spots.watch(pid)
    if wrong:
        pytest.skip(wrong)


def found(spots, pid, enough=10):
    """Slices until there are samples, however slow the machine is."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        spots.moment(moment(pid))
        if spots.functions() and spots.functions()[0]["samples"] >= enough:
            break
        time.sleep(0.05)
    return spots.functions()


def test_the_functions_of_the_process_under_its_label(spinning):
    spots = Spots(LIVE)
    watched(spots, spinning)
    (line,) = found(spots, spinning)
    assert (line["pid"], line["label"], line["functions"][0]["name"]) == (spinning, "P_CPU", "spin_here")
    assert line["functions"][0]["share"] > 0.9
    spots.watch(None)


def test_sampling_ends_with_the_look(spinning):
    before = len(os.listdir("/proc/self/fd"))
    spots = Spots(LIVE)
    watched(spots, spinning)
    assert len(os.listdir("/proc/self/fd")) > before
    found(spots, spinning, 1)
    assert spots.watch(None) == "" and spots.functions() == []
    assert len(os.listdir("/proc/self/fd")) == before
    spots.moment(moment(spinning))
    assert spots.functions() == []


def test_threads_of_one_process_where_not_all_may_be_sampled(spinning, monkeypatch):
    from pmutop.sources import sampling

    real = sampling.Sampler

    def only_named(cpu, pid=-1):
        if pid == -1:
            raise OSError(13, "Permission denied")
        return real(cpu, pid)

    monkeypatch.setattr(sampling, "Sampler", only_named)
    spots = Spots(LIVE)
    watched(spots, spinning)
    (line,) = found(spots, spinning)
    assert line["functions"][0]["name"] == "spin_here"
    spots.watch(None)


def test_what_may_not_be_sampled_is_said_in_a_line(monkeypatch):
    from pmutop.sources import sampling

    def never(*arguments):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(sampling, "Sampler", never)
    said = Spots(LIVE).watch(os.getpid())
    assert "cannot be sampled" in said and "pmutop doctor" in said and "\n" not in said
    with pytest.raises(NoPermission):
        sampling.Sampling()
