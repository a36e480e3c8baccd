"""Event names that this machine defines: PMUs and their terms in sysfs, tracepoints in tracefs, raw codes.

Accepted: generic perf names (`cycles`, `LLC-load-misses`), our tracepoint names (`syscalls`), `rHEX`, `system:tracepoint`,
`pmu/event/`, `pmu/term=value,term/`, `/file:function` (its calls, by a uprobe), the vendor's own names (`MEM_LOAD_RETIRED.L2_MISS`, libpfm's `skx::...`); and, as in
perf, `:u` or `:k` behind a name (`u` or `k` behind the last slash) for one mode only. Formats: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from dataclasses import replace
from pathlib import Path

from pmutop import events
from pmutop._perf import CountError, detached_tracefs
from pmutop.errors import NoPermission, PmutopError, UsageError
from pmutop.events import Event
from pmutop.topology import cpuinfo

DEVICES = "sys/bus/event_source/devices"
TRACEFS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")


def resolve(name: str, root: str = "/") -> Event:
    """The event called `name` on the machine whose file system is at `root`.

    Raises UsageError for a name nobody knows (with the nearest ones), NoPermission where tracefs may not be read.
    """
    if name.startswith("/"):
        return uprobe(name, root)
    if match := re.fullmatch(r"(.+/|.+:)([uk])", name):
        return replace(resolve(match[1].removesuffix(":"), root), name=name, mode=match[2])
    if name in events.TRACEPOINTS:
        point, condition = events.TRACEPOINTS[name]
        return replace(tracepoint(point, root), name=name, filter=condition)
    known = events.generic(name)
    if known:
        return known
    if match := re.fullmatch(r"r([0-9a-fA-F]{1,16})", name):
        return Event(
            name,
            "count",
            "hardware",
            events.RAW,
            int(match[1], 16),
            pmu=core_pmus(root)[0] if core_pmus(root) else "",
        )
    if match := re.fullmatch(r"([\w.-]+)/([^/]*)/", name):
        return pmu_event(match[1], match[2], root)
    if re.fullmatch(r"[a-z0-9_.-]+:[\w.-]+", name):
        try:
            return tracepoint(name, root)
        except PmutopError:  # `mem_load_retired:l2_miss` looks like one
            if vendor := vendor_event(name, root):
                return vendor
            raise
    if vendor := vendor_event(name, root):
        return vendor
    raise UsageError(f"unknown event '{name}'", suggestion(name))


def vendor_event(name: str, root: str = "/") -> Event | None:
    """A name of the processor's vendor: from our own table for this processor, or from libpfm4 where it is installed."""
    from pmutop import libpfm, vendor_events  # 20 ms that only few names need

    about = cpuinfo(Path(root))
    rows = vendor_events.TABLES.get(
        vendor_events.family_of(*(about[key] for key in ("vendor", "family", "model", "arch"))), ()
    )
    for row in rows:
        if row.name.lower() == name.lower() and core_pmus(root):
            return replace(pmu_event(core_pmus(root)[0], row.terms, root), name=name)
    return libpfm.encode(name)


def suggestion(name: str) -> str:
    names = [*events.HARDWARE_IDS, *events.SOFTWARE_IDS, *events.CACHE_IDS, *events.TRACEPOINTS]
    near = difflib.get_close_matches(name, names, 3)
    return (
        "did you mean " + " or ".join(near) + "? " if near else ""
    ) + "`pmutop events` lists what this machine has"


@functools.cache
def tracefs(root: str = "/") -> Path | None:
    """Where tracefs may be read, or None. Where nobody mounted it, root reads one that is mounted nowhere."""
    for place in TRACEFS:
        try:
            if (Path(root, place) / "events").is_dir():
                return Path(root, place)
        except PermissionError:
            continue
    try:
        return Path(f"/proc/self/fd/{detached_tracefs()}") if root == "/" else None
    except CountError:
        return None


def tracepoint(name: str, root: str = "/") -> Event:
    folder = tracefs(root)
    if folder is None:
        raise NoPermission(f"tracepoint {name}: tracefs is not readable", "run as root")
    system, point = name.split(":")
    try:
        number = int((folder / "events" / system / point / "id").read_text())
    except FileNotFoundError:
        raise UsageError(f"unknown tracepoint '{name}'", f"see {folder}/events") from None
    except PermissionError:
        raise NoPermission(f"tracepoint {name}: its id is not readable", "run as root") from None
    return Event(name, "count", "software", events.TRACEPOINT, number)


def uprobe(name: str, root: str = "/") -> Event:
    """`/file:function`: the calls of a function, of every process that runs that file (uprobe PMU: kernel/events/core.c,
    perf_uprobe; config1 points to the path, config2 is the offset)."""
    from pmutop.symbols import ElfFile

    path, _, function = name.rpartition(":")
    kind = pmus(root).get("uprobe")
    if kind is None:
        raise UsageError(f"{name}: this kernel does not count calls of functions", "name a tracepoint")
    if not path or not os.access(path, os.R_OK):
        raise UsageError(f"{name}: cannot read the file", "write it as /path/to/program:function")
    file = ElfFile(path)
    offset = file.offset(function)
    if offset is None:
        near = difflib.get_close_matches(function, file.functions.names, 3)
        known = (
            "did you mean " + " or ".join(near) + "?" if near else "see what `nm` lists; it may be stripped"
        )
        raise UsageError(f"{path} has no function '{function}'", known)
    return Event(name, "count", "software", kind, config2=offset, path=path, pmu="uprobe")


def pmus(root: str = "/") -> dict[str, int]:
    """Every PMU of the machine: name -> perf type."""
    found = {}
    for folder in sorted(Path(root, DEVICES).glob("*")):
        try:
            found[folder.name] = int((folder / "type").read_text())
        except (OSError, ValueError):
            continue
    return found


def core_pmus(root: str = "/") -> list[str]:
    """PMUs of processor cores: `cpu`, or those with a `cpus` file (hybrid x86, arm); never assumed to be one."""
    names = pmus(root)
    return [name for name in names if name == "cpu" or (Path(root, DEVICES, name) / "cpus").exists()]


def pmu_event(pmu: str, terms: str, root: str = "/") -> Event:
    """`pmu/terms/`: an event of the PMU's events/ folder, or terms of its format/ folder, or a mix."""
    folder = Path(root, DEVICES, pmu)
    name = f"{pmu}/{terms}/"
    if pmu not in pmus(root):
        raise UsageError(
            f"{name}: there is no PMU called '{pmu}'", "this machine has " + (", ".join(pmus(root)) or "none")
        )
    fields = {"config": 0, "config1": 0, "config2": 0}
    for term in filter(None, terms.split(",")):
        key, _, value = term.partition("=")
        named = folder / "events" / key
        if not value and named.is_file():
            for inner in named.read_text().strip().split(","):
                inner_key, _, inner_value = inner.partition("=")
                put(folder, fields, inner_key, inner_value or "1", name)
        else:
            put(folder, fields, key, value or "1", name)
    tier = "software" if pmus(root)[pmu] in (events.SOFTWARE, events.TRACEPOINT) else "hardware"
    return Event(name, "count", tier, pmus(root)[pmu], **fields, pmu=pmu)


def put(folder: Path, fields: dict[str, int], key: str, value: str, name: str) -> None:
    """Spread `value` over the bits that format/`key` names, e.g. 'config1:0-3,8' (low bits first)."""
    try:
        number = int(value, 0)
    except ValueError:
        raise UsageError(f"{name}: '{key}={value}' is not a number", "write it as 12 or 0xc") from None
    if key in fields:
        fields[key] |= number
        return
    layout = folder / "format" / key
    if not layout.is_file():
        known = sorted(path.name for part in ("events", "format") for path in (folder / part).glob("*"))
        raise UsageError(f"{name}: this PMU has no term '{key}'", "it has " + (", ".join(known) or "none"))
    target, _, ranges = layout.read_text().strip().partition(":")
    for piece in ranges.split(","):
        low, _, high = piece.partition("-")
        for bit in range(int(low), int(high or low) + 1):
            fields[target] |= (number & 1) << bit
            number >>= 1
    if number:
        raise UsageError(f"{name}: {value} does not fit in '{key}' ({target}:{ranges})")
