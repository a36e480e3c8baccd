"""Reads a decision tree kept as flat arrays: probabilities, and the evidence for them, many rows in one call, no GIL.

ext/c45.pyx grows such trees. The arrays are trusted with raw memory: pmutop/analysis/tree.py checks those that come from
a file.
"""

from libc.math cimport isnan

import numpy as np

DEEPEST = 256  # levels that a tree may have: a row without values is followed down all branches by recursion

cdef struct Grown:
    const int *feature
    const double *threshold
    const int *left
    const int *right
    const double *share
    const double *counts
    const double *total
    int classes


cdef double gather(const Grown *tree, const double *row, int at, double weight, double *out) noexcept nogil:
    """Adds the class frequencies of every leaf that a row reaches to out; returns their training weight."""
    cdef double value, support = 0
    cdef int label
    while tree.feature[at] >= 0:
        value = row[tree.feature[at]]
        if isnan(value):
            support += gather(tree, row, tree.left[at], weight * tree.share[at], out)
            weight *= 1 - tree.share[at]
            at = tree.right[at]
        else:
            at = tree.left[at] if value <= tree.threshold[at] else tree.right[at]
    for label in range(tree.classes):
        out[label] += weight * tree.counts[<size_t> at * tree.classes + label] / tree.total[at]
    return support + weight * tree.total[at]


cdef void credit(const Grown *tree, const double *row, int at, double weight, int label, double *out) noexcept nogil:
    """What each feature's decisions changed in the frequency of a class. Where the value is missing both branches are
    followed, and their weighted changes cancel: an unknown value moves nothing."""
    cdef double value
    cdef int child
    while tree.feature[at] >= 0:
        value = row[tree.feature[at]]
        if isnan(value):
            credit(tree, row, tree.left[at], weight * tree.share[at], label, out)
            weight *= 1 - tree.share[at]
            at = tree.right[at]
            continue
        child = tree.left[at] if value <= tree.threshold[at] else tree.right[at]
        out[tree.feature[at]] += weight * (tree.counts[<size_t> child * tree.classes + label] / tree.total[child]
                                           - tree.counts[<size_t> at * tree.classes + label] / tree.total[at])
        at = child


cdef Grown grown(const int[::1] feature, const double[::1] threshold, const int[::1] left, const int[::1] right,
                 const double[::1] share, const double[:, ::1] counts, const double[::1] total) noexcept:
    cdef Grown tree
    tree.feature = &feature[0]
    tree.threshold = &threshold[0]
    tree.left = &left[0]
    tree.right = &right[0]
    tree.share = &share[0]
    tree.counts = &counts[0, 0]
    tree.total = &total[0]
    tree.classes = counts.shape[1]
    return tree


def probabilities(const double[:, ::1] rows, const int[::1] feature, const double[::1] threshold,
                  const int[::1] left, const int[::1] right, const double[::1] share,
                  const double[:, ::1] counts, const double[::1] total):
    """Laplace-smoothed class probabilities (rows, classes)."""
    cdef Grown tree = grown(feature, threshold, left, right, share, counts, total)
    cdef Py_ssize_t amount = rows.shape[0], width = rows.shape[1], i
    cdef int label, classes = tree.classes
    cdef double support
    answer = np.zeros((amount, classes))
    cdef double[:, ::1] out = answer
    if amount == 0:
        return answer
    cdef const double *row = &rows[0, 0] if width else NULL
    with nogil:
        for i in range(amount):
            support = gather(&tree, row + i * width, 0, 1.0, &out[i, 0])
            for label in range(classes):
                out[i, label] = (out[i, label] * support + 1) / (support + classes)
    return answer


def contributions(const double[:, ::1] rows, const int[::1] feature, const double[::1] threshold,
                  const int[::1] left, const int[::1] right, const double[::1] share,
                  const double[:, ::1] counts, const double[::1] total):
    """Shares (rows, features) of the evidence for each row's most probable class; a row is 0 where none is for it."""
    cdef Grown tree = grown(feature, threshold, left, right, share, counts, total)
    cdef Py_ssize_t amount = rows.shape[0], width = rows.shape[1], i, f
    cdef int label, best, classes = tree.classes
    cdef double whole
    answer = np.zeros((amount, width))
    scratch = np.zeros(classes)
    cdef double[:, ::1] out = answer
    cdef double[::1] mixed = scratch
    if amount == 0 or width == 0:
        return answer
    with nogil:
        for i in range(amount):
            for label in range(classes):
                mixed[label] = 0
            gather(&tree, &rows[i, 0], 0, 1.0, &mixed[0])
            best = 0
            for label in range(1, classes):
                if mixed[label] > mixed[best]:
                    best = label
            credit(&tree, &rows[i, 0], 0, 1.0, best, &out[i, 0])
            whole = 0
            for f in range(width):
                if out[i, f] < 0:
                    out[i, f] = 0
                whole += out[i, f]
            if whole > 0:
                for f in range(width):
                    out[i, f] /= whole
    return answer
