/* Chase: dependent loads through --size bytes, each worker its own: the victim of a shared cache.
 * Iteration: --count loads. */
#include "program.h"

static long lines, count;

static void work(struct worker *worker)
{
    void **memory = aligned_alloc(64, (size_t)lines * 64);
    uint32_t *order = malloc((size_t)lines * 4);
    for (long i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (long i = lines - 1; i > 0; i--) {
        long j = (long)(xorshift(&worker->random) % (uint64_t)(i + 1));
        uint32_t other = order[i];
        order[i] = order[j], order[j] = other;
    }
    for (long i = 0; i < lines; i++)
        memory[8ul * order[i]] = &memory[8ul * order[(i + 1) % lines]];
    free(order);
    void **at = memory;
    ready(worker);
    while (iteration(worker)) {
        for (long i = 0; i < count; i++)
            at = *at;
        worker->check += worker->index == 0 && at != NULL;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    lines = number("size", 12 << 20) / 64;
    count = number("count", 4 << 20);
    program_run(work);
}
