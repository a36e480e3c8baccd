"""Prints what the guest tier measured (Markdown): boots, attribution, scaling, rotation. Figures of an emulated PMU.

PYTHONPATH=. python tests/bench/hardware.py > part of README-hardware.md
"""

from __future__ import annotations

import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "hardware"))
from guest import AT_ONCE, BOOTS, boot, boots

from pmutop.sources.machine import describe

#: What is measured -> (boot, check, what to say of its facts).
FIGURES = {
    "One group on one task: instructions beyond the loop's own": (
        "exact",
        "groups.check_difference_of_two_lengths_is_exact",
        lambda facts: f"{facts['overhead']}, at every length",
    ),
    "Attach reader, 3 tasks side by side: differences of lengths": (
        "exact",
        "attach.check_difference_of_lengths_is_exact_for_each_task_while_others_run",
        lambda facts: f"exact; constant part {facts['overheads']} instructions",
    ),
    "System reader, the same": (
        "labels",
        "system.check_difference_of_lengths_is_exact_for_each_task_while_others_run",
        lambda facts: f"exact; constant part {facts['overheads']} instructions",
    ),
    "15 events on 7 counters, rotated by the kernel: shares of time": (
        "exact",
        "groups.check_fifteen_events_on_seven_counters_share_evenly",
        lambda facts: f"{facts['shares'][0]} to {facts['shares'][1]}",
    ),
    "... estimates of the same count differ by at most": (
        "exact",
        "groups.check_fifteen_events_on_seven_counters_share_evenly",
        lambda facts: f"{facts['spread']:.2%}",
    ),
    "15 events on 7 counters, rotated by the system reader: shares": (
        "labels",
        "system.check_fifteen_events_on_seven_counters_are_rotated_by_the_reader",
        lambda facts: ", ".join(map(str, facts["shares"])),
    ),
    "... error of each task's scaled instructions": (
        "labels",
        "system.check_fifteen_events_on_seven_counters_are_rotated_by_the_reader",
        lambda facts: ", ".join(f"{error:.2%}" for error in facts["errors"]),
    ),
    "Flood of switches, ring of 16 KiB: samples lost, switches without one": (
        "labels",
        "lost.check_lost_records_are_counted_and_counts_are_exact_afterwards",
        lambda facts: (
            f"{facts['machine'][1]['lost']}, {facts['machine'][1]['missing']}; exact again afterwards"
        ),
    ),
    "`lost` in the machine lines of the log, slice by slice": (
        "labels",
        "lost.check_lost_records_are_in_the_log_and_ipc_is_right",
        lambda facts: ", ".join(map(str, facts["lost"])),
    ),
    "2 CPUs: system reader's cycles / the task's own counter": (
        "two",
        "hotplug.check_tasks_on_both_cpus_are_credited_what_their_own_counters_say",
        lambda facts: ", ".join(f"{ratio:.4f}" for ratio in facts["ratios"]),
    ),
    "8 CPUs: the same": (
        "eight",
        "eight.check_each_task_is_credited_on_its_own_cpu",
        lambda facts: f"{min(facts['ratios']):.4f} to {max(facts['ratios']):.4f}",
    ),
    "8 CPUs: rings in all, descriptors": (
        "eight",
        "eight.check_rings_of_all_cpus_stay_within_64_mib",
        lambda facts: f"{facts['MiB']:g} MiB, {facts['descriptors']}",
    ),
    "Lines labelled through the system reader": (
        "labels",
        "labels.check_labels_through_the_system_reader",
        lambda facts: "; ".join(f"{count} x {what}" for what, count in facts.items()),
    ),
    "Lines labelled through the attach reader": (
        "labels",
        "labels.check_labels_through_the_attach_reader",
        lambda facts: "; ".join(f"{count} x {what}" for what, count in facts.items()),
    ),
}


def main() -> None:
    about = describe()
    load = os.getloadavg()[0]
    print(f"{time.strftime('%Y-%m-%d')}, {about['model']}, {about['cpus']} CPUs, Linux {about['kernel']}, "
          f"Python {platform.python_version()}; load average {load:.1f} before\n")  # fmt: skip
    for cpus in (1, 2, 8):
        empty = boot(cpus=cpus, icount=cpus == 1).seconds
        print(f"From QEMU's start to power-off, no check, {cpus} CPUs: {empty:.1f} s.", flush=True)
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = {name: result.result() for name, result in boots(BOOTS, pool).items()}
    print(f"All boots, {AT_ONCE} at a time: {time.monotonic() - started:.1f} s.\n")
    print("| boot | seconds | checks held |\n|---|---|---|")
    for name, result in results.items():
        held = f"{sum(told['ok'] for told in result.checks.values())} of {len(result.checks)}"
        print(f"| {name}: {', '.join(BOOTS[name][0])} | {result.seconds:.1f} | {held} |")
    print("\n| what | measured |\n|---|---|")
    for what, (name, check, said) in FIGURES.items():
        told = results[name].checks.get(check, {"ok": False})
        print(f"| {what} | {said(told['facts']) if told['ok'] else 'FAILED'} |")


if __name__ == "__main__":
    main()
