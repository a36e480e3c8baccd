/* Stencil: heat on a --side x --side plane, rows shared among the workers. Iteration: --steps steps. */
#include "program.h"

static long n, steps;
static double *plane[2];

static void work(struct worker *worker)
{
    long low = part_from(worker, n - 2) + 1, high = part_to(worker, n - 2) + 1;
    ready(worker);
    while (iteration(worker)) {
        for (long step = 0; step < steps; step++) {
            const double *old = plane[step & 1];
            double *new = plane[~step & 1];
            for (long i = low; i < high; i++)
                for (long j = 1; j < n - 1; j++)
                    new[i * n + j] = 0.2 * (old[i * n + j] + old[i * n + j - 1] + old[i * n + j + 1] +
                                            old[(i - 1) * n + j] + old[(i + 1) * n + j]);
            meet();
        }
        if (worker->index == 0)
            worker->check += plane[0][n + 1] > 0;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    n = number("side", 1500);
    steps = number("steps", 8) & ~1;
    for (int i = 0; i < 2; i++) {
        plane[i] = calloc((size_t)(n * n), 8);
        for (long j = 0; j < n; j++)
            plane[i][j] = 1e300;
    }
    program_run(work);
}
