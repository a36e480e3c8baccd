"""The catalogue of labelled workloads, by tier.

A pathological workload (P) stands beside its healthy twin (N): the same program, the same arguments, `--variant N`.
Which of them are pathological *here* is measured, not believed: see `admission.admit`.
"""

from pmutop.training.catalogue_applications import applications
from pmutop.training.catalogue_hardware import BUILDS, Caches, hardware, simulated
from pmutop.training.catalogue_software import software
from pmutop.training.labels import HARDWARE_LABELS, SOFTWARE_LABELS, Workload

__all__ = [
    "BUILDS",
    "HARDWARE_LABELS",
    "SOFTWARE_LABELS",
    "Caches",
    "Workload",
    "applications",
    "hardware",
    "labelled",
    "simulated",
    "software",
]


def labelled() -> tuple[Workload, ...]:
    """Every workload that carries a label: the software tier's and the hardware tier's."""
    return (*software(), *hardware())
