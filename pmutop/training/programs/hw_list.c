/* LL: a linked list with a payload in each node. P: the nodes lie scattered; N: in the order of the list.
 * Unit: one node visited. check: the ones found in them. */
#include "hw_order.h"

#define KEEP __asm__ volatile("") /* keeps a branch a branch */
static const char *const bodies[] = {"walk", "search", "queue", "both", "choose", NULL};
static int body;
static size_t size;

struct node {
    struct node *next, *back;
    uint64_t one, key, payload[4];
};

static struct node *walk(struct node *node, uint64_t *ones)
{
    for (int i = 0; i < at_once; i++) {
        *ones += node->one;
        node->payload[1] = *ones ^ (uint64_t)i;
        node = node->next;
    }
    return node;
}

/* Looks for keys, one after the other, each some nodes further on. */
static struct node *search(struct node *node, uint64_t *ones)
{
    uint64_t wanted = node->key + 100;
    for (int i = 0; i < at_once; i++, node = node->next) {
        *ones += node->one;
        if (node->key >= wanted || node->key == 0) {
            node->payload[0]++;
            wanted = node->key + 100;
        }
    }
    return node;
}

/* Swaps the payloads of neighbours, as a queue that ages does: two nodes in flight. */
static struct node *queue(struct node *node, uint64_t *ones)
{
    for (int i = 0; i < at_once; i++) {
        struct node *after = node->next;
        uint64_t mine = node->payload[2];
        node->payload[2] = after->payload[3] + 1;
        after->payload[3] = mine;
        *ones += after->one;
        node = after;
    }
    return node;
}

/* Three steps on, one back: a doubly linked list. */
static struct node *both(struct node *node, uint64_t *ones)
{
    for (int i = 0; i < at_once; i += 4) {
        struct node *first = node->next, *second = first->next, *third = second->next;
        *ones += first->one + second->one + third->one + third->back->one;
        node = third;
    }
    return node;
}

/* What is done with a node depends on it: beside a scattered list at random, as a search goes left or right. */
static struct node *choose(struct node *node, uint64_t *ones)
{
    uint64_t other = 0;
    for (int i = 0; i < at_once; i++, node = node->next)
        if (node->payload[3] & 1) {
            *ones += node->one;
            KEEP;
        } else {
            other += node->one;
            KEEP;
        }
    *ones += other;
    return node;
}

static struct node *(*const run[])(struct node *, uint64_t *) = {walk, search, queue, both, choose};

static void work(struct worker *worker)
{
    uint64_t count = size / sizeof(struct node), ones = 0;
    struct order order = order_of(count, pathological());
    struct node *node = memory_of(count * sizeof *node), *at = node + place_of(&order, 0), *last = at;
    for (uint64_t i = 0; i < count; i++) {
        struct node *now = node + place_of(&order, i);
        *now = (struct node){.one = 1, .key = i, .back = last};
        now->payload[3] = pathological() ? xorshift(&worker->random) >> 40 : i >> 8;
        last->next = now;
        last = now;
    }
    last->next = at;
    at->back = last;
    ready(worker);
    while (going(worker)) {
        at = run[body](at, &ones);
        worker->work += at_once;
        core_work();
    }
    worker->check = (double)ones;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    size = (size_t)number("size", 4 << 20);
    mixed_start();
    program_run(work);
}
