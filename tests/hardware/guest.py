"""An arm64 Linux guest with a real PMU driver and seven emulated counters, booted by the tests in seconds.

Debian's stock arm64 kernel in QEMU's pure emulation registers `armv8_pmuv3`, so perf_event_open's whole hardware path
runs without hardware. `boot()` makes what is missing (kernel, Python, numpy, the cross-built package), starts the guest
on the check modules of `inside/` and returns what they said. Nothing of the host is changed: the guest's packages come by
plain apt with a state of its own, and everything is kept in one folder, $PMUTOP_GUEST_CACHE or ~/.cache/pmutop-guest.

`python tests/hardware/guest.py MODULE...` boots by hand (see --help).
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path

from image import QEMU, overlay, prepare

AT_ONCE = 2  # boots: a guest that counts instructions has one busy thread, and its time is its own
#: QEMU's richest processor counts stalls as well (always 0), so that the rules have something to go by.
RICH = "max,pauth=off"
#: The boots that make up the tier: name -> (check modules, `boot`'s options).
BOOTS: dict[str, tuple[tuple[str, ...], dict]] = {
    "exact": (("groups", "attach", "cores", "doctor"), {}),
    "commands": (("commands", "fingerprints"), {"cpu": RICH}),
    "labels": (("system", "labels", "lost"), {"cpu": RICH}),
    "many": (("manyruns",), {}),
    "without": (("groups", "attach", "cores", "labels", "nopmu"), {"pmu": False}),
    "two": (("cpus", "hotplug"), {"cpus": 2, "icount": False}),
    "eight": (("eight",), {"cpus": 8, "icount": False}),
}


@dataclass(frozen=True)
class Result:
    """What a boot gave: the console, the checks by name (`module.check_name`) and the files the checks kept."""

    output: str
    status: int | None  # of the checks: how many failed; None when the guest ended without saying so
    checks: dict[str, dict]
    files: dict[str, bytes] = field(repr=False)
    seconds: float


def boot(
    *modules: str,
    cpus: int = 1,
    icount: bool = True,
    pmu: bool = True,
    cpu: str = "cortex-a57",
    memory: int = 768,
    limit: float = 300,
) -> Result:
    """Boot and run the check modules named (files of `inside/`).

    With `icount` an instruction is four nanoseconds of guest time and so exactly four cycles, and a run repeats to the
    digit on one CPU; without, cycles are the host's time at 1 GHz, CPUs run truly in parallel and there is no
    instructions event. `pmu=False` takes the PMU away: the control. Raises Unavailable, or TimeoutError after `limit`
    seconds with what the console said.
    """
    kernel, base = prepare()
    folder = Path(tempfile.mkdtemp(prefix="pmutop-guest-"))
    try:
        initrd = folder / "initrd"
        shutil.copyfile(base, initrd)
        with open(initrd, "ab") as file:
            file.write(overlay())
        command = [QEMU, "-accel", "tcg", "-M", "virt,dtb-randomness=off"]
        command += ["-cpu", cpu + ("" if pmu else ",pmu=off"), "-smp", str(cpus), "-m", str(memory)]
        if icount:
            command += ["-icount", "shift=2,sleep=off", "-rtc", "base=2026-01-01,clock=vm"]
        command += ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]
        words = f"console=ttyAMA0 quiet loglevel=3 panic=-1 -- {' '.join(modules)}"
        command += ["-kernel", str(kernel), "-initrd", str(initrd), "-append", words]
        started = time.monotonic()
        output = watched(command, limit)
        return understood(output, time.monotonic() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def boots(names: Iterable[str], pool: Executor) -> dict[str, Future[Result]]:
    """Results to come of these boots, in the table's order."""
    return {
        name: pool.submit(boot, *modules, **options)
        for name, (modules, options) in BOOTS.items()
        if name in names
    }


def watched(command: list[str], limit: float) -> str:
    """The console of one QEMU, which is ended by its own pid if it outlives the limit."""
    guest = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        return guest.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        guest.kill()
        said = guest.communicate()[0]
        raise TimeoutError(
            f"the guest did not end within {limit:.0f} s; its last words:\n{said[-3000:]}"
        ) from None
    except BaseException:
        guest.kill()
        guest.wait()
        raise


def understood(output: str, seconds: float) -> Result:
    """The console's lines taken apart: checks, files, status; the rest is for people."""
    checks, pieces, status, rest = {}, {}, None, []
    for line in output.replace("\r", "").splitlines():
        word, _, tail = line.partition(" ")
        if word == "@check":
            told = json.loads(tail)
            checks[told["check"]] = told
        elif word == "@file":
            name, _, piece = tail.partition(" ")
            pieces[name] = pieces.get(name, "") + piece
        elif word == "@status":
            status = int(tail)
        else:
            rest.append(line)
    files = {name: zlib.decompress(base64.b64decode(text)) for name, text in pieces.items()}
    return Result("\n".join(rest), status, checks, files, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description="boot the guest on check modules of tests/hardware/inside/")
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--clock", action="store_true", help="host time instead of counted instructions")
    parser.add_argument("--no-pmu", action="store_true")
    parser.add_argument("--cpu", default="cortex-a57", help="as QEMU names it (max: stall events as well)")
    parser.add_argument("--limit", type=float, default=300)
    options = parser.parse_args()
    result = boot(
        *options.modules,
        cpus=options.cpus,
        icount=not options.clock,
        pmu=not options.no_pmu,
        cpu=options.cpu,
        limit=options.limit,
    )
    print(result.output)
    for check in result.checks.values():
        print(
            "ok    " if check["ok"] else "FAILED",
            f"{check['seconds']:6.2f} s",
            check["check"],
            check.get("facts", ""),
        )
        if not check["ok"]:
            print(check["trace"])
    print(f"status {result.status}, {len(result.files)} files, {result.seconds:.1f} s")
    return 0 if result.status == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
