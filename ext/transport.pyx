"""The transportation problem: least work to turn one histogram into another (earth mover's distance).

Successive shortest paths with node potentials (a Dijkstra search on the dense bipartite residual graph per unit that
is moved). Masses are whole numbers, so nothing is lost to rounding and the search always ends.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset


cdef double solve(int n, int m, int64_t *supply, int64_t *demand, const double *cost, int64_t *flow, double *potential,
                  double *distance, int *before, char *done) noexcept nogil:
    """Move all of `supply` (n) to `demand` (m) and return the work. Nodes 0..n-1 give, n..n+m-1 take."""
    cdef int nodes = n + m, node, i, j, target
    cdef double best, length, work = 0.0
    cdef int64_t amount
    while True:
        target = -1
        memset(done, 0, nodes)
        for node in range(nodes):
            distance[node] = 0.0 if node < n and supply[node] > 0 else INFINITY
            before[node] = -1
        while True:
            best = INFINITY
            node = -1
            for i in range(nodes):
                if not done[i] and distance[i] < best:
                    best = distance[i]
                    node = i
            if node < 0:
                break
            done[node] = 1
            if node < n:
                for j in range(m):
                    if not done[n + j]:
                        length = cost[<long>node * m + j] + potential[node] - potential[n + j]
                        length = best + (length if length > 0.0 else 0.0)  # rounding can leave -1e-16
                        if length < distance[n + j]:
                            distance[n + j] = length
                            before[n + j] = node
            elif demand[node - n] > 0:
                target = node
                break
            else:
                for i in range(n):
                    if not done[i] and flow[<long>i * m + node - n] > 0:
                        length = potential[node] - cost[<long>i * m + node - n] - potential[i]
                        length = best + (length if length > 0.0 else 0.0)
                        if length < distance[i]:
                            distance[i] = length
                            before[i] = node
        if target < 0:
            break
        for node in range(nodes):
            potential[node] += distance[node] if distance[node] < best else best
        amount = demand[target - n]
        node = target
        while before[node] >= 0:
            if node < n and flow[<long>node * m + before[node] - n] < amount:
                amount = flow[<long>node * m + before[node] - n]
            node = before[node]
        if supply[node] < amount:
            amount = supply[node]
        supply[node] -= amount
        demand[target - n] -= amount
        node = target
        while before[node] >= 0:
            if node >= n:
                flow[<long>before[node] * m + node - n] += amount
            else:
                flow[<long>node * m + before[node] - n] -= amount
            node = before[node]
    for i in range(n):
        for j in range(m):
            work += flow[<long>i * m + j] * cost[<long>i * m + j]
    return work


def least_work(const int64_t[::1] supply, const int64_t[::1] demand, const double[:, ::1] cost):
    """Least total of mass x cost that turns `supply` (n,) into `demand` (m,), whole numbers with equal sums.

    `cost` is float64 (n, m), not negative. Raises ValueError where shapes or sums do not agree.
    """
    cdef int n = supply.shape[0], m = demand.shape[0], i
    cdef int64_t given = 0, taken = 0
    cdef double work
    for i in range(n):
        given += supply[i]
    for i in range(m):
        taken += demand[i]
    if cost.shape[0] != n or cost.shape[1] != m or given != taken or not n or not m:
        raise ValueError(f"{n} x {m} histograms of mass {given} and {taken}, costs {cost.shape[0]} x {cost.shape[1]}")
    cdef int64_t *mass = <int64_t *>malloc((n + m + <long>n * m) * sizeof(int64_t))
    cdef double *length = <double *>malloc(2 * (n + m) * sizeof(double))
    cdef int *before = <int *>malloc((n + m) * sizeof(int))
    cdef char *done = <char *>malloc(n + m)
    try:
        if not mass or not length or not before or not done:
            raise MemoryError
        for i in range(n):
            mass[i] = supply[i]
        for i in range(m):
            mass[n + i] = demand[i]
        memset(mass + n + m, 0, <long>n * m * sizeof(int64_t))
        memset(length, 0, 2 * (n + m) * sizeof(double))
        with nogil:
            work = solve(n, m, mass, mass + n, &cost[0, 0], mass + n + m, length, length + n + m, before, done)
        return work
    finally:
        free(mass)
        free(length)
        free(before)
        free(done)
