"""Workloads of the software tier: what the kernel can tell of a process. The tables are below; a line is a pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pmutop.training.labels import Workload

_TWO = frozenset({"two-cpus"})

# (kind, program, label, label where tracepoints may not be read, who carries it, needs): one line a family
_FAMILIES = {
    "runqueue": ("os_runqueue", "P_OS_RunQueue", "", "all", ""),
    "fault": ("os_fault", "P_OS_MinorFault", "", "all", ""),
    "major": ("os_major", "P_OS_MajorFault", "", "all", "disk"),
    "switch": ("os_switch", "P_OS_Switch", "", "all", ""),
    "switch-apart": ("os_switch", "P_OS_Switch", "", "all", "two-cpus"),
    "migrate": ("os_migrate", "P_OS_Migration", "P_OS_Switch", "main", "two-cpus"),
    "fork": ("os_fork", "P_OS_Fork", "", "family", ""),
    "thread": ("os_fork", "P_OS_Fork", "P_OS_Switch", "main", ""),
    "syscall": ("os_syscall", "P_OS_Syscall", "", "all", ""),
    "lock": ("os_futex", "P_OS_Futex", "P_OS_Switch", "all", "two-cpus"),
    "wake": ("os_futex", "P_OS_Futex", "P_OS_Syscall", "all", "two-cpus"),
    "disk": ("os_blockio", "P_OS_BlockIO", "", "all", "disk"),
}

# Where /proc shows something else than the family's second label: two that meet at a mutex hardly ever sleep.
_COARSE = {("lock", "mutex", "2"): "P_OS_Syscall"}

# One line a pair of P and N: family, body, size, the rest of the arguments.
# Rates, sizes, duty cycles, processes and threads differ, so that a tree cannot learn one binary.
_PAIRS = """
runqueue      integer    2    --workers 2
runqueue      integer    4    --workers 4
runqueue      integer    8    --workers 8
runqueue      float      3    --workers 3
runqueue      float      6    --workers 6 --as thread
runqueue      stream     2    --workers 2 --size 4M
runqueue      stream     5    --workers 5 --size 64K --as thread
runqueue      calls      3    --workers 3
runqueue      calls      4    --workers 4 --as thread
runqueue      storm      2    --workers 2
runqueue      storm      3    --workers 3
runqueue      storm      5    --workers 5 --as thread
runqueue      integer    3    --workers 3 --sharer-nice 1
runqueue      float      4    --workers 4 --duty 50
runqueue      integer    6    --workers 6 --duty 40 --period 30
fault         anonymous  1    --pages 1
fault         anonymous  16   --pages 16
fault         anonymous  4000 --pages 4000
fault         anonymous  64   --pages 64 --duty 50
fault         anonymous  32   --pages 32 --compute 1000
fault         anonymous  256  --pages 256 --workers 2
fault         anonymous  512  --pages 512 --compute 2000 --duty 60
fault         dontneed   8    --pages 8
fault         dontneed   1000 --pages 1000 --compute 200
fault         malloc     40   --pages 40
fault         malloc     300  --pages 300 --compute 500
fault         break      64   --pages 64
fault         punch      16   --pages 16
fault         truncate   64   --pages 64
fault         temporary  1    --pages 1
fault         temporary  1    --pages 1 --again 4
fault         temporary  4    --pages 4 --again 2
fault         temporary  64   --pages 64
fault         private    16   --pages 16
fault         private    1    --pages 1 --compute 2000
fault         cached     16   --pages 16
fault         cached     64   --pages 64 --compute 300
fault         remap      2    --pages 2
fault         remap      128  --pages 128 --duty 50
major         fadvise    512  --pages 512
major         fadvise    4096 --pages 4096 --compute 20000
major         fadvise    2048 --pages 2048 --duty 50
major         pageout    1024 --pages 1024
major         pageout    4096 --pages 4096 --compute 5000
switch-apart  pipe       1    --place apart
switch-apart  pipe       512  --place apart --bytes 512 --compute 5000
switch-apart  pipe       1    --place apart --as thread --duty 50
switch-apart  oneway     4096 --place apart
switch-apart  oneway     4096 --place apart --as thread --compute 2000
switch-apart  socket     64   --place apart --bytes 64
switch-apart  eventfd    8    --place apart --as thread
switch        pipe       1    --place same
switch        pipe       64   --place same --bytes 64 --compute 2000 --as thread
switch        oneway     4096 --place same --compute 500
switch        socket     1    --place same --duty 50
switch        socket     256  --bytes 256 --workers 2
switch        eventfd    8    --place same --compute 1000
switch        yield      0    --place same --compute 100
switch        yield      0    --place same --compute 1000 --as thread
switch        sleep      0    --compute 1000
switch        sleep      0    --compute 30000 --as thread
migrate       self       32K  --size 32K
migrate       self       512K --size 512K --hop 16384
migrate       self       4M   --size 4M --hop 8192
migrate       self       256K --size 256K --hop 4096 --duty 50
migrate       sent       1M   --size 1M
migrate       sent       64K  --size 64K --hop 256
fork          fork       0    --compute 1000
fork          fork       64K  --memory 64K
fork          fork       256K --memory 256K --batch 4
fork          fork       4M   --memory 4M --compute 20000
fork          fork       32M  --memory 32M
fork          fork       1M   --memory 1M --duty 50
fork          touch      256K --memory 256K
fork          touch      2M   --memory 2M
fork          fork       64   --batch 64 --memory 128K
fork          vfork      0    --compute 1000
fork          vfork      1M   --memory 1M --compute 100000
fork          spawn      0    --compute 20000
fork          spawn      1M   --memory 1M --duty 50
thread        thread     1    --compute 1000
thread        thread     8    --compute 10000 --batch 8
syscall       read       1    --compute 4
syscall       read       16   --chunk 16 --compute 30
syscall       read       1    --compute 4 --duty 50
syscall       write      1    --compute 4
syscall       write      1    --compute 100 --workers 2
syscall       getppid    1    --compute 20
syscall       getppid    1    --compute 150 --as thread --workers 2
syscall       clock      1    --compute 50
syscall       lseek      1    --compute 10
syscall       stat       1    --compute 100
syscall       pread      1    --compute 50
syscall       pread      64   --chunk 64 --compute 400
syscall       poll       1    --compute 4
syscall       open       1    --compute 500
syscall       mix        1    --compute 20
syscall       mix        1    --compute 200 --duty 50
lock          condition  2    --workers 2 --inside 50
lock          condition  4    --workers 4 --inside 500 --as thread
lock          condition  3    --workers 3 --inside 5000
lock          barrier    2    --workers 2 --inside 200 --as thread
lock          barrier    4    --workers 4 --inside 2000
lock          mutex      2    --workers 2 --inside 200 --as thread
lock          mutex      2    --workers 2 --inside 1000 --outside 100
lock          mutex      4    --workers 4 --inside 500 --as thread
lock          mutex      8    --workers 8 --inside 2000 --outside 200 --as thread
lock          mutex      4    --workers 4 --inside 300 --duty 50
wake          wake       98   --inside 0
wake          wake       100  --inside 100 --miss 100
wake          wake       95   --inside 50 --outside 50 --miss 95 --as thread
wake          wake       99   --inside 200 --miss 99
wake          wake       98   --inside 20 --miss 98 --duty 50
disk          direct     4K   --block 4K
disk          direct     64K  --block 64K --compute 10000
disk          direct     4K   --block 4K --workers 2
disk          write      16K  --block 16K
disk          fsync      4K   --block 4K
disk          fsync      64K  --block 64K --compute 100000
disk          fdatasync  4K   --block 4K --duty 50
disk          dsync      8K   --block 8K
disk          cold       4K   --block 4K
disk          cold       32K  --block 32K --compute 20000
fault         temporary  w1   --pages 1 --allocated 1
fault         temporary  w1a  --pages 1 --allocated 1 --again 3
fault         temporary  w4   --pages 4 --allocated 1
fault         temporary  w16  --pages 16 --allocated 1 --compute 500
fault         temporary  w64  --pages 64 --allocated 1
fault         temporary  w2   --pages 2 --allocated 1 --again 8
wake          wake       98s  --inside 0 --place same
wake          wake       95s  --inside 50 --miss 95 --place same --as thread
wake          wake       100s --inside 0 --miss 100 --place same
wake          wake       50s  --inside 100 --miss 50 --place same
"""

# The same behaviour at a rate that costs little is healthy: P of a program, but so much useful work between two events
# that its twin is hardly faster. Without these rows a tree would call every fork a storm.
_MILD = """
runqueue      integer    mild --workers 2 --sharer-nice 19 --duty 60
fault         anonymous  mild --pages 16 --compute 30000
fault         private    mild --pages 4 --compute 60000 --duty 50
fault         temporary  mild --pages 4 --compute 400000
switch        pipe       mild --place same --compute 200000
switch        socket     mild --place apart --compute 1M
switch        sleep      mild --compute 1M
switch        sleep      mild --compute 3M --as thread
switch        oneway     mild --place same --compute 300000
fork          fork       mild --memory 256K --compute 10M
fork          spawn      mild --memory 1M --compute 30M
thread        thread     mild --compute 2M
syscall       read       mild --chunk 64 --compute 3000
syscall       getppid    mild --compute 2000
syscall       stat       mild --compute 10000
syscall       mix        mild --compute 8000 --duty 60
syscall       open       mild --compute 40000
lock          condition  mild --workers 2 --inside 2M
lock          mutex      mild --workers 2 --inside 10 --outside 20000
migrate       self       mild --size 128K --hop 4M
disk          fsync      mild --block 64K --compute 20M
disk          direct     mild --block 64K --compute 10M
fault         anonymous  mild8 --pages 64 --compute 8000
fault         anonymous  mild4 --pages 256 --compute 4000
fault         malloc     mild8 --pages 40 --compute 8000
fault         malloc     mild20 --pages 300 --compute 20000
fault         break      mild10 --pages 64 --compute 10000
fault         dontneed   mild6 --pages 256 --compute 6000
fault         remap      mild12 --pages 128 --compute 12000
"""

# Healthy programs that have no pathological twin: kind of os_healthy.c (or of interpreter.py), size, arguments.
_HEALTHY = """
integer   -    --duty 100
integer   -    --workers 2
integer   -    --duty 50 --as thread --workers 2
float     -    --duty 100
float     -    --duty 30 --period 50
stream    16M  --size 16M
stream    128M --size 128M
hash      64M  --size 64M
hash      8M   --size 8M --duty 50
allocate  -    --duty 100
allocate  -    --workers 2 --as thread
timer     100  --rate 100 --size 2M
timer     100  --rate 100 --size 200K
timer     250  --rate 250 --size 1M
timer     30   --rate 30 --size 10M
timer     2    --rate 2 --size 5M
timer     10   --rate 10 --size 4M
timer     50   --rate 50 --size 500K
timer     50w  --rate 50 --size 1M --workers 2
timer     500  --rate 500 --size 100K
timer     1000 --rate 1000 --size 20K --as thread
loop      20   --rate 20 --size 4M
loop      100  --rate 100 --size 50K
loop      200  --rate 200 --size 500K
loop      1000 --rate 1000 --size 30K
scan      3    --rate 3 --size 300
scan      10   --rate 10 --size 60
scan      10b  --rate 10 --size 400
scan      40   --rate 40 --size 20
compress  16M  --size 16M
compress  2M   --size 2M --workers 2
btree     32M  --size 32M
btree     1M   --size 1M
pager     16M  --size 16M --rate 20
pager     64M  --size 64M --rate 60
pager     4M   --size 4M --rate 100 --duty 60
sort      -    --duty 100
text      -    --duty 100
text      -    --workers 2 --duty 70
matrix    -    --duty 100
matrix    -    --workers 2 --as thread
log       20K  --size 20K
log       200K --size 200K --workers 2
random    64M  --size 64M
random    1M   --size 1M
python-words     -
python-numbers   -
python-objects   -
python-matrices  -
python-naps      -
python-ticks     -
"""


def _pairs(table: str, mild: bool = False) -> Iterator[Workload]:
    for number, (kind, body, size, *rest) in enumerate(map(str.split, table.strip().splitlines()), 1):
        program, label, coarse, who, needs = _FAMILIES[kind]
        name = f"{kind}-{body}-{size}-{number}"
        twin = Workload(
            name=f"{name}-N",
            label="N_OS",
            coarse="N_OS",
            kind=kind,
            program=program,
            variant="N",
            arguments=("--body" if kind == "runqueue" else "--kind", body, *rest),
            size=size,
            body=body,
            needs=frozenset(needs.split())
            | (_TWO if "--workers" in rest and kind != "runqueue" else frozenset()),
        )
        ours = {
            "name": f"{name}-P",
            "label": label,
            "coarse": _COARSE.get((kind, body, size), coarse or label),
        }
        if mild:
            ours = {"name": name}
        yield replace(twin, variant="P", who=who, twin=twin.name, **ours)
        yield twin


def _healthy(table: str) -> Iterator[Workload]:
    for number, (body, size, *rest) in enumerate(map(str.split, table.strip().splitlines()), 1):
        yield Workload(
            name=f"healthy-{body}-{size}-{number}",
            label="N_OS",
            coarse="N_OS",
            kind="healthy",
            program="interpreter.py" if body.startswith("python") else "os_healthy",
            variant="N",
            arguments=("--kind", body.removeprefix("python-"), *rest),
            size=size,
            body=body,
            needs=_TWO if "--workers" in rest else frozenset(),
        )


def software() -> tuple[Workload, ...]:
    """Every workload of the software tier, in the order of the tables."""
    return (*_pairs(_PAIRS), *_pairs(_MILD, mild=True), *_healthy(_HEALTHY))
