# Included by c45.pyx. The criterion: information gain less the price of a threshold, gain ratio, and the pessimistic errors of a leaf.

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
