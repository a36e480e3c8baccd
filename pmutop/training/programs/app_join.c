/* Join: a hash table of --rows rows built and probed with as many keys. Iteration: build and probe. */
#include "program.h"

struct entry {
    uint32_t key, next;
};
static long rows, buckets;
static uint32_t *head, *probe;
static struct entry *table;

static uint32_t bucket_of(uint32_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (uint32_t)(buckets - 1); }

static void work(struct worker *worker)
{
    long low = part_from(worker, rows), high = part_to(worker, rows);
    long found;
    ready(worker);
    while (iteration(worker)) {
        long from = part_from(worker, buckets), to = part_to(worker, buckets);
        memset(head + from, 0xff, (size_t)(to - from) * 4);
        meet();
        for (long i = low; i < high; i++) {
            uint32_t *slot = &head[bucket_of(table[i].key)];
            table[i].next = __atomic_exchange_n(slot, (uint32_t)i, __ATOMIC_RELAXED);
        }
        meet();
        found = 0;
        for (long i = low; i < high; i++)
            for (uint32_t at = head[bucket_of(probe[i])]; at != UINT32_MAX; at = table[at].next)
                found += table[at].key == probe[i];
        worker->check += worker->index == 0 && found > 0;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    rows = number("rows", 1 << 20);
    for (buckets = 1; buckets < rows; buckets *= 2)
        ;
    head = malloc((size_t)buckets * 4), probe = malloc((size_t)rows * 4), table = malloc((size_t)rows * sizeof *table);
    uint64_t x = 42;
    for (long i = 0; i < rows; i++) {
        table[i].key = (uint32_t)i * 7 + 1;
        probe[i] = (uint32_t)(xorshift(&x) % (uint64_t)rows) * 7 + 1;
    }
    program_run(work);
}
