/* MM: dense matrix product of --side x --side doubles, rows shared among the workers. Iteration: one product. */
#include "program.h"

static long n;
static double *a, *b, *c;

static void work(struct worker *worker)
{
    ready(worker);
    while (iteration(worker)) {
        for (long i = part_from(worker, n); i < part_to(worker, n); i++) {
            memset(c + i * n, 0, (size_t)n * 8);
            for (long k = 0; k < n; k++)
                for (long j = 0; j < n; j++)
                    c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
        worker->check += worker->index == 0 && c[1] > 0;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    n = number("side", 320);
    a = malloc((size_t)(n * n) * 8), b = malloc((size_t)(n * n) * 8), c = calloc((size_t)(n * n), 8);
    for (long i = 0; i < n * n; i++)
        a[i] = (double)(i % 7) + 1, b[i] = (double)(i % 5);
    program_run(work);
}
