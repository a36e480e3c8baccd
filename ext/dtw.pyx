"""Dynamic time warping in two rows of memory; without the GIL, so that joblib's threads can share it."""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc


cdef double warp(const double *a, Py_ssize_t n, const double *b, Py_ssize_t m, Py_ssize_t window, bint squared,
                 double *before, double *now) noexcept nogil:
    cdef Py_ssize_t i, j, low, high
    cdef double step, best
    for j in range(m + 1):
        before[j] = INFINITY
    before[0] = 0.0
    for i in range(n):
        for j in range(m + 1):
            now[j] = INFINITY
        low = i - window if i > window else 0
        high = i + window + 1 if i + window + 1 < m else m
        for j in range(low, high):
            step = a[i] - b[j]
            step = step * step if squared else fabs(step)
            best = before[j]
            if before[j + 1] < best:
                best = before[j + 1]
            if now[j] < best:
                best = now[j]
            now[j + 1] = step + best
        before, now = now, before
    return before[m]


def distance(const double[::1] a, const double[::1] b, Py_ssize_t window, bint squared):
    """The least sum of steps over all warpings of `a` onto `b`; inf where `window` allows none."""
    cdef Py_ssize_t n = a.shape[0], m = b.shape[0]
    cdef double *rows
    cdef double total
    if n == 0 or m == 0:
        raise ValueError("an empty series has no alignment")
    if window < 0:
        window = n + m
    rows = <double *>malloc(2 * (m + 1) * sizeof(double))
    if rows == NULL:
        raise MemoryError
    with nogil:
        total = warp(&a[0], n, &b[0], m, window, squared, rows, rows + m + 1)
        free(rows)
    return total
