"""C4.5 grown over flat arrays: gain-ratio cuts, fractional cases, collapsing, pruning with subtree raising, no GIL.

Quinlan, 'C4.5: Programs for Machine Learning' (1993), and 'Improved use of continuous attributes in C4.5' (1996,
release 8: the description length of a threshold is paid from its gain). pmutop/analysis/tree.py is its face; ext/tree.pyx reads the tree. The parts in
ext/c45 are one unit with this file: none stands alone.
"""

from libc.math cimport INFINITY, NAN, isnan, log2, pow, sqrt
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

import numpy as np

cdef enum:
    DEEPEST = 256  # levels, as many as tree.pyx reads: bounds the recursion and the memory of the case lists

cdef double TINY = 1e-6  # a gain or error that differs by less is the same: the earlier event and the lower cut stay

cdef struct Case:        # a training row, or the part of it that reached a node
    double weight
    int row
    int label

cdef struct Node:
    int feature          # -1: a leaf
    int left             # value <= threshold
    int right
    int size
    double threshold
    double share         # of the weight with a known value, the part that goes left
    Case *cases

cdef struct Cut:
    double threshold
    double gain          # bits per unit of weight, scaled by the known fraction; 0: no cut
    double ratio

cdef struct Sorted:      # a node's known cases in the order of each feature
    double *value        # (features, size)
    int *place           # (features, size) index into the node's cases
    int *known           # (features,)

cdef struct Tree:
    const double *columns  # (features, rows)
    int rows
    int features
    int classes
    double min_leaf
    bint mdl
    bint scale_leaf
    bint raising
    double confidence
    double z
    double *xlogx        # x log2 x of 0, 1, 2, ...: whole weights are the rule, and logarithms the cost
    int xlogx_size
    double *left         # (classes,) scratch of the scan
    double *right
    const double *all_value  # (features, rows) sorted training values
    const int *all_known     # (features,)
    Node *nodes
    double *counts       # (room, classes)
    int used
    int room
    bint failed          # out of memory


include "c45/criterion.pxi"
include "c45/cases.pxi"
include "c45/growth.pxi"
include "c45/pruning.pxi"


cdef bint begin(Tree *tree, int features, int rows, int classes, double min_leaf, bint mdl, bint scale_leaf) noexcept:
    cdef int i
    memset(tree, 0, sizeof(Tree))
    tree.features = features
    tree.rows = rows
    tree.classes = classes
    tree.min_leaf = min_leaf
    tree.mdl = mdl
    tree.scale_leaf = scale_leaf
    tree.xlogx_size = rows + 1
    tree.xlogx = <double *> malloc(tree.xlogx_size * sizeof(double))
    tree.left = <double *> calloc(classes + 1, sizeof(double))
    tree.right = <double *> calloc(classes + 1, sizeof(double))
    if tree.xlogx == NULL or tree.left == NULL or tree.right == NULL:
        return False
    tree.xlogx[0] = 0
    for i in range(1, tree.xlogx_size):
        tree.xlogx[i] = i * log2(<double> i)
    return True


cdef void end(Tree *tree) noexcept:
    cdef int i
    for i in range(tree.used):
        free(tree.nodes[i].cases)
    free(tree.nodes)
    free(tree.counts)
    free(tree.xlogx)
    free(tree.left)
    free(tree.right)


def grow(const double[:, ::1] columns, const int[::1] labels, const double[::1] weight, int classes, *,
         double min_leaf, bint scale_leaf, bint mdl, bint collapsing, bint pruning, bint raising,
         double confidence, double z):
    """Grows and prunes. columns (features, rows) with NaN for missing values, labels int32 (rows,) in 0..classes-1,
    weight (rows,) > 0; z is the normal quantile of 1 - confidence. Returns (feature int32, threshold, left int32,
    right int32, share, counts (nodes, classes)), parents before children."""
    cdef int features = columns.shape[0], rows = columns.shape[1], i, f, root, nodes
    cdef Tree tree
    cdef Sorted order
    cdef Case *cases
    if labels.shape[0] != rows or weight.shape[0] != rows or rows < 1 or classes < 1:
        raise ValueError("columns, labels and weight must have the same, non-zero number of rows")
    by_value = np.argsort(columns, axis=1, kind="stable").astype(np.int32)  # NaN last
    in_order = np.take_along_axis(np.asarray(columns), by_value, axis=1)
    amount = np.asarray(rows - np.isnan(in_order).sum(axis=1), dtype=np.int32)
    cdef const int[:, ::1] places = by_value
    cdef const double[:, ::1] values = in_order
    cdef const int[::1] known = amount
    try:
        if not begin(&tree, features, rows, classes, min_leaf, mdl, scale_leaf):
            raise MemoryError
        tree.columns = &columns[0, 0] if features else NULL
        tree.all_value = &values[0, 0] if features else NULL
        tree.all_known = &known[0] if features else NULL
        tree.raising = raising
        tree.confidence = confidence
        tree.z = z
        with nogil:
            cases = <Case *> malloc(rows * sizeof(Case))
            order = room_for(&tree, rows)
            if cases == NULL or tree.failed:
                free(cases)
                release(&order)
                tree.failed = True
            else:
                for i in range(rows):
                    cases[i].weight = weight[i]
                    cases[i].row = i
                    cases[i].label = labels[i]
                for f in range(features):
                    order.known[f] = known[f]
                    for i in range(known[f]):
                        order.value[<size_t> f * rows + i] = values[f, i]
                        order.place[<size_t> f * rows + i] = places[f, i]
                root = add_node(&tree, cases, rows)
                if not tree.failed and may_split(&tree, root):
                    grow_below(&tree, root, order, 0)
                else:
                    release(&order)
            if collapsing and not tree.failed:
                collapse(&tree, 0)
            if pruning and not tree.failed:
                prune(&tree, 0)
        if tree.failed:
            raise MemoryError
        nodes = size_below(&tree, 0)
        feature, left, right = (np.empty(nodes, np.int32) for _ in range(3))
        threshold, share = np.empty(nodes), np.empty(nodes)
        counts = np.empty((nodes, classes))
        write_out(&tree, 0, 0, feature, threshold, left, right, share, counts)
        return feature, threshold, left, right, share, counts
    finally:
        end(&tree)


def cut(const double[::1] values, const int[::1] labels, const double[::1] weight, int classes, *,
        double min_leaf, bint scale_leaf, bint mdl):
    """The best cut of one column (rows,): (threshold, gain in bits, gain ratio), or None where no cut gains."""
    cdef int rows = values.shape[0], i
    cdef Tree tree
    cdef Cut found
    cdef double total = 0
    array = np.asarray(values)
    by_value = np.argsort(array, kind="stable").astype(np.int32)
    in_order = array[by_value]
    cdef const int[::1] places = by_value
    cdef const double[::1] ordered = in_order
    cdef int known = rows - int(np.isnan(array).sum())
    cdef Case *cases = <Case *> malloc((rows + 1) * sizeof(Case))
    try:
        if not begin(&tree, 1, rows, classes, min_leaf, mdl, scale_leaf) or cases == NULL:
            raise MemoryError
        for i in range(rows):
            cases[i].weight = weight[i]
            cases[i].row = i
            cases[i].label = labels[i]
            total += weight[i]
        found = best_cut(&tree, cases, &ordered[0] if rows else NULL, &places[0] if rows else NULL, known, total)
    finally:
        free(cases)
        end(&tree)
    return (found.threshold, found.gain, found.ratio) if found.gain > 0 else None


def pessimistic_errors(double n, double e, double confidence, double z):
    """e of n training errors plus those that the upper confidence limit adds."""
    return e + added_errors(n, e, confidence, z)
