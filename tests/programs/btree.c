/* B-tree of order 16, bulk-built from sorted keys, random look-ups. */
#include "program.h"

#define ORDER 16
struct page { int used, leaf; uint64_t key[ORDER]; struct page *child[ORDER + 1]; };

static long keys;

/* Pages are allocated level by level but linked in a shuffled order, as after years of inserts. */
static struct page *build(long count, uint64_t *random)
{
    long pages = (count + ORDER - 1) / ORDER;
    struct page **level = malloc((size_t)pages * sizeof *level), **pool = malloc((size_t)pages * sizeof *pool);
    for (long i = 0; i < pages; i++)
        pool[i] = calloc(1, sizeof **pool);
    for (long i = pages - 1; i > 0; i--) {
        long j = (long)(xorshift(random) % (uint64_t)(i + 1));
        struct page *t = pool[i]; pool[i] = pool[j]; pool[j] = t;
    }
    for (long i = 0; i < pages; i++) {
        struct page *p = level[i] = pool[i];
        p->leaf = 1;
        for (int k = 0; k < ORDER && i * ORDER + k < count; k++)
            p->key[p->used++] = (uint64_t)(i * ORDER + k) * 2;
    }
    while (pages > 1) {
        long parents = (pages + ORDER) / (ORDER + 1);
        for (long i = 0; i < parents; i++) {
            struct page *p = calloc(1, sizeof *p);
            for (int c = 0; c <= ORDER && i * (ORDER + 1) + c < pages; c++) {
                struct page *kid = level[i * (ORDER + 1) + c], *low = kid;
                while (!low->leaf)
                    low = low->child[0];
                p->child[c] = kid;
                if (c)
                    p->key[p->used++] = low->key[0];
            }
            level[i] = p;
        }
        pages = parents;
    }
    return level[0];
}

static int find(const struct page *p, uint64_t key)
{
    for (;;) {
        int low = 0, high = p->used;
        while (low < high) {
            int mid = (low + high) >> 1;
            if (p->key[mid] <= key)
                low = mid + 1;
            else
                high = mid;
        }
        if (p->leaf)
            return low > 0 && p->key[low - 1] == key;
        p = p->child[low];
    }
}

static void work(struct worker *worker)
{
    struct page *root = build(keys, &worker->random);
    ready(worker);
    while (going(worker)) {
        for (int n = 0; n < 500; n++)
            worker->check += find(root, xorshift(&worker->random) % (uint64_t)keys * 2);
        worker->work += 500;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    keys = number("keys", 8 << 20);
    program_run(work);
}
