/* SORT: --count 32-bit keys, quicksort of each worker's part, then merging by worker 0. Iteration: one sort. */
#include "program.h"

static long count;
static uint32_t *source, *list, *merged;

static int smaller(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void merge(void)
{
    long at[MOST_WORKERS], end[MOST_WORKERS];
    for (int i = 0; i < program.workers; i++) {
        struct worker who = {.index = i};
        at[i] = part_from(&who, count), end[i] = part_to(&who, count);
    }
    for (long done = 0; done < count; done++) {
        int best = -1;
        for (int i = 0; i < program.workers; i++)
            if (at[i] < end[i] && (best < 0 || list[at[i]] < list[at[best]]))
                best = i;
        merged[done] = list[at[best]++];
    }
}

static void work(struct worker *worker)
{
    long from = part_from(worker, count), to = part_to(worker, count);
    ready(worker);
    while (iteration(worker)) {
        memcpy(list + from, source + from, (size_t)(to - from) * 4);
        qsort(list + from, (size_t)(to - from), 4, smaller);
        meet();
        if (worker->index == 0) {
            merge();
            worker->check += merged[0] <= merged[count / 2] && merged[count / 2] <= merged[count - 1];
        }
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    count = number("count", 1 << 19);
    source = malloc((size_t)count * 4), list = malloc((size_t)count * 4), merged = malloc((size_t)count * 4);
    uint64_t x = 42;
    for (long i = 0; i < count; i++)
        source[i] = (uint32_t)xorshift(&x);
    program_run(work);
}
