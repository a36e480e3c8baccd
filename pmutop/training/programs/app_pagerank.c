/* PR: PageRank by pulling over a random graph of --nodes nodes and --degree links each. Iteration: one sweep. */
#include "program.h"

static long nodes, degree;
static uint32_t *from_node, *outgoing;
static float *rank, *next;

static void work(struct worker *worker)
{
    long low = part_from(worker, nodes), high = part_to(worker, nodes);
    ready(worker);
    while (iteration(worker)) {
        for (long node = low; node < high; node++) {
            float sum = 0;
            for (long j = 0; j < degree; j++) {
                uint32_t other = from_node[node * degree + j];
                sum += rank[other] / (float)outgoing[other];
            }
            next[node] = 0.15f / (float)nodes + 0.85f * sum;
        }
        meet();
        memcpy(rank + low, next + low, (size_t)(high - low) * sizeof *rank);
        if (worker->index == 0)
            worker->check += rank[0] > 0;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    nodes = number("nodes", 1 << 20);
    degree = number("degree", 8);
    from_node = malloc((size_t)(nodes * degree) * 4), outgoing = calloc((size_t)nodes, 4);
    rank = malloc((size_t)nodes * 4), next = malloc((size_t)nodes * 4);
    uint64_t x = 42;
    for (long i = 0; i < nodes * degree; i++) {
        uint64_t r = xorshift(&x); /* few nodes have many links, as in real graphs */
        from_node[i] = (uint32_t)((r >> 32) % (uint64_t)nodes >> (r & 3));
        outgoing[from_node[i]]++;
    }
    for (long i = 0; i < nodes; i++)
        rank[i] = 1 / (float)nodes;
    program_run(work);
}
