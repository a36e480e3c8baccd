/* Hash join: an orders table is probed with random customers; chained buckets of 16-byte entries. */
#include "program.h"

typedef struct { uint32_t key, payload; int32_t next; uint32_t pad; } entry_t;

static uint32_t mix(uint32_t k)
{
    k ^= k >> 16; k *= 0x85ebca6b; k ^= k >> 13; k *= 0xc2b2ae35; k ^= k >> 16;
    return k;
}

static long rows;

static void work(struct worker *worker)
{
    uint32_t buckets = 1;
    while (buckets < rows)
        buckets <<= 1;
    int32_t *heads = malloc(buckets * sizeof *heads);
    entry_t *entries = malloc((size_t)rows * sizeof *entries);
    memset(heads, 0xff, buckets * sizeof *heads);
    for (long r = 0; r < rows; r++) {
        uint32_t b = mix((uint32_t)r) & (buckets - 1);
        entries[r] = (entry_t){(uint32_t)r, (uint32_t)r ^ 5, heads[b], 0};
        heads[b] = (int32_t)r;
    }
    ready(worker);
    uint64_t revenue = 0;
    while (going(worker)) {
        for (int n = 0; n < 2000; n++) {
            uint32_t customer = (uint32_t)(xorshift(&worker->random) % (uint64_t)rows);
            int32_t e = heads[mix(customer) & (buckets - 1)];
            while (e >= 0 && entries[e].key != customer)
                e = entries[e].next;
            if (e >= 0) {
                revenue += entries[e].payload;
                worker->check++;
            }
        }
        worker->work += 2000;
    }
    *(volatile uint64_t *)entries = revenue;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    rows = number("rows", 8 << 20);
    program_run(work);
}
