# Included by c45.pyx. Cases on their way down: known to the left or the right, unknown in parts to both.

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
