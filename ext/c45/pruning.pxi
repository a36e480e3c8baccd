# Included by c45.pyx. Collapsing what errs no less than a leaf, pruning with subtree raising, and the tree written out.

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
