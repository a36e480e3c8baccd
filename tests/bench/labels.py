"""Programs that training never saw, judged live: the share of slices with the right label, as root and as an ordinary
user who may open no perf event. Both watch the same run at the same time; the rest of the machine should be quiet.

    python tests/bench/labels.py [--seconds 60] [--only TEXT] [--keep FOLDER]
    python tests/bench/labels.py --judge FOLDER     the kept counts of such runs, judged by the models installed now

Judged is the worker with the most CPU time, from its third slice on; for --fork parent and children together: the
member of the family that used most CPU in the slice. Prints two Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

WITHOUT_PERF = str(Path(__file__).parent.parent / "without_perf.py")
PMUTOP = [sys.executable, "-m", "pmutop", "log", "--active"]

PYTHON_WORK = """
import json, random
rng = random.Random(7)
while True:
    rows = [{"id": i, "name": f"n{rng.random():.9f}", "tags": [rng.randrange(99) for _ in range(5)]} for i in range(3000)]
    text = json.dumps(rows)
    back = json.loads(text)
    back.sort(key=lambda row: row["name"])
    index = {}
    for row in back:
        for tag in row["tags"]:
            index.setdefault(tag, []).append(row["id"])
"""
SQLITE_WORK = """
PRAGMA cache_size = {cache};
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 400000)
INSERT INTO t SELECT i, (i*7919) % 100003, hex(i*31) FROM n;
COMMIT;
CREATE INDEX ta ON t(a);
"""
SQLITE_QUERY = "SELECT count(*), sum(length(x.b)) FROM t x JOIN t y ON x.a = (y.a * 3 + {n}) % 100003 WHERE y.id % 3 = 0;\n"

#: name, command, labels that are right as root, labels that are right from /proc alone, judged together with children
PROGRAMS = (
    ("stress-ng --fault 1", ["stress-ng", "--fault", "1"], {"P_OS_MinorFault"}, {"P_OS_MinorFault"}, False),
    ("stress-ng --switch 1", ["stress-ng", "--switch", "1"], {"P_OS_Switch"}, {"P_OS_Switch"}, False),
    ("stress-ng --fork 1", ["stress-ng", "--fork", "1"], {"P_OS_Fork"}, {"P_OS_Fork"}, True),
    ("stress-ng --futex 1", ["stress-ng", "--futex", "1"], {"P_OS_Futex"}, {"P_OS_Futex", "P_OS_Syscall"}, False),
    ("taskset -c 0 stress-ng --cpu 4", ["taskset", "-c", "0", "stress-ng", "--cpu", "4"], {"P_OS_RunQueue"}, {"P_OS_RunQueue"}, False),
    ("stress-ng --cpu 1", ["stress-ng", "--cpu", "1"], None, None, False),
    ("gzip -c FILE >/dev/null", ["sh", "-c", "while :; do gzip -c $0 >/dev/null; done", "{big}"], None, None, False),
    ("python3", [sys.executable, "-c", PYTHON_WORK], None, None, False),
    ("sqlite3, 64 MB page cache", ["sh", "-c", "sqlite3 {scratch}/work.db < {scratch}/cached.sql > /dev/null"], None, None, False),
    # 600,000 preads of one page a second: what the default cache of 2 MB makes of a database ten times its size
    ("sqlite3, default page cache", ["sh", "-c", "sqlite3 {scratch}/work.db < {scratch}/default.sql > /dev/null"],
     {"P_OS_Syscall"}, {"P_OS_Syscall"}, False),
)  # fmt: skip


def prepare(folder: Path, wants: str) -> None:
    if "gzip" in wants or not wants:
        block = bytes(range(256)) * 64 + os.urandom(16384)
        with (folder / "big").open("wb") as file:
            for _ in range(2 * 1024**3 // len(block)):
                file.write(block)
        (folder / "big").read_bytes()[:1]  # cached
    for name, cache in (("cached", -65536), ("default", -2000)):
        with (folder / f"{name}.sql").open("w") as file:
            file.write(SQLITE_WORK.format(cache=cache))
            file.writelines(SQLITE_QUERY.format(n=n) for n in range(100000))
    folder.chmod(0o777)


def watch(command: list[str], seconds: float, folder: Path, name: str) -> dict[str, list[dict]]:
    """Run `command` as an ordinary user with two logs beside it; {"root" or "user": lines of its family}."""
    slices = str(int(seconds / 0.4) + 2)
    ordinary = [sys.executable, WITHOUT_PERF]
    out = {who: folder / f"{name}-{who}.jsonl" for who in ("root", "user")}
    files = {who: out[who].open("wb") for who in out}
    logs = [subprocess.Popen([*PMUTOP, "--slices", slices], stdout=files["root"])]
    logs.append(subprocess.Popen([*ordinary, *PMUTOP, "--slices", slices], stdout=files["user"]))
    time.sleep(1)
    target = subprocess.Popen(
        [*(ordinary if os.geteuid() == 0 else []), *command],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    for log in logs:
        log.wait()
    os.killpg(target.pid, 15)
    target.wait()
    (folder / f"{name}.pid").write_text(str(target.pid))
    return {who: family(read(path), target.pid) for who, path in out.items()}


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def judge_again(path: Path, root: int) -> list[dict]:
    """The family's lines of a kept log, their labels made anew from their counts by the models installed now."""
    import numpy as np

    from pmutop.bundle import installed
    from pmutop.events import Event
    from pmutop.pipeline.classify import TreeModel
    from pmutop.slices import Header

    lines = read(path)
    names = [event["name"] for event in lines[0]["events"]]
    events = tuple(Event(name, "", "software", -1) for name in names)
    header = Header("", "", "", lines[0]["machine"], lines[0]["source"], "", 0.4, events)
    (bundle,) = (one for one in installed()[0] if one.name == "software-fingerprints")
    model = TreeModel(bundle, header)
    found = family(lines, root)
    for line in found:
        if line["labels"]:
            counts = np.array(
                [[np.nan if line["counts"][name] is None else line["counts"][name] for name in names]]
            )
            verdicts = model.judge(counts, np.array([ord(line["state"])]), line["seconds"])
            line["labels"] = [label._asdict() for label in verdicts.labels[0]]
    return found


def family(lines: list[dict], root: int) -> list[dict]:
    """Lines of `root` and all that descend from it, in order. A PID counts only with its start time: a fork storm goes
    round all numbers there are."""
    start_of: dict[int, float | None] = {root: None}
    found = []
    for line in lines:
        if "pid" not in line:
            continue
        pid, start = line["pid"], line["start"]
        if (
            pid in start_of
            and start_of[pid] in (None, start)
            or line["ppid"] in start_of
            and pid not in start_of
        ):
            start_of[pid] = start
            found.append(line)
        elif pid in start_of and line["ppid"] in start_of:
            start_of[pid] = start  # a child of the family under the number of another
            found.append(line)
        elif pid != root:
            start_of.pop(pid, None)
    return found


def judged(lines: list[dict], together: bool) -> list[str]:
    """The label of each slice, from the third on in which there was one to be judged ('' where nothing was said)."""
    slices = defaultdict(list)
    for line in lines:
        slices[line["slice"]].append(line)
    if not together:
        time_of = Counter()
        for line in lines:
            time_of[line["pid"]] += line["cpu"] or 0
        worker = time_of.most_common(1)[0][0]
        slices = {
            number: [line for line in group if line["pid"] == worker] for number, group in slices.items()
        }
    found = []
    for number in sorted(slices):
        group = [line for line in slices[number] if line["cpu"] is not None]
        if not group:
            continue
        line = max(group, key=lambda one: one["cpu"])
        found.append(line["labels"][0]["label"] if line["labels"] else "")
    return found[2:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="keep the logs there")
    parser.add_argument("--judge", help="run nothing: judge the logs kept there again")
    options = parser.parse_args()
    folder = Path(options.judge or options.keep or tempfile.mkdtemp(dir="/var/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [(number, program) for number, program in enumerate(PROGRAMS) if options.only in program[0]]
    if not options.judge:
        prepare(folder, options.only)
    rows = {"root": [], "user": []}
    for number, (name, command, right_root, right_user, together) in chosen:
        filled = [
            word.replace("{big}", str(folder / "big")).replace("{scratch}", str(folder)) for word in command
        ]
        if options.judge:
            root = int((folder / f"{number}.pid").read_text())
            kept = {who: judge_again(folder / f"{number}-{who}.jsonl", root) for who in rows}
        else:
            (folder / "work.db").unlink(missing_ok=True)
            kept = watch(filled, options.seconds, folder, str(number))
        for who, lines in kept.items():
            labels = judged(lines, together)
            right = right_root if who == "root" else right_user
            good = [label in right if right else not label.startswith("P_") for label in labels]
            seen = ", ".join(
                f"{label or 'nothing'} {count}" for label, count in Counter(labels).most_common(4)
            )
            share = 100 * sum(good) / max(1, len(good))
            rows[who].append(
                (name, " or ".join(sorted(right)) if right else "not pathological", len(labels), share, seen)
            )
            print(f"{who:5} {name:32} {share:5.1f} % of {len(labels)}: {seen}", file=sys.stderr)
    for who, title in (("root", "As root"), ("user", "As an ordinary user who may open no perf event")):
        print(
            f"\n{title} ({platform.node() and os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, {options.seconds:.0f} s each)\n"
        )
        print("| program | right is | slices | right | labels seen |\n|---|---|---|---|---|")
        for name, right, count, share, seen in rows[who]:
            print(f"| `{name}` | {right} | {count} | {share:.1f} % | {seen} |")
    if not (options.keep or options.judge):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
