/* A place-and-route toy in the manner of canneal. Loading: every name of the net list is looked up in a map by
 * create_elem_if_necessary(), a tree of names searched from its root. Then: pairs of elements swap places at random
 * when the wires get shorter. The two alternate, --swaps swaps after each loading of --elements elements. */
#include "program.h"

struct element {
    struct element *left, *right; /* the map */
    uint32_t name, rank;
    int32_t x, y;
    struct element *wire[3];
};

static long elements, swaps;
static struct element *root, *pool, **all;
static long made;

/* A treap: balanced on average, one allocation in the order of the file. */
__attribute__((noinline)) static struct element *create_elem_if_necessary(uint32_t name)
{
    struct element **at = &root;
    uint32_t rank = name * 2654435761u ^ name >> 3;
    while (*at && (*at)->name != name && (*at)->rank >= rank)
        at = name < (*at)->name ? &(*at)->left : &(*at)->right;
    if (*at && (*at)->name == name)
        return *at;
    struct element *fresh = &pool[made];
    *fresh = (struct element){.name = name, .rank = rank, .x = (int32_t)(made % 1000), .y = (int32_t)(made / 1000)};
    struct element *rest = *at, **left = &fresh->left, **right = &fresh->right;
    while (rest) /* split what hangs below */
        if (rest->name < name)
            *left = rest, left = &rest->right, rest = rest->right;
        else
            *right = rest, right = &rest->left, rest = rest->left;
    *left = *right = NULL;
    *at = fresh;
    return all[made++] = fresh;
}

static long wires(const struct element *e)
{
    long sum = 0;
    for (int i = 0; i < 3; i++)
        sum += labs((long)e->x - e->wire[i]->x) + labs((long)e->y - e->wire[i]->y);
    return sum;
}

static uint32_t name_of(uint64_t *state) { return (uint32_t)(xorshift(state) % (uint64_t)elements) * 2654435761u; }

static bool load(struct worker *worker)
{
    root = NULL;
    made = 0;
    for (long i = 0; i < elements; i++) {
        struct element *e = create_elem_if_necessary((uint32_t)i * 2654435761u);
        for (int k = 0; k < 3; k++)
            e->wire[k] = create_elem_if_necessary(name_of(&worker->random));
        worker->work++, worker->check += e->name == (uint32_t)i * 2654435761u;
        if ((i & 255) == 0 && !going(worker))
            return false;
    }
    return true;
}

static void work(struct worker *worker)
{
    pool = calloc((size_t)elements + 1, sizeof *pool);
    all = calloc((size_t)elements + 1, sizeof *all);
    ready(worker);
    while (load(worker))
        for (long i = 0; i < swaps; i++) {
            struct element *a = all[xorshift(&worker->random) % (uint64_t)made];
            struct element *b = all[xorshift(&worker->random) % (uint64_t)made];
            long before = wires(a) + wires(b);
            int32_t x = a->x, y = a->y;
            a->x = b->x, a->y = b->y, b->x = x, b->y = y;
            if (wires(a) + wires(b) > before)
                b->x = a->x, b->y = a->y, a->x = x, a->y = y;
            worker->work++, worker->check++;
            if ((i & 255) == 0 && !going(worker))
                return;
        }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    elements = number("elements", 2 << 20);
    swaps = number("swaps", 4 << 20);
    program_run(work);
}
