/* Array: independent accesses over a working set. P: in scattered order; N: one line after the other.
 * Unit: one visit of a line (64 bytes). check: the sum of what was found, 1 a visit. */
#include "hw_order.h"

static const char *const bodies[] = {"update", "gather", "scatter", "sum", NULL};
static int body;
static size_t size;

struct line {
    uint32_t one, touched;
    uint64_t value[7];
};

static uint64_t update(struct line *line, const struct order *order, uint64_t at)
{
    uint64_t sum = 0;
    for (int i = 0; i < at_once; i++) {
        struct line *now = line + place_of(order, at);
        sum += now->one;
        now->value[i & 3] += sum;
        at = at + 1 == order->count ? 0 : at + 1;
    }
    return sum;
}

/* Through a stored index, as in sparse codes: the index itself is read in order. */
static uint64_t gather(struct line *line, const uint32_t *index, uint64_t count, uint64_t at)
{
    uint64_t sum = 0, others = 0;
    for (int i = 0; i < at_once; i++) {
        const struct line *now = line + index[at];
        sum += now->one;
        others ^= now->value[0] * 3 + now->value[5];
        at = at + 1 == count ? 0 : at + 1;
    }
    line[0].value[6] = others;
    return sum;
}

static uint64_t scatter(struct line *line, const struct order *order, uint64_t at)
{
    for (int i = 0; i < at_once; i++) {
        line[place_of(order, at)].touched = (uint32_t)i;
        at = at + 1 == order->count ? 0 : at + 1;
    }
    return (uint64_t)at_once;
}

/* Whole lines, all words of each. */
static uint64_t sum(const struct line *line, const struct order *order, uint64_t at)
{
    uint64_t ones = 0, rest = 0;
    for (int i = 0; i < at_once; i++) {
        const struct line *now = line + place_of(order, at);
        ones += now->one;
        for (int j = 0; j < 7; j++)
            rest += now->value[j];
        at = at + 1 == order->count ? 0 : at + 1;
    }
    return ones + (rest & 0);
}

static void work(struct worker *worker)
{
    uint64_t count = size / sizeof(struct line), at = 0;
    struct order order = order_of(count, pathological());
    struct line *line = memory_of(count * sizeof *line);
    uint32_t *index = body == 1 ? memory_of(count * sizeof *index) : NULL;
    for (uint64_t i = 0; i < count; i++) {
        line[i].one = 1;
        if (index)
            index[i] = (uint32_t)place_of(&order, i);
    }
    ready(worker);
    while (going(worker)) {
        worker->check += (double)(body == 0   ? update(line, &order, at)
                                  : body == 1 ? gather(line, index, count, at)
                                  : body == 2 ? scatter(line, &order, at)
                                              : sum(line, &order, at));
        at = (at + (uint64_t)at_once) % count;
        worker->work += at_once;
        core_work();
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    size = (size_t)number("size", 4 << 20);
    mixed_start();
    program_run(work);
}
