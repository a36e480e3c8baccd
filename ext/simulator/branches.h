/* Branch prediction of one core: gshare for directions, a table of last targets under the path taken for indirect ones.
 * Returns and direct jumps are taken for granted, as real cores nearly can. */
#ifndef BRANCHES_H
#define BRANCHES_H
#include <stdbool.h>
#include <stdint.h>

enum { DIRECTIONS = 1 << 14, TARGETS = 1 << 12 };

struct predictor {
    uint8_t direction[DIRECTIONS]; /* two-bit counters */
    uint64_t target[TARGETS];
    uint32_t history; /* directions, the latest in the lowest bit */
    uint32_t path;    /* of indirect targets */
};

static inline bool direction_missed(struct predictor *all, uint64_t from, bool taken)
{
    uint8_t *counter = &all->direction[((uint32_t)(from >> 1) ^ all->history) & (DIRECTIONS - 1)];
    bool missed = (*counter > 1) != taken;
    if (taken && *counter < 3)
        ++*counter;
    else if (!taken && *counter)
        --*counter;
    all->history = all->history << 1 | taken;
    return missed;
}

static inline bool target_missed(struct predictor *all, uint64_t from, uint64_t to)
{
    uint64_t *target = &all->target[((uint32_t)(from >> 1) ^ all->path) & (TARGETS - 1)];
    bool missed = *target != to;
    *target = to;
    all->path = (all->path << 3) ^ (uint32_t)(to >> 2);
    return missed;
}
#endif
