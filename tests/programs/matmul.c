/* Matrix product, dot products of rows and columns; --block B: by tiles. */
#include "program.h"

static long side, block;

static void work(struct worker *worker)
{
    double *a = malloc((size_t)(side * side) * 8), *b = malloc((size_t)(side * side) * 8), *c = calloc((size_t)(side * side), 8);
    for (long i = 0; i < side * side; i++)
        a[i] = 1, b[i] = 2;
    ready(worker);
    if (!block) {
        for (long i = 0; going(worker); i = (i + 1) % side)
            for (long j = 0; j < side && going(worker); j++) {
                double dot = 0;
                for (long k = 0; k < side; k++)
                    dot += a[i * side + k] * b[k * side + j];
                c[i * side + j] = dot;
                worker->work += (double)side, worker->check += dot == 2.0 * (double)side ? (double)side : 0;
            }
        return;
    }
    long tiles = side / block;
    for (long t = 0; going(worker); t = (t + 1) % (tiles * tiles * tiles)) {
        long ti = t / (tiles * tiles) * block, tj = t / tiles % tiles * block, tk = t % tiles * block;
        for (long i = ti; i < ti + block; i++)
            for (long j = tj; j < tj + block; j++) {
                double dot = 0;
                for (long k = tk; k < tk + block; k++)
                    dot += a[i * side + k] * b[k * side + j];
                c[i * side + j] += dot;
                worker->check += dot == 2.0 * (double)block ? (double)block : 0;
            }
        worker->work += (double)(block * block * block);
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    side = number("side", 1200);
    block = number("block", 0);
    program_run(work);
}
