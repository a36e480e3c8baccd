# Included by c45.pyx. Growth: a node's cases stay sorted by every feature from the root on; children inherit the order.

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
