/* Gather: sums of --size bytes read through a random index. Iteration: --count reads. */
#include "program.h"

static long words, count;
static float *value, *result;
static uint32_t *index_of;

static void work(struct worker *worker)
{
    long low = part_from(worker, count), high = part_to(worker, count);
    ready(worker);
    while (iteration(worker)) {
        for (long i = low; i + 4 <= high; i += 4) {
            float sum = 0;
            for (long j = i; j < i + 4; j++)
                sum += value[index_of[j]];
            result[i / 4] = sum;
        }
        if (worker->index == 0)
            worker->check += result[0] == 4;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    words = number("size", 64 << 20) / 4;
    count = number("count", 8 << 20);
    value = malloc((size_t)words * 4), index_of = malloc((size_t)count * 4), result = calloc((size_t)count / 4 + 1, 4);
    uint64_t x = 42;
    for (long i = 0; i < words; i++)
        value[i] = 1;
    for (long i = 0; i < count; i++)
        index_of[i] = (uint32_t)(xorshift(&x) % (uint64_t)words);
    program_run(work);
}
