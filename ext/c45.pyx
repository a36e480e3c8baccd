"""C4.5 grown over flat arrays: gain-ratio cuts, fractional cases, collapsing, pruning with subtree raising, no GIL.

Quinlan, 'C4.5: Programs for Machine Learning' (1993), and 'Improved use of continuous attributes in C4.5' (1996,
release 8: the description length of a threshold is paid from its gain). pmutop/analysis/tree.py is its face; ext/tree.pyx reads the tree.
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


# --- the criterion -------------------------------------------------------------------------------------------------

cdef inline double plogp(Tree *tree, double x) noexcept nogil:
    cdef int whole
    if x < TINY:
        return 0.0
    if x < tree.xlogx_size:
        whole = <int> x
        if whole == x:
            return tree.xlogx[whole]
    return x * log2(x)


cdef Cut best_cut(Tree *tree, const Case *cases, const double *value, const int *place, int known,
                  double total) noexcept nogil:
    """The cut of one feature with the highest gain. total: the node's weight, unknown values included."""
    cdef Cut cut
    cdef double *left = tree.left
    cdef double *right = tree.right
    cdef double left_sum = 0, right_sum = 0, left_bits = 0, right_bits = 0, weight, gain, best = 0
    cdef double known_sum = 0, whole_bits, minimum, middle, info
    cdef double best_left = 0
    cdef int i, label, tries = 0, at = -1
    cut.threshold = NAN
    cut.gain = 0
    cut.ratio = 0
    if known < 2 or value[0] == value[known - 1]:
        return cut
    memset(left, 0, tree.classes * sizeof(double))
    memset(right, 0, tree.classes * sizeof(double))
    for i in range(known):
        right[cases[place[i]].label] += cases[place[i]].weight
    for label in range(tree.classes):
        known_sum += right[label]
        right_bits += plogp(tree, right[label])
    minimum = tree.min_leaf
    if tree.scale_leaf:
        minimum = 0.1 * known_sum / tree.classes
        if minimum <= tree.min_leaf + TINY:
            minimum = tree.min_leaf
        elif minimum > 25:
            minimum = 25
    if known_sum < 2 * minimum - TINY:
        return cut
    whole_bits = plogp(tree, known_sum) - right_bits
    for i in range(known - 1):
        label = cases[place[i]].label
        weight = cases[place[i]].weight
        left_bits -= plogp(tree, left[label])
        right_bits -= plogp(tree, right[label])
        left[label] += weight
        right[label] -= weight
        left_bits += plogp(tree, left[label])
        right_bits += plogp(tree, right[label])
        left_sum += weight
        if value[i] == value[i + 1] or left_sum < minimum - TINY:
            continue
        right_sum = known_sum - left_sum
        if right_sum < minimum - TINY:
            break
        tries += 1
        gain = whole_bits - (plogp(tree, left_sum) - left_bits) - (plogp(tree, right_sum) - right_bits)
        gain = gain / total if gain >= TINY else 0.0  # bits of the known cases over all weight: the known fraction
        if gain > best + TINY:
            best = gain
            best_left = left_sum
            at = i
    if at < 0:
        return cut
    if tree.mdl:
        best -= log2(<double> tries) / total
    if best < TINY:
        return cut
    right_sum = known_sum - best_left
    info = (plogp(tree, total) - plogp(tree, best_left) - plogp(tree, right_sum) - plogp(tree, total - known_sum))
    middle = 0.5 * value[at] + 0.5 * value[at + 1]
    cut.threshold = middle if middle < value[at + 1] and middle >= value[at] else value[at]
    cut.gain = best
    cut.ratio = best / (info / total) if info >= TINY else 0.0
    return cut


cdef double seen_value(Tree *tree, int feature, double threshold) noexcept nogil:
    """The largest training value (of all rows) that is not above the threshold: rules quote numbers that occurred."""
    cdef const double *value = tree.all_value + <size_t> feature * tree.rows
    cdef int low = 0, high = tree.all_known[feature], middle
    while low < high:
        middle = (low + high) // 2
        if value[middle] <= threshold:
            low = middle + 1
        else:
            high = middle
    return value[low - 1] if low else threshold


cdef double added_errors(double n, double e, double confidence, double z) noexcept nogil:
    """Errors to add to e of n for the upper limit of the confidence interval (C4.5, 'pessimistic pruning')."""
    cdef double base, rate, limit
    if e < 1:
        base = n * (1 - pow(confidence, 1 / n))
        return base if e == 0 else base + e * (added_errors(n, 1, confidence, z) - base)
    if e + 0.5 >= n:
        return n - e if n > e else 0
    rate = (e + 0.5) / n  # continuity correction
    limit = rate + z * z / (2 * n) + z * sqrt(rate / n - rate * rate / n + z * z / (4 * n * n))
    return limit / (1 + z * z / n) * n - e


cdef double errors_of(Tree *tree, const double *counts) noexcept nogil:
    cdef double total = 0, most = 0
    cdef int label
    for label in range(tree.classes):
        total += counts[label]
        if counts[label] > most:
            most = counts[label]
    return total - most


cdef double estimated_errors(Tree *tree, const double *counts) noexcept nogil:
    cdef double total = 0, wrong = errors_of(tree, counts)
    cdef int label
    for label in range(tree.classes):
        total += counts[label]
    if total < TINY:
        return 0
    if wrong < 1e-9:  # the rest of a subtraction of fractional weights
        wrong = 0
    return wrong + added_errors(total, wrong, tree.confidence, tree.z)


# --- cases on their way down ---------------------------------------------------------------------------------------

cdef inline double value_of(Tree *tree, const Case *case, int feature) noexcept nogil:
    return tree.columns[<size_t> feature * tree.rows + case.row]


cdef void count(Tree *tree, const Case *cases, int size, double *counts) noexcept nogil:
    cdef int i
    memset(counts, 0, tree.classes * sizeof(double))
    for i in range(size):
        counts[cases[i].label] += cases[i].weight


cdef double known_share(Tree *tree, const Case *cases, int size, int feature, double threshold) noexcept nogil:
    cdef double value, left = 0, known = 0
    cdef int i
    for i in range(size):
        value = value_of(tree, cases + i, feature)
        if not isnan(value):
            known += cases[i].weight
            if value <= threshold:
                left += cases[i].weight
    return left / known if known > TINY else 0.5


cdef bint divide(Tree *tree, const Case *cases, int size, int feature, double threshold, double share,
                 Case **left, int *left_size, Case **right, int *right_size) noexcept nogil:
    """Two new case lists; a case without the value goes both ways, its weight divided by share. False: no memory."""
    cdef int i, side, lefts = 0, rights = 0
    cdef double value
    cdef Case case
    for i in range(size):
        value = value_of(tree, cases + i, feature)
        lefts += isnan(value) or value <= threshold
        rights += isnan(value) or value > threshold
    left[0] = <Case *> malloc((lefts + 1) * sizeof(Case))
    right[0] = <Case *> malloc((rights + 1) * sizeof(Case))
    if left[0] == NULL or right[0] == NULL:
        free(left[0])
        free(right[0])
        left[0] = right[0] = NULL
        tree.failed = True
        return False
    lefts = rights = 0
    for i in range(size):
        case = cases[i]
        value = value_of(tree, cases + i, feature)
        if isnan(value):
            if share > TINY:
                left[0][lefts] = case
                left[0][lefts].weight = case.weight * share
                lefts += 1
            if share < 1 - TINY:
                right[0][rights] = case
                right[0][rights].weight = case.weight * (1 - share)
                rights += 1
        elif value <= threshold:
            left[0][lefts] = case
            lefts += 1
        else:
            right[0][rights] = case
            rights += 1
    left_size[0] = lefts
    right_size[0] = rights
    return True


# --- growth --------------------------------------------------------------------------------------------------------

cdef int add_node(Tree *tree, Case *cases, int size) noexcept nogil:
    """A new leaf that owns its cases; -1: no memory."""
    cdef int room
    cdef void *moved
    if tree.used == tree.room:
        room = 2 * tree.room + 64
        moved = realloc(tree.nodes, room * sizeof(Node))
        if moved != NULL:
            tree.nodes = <Node *> moved
            moved = realloc(tree.counts, <size_t> room * tree.classes * sizeof(double))
        if moved == NULL:
            free(cases)
            tree.failed = True
            return -1
        tree.counts = <double *> moved
        tree.room = room
    tree.nodes[tree.used].feature = -1
    tree.nodes[tree.used].left = tree.nodes[tree.used].right = -1
    tree.nodes[tree.used].threshold = NAN
    tree.nodes[tree.used].share = 0
    tree.nodes[tree.used].cases = cases
    tree.nodes[tree.used].size = size
    count(tree, cases, size, tree.counts + <size_t> tree.used * tree.classes)
    tree.used += 1
    return tree.used - 1


cdef bint may_split(Tree *tree, int at) noexcept nogil:
    cdef double *counts = tree.counts + <size_t> at * tree.classes
    cdef double total = 0
    cdef int label
    for label in range(tree.classes):
        total += counts[label]
    return total >= 2 * tree.min_leaf - TINY and errors_of(tree, counts) > TINY


cdef Sorted no_order() noexcept nogil:
    cdef Sorted order
    order.value = NULL
    order.place = NULL
    order.known = NULL
    return order


cdef void release(Sorted *order) noexcept nogil:
    free(order.value)
    free(order.place)
    free(order.known)
    order[0] = no_order()


cdef Sorted room_for(Tree *tree, int size) noexcept nogil:
    cdef Sorted order
    order.value = <double *> malloc((<size_t> tree.features * size + 1) * sizeof(double))
    order.place = <int *> malloc((<size_t> tree.features * size + 1) * sizeof(int))
    order.known = <int *> malloc((tree.features + 1) * sizeof(int))
    if order.value == NULL or order.place == NULL or order.known == NULL:
        release(&order)
        tree.failed = True
    return order


cdef Sorted inherit(Tree *tree, const Sorted *parent, int parent_size, const int *place_in_child,
                    int size) noexcept nogil:
    """The parent's order restricted to the cases of one child (place_in_child: -1 where a case is not)."""
    cdef Sorted order = room_for(tree, size)
    cdef const double *from_value
    cdef const int *from_place
    cdef double *value
    cdef int *place
    cdef int feature, i, at, used
    if tree.failed:
        return order
    for feature in range(tree.features):
        from_value = parent.value + <size_t> feature * parent_size
        from_place = parent.place + <size_t> feature * parent_size
        value = order.value + <size_t> feature * size
        place = order.place + <size_t> feature * size
        used = 0
        for i in range(parent.known[feature]):
            at = place_in_child[from_place[i]]
            if at >= 0:
                value[used] = from_value[i]
                place[used] = at
                used += 1
        order.known[feature] = used
    return order


cdef Cut choose(Tree *tree, int at, const Sorted *order, Cut *cuts, int *chosen) noexcept nogil:
    """The best gain ratio among the cuts that gain at least the average; chosen = -1 where none is worth it."""
    cdef Node *node = tree.nodes + at
    cdef double total = 0, average = 0, best = 0
    cdef int feature, label, valid = 0
    cdef Cut none
    none.threshold = NAN
    none.gain = none.ratio = 0
    chosen[0] = -1
    for label in range(tree.classes):
        total += tree.counts[<size_t> at * tree.classes + label]
    for feature in range(tree.features):
        cuts[feature] = best_cut(tree, node.cases, order.value + <size_t> feature * node.size,
                                 order.place + <size_t> feature * node.size, order.known[feature], total)
        if cuts[feature].gain > 0:
            average += cuts[feature].gain
            valid += 1
    if not valid:
        return none
    average /= valid
    for feature in range(tree.features):
        # 1e-3: C4.5's own slack, so that events of nearly average gain stay in the race
        if cuts[feature].gain > 0 and cuts[feature].gain >= average - 1e-3 and cuts[feature].ratio > best + TINY:
            best = cuts[feature].ratio
            chosen[0] = feature
    return cuts[chosen[0]] if chosen[0] >= 0 else none


cdef void grow_below(Tree *tree, int at, Sorted order, int level) noexcept nogil:
    """Splits the leaf at if that pays, and goes on below. Takes order over."""
    cdef Cut cut
    cdef Cut *cuts = <Cut *> malloc((tree.features + 1) * sizeof(Cut))
    cdef Case *halves[2]
    cdef int sizes[2]
    cdef int children[2]
    cdef Sorted orders[2]
    cdef int *place
    cdef int feature = -1, side, i, used, size = tree.nodes[at].size
    cdef double value, share
    if cuts == NULL:
        tree.failed = True
    else:
        cut = choose(tree, at, &order, cuts, &feature)
        free(cuts)
    if feature < 0:
        release(&order)
        return
    share = known_share(tree, tree.nodes[at].cases, size, feature, cut.threshold)
    if not divide(tree, tree.nodes[at].cases, size, feature, cut.threshold, share,
                  &halves[0], &sizes[0], &halves[1], &sizes[1]):
        release(&order)
        return
    place = <int *> malloc((size + 1) * sizeof(int))
    for side in range(2):
        orders[side] = no_order()
        children[side] = add_node(tree, halves[side], sizes[side])
        if place == NULL or children[side] < 0:
            tree.failed = True
        if tree.failed or level + 1 >= DEEPEST or not may_split(tree, children[side]):
            continue
        used = 0
        for i in range(size):
            value = value_of(tree, tree.nodes[at].cases + i, feature)
            if (share > TINY if side == 0 else share < 1 - TINY) if isnan(value) else (
                    (value <= cut.threshold) == (side == 0)):
                place[i] = used
                used += 1
            else:
                place[i] = -1
        orders[side] = inherit(tree, &order, size, place, sizes[side])
    free(place)
    release(&order)
    if not tree.failed:
        tree.nodes[at].feature = feature
        tree.nodes[at].threshold = seen_value(tree, feature, cut.threshold)
        tree.nodes[at].share = share
        tree.nodes[at].left = children[0]
        tree.nodes[at].right = children[1]
    for side in range(2):
        if orders[side].value != NULL:
            if tree.failed:
                release(&orders[side])
            else:
                grow_below(tree, children[side], orders[side], level + 1)


# --- collapsing and pruning ----------------------------------------------------------------------------------------

cdef void make_leaf(Tree *tree, int at) noexcept nogil:
    tree.nodes[at].feature = -1
    tree.nodes[at].left = tree.nodes[at].right = -1
    tree.nodes[at].threshold = NAN
    tree.nodes[at].share = 0


cdef double training_errors(Tree *tree, int at) noexcept nogil:
    if tree.nodes[at].feature < 0:
        return errors_of(tree, tree.counts + <size_t> at * tree.classes)
    return training_errors(tree, tree.nodes[at].left) + training_errors(tree, tree.nodes[at].right)


cdef void collapse(Tree *tree, int at) noexcept nogil:
    """A subtree that errs on the training cases as often as a leaf would is a leaf."""
    if tree.nodes[at].feature < 0:
        return
    if training_errors(tree, at) >= errors_of(tree, tree.counts + <size_t> at * tree.classes) - 1e-3:
        make_leaf(tree, at)
    else:
        collapse(tree, tree.nodes[at].left)
        collapse(tree, tree.nodes[at].right)


cdef double subtree_errors(Tree *tree, int at) noexcept nogil:
    if tree.nodes[at].feature < 0:
        return estimated_errors(tree, tree.counts + <size_t> at * tree.classes)
    return subtree_errors(tree, tree.nodes[at].left) + subtree_errors(tree, tree.nodes[at].right)


cdef double branch_errors(Tree *tree, int at, const Case *cases, int size) noexcept nogil:
    """Estimated errors if these cases (not its own) went through the subtree at."""
    cdef Node *node = tree.nodes + at
    cdef Case *left = NULL
    cdef Case *right = NULL
    cdef int left_size = 0, right_size = 0
    cdef double errors
    if node.feature < 0:
        count(tree, cases, size, tree.left)
        return estimated_errors(tree, tree.left)
    if not divide(tree, cases, size, node.feature, node.threshold,
                  known_share(tree, cases, size, node.feature, node.threshold),
                  &left, &left_size, &right, &right_size):
        return INFINITY
    errors = branch_errors(tree, node.left, left, left_size) + branch_errors(tree, node.right, right, right_size)
    free(left)
    free(right)
    return errors


cdef void recount(Tree *tree, int at) noexcept nogil:
    """Sends the node's cases down anew after its subtree was raised."""
    cdef Node *node = tree.nodes + at
    cdef Case *left = NULL
    cdef Case *right = NULL
    count(tree, node.cases, node.size, tree.counts + <size_t> at * tree.classes)
    if node.feature < 0:
        return
    node.share = known_share(tree, node.cases, node.size, node.feature, node.threshold)
    cdef int left_size = 0, right_size = 0
    if not divide(tree, node.cases, node.size, node.feature, node.threshold, node.share,
                  &left, &left_size, &right, &right_size):
        return
    free(tree.nodes[node.left].cases)
    free(tree.nodes[node.right].cases)
    tree.nodes[node.left].cases = left
    tree.nodes[node.left].size = left_size
    tree.nodes[node.right].cases = right
    tree.nodes[node.right].size = right_size
    recount(tree, node.left)
    recount(tree, node.right)


cdef void prune(Tree *tree, int at) noexcept nogil:
    cdef double as_leaf, as_tree, as_branch = INFINITY
    cdef int largest
    while tree.nodes[at].feature >= 0 and not tree.failed:
        prune(tree, tree.nodes[at].left)
        prune(tree, tree.nodes[at].right)
        largest = tree.nodes[at].left if tree.nodes[at].share > 0.5 + TINY else tree.nodes[at].right
        as_leaf = estimated_errors(tree, tree.counts + <size_t> at * tree.classes)
        as_tree = subtree_errors(tree, at)
        if tree.raising:
            as_branch = branch_errors(tree, largest, tree.nodes[at].cases, tree.nodes[at].size)
        if as_leaf < as_tree + 0.1 + TINY and as_leaf < as_branch + 0.1 + TINY:
            make_leaf(tree, at)
        elif as_branch < as_tree + 0.1 + TINY:
            tree.nodes[at].feature = tree.nodes[largest].feature
            tree.nodes[at].threshold = tree.nodes[largest].threshold
            tree.nodes[at].left = tree.nodes[largest].left
            tree.nodes[at].right = tree.nodes[largest].right
            recount(tree, at)  # and prune what was raised once more, on all the cases it now has
        else:
            return


cdef int size_below(Tree *tree, int at) noexcept nogil:
    if tree.nodes[at].feature < 0:
        return 1
    return 1 + size_below(tree, tree.nodes[at].left) + size_below(tree, tree.nodes[at].right)


cdef int write_out(Tree *tree, int at, int next, int[::1] feature, double[::1] threshold, int[::1] left,
                   int[::1] right, double[::1] share, double[:, ::1] counts) noexcept nogil:
    """Copies the nodes still in use, parents before children; the next free place."""
    cdef int here = next, label
    feature[here] = tree.nodes[at].feature
    threshold[here] = tree.nodes[at].threshold
    share[here] = tree.nodes[at].share
    for label in range(tree.classes):
        counts[here, label] = tree.counts[<size_t> at * tree.classes + label]
    left[here] = right[here] = -1
    next += 1
    if tree.nodes[at].feature >= 0:
        left[here] = next
        next = write_out(tree, tree.nodes[at].left, next, feature, threshold, left, right, share, counts)
        right[here] = next
        next = write_out(tree, tree.nodes[at].right, next, feature, threshold, left, right, share, counts)
    return next


# --- the module's functions ----------------------------------------------------------------------------------------

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
