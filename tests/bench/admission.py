"""Prints which labelled workloads are really slower than their twins on this machine (DESIGN, 'Admission rule').

python tests/bench/admission.py [--kind KIND ...] [--tier software] [--repeats 3] [--seconds 0.3]
"""

import argparse
import datetime
import platform
import sys
from pathlib import Path

from pmutop.training import admission, catalogue


def processor() -> str:
    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return f"{names[0] if names else platform.machine()} x {len(names)}, Linux {platform.release()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", help="only this kind (again for more)")
    parser.add_argument("--tier", choices=("software", "hardware"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    wanted = [
        (workload, twin)
        for workload, twin in admission.pairs(catalogue.labelled())
        if (not options.kind or workload.kind in options.kind)
        and (not options.tier or workload.tier == options.tier)
    ]
    measured = admission.admit(
        wanted,
        options.repeats,
        options.seconds,
        progress=lambda one: print(one.workload.name, file=sys.stderr),
    )
    print(f"{processor()}, {datetime.date.today()}, {options.repeats} x {options.seconds:g} s\n")
    print(admission.report(measured))


main()
