"""Counters that others recorded on real processors, as `wide.Table`s; they stay outside the repository.

They lie in ../shared/data beside the repository, or where PMUTOP_DATA says; its README tells what they are.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from pmutop.wide import Table

DATA = Path(os.environ.get("PMUTOP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

#: Half the work per slice, whatever happened there: (event list, run, clock in kHz, program).
DISTURBED = {(1, 1, 1800000, "splash2x.raytrace"), (1, 1, 1800000, "splash2x.water_nsquared")}
#: Columns of a15-parsec in front of the counters: nanoseconds, program, MHz, Celsius, volt, ampere, watt.
A15_BESIDE = 7

needs_a15 = pytest.mark.skipif(not (DATA / "a15-parsec").is_dir(), reason=f"no recorded a15-parsec in {DATA}")
needs_cloudsuite = pytest.mark.skipif(
    not (DATA / "cloudsuite").is_dir(), reason=f"no recorded cloudsuite in {DATA}"
)


def a15() -> list[Table]:
    """One table per program, event list (1, 2), run (1, 2) and clock rate, in the order of the recording.

    `label` is the program, `run` reads list1-run1-1000000; 0.51 s a slice, counters never multiplexed.
    """
    tables = []
    for path in sorted((DATA / "a15-parsec").glob("events_list_*/run_*/*/results.data.gz")):
        events_list, run, clock = (int(part.split("_")[-1]) for part in path.parts[-4:-1])
        header, *rows = [
            line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()
        ]
        for program in dict.fromkeys(row[1] for row in rows):
            if (events_list, run, clock, program) in DISTURBED:
                continue
            own = [row for row in rows if row[1] == program]
            tables.append(
                Table(
                    events=tuple(header[A15_BESIDE:]),
                    values=np.array([row[A15_BESIDE:] for row in own], float),
                    time=np.array([row[0] for row in own], float) / 1e9,
                    label=np.array([program] * len(own)),
                    run=np.array([f"list{events_list}-run{run}-{clock}"] * len(own)),
                    source=f"a15-parsec/list{events_list}-run{run}-{clock}/{program}",
                )
            )
    return tables


def cloudsuite(machine: str = "") -> list[Table]:
    """One table per service and machine whose folder contains `machine` (AMD_Opteron_6234, INTEL_Xeon_X5650).

    `label` is the service, `run` the machine; 2 s a slice, the whole machine, visibly multiplexed.
    """
    tables = []
    for path in sorted((DATA / "cloudsuite").glob("*/*.csv.gz")):
        if machine not in path.parent.name:
            continue
        header, *rows = [line.split(",") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        counted = [
            at for at, name in enumerate(header[: header.index("Core_0")])
            if name not in ("timestamp", "powerWatts", "contexts", "cpu-migrations")
        ]  # fmt: skip
        service = path.name.removesuffix(".csv.gz")
        cells = np.array([[cell or "nan" for cell in row] for row in rows], object)
        tables.append(
            Table(
                events=tuple(header[at] for at in counted),
                values=cells[:, counted].astype(float),
                time=cells[:, 0].astype(float),
                label=np.array([service] * len(rows)),
                run=np.array([path.parent.name] * len(rows)),
                source=f"cloudsuite/{path.parent.name}/{service}",
            )
        )
    return tables
