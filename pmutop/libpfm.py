"""Vendor event names through libpfm4, where it is installed: loaded at run time, never required.

Sources: perfmon/pfmlib.h and pfmlib_perf_event.h (structures and constants), man 3 pfm_get_os_event_encoding. With
LIBPFM_ENCODE_INACTIVE=1 in the environment names of processors that are not here are encoded too (`skx::...`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator

from pmutop.events import RAW, Event

LIBRARY = "libpfm.so.4"
SUCCESS = 0
OS_PERF_EVENT = 1
USER, KERNEL = 0x8, 0x1  # PFM_PLM3, PFM_PLM0


class Attributes(ctypes.Structure):
    """The head of perf_event_attr (linux/perf_event.h), as far as libpfm fills it; the rest is room for later kernels."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("skipped", ctypes.c_uint64 * 5),  # period to wakeup and breakpoint type
        ("config1", ctypes.c_uint64),
        ("config2", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 24),
    ]


class Encoding(ctypes.Structure):
    """pfm_perf_encode_arg_t"""

    _fields_ = [
        ("attr", ctypes.POINTER(Attributes)),
        ("fstr", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("idx", ctypes.c_int),
        ("cpu", ctypes.c_int),
        ("flags", ctypes.c_int),
    ]


class PmuInfo(ctypes.Structure):
    """pfm_pmu_info_t"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("desc", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("pmu", ctypes.c_int),
        ("type", ctypes.c_int),
        ("nevents", ctypes.c_int),
        ("first_event", ctypes.c_int),
        ("max_encoding", ctypes.c_int),
        ("num_cntrs", ctypes.c_int),
        ("num_fixed_cntrs", ctypes.c_int),
        ("flags", ctypes.c_uint),  # bit 0: it is here
    ]


class EventInfo(ctypes.Structure):
    """pfm_event_info_t"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("desc", ctypes.c_char_p),
        ("equiv", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("code", ctypes.c_uint64),
        ("pmu", ctypes.c_int),
        ("dtype", ctypes.c_int),
        ("idx", ctypes.c_int),
        ("nattrs", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("flags", ctypes.c_uint),
    ]


@functools.cache
def library() -> ctypes.CDLL | None:
    """The initialised library, or None where it is absent or refuses to start."""
    try:
        loaded = ctypes.CDLL(LIBRARY)
        loaded.pfm_strerror.restype = ctypes.c_char_p
        return loaded if loaded.pfm_initialize() == SUCCESS else None
    except (OSError, AttributeError):
        return None


def encode(name: str) -> Event | None:
    """The event that libpfm knows by this name (`PMU::EVENT:UMASK`, the PMU may be left out); None if it knows none."""
    loaded = library()
    if loaded is None:
        return None
    attributes = Attributes(size=ctypes.sizeof(Attributes))
    encoding = Encoding(attr=ctypes.pointer(attributes), size=ctypes.sizeof(Encoding))
    status = loaded.pfm_get_os_event_encoding(
        name.encode(), USER | KERNEL, OS_PERF_EVENT, ctypes.byref(encoding)
    )
    if (
        status != SUCCESS or attributes.type < RAW
    ):  # generic and software names are the kernel's own, not a vendor's
        return None
    values = attributes.config, attributes.config1, attributes.config2
    return Event(name, "count", "hardware", attributes.type, *values)


def known() -> Iterator[tuple[str, str]]:
    """(name, description) of every event of the processor PMUs that libpfm finds on this machine."""
    loaded = library()
    if loaded is None:
        return
    for number in range(1, 1024):
        pmu = PmuInfo(size=ctypes.sizeof(PmuInfo))
        if loaded.pfm_get_pmu_info(number, ctypes.byref(pmu)) != SUCCESS or not pmu.flags & 1:
            continue
        name = pmu.name.decode()
        if name in ("perf", "perf_raw", "rapl"):
            continue
        index = pmu.first_event
        while index != -1:
            event = EventInfo(size=ctypes.sizeof(EventInfo))
            if loaded.pfm_get_event_info(index, OS_PERF_EVENT, ctypes.byref(event)) == SUCCESS:
                yield f"{name}::{event.name.decode()}", event.desc.decode()
            index = loaded.pfm_get_event_next(index)
