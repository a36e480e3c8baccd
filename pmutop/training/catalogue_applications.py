"""Applications for the study of interference: fixed work per iteration, run alone and in pairs (thesis, chapter 4)."""

from __future__ import annotations

from pmutop.training.labels import Workload

# name, program, size, arguments. One iteration takes a third of a second to one second on a processor of 2024 alone.
_APPLICATIONS = """
MM-S     app_matrix    160   --side 160 --repeat 600
MM-M     app_matrix    320   --side 320 --repeat 80
MM-L     app_matrix    640   --side 640 --repeat 8
MM-M-2   app_matrix    320   --side 320 --repeat 160 --workers 2
SORT     app_sort      512K  --count 512K --repeat 8
SORT-2   app_sort      2M    --count 2M --repeat 2 --workers 2
PR       app_pagerank  1M    --nodes 1M --repeat 30
PR-2     app_pagerank  4M    --nodes 4M --repeat 8 --workers 2
TRIAD    app_triad     192M  --size 192M --repeat 32
TRIAD-2  app_triad     48M   --size 48M --repeat 300 --workers 2
GATHER   app_gather    64M   --size 64M --repeat 16
CHASE    app_chase     12M   --size 12M
CHASE-S  app_chase     512K  --size 512K --repeat 20
JOIN     app_join      1M    --rows 1M --repeat 24
JOIN-2   app_join      4M    --rows 4M --repeat 6 --workers 2
BFS      app_bfs       512K  --nodes 512K --repeat 24
BFS-2    app_bfs       2M    --nodes 2M --repeat 5 --workers 2
FFT      app_fft       64K   --points 64K --repeat 40
FFT-2    app_fft       512K  --points 512K --batch 4 --repeat 6 --workers 2
STENCIL  app_stencil   1500  --side 1500 --repeat 30
STENCIL-2 app_stencil  600   --side 600 --repeat 300 --workers 2
PACK     app_pack      8M    --size 8M --repeat 16
PACK-2   app_pack      2M    --size 2M --repeat 96 --workers 2
"""


def applications() -> tuple[Workload, ...]:
    """The applications; unlabelled (label ""), `kind` is the program's, those that end in -2 are multithreaded.

    One unit of work is one iteration; the last line of each carries "iterations": the seconds that each one took.
    """
    return tuple(
        Workload(
            name=name,
            label="",
            coarse="",
            kind=program.removeprefix("app_"),
            program=program,
            arguments=tuple(rest),
            tier="application",
            size=size,
            body=program.removeprefix("app_"),
            needs=frozenset({"two-cpus"}) if "--workers" in rest else frozenset(),
        )
        for name, program, size, *rest in map(str.split, _APPLICATIONS.strip().splitlines())
    )
