/* Bottom-up merge sort of random keys. */
#include "program.h"

static long count;

static void work(struct worker *worker)
{
    uint32_t *a = malloc((size_t)count * 4), *b = malloc((size_t)count * 4), *fresh = malloc((size_t)count * 4);
    for (long i = 0; i < count; i++)
        fresh[i] = (uint32_t)(xorshift(&worker->random) >> 20);
    ready(worker);
    while (going(worker)) {
        memcpy(a, fresh, (size_t)count * 4);
        for (long width = 1; width < count; width *= 2) {
            for (long start = 0; start < count; start += 2 * width) {
                if ((start & 0xffff) == 0 && !going(worker))
                    goto out;
                long l = start, m = start + width < count ? start + width : count, r = m;
                long end = start + 2 * width < count ? start + 2 * width : count;
                for (long o = start; o < end; o++)
                    if (r >= end || (l < m && a[l] <= a[r]))
                        b[o] = a[l++];
                    else
                        b[o] = a[r++];
                worker->work += (double)(end - start);
            }
            uint32_t *t = a; a = b; b = t;
        }
    }
out:
    worker->check = worker->work;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    count = number("count", 4 << 20);
    program_run(work);
}
