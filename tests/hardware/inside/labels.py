"""Labels in the guest, through both readers, on lines whose IPC the emulated counters gave: by the shipped software model, and
by the published rules where no model of this processor is installed. The recording and the log go to the host."""

import json
import sys

from commands import pmutop
from run import keep

#: Workload -> the label that it was trained as, by another processor and another kernel.
WORKLOADS = {"os_fault": "P_OS_MinorFault", "os_syscall": "P_OS_Syscall", "os_runqueue": "P_OS_RunQueue"}
#: One after the other, as on one CPU whoever ran beside them would make all of them wait.
LAUNCHER = "import os\nfor words in {!r}: os.waitpid(os.posix_spawn('/opt/bin/' + words[0], words, os.environ), 0)".format(
    [
        [name, "--variant", "P", "--seconds", "1", "--workers", "3" if name == "os_runqueue" else "1"]
        for name in WORKLOADS
    ]
)


def labelled(reader):
    """{(comm, label, model): how many lines}, of lines with a whole slice's IPC; the log and the recording are kept."""
    words = [
        "--source",
        reader,
        "--budget",
        "100",
        "--record",
        f"/tmp/{reader}.pmutop",
        "--output",
        f"/tmp/{reader}.jsonl",
    ]
    pmutop("log", *words, "--", sys.executable, "-ISc", LAUNCHER)
    with open(f"/tmp/{reader}.jsonl") as file:
        header, *lines = map(json.loads, file)
    assert header["source"] == reader
    told = {}
    for line in lines:
        if line.get("comm") in WORKLOADS and line["ipc"] is not None and line["cpu"]:
            assert abs(line["ipc"] - 0.25) < 0.002, line
            for label in line["labels"]:
                told[line["comm"], label["label"], label["model"]] = (
                    told.get((line["comm"], label["label"], label["model"]), 0) + 1
                )
                assert (label["tier"], label["confidence"]) == ("hardware", 0.0) or label[
                    "model"
                ] != "rule", label
    keep(f"/tmp/{reader}.pmutop")
    keep(f"/tmp/{reader}.jsonl")
    return told


def labels_are_right(reader):
    told = labelled(reader)
    for comm, label in WORKLOADS.items():
        ours = {key[1] for key in told if key[0] == comm and key[2] == "software-fingerprints"}
        assert label in ours and ours <= {label, "unknown"}, (comm, told)
        # The emulated processor counts stalls of the back end, always 0: looked for, and not found.
        rules = {key[1] for key in told if key[0] == comm and key[2] == "rule"}
        assert rules == {"N_CPU"}, (comm, told)
    return {" ".join(key): count for key, count in told.items()}


def check_labels_through_the_system_reader():
    return labels_are_right("system")


def check_labels_through_the_attach_reader():
    return labels_are_right("attach")


def check_rules_abstain_where_neither_misses_nor_stalls_are_counted():
    """With cycles and instructions alone there is an IPC, and nothing to call healthy."""
    words = ["--events", "cycles,instructions", "--slices", "4", "--source", "attach"]
    lines = [
        json.loads(line)
        for line in pmutop(
            "log", *words, "--", "os_syscall", "--variant", "P", "--seconds", "1"
        ).stdout.splitlines()
    ]
    said = [
        label
        for line in lines
        if line.get("comm") == "os_syscall" and line["ipc"]
        for label in line["labels"]
    ]
    assert {label["label"] for label in said if label["model"] == "rule"} == {"unknown"}, said
