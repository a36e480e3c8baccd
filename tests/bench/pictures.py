"""Makes the pictures of the documentation from the program itself: real workloads, the real reader, the real screen.

python tests/bench/pictures.py [--size 110x30] [--out docs/screen.svg]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from pmutop.bundle import fitting
from pmutop.cli.screen import notes
from pmutop.pipeline.engine import Engine
from pmutop.sources.attach import AttachSource
from pmutop.training.catalogue import software
from pmutop.training.workloads import start
from pmutop.tui.app import PmutopApp
from pmutop.tui.state import State

SHOWN = ("fault-anonymous-16", "switch-pipe-1", "runqueue-integer-2")


async def picture(path: Path, width: int, height: int, slices: int) -> None:
    source = AttachSource()
    bundles, problems = fitting(source.header)
    engine = Engine(source.header, bundles)
    app = PmutopApp(State(source.header, notes(source.header, bundles, problems)))
    cpus = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as running:
        for name in SHOWN:
            workload = next(one for one in software() if one.name.startswith(name) and one.pathological)
            running.enter_context(start(workload, cpus, nice=0)).wait_ready()
        moments = [engine.moment(raw) for raw in itertools.islice(source, slices)]
    source.close()
    async with app.run_test(size=(width, height)) as pilot:
        for moment in moments:
            app.offer(moment)
        await pilot.pause(0.5)
        await pilot.press("escape")
        await pilot.pause(0.2)
        path.write_text(legible(app.export_screenshot(title="pmutop")))


def legible(svg: str) -> str:
    """Black that is black on the coloured bars, not the export's grey; blanks at the start of a text kept by every viewer."""
    return svg.replace("fill: #4b4e55", "fill: #11151a").replace("<svg ", '<svg xml:space="preserve" ', 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="110x30")
    parser.add_argument("--out", default="docs/screen.svg")
    parser.add_argument("--slices", type=int, default=12)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    asyncio.run(picture(Path(options.out), width, height, options.slices))


if __name__ == "__main__":
    main()
