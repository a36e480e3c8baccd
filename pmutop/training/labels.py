"""The labels, and the row that carries one: a workload, what it is an example of, and how its program is started."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Labels of the software tier, with the words for people.
SOFTWARE_LABELS = {
    "P_OS_RunQueue": "waiting for a CPU",
    "P_OS_MinorFault": "page-fault storm",
    "P_OS_MajorFault": "reads its own memory back from the disk",
    "P_OS_Switch": "context-switch storm",
    "P_OS_Migration": "moved from CPU to CPU",
    "P_OS_Fork": "creates tasks all the time",
    "P_OS_Syscall": "system calls for very little each",
    "P_OS_Futex": "contends for locks",
    "P_OS_BlockIO": "waits for the disk",
    "N_OS": "healthy",
}

#: Labels of the hardware and simulated tiers: the eight merged classes of the fingerprinting paper, section 3.1.
HARDWARE_LABELS = {
    "P_Mem_L2": "misses the first cache",
    "P_Mem_L3": "misses the second cache",
    "P_Mem_M": "waits for memory",
    "P_CPU": "waits inside the core",
    "N_Mem_L2": "healthy, in the second cache",
    "N_Mem_L3": "healthy, in the last cache",
    "N_Mem_M": "healthy, streaming from memory",
    "N_CPU": "healthy, in the core",
}


@dataclass(frozen=True)
class Workload:
    """One row: a program, how it is built and started, and what its slices are examples of.

    `label` holds where every event may be counted, `coarse` where only /proc may be read (stat, schedstat, status).
    `who` says which processes of the workload's process group carry the label: `all` (that use a tenth of a CPU or
    more: below that, a partner that only wakes and sleeps looks like a storm of its own), `main` (the started one), or
    `family` (the started one and its short-lived children together, as cutime and cminflt add them up).
    `size`, `build` and `body` are what whole-run hold-outs are formed by (unseen size, unseen build, unseen program).
    """

    name: str
    label: str
    coarse: str
    kind: str
    program: str
    variant: str = "P"
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ("-O2",)
    tier: str = "software"
    size: str = ""
    body: str = ""
    who: str = "all"
    twin: str = ""  # the healthy workload it is measured against; "" where there is none
    needs: frozenset[str] = field(default_factory=frozenset)  # of "two-cpus", "disk", "x86"

    @property
    def build(self) -> str:
        return " ".join(self.options)

    @property
    def pathological(self) -> bool:
        return self.label.startswith("P_")
