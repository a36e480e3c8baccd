/* BFS: breadth first from node 0 of a random graph, by levels shared among the workers. Iteration: one search. */
#include "program.h"

static long nodes, degree;
static uint32_t *edge, *level;
static volatile long changed[2];

static void work(struct worker *worker)
{
    long low = part_from(worker, nodes), high = part_to(worker, nodes);
    ready(worker);
    while (iteration(worker)) {
        memset(level + low, 0xff, (size_t)(high - low) * 4);
        meet();
        if (worker->index == 0)
            level[0] = 0, changed[0] = 1, changed[1] = 0;
        meet();
        for (uint32_t depth = 0; changed[depth & 1]; depth++) {
            long mine = 0;
            for (long node = low; node < high; node++)
                if (level[node] == depth)
                    for (long j = 0; j < degree; j++) {
                        uint32_t *other = &level[edge[node * degree + j]];
                        if (*other == UINT32_MAX)
                            *other = depth + 1, mine++;
                    }
            meet();
            if (worker->index == 0)
                changed[depth & 1] = 0;
            __atomic_fetch_add(&changed[(depth + 1) & 1], mine, __ATOMIC_SEQ_CST);
            meet();
        }
        worker->check += worker->index == 0 && level[nodes / 2] != 0;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    nodes = number("nodes", 1 << 19);
    degree = number("degree", 6);
    edge = malloc((size_t)(nodes * degree) * 4), level = malloc((size_t)nodes * 4);
    uint64_t x = 42;
    for (long i = 0; i < nodes * degree; i++)
        edge[i] = (uint32_t)(xorshift(&x) % (uint64_t)nodes);
    program_run(work);
}
