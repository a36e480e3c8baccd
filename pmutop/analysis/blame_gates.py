"""Gates against false blame: waits and slow-downs that no neighbour caused. Small pure functions, used by `blame`."""

from __future__ import annotations

import numpy as np

#: Below this share of a CPU a victim's ratios are noise (CPI2, too, leaves those out) ...
SMALL = 0.05
#: ... unless it is starved: it waited for this share of the slice.
STARVED = 0.5
#: A ratio of the victim's own work that changes by this share, and by this many times its usual spread, is a new phase.
JUMP, SPREADS = 0.5, 6.0
FEWEST_FOR_PHASE = 3


def too_small(had: float, waited: float) -> bool:
    """Does a victim that had `had` CPUs and waited for `waited` (shares of the slice) use too little to be judged?"""
    return had < SMALL and not waited >= STARVED


def without_throttling(waited: np.ndarray, throttled: np.ndarray) -> np.ndarray:
    """The wait (n,) less the time held back by the victim's own CPU quota, which the kernel counts as run delay too (a
    throttled group's tasks stay queued: kernel/sched/fair.c, throttle_cfs_rq)."""
    return np.maximum(waited - np.nan_to_num(throttled), 0.0)


def without_steal(
    waited: np.ndarray, row: np.ndarray, cpu: np.ndarray, share: np.ndarray, steal: np.ndarray
) -> np.ndarray:
    """The wait (n,) less what the hypervisor took from the CPUs each row used: `row`, `cpu`, `share` (k,) say who had
    which CPU, `steal` (cpus,) is the share of the slice stolen from each. Who ran nowhere loses the mean of all."""
    had = np.bincount(row, weights=share, minlength=len(waited))
    stolen = np.bincount(row, weights=share * steal[cpu], minlength=len(waited))
    mean = np.divide(stolen, had, out=np.full(len(waited), steal.mean()), where=had > 0)
    return np.maximum(waited - mean, 0.0)


def mix_changed(past: np.ndarray, now: np.ndarray) -> bool:
    """Has the victim's own work changed? past (slices, m) and now (m,): ratios that no neighbour changes; NaN = unknown."""
    if len(past) < FEWEST_FOR_PHASE:
        return False
    usual = np.median(past, axis=0)
    spread = np.median(np.abs(past - usual), axis=0)
    away = np.abs(np.asarray(now, dtype=np.float64) - usual)
    return bool(np.any((away > JUMP * np.abs(usual)) & (away > SPREADS * spread)))
