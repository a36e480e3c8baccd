"""The system reader on emulated counters: every task from one stream of samples, exact while others run."""

import contextlib
import functools

from commands import logged, pmutop, spinning
from loops import Spin
from readers import Watch, differences_are_exact

from pmutop.sources.system import SystemSource

#: Python is slow in an emulator: without a budget the reader would shed its events, as it should elsewhere.
generous = functools.partial(SystemSource, budget=10.0)


def check_difference_of_lengths_is_exact_for_each_task_while_others_run():
    return differences_are_exact(generous)


def check_fifteen_events_on_seven_counters_are_rotated_by_the_reader():
    """The facts' own figure: the worst task's error is at most 3 % after 0.6 s. Every third event is instructions."""
    names = ["cycles:u", "instructions:u"]
    names += [
        f"r{code:x}:u"
        for code in (0x08, 0x01, 0x03, 0x09, 0x1D, 0x00, 0x04, 0x05, 0x06, 0x07, 0x0A, 0x0C, 0x10)
    ]
    passes = [40_000_000, 50_000_000, 60_000_000]
    with contextlib.ExitStack() as stack:
        spins = [stack.enter_context(Spin(length, pieces=60)) for length in passes]
        watch = Watch(generous(0.2, names))
        stack.callback(watch.source.close)
        for spin in spins:
            spin.go()
        for spin in spins:
            assert spin.process.stdout.readline() == b"done\n"
        watch.catch_up()
        errors, shares = [], []
        for spin, length in zip(spins, passes, strict=True):
            value, enabled, running = watch.total(spin.pid, "instructions:u")
            assert 0 < running < enabled
            shares.append(running / enabled)
            errors.append(abs(value * enabled / running / (2 * length) - 1))
    assert max(errors) <= 0.03, errors
    return {"errors": [round(error, 4) for error in errors], "shares": [round(share, 3) for share in shares]}


def check_log_gives_ipc_of_a_launched_loop():
    header, processes, machine = logged(
        "--source", "system", "--budget", "100", "--interval", "0.2", "--", "spin", "80000000"
    )
    assert header["source"] == "system"
    rates = [line["ipc"] for line in spinning(processes) if line["ipc"] is not None]
    assert rates and all(abs(rate - 0.25) < 0.002 for rate in rates), rates
    assert not any(line.get("lost") for line in machine)
    return {"ipc": rates[0]}


def check_load_is_shed_and_said_so():
    with Spin(60_000_000) as spin:
        watch = Watch(SystemSource(0.05, ["instructions:u"], budget=0.001))
        try:
            spin.go()
            machines = [watch.tick().machine for _ in range(6)]
        finally:
            watch.source.close()
    assert any("--budget" in machine["why"] for machine in machines), machines[-1]
    return {"why": [machine["why"] for machine in machines]}


def check_nobody_is_told_why_not():
    done = pmutop("log", "--source", "system", "--slices", "1", user=65534, status=3)
    assert "paranoid" in done.stderr, done.stderr
    return {"said": done.stderr.strip()}
