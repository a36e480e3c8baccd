/* FFT: radix-2 transforms of --points complex points, --batch of them shared among the workers. Iteration: the batch. */
#include "program.h"
#include <complex.h>
#include <math.h>

static long points, batch;
static double complex *signal_of, *factor;

static void transform(double complex *x)
{
    for (long i = 1, j = 0; i < points; i++) {
        long bit = points >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double complex other = x[i];
            x[i] = x[j], x[j] = other;
        }
    }
    for (long span = 1; span < points; span *= 2)
        for (long start = 0; start < points; start += 2 * span)
            for (long k = 0; k < span; k++) {
                double complex odd = x[start + span + k] * factor[k * (points / (2 * span))];
                x[start + span + k] = x[start + k] - odd;
                x[start + k] += odd;
            }
}

static void work(struct worker *worker)
{
    ready(worker);
    while (iteration(worker)) {
        for (long i = part_from(worker, batch); i < part_to(worker, batch); i++) {
            double complex *x = signal_of + i * points;
            for (long j = 0; j < points; j++)
                x[j] = (double)(j & 3);
            transform(x);
        }
        if (worker->index == 0)
            worker->check += fabs(creal(signal_of[0]) - 1.5 * (double)points) < 1e-3;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    points = number("points", 1 << 16);
    batch = number("batch", 8);
    signal_of = malloc((size_t)(points * batch) * sizeof *signal_of), factor = malloc((size_t)points * sizeof *factor);
    for (long k = 0; k < points; k++)
        factor[k] = cexp(-2 * M_PI * I * (double)k / (double)points);
    program_run(work);
}
