/* Recursive (depth-first) FFT, out of place: split even and odd, transform, combine. */
#include "program.h"
#include <complex.h>
#include <math.h>

static long points;
static struct worker *me;

static void transform(float complex *x, float complex *room, long n)
{
    if (n == 1 || !going(me))
        return;
    long half = n / 2;
    for (long i = 0; i < half; i++)
        room[i] = x[2 * i], room[half + i] = x[2 * i + 1];
    transform(room, x, half);
    transform(room + half, x + half, half);
    float complex turn = cexpf(-2 * (float)M_PI * I / (float)n), w = 1;
    for (long k = 0; k < half; k++, w *= turn) {
        float complex odd = w * room[half + k];
        x[k] = room[k] + odd;
        x[half + k] = room[k] - odd;
    }
    me->work += (double)half;
}

static void work(struct worker *worker)
{
    me = worker;
    float complex *x = malloc((size_t)points * sizeof *x), *room = malloc((size_t)points * sizeof *room);
    for (long i = 0; i < points; i++)
        x[i] = (float)(i % 5), room[i] = 0;
    ready(worker);
    while (going(worker))
        transform(x, room, points);
    worker->check = worker->work;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    points = number("points", 4 << 20);
    program_run(work);
}
