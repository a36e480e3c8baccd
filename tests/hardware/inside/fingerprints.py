"""`pmutop train fingerprints` on the emulated PMU from end to end, and what the next start makes of the model.

The events are cut into passes of one group, so that several passes are joined. The emulator's counters are a function of
the number of instructions alone: nothing tells the labels apart, and the model has to know that it knows nothing.
There is no compiler here: one that hands out the carried, cross-built program takes its place.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path

from commands import logged, pmutop
from run import keep

from pmutop.cli import main
from pmutop.sources import budget

MODEL = Path("/tmp/.local/share/pmutop/models/hardware-fingerprints")
RUNS = Path("/tmp/.cache/pmutop/training/hardware-fingerprints")
GCC = f"""#!{sys.executable} -ISs
import shutil, sys
if "-o" in sys.argv:
    made = sys.argv[sys.argv.index("-o") + 1]
    shutil.copy("/opt/bin/" + made.rpartition("/")[2], made)
else:
    print("12.2.0", "aarch64-linux-gnu", sep="\\n")
"""


def trained():
    """The lines that a training of two pairs told on stderr; no tier is named: here are counters."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        assert main(["train", "fingerprints", "--only", "fpu-quad", "--yes"]) == 0, told.getvalue()
    return told.getvalue().splitlines()


def lines_of(place):
    return (place / "runs.jsonl").read_text().splitlines()


def check_a_training_counts_every_event_in_passes_that_fit():
    Path("/opt/bin/gcc").write_text(GCC)
    os.chmod("/opt/bin/gcc", 0o755)
    budget.TURNS = 1
    told = trained()
    offered = {
        event["name"] for event in json.loads(pmutop("events", "--json").stdout)["events"] if event["opens"]
    }
    plan = json.loads((RUNS / "events.json").read_text())["passes"]
    counted = [name for names in plan for name in names]
    assert len(plan) > 1 and all(names[0] == "cycles" and len(names) <= 7 for names in plan), plan
    assert {"instructions", "armv8_pmuv3/inst_retired/", "armv8_pmuv3/stall/"} <= set(counted) <= offered
    assert len(counted) == len(set(counted)) + len(plan) - 1
    card = json.loads((MODEL / "card.json").read_text())
    assert card["tier"] == "hardware" and card["runs"] == 4 and card["rows"] == 8, card
    assert sorted(card["features"]) == sorted(f"{name}/kc" for name in set(counted) - {"cycles"})
    assert sorted(card["required"]) == sorted(set(counted))
    assert {entry["group"]: entry["admitted"] for entry in card["admission"]} == {"fpu-quad-CPU": True}
    assert [len(lines_of(RUNS / f"pass-{number}")) for number in range(len(plan))] == [4] * len(plan)
    assert any(line.startswith(f"{4 * len(plan)}/{4 * len(plan)} ") and " left " in line for line in told), (
        told
    )
    keep(str(MODEL / "card.json"))
    keep(str(MODEL / "arrays.npz"))
    return {"passes": plan, "factor": card["admission"][0]["factor"], "scores": card["scores"]}


def check_an_interrupted_training_goes_on_with_what_is_missing():
    """The last run of the second pass was cut off: it alone is run again, under the same events."""
    index = RUNS / "pass-1/runs.jsonl"
    *before, last = lines_of(index.parent)
    index.write_text("".join(f"{line}\n" for line in before))
    told = trained()
    assert [line.split()[0] for line in told if " left " in line] == ["1/1"], told
    *kept, again = map(json.loads, lines_of(index.parent))
    assert kept == [json.loads(line) for line in before]
    assert again["name"] == json.loads(last)["name"] and again["part"] == "part-1.pmu"


def check_the_next_start_counts_for_the_model_and_judges_with_it():
    program = next(Path("/tmp/.cache/pmutop/programs").glob("*/hw_fpu"))
    header, processes, _ = logged(
        "--budget", "100", "--", str(program), "--variant", "P", "--body", "quad", "--seconds", "2"
    )
    card = json.loads((MODEL / "card.json").read_text())
    assert "hardware-fingerprints" in header["models"], header["models"]
    assert set(card["required"]) <= {event["name"] for event in header["events"]}
    ours = [line for line in processes if line["comm"] == "hw_fpu"]
    judged = [label for line in ours for label in line["labels"] if label["model"] == "hardware-fingerprints"]
    assert judged and {(label["label"], label["tier"]) for label in judged} == {("unknown", "hardware")}, ours
    assert not any(label["model"] == "rule" for line in ours for label in line["labels"])
    whole = [line for line in ours if all(line["counts"].get(name) is not None for name in card["required"])]
    assert whole, ours
    return {"lines": len(ours), "judged": len(judged), "quality": whole[-1]["quality"]}
