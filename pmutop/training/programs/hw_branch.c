/* BranchMis: branches on data. P: the data is random; N: it is regular, with as many of each kind.
 * Unit: one branch. check: branches whose two sides add up to all. */
#include "hw_order.h"

#define CHUNK 16384
#define KEEP __asm__ volatile("") /* keeps a branch a branch: no conditional move, no vectors */
static const char *const bodies[] = {"flags", "compare", "switch", "calls", NULL};
static int body;
/* Bytes that are looked at, every so many-th of `size`. 64 K: too long a pattern for a predictor to remember, short enough
 * for the caches; more, and more than one apart, is a stream beside the branches. */
static size_t size, step;

static uint64_t flags(const uint8_t *at)
{
    uint64_t taken = 0, other = 0;
    for (int i = 0; i < CHUNK; i++, at += step)
        if (*at & 1) {
            taken++;
            KEEP;
        } else {
            other++;
            KEEP;
        }
    return taken + other;
}

static uint64_t compare(const uint8_t *at)
{
    uint64_t count[3] = {0};
    for (int i = 0; i < CHUNK; i++, at += step) {
        if (*at < 85)
            count[0] += 1, ({ KEEP; });
        else if (*at < 170)
            count[1] += 1, ({ KEEP; });
        else
            count[2] += 1, ({ KEEP; });
    }
    return count[0] + count[1] + count[2];
}

static uint64_t interpret(const uint8_t *at)
{
    uint64_t x = 1, steps = 0;
    for (int i = 0; i < CHUNK; i++, at += step)
        switch (*at & 7) {
        case 0: x += 3, steps++; KEEP; break;
        case 1: x ^= 5, steps++; KEEP; break;
        case 2: x <<= 1, steps++; KEEP; break;
        case 3: x -= 7, steps++; KEEP; break;
        case 4: x |= 9, steps++; KEEP; break;
        case 5: x = ~x, steps++; KEEP; break;
        case 6: x >>= 1, steps++; KEEP; break;
        default: x *= 11, steps++; KEEP;
        }
    __asm__ volatile("" ::"r"(x));
    return steps;
}

static __attribute__((noinline)) uint64_t add(uint64_t x) { KEEP; return x + 1; }
static __attribute__((noinline)) uint64_t add_too(uint64_t x) { KEEP; KEEP; return 1 + x; }
static __attribute__((noinline)) uint64_t add_three(uint64_t x) { KEEP; return x - 2 + 3; }
static __attribute__((noinline)) uint64_t add_four(uint64_t x) { KEEP; return x + 5 - 4; }
static uint64_t (*volatile const functions[])(uint64_t) = {add, add_too, add_three, add_four};

static uint64_t calls(const uint8_t *at)
{
    uint64_t x = 0;
    for (int i = 0; i < CHUNK; i++, at += step)
        x = functions[*at & 3](x);
    return x;
}

static uint64_t (*const run[])(const uint8_t *) = {flags, compare, interpret, calls};

static void work(struct worker *worker)
{
    size_t count = size / step / CHUNK * CHUNK, at = 0;
    uint8_t *data = memory_of(count * step);
    for (size_t i = 0; i < count; i++)
        data[i * step] = (uint8_t)(pathological() ? xorshift(&worker->random) >> 33 : i / (count / 256));
    ready(worker);
    while (going(worker)) {
        worker->check += (double)run[body](data + at * step);
        at = (at + CHUNK) % count;
        worker->work += CHUNK;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    size = (size_t)number("size", 1 << 16);
    step = (size_t)number("step", 1);
    program_run(work);
}
