/* Pointer: nothing but dependent loads, each address the value of the last. P: scattered; N: in order.
 * Unit: one load. check: loads that arrived where they should (counted at the end of each round of the memory). */
#include "hw_order.h"

static const char *const bodies[] = {"chase", "index", "offset", NULL};
static int body;
static size_t size;

static void **chase(void **at)
{
    for (int i = 0; i < at_once; i++)
        at = *at;
    return at;
}

/* By number instead of address: 32-bit links in lines of 64 bytes. */
static uint32_t by_index(const uint32_t *memory, uint32_t at)
{
    for (int i = 0; i < at_once; i++)
        at = memory[(size_t)at * 16 + 3];
    return at;
}

/* By distance from here, as in position-independent structures. */
static int64_t *by_offset(int64_t *at)
{
    for (int i = 0; i < at_once; i++)
        at = (int64_t *)((char *)at + at[5]);
    return at;
}

static void work(struct worker *worker)
{
    uint64_t count = size / 64, visits = 0;
    struct order order = order_of(count, pathological());
    char *memory = memory_of(count * 64);
    uint64_t from = place_of(&order, count - 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t to = place_of(&order, i);
        char *line = memory + from * 64;
        if (body == 0)
            *(void **)line = memory + to * 64;
        else if (body == 1)
            ((uint32_t *)line)[3] = (uint32_t)to;
        else
            ((int64_t *)line)[5] = ((int64_t)to - (int64_t)from) * 64;
        from = to;
    }
    void *at = memory + place_of(&order, 0) * 64;
    uint32_t number_at = (uint32_t)place_of(&order, 0);
    ready(worker);
    while (going(worker)) {
        if (body == 0)
            at = chase(at);
        else if (body == 1)
            number_at = by_index((uint32_t *)memory, number_at);
        else
            at = by_offset(at);
        visits += (uint64_t)at_once;
        worker->work += at_once;
        core_work();
    }
    uint64_t here = body == 1 ? number_at : (uint64_t)((char *)at - memory) / 64;
    worker->check = here == place_of(&order, visits % count) ? worker->work : -1;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    size = (size_t)number("size", 4 << 20);
    mixed_start();
    program_run(work);
}
