"""Labels in the guest, through both readers, on lines whose IPC the emulated counters gave: by the shipped software model, and
by the published rules where no model of this processor is installed. The recording and the log go to the host."""

import json
import sys
from collections import Counter

from commands import pmutop
from run import keep

#: Workload -> the label that it was trained as, by another processor and another kernel.
WORKLOADS = {"os_fault": "P_OS_MinorFault", "os_syscall": "P_OS_Syscall", "os_runqueue": "P_OS_RunQueue"}
MODELS = ("software-fingerprints", "rule")
#: One after the other, as on one CPU whoever ran beside them would make all of them wait.
LAUNCHER = "import os\nfor words in {!r}: os.waitpid(os.posix_spawn('/opt/bin/' + words[0], words, os.environ), 0)".format(
    [
        [name, "--variant", "P", "--seconds", "1", "--workers", "3" if name == "os_runqueue" else "1"]
        for name in WORKLOADS
    ]
)


def labels_are_right(reader):
    """On every line with an IPC; the log and the recording are kept. Returns how many lines said what."""
    recording, log = f"/tmp/{reader}.pmutop", f"/tmp/{reader}.jsonl"
    words = f"--source {reader} --budget 100 --record {recording} --output {log} --".split()
    pmutop("log", *words, sys.executable, "-ISc", LAUNCHER)
    keep(recording)
    keep(log)
    with open(log) as file:
        header, *lines = map(json.loads, file)
    assert header["source"] == reader
    told = Counter()
    for line in lines:
        if line.get("comm") in WORKLOADS and line["ipc"] is not None and line["cpu"]:
            assert abs(line["ipc"] - 0.25) < 0.002, line
            told.update((line["comm"], label["label"], label["model"]) for label in line["labels"])
            rules = [label for label in line["labels"] if label["model"] == "rule"]
            assert all((label["tier"], label["confidence"]) == ("hardware", 0) for label in rules), line
    for comm, label in WORKLOADS.items():
        said = {model: {key[1] for key in told if key[::2] == (comm, model)} for model in MODELS}
        # It may abstain on a machine this slow, but not err; that one waits for a CPU looks the same on any.
        assert said[MODELS[0]] <= {label, "unknown"}, (comm, told)
        assert label in said[MODELS[0]] or comm != "os_runqueue", (comm, told)
        # The emulated processor counts stalls of the back end, always 0: looked for, and not found.
        assert said[MODELS[1]] == {"N_CPU"}, (comm, told)
    return {" ".join(key): count for key, count in told.items()}


def check_labels_through_the_system_reader():
    return labels_are_right("system")


def check_labels_through_the_attach_reader():
    return labels_are_right("attach")
