/* Triad: a = b + 3 c over --size bytes in all, the memory's bandwidth. Iteration: --passes passes. */
#include "program.h"

static long count, passes;
static double *a, *b, *c;

static void work(struct worker *worker)
{
    long low = part_from(worker, count), high = part_to(worker, count);
    for (long i = low; i < high; i++)
        a[i] = 0, b[i] = 1, c[i] = 2;
    ready(worker);
    while (iteration(worker)) {
        for (long pass = 0; pass < passes; pass++)
            for (long i = low; i < high; i++)
                a[i] = b[i] + 3 * c[i];
        if (worker->index == 0)
            worker->check += a[low] == 7;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    count = number("size", 192 << 20) / 24;
    passes = number("passes", 2);
    a = malloc((size_t)count * 8), b = malloc((size_t)count * 8), c = malloc((size_t)count * 8);
    program_run(work);
}
