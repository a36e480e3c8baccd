"""Which setting of a real program drives the event that matters (CounterMiner's case study, section V-D, by `--param`).

The program is sqlite3, doing the same random look-ups in the same table under every combination of page size and cache
size; each run is recorded into a store with its settings (`pmutop record --store --param`), then `pmutop rank` says which
events matter to the share of CPU time spent in the program's own code, and which setting acts through them.

PYTHONPATH=. python tests/bench/settings.py [--lookups N] [--repeat N]      prints markdown; takes some minutes
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

from pmutop.store import Store

ROOT = Path(__file__).resolve().parents[2]
PAGES = (1024, 4096, 16384)  # bytes
CACHES = (256, 4096, 131072)  # KiB; the table has some 70 MiB
ROWS = 400_000
TABLE = f"""
pragma page_size = {{page}}; pragma journal_mode = off; pragma synchronous = off;
create table t (k integer primary key, v text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {ROWS})
insert into t select i, hex(randomblob(80)) from n;
"""
LOOKUPS = f"""
pragma cache_size = -{{cache}};
with recursive n(i) as (select 1 union all select i + 1 from n where i < {{lookups}})
select sum((select length(v) from t where k = 1 + n.i * 2654435761 % {ROWS})) from n;
"""


def pmutop(*words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pmutop", *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"pmutop {words[0]}: {done.stderr}")
    return done.stdout


def record(folder: Path, lookups: int, repeat: int) -> Path:
    """Every combination of settings, `repeat` times, in turns, so that a busy minute does not hit one setting alone."""
    store = folder / "sqlite.db"
    for page in PAGES:
        subprocess.run(
            ["sqlite3", str(folder / f"{page}.table"), TABLE.format(page=page)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    for _, page, cache in product(range(repeat), PAGES, CACHES):
        table, script = str(folder / f"{page}.table"), LOOKUPS.format(cache=cache, lookups=lookups)
        pmutop("record", "--store", str(store), "--program", "sqlite3", "--interval", "0.2", "--param", f"page={page}",
               "--param", f"cache={cache}", "--", "sqlite3", table, script)  # fmt: skip
    return store


def by_setting(store: Path) -> None:
    """What each combination cost, from the store itself: CPU seconds, own code's share, system calls per ms of CPU."""
    print(
        "| page (bytes) | cache (KiB) | CPU s | of it own code | system calls per ms | minor faults per ms |\n|---|---|---|---|---|---|"
    )
    found: dict[tuple[int, int], list] = {}
    with Store(store, create=False) as runs:
        for run in runs.runs():
            table = runs.table(run.id)
            names = ("run-time", "user-time", "syscalls", "minor-faults")
            sums = [np.nansum(table.column(n)) if n in table.events else np.nan for n in names]
            found.setdefault((int(run.settings["page"]), int(run.settings["cache"])), []).append(sums)
    for (page, cache), all_sums in sorted(found.items()):
        spent, own, calls, faults = np.mean(all_sums, axis=0)
        print(f"| {page} | {cache} | {spent / 1e9:.2f} | {own / spent:.0%} | {calls / spent * 1e6:.1f} | {faults / spent * 1e6:.2f} |")  # fmt: skip


def ranked(store: Path, *words: str) -> dict:
    report = json.loads(pmutop("rank", str(store), "--json", "--jobs", "1", *words))
    print(f"\n`pmutop rank STORE {' '.join(words)}`: {report['target']}, error {report['error']:.1%} on {report['unseen']} unseen "
          f"(always the median: {report['median_error']:.1%})\n")  # fmt: skip
    shown = ", ".join(f"{event['event']} {event['importance']:.1f} %" for event in report["events"][:6])
    print(f"- importance: {shown}")
    if report.get("settings"):
        pairs = ", ".join(
            f"{pair['first']} x {pair['second']} {pair['share']:.1f} %" for pair in report["settings"][:4]
        )
        print(f"- settings that act through an event: {pairs}")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lookups", type=int, default=800_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    version = subprocess.run(
        ["sqlite3", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    print(f"{len(os.sched_getaffinity(0))} CPUs, {platform.machine()}, Linux {platform.release()}, sqlite3 {version}; "
          f"{options.lookups} look-ups a run, {options.repeat} runs of each\n")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = record(Path(folder), options.lookups, options.repeat)
        by_setting(store)
        top = ranked(store)
        events = [event["event"] for event in top["events"] if event["event"] not in ("page", "cache")]
        ranked(store, "--target", f"{events[0]}/run-time")


if __name__ == "__main__":
    main()
