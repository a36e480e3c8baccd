/* Shortest paths with a binary heap; --nodes nodes, six random roads each. */
#include "program.h"

struct road { uint32_t to, length; };
struct stop { uint32_t distance, node; };
static long nodes;

static void work(struct worker *worker)
{
    enum { ROADS = 6 };
    struct road *road = malloc((size_t)nodes * ROADS * sizeof *road);
    uint32_t *best = malloc((size_t)nodes * sizeof *best);
    struct stop *heap = malloc((size_t)nodes * ROADS * sizeof *heap);
    for (long i = 0; i < nodes * ROADS; i++)
        road[i] = (struct road){(uint32_t)(xorshift(&worker->random) % (uint64_t)nodes),
                                (uint32_t)(worker->random >> 40 & 1023) + 1};
    ready(worker);
    while (going(worker)) {
        memset(best, 0xff, (size_t)nodes * sizeof *best);
        long used = 1, settled = 0;
        heap[0] = (struct stop){0, (uint32_t)(xorshift(&worker->random) % (uint64_t)nodes)};
        best[heap[0].node] = 0;
        while (used && (settled & 255 ? true : going(worker))) {
            struct stop now = heap[0], last = heap[--used];
            long at = 0, child;
            while ((child = 2 * at + 1) < used) {
                if (child + 1 < used && heap[child + 1].distance < heap[child].distance)
                    child++;
                if (heap[child].distance >= last.distance)
                    break;
                heap[at] = heap[child], at = child;
            }
            heap[at] = last;
            if (now.distance > best[now.node])
                continue;
            settled++;
            for (int e = 0; e < ROADS; e++) {
                struct road r = road[now.node * (size_t)ROADS + (size_t)e];
                uint32_t d = now.distance + r.length;
                if (d >= best[r.to])
                    continue;
                best[r.to] = d;
                long up = used++;
                for (; up && heap[(up - 1) / 2].distance > d; up = (up - 1) / 2)
                    heap[up] = heap[(up - 1) / 2];
                heap[up] = (struct stop){d, r.to};
            }
        }
        worker->work += (double)settled;
        worker->check += (double)settled;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    nodes = number("nodes", 1 << 20);
    program_run(work);
}
