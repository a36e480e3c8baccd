/* Caches and TLBs of one core: sets of tags in the order of their last use (LRU), and a stream prefetcher before them. */
#ifndef CACHES_H
#define CACHES_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct geometry {
    long size; /* bytes; 0: there is no such cache */
    int ways;
};

struct cache {
    uint64_t sets, mask; /* mask: sets - 1 where that is a power of two, else 0 */
    int ways;
    uint64_t *tag; /* line number + 1; the one used last comes first in its set */
};

static void cache_make(struct cache *cache, long lines, int ways)
{
    *cache = (struct cache){0};
    if (!lines)
        return;
    cache->ways = ways;
    cache->sets = (uint64_t)(lines / ways);
    cache->mask = cache->sets & (cache->sets - 1) ? 0 : cache->sets - 1;
    cache->tag = calloc(cache->sets * (uint64_t)ways, sizeof *cache->tag);
}

static void cache_free(struct cache *cache)
{
    free(cache->tag);
    cache->tag = NULL;
}

/* True on a hit; a line that was missed is there afterwards. */
static inline bool cache_has(struct cache *cache, uint64_t line)
{
    uint64_t set = cache->mask || cache->sets == 1 ? line & cache->mask : line % cache->sets;
    uint64_t *tag = cache->tag + set * (uint64_t)cache->ways, wanted = line + 1;
    if (tag[0] == wanted)
        return true;
    int at = 1, last = cache->ways - 1;
    while (at < last && tag[at] != wanted)
        at++;
    if (at > last) /* one way only */
        at = last;
    bool hit = tag[at] == wanted;
    memmove(tag + 1, tag, (size_t)at * sizeof *tag);
    tag[0] = wanted;
    return hit;
}

/* The last level is shared by the threads of a process. */
struct shared_cache {
    struct cache cache;
    atomic_flag busy;
};

static inline bool shared_has(struct shared_cache *shared, uint64_t line)
{
    while (atomic_flag_test_and_set_explicit(&shared->busy, memory_order_acquire))
        ;
    bool hit = cache_has(&shared->cache, line);
    atomic_flag_clear_explicit(&shared->busy, memory_order_release);
    return hit;
}

/* A stream is followed when its line moved twice by one in the same direction. Followed streams outlive single
 * accesses elsewhere: a random access between two steps must not end them. */
#define STREAMS 16
#define PROTECTED 512
enum { NEAR = 2, FAR = 6 }; /* lines fetched ahead into the first and into the other caches */

struct stream {
    uint64_t last;
    int64_t step;
    int steps;
    uint64_t used;
};

struct prefetcher {
    struct stream stream[STREAMS];
    uint64_t clock;
};

/* The stream that `line` carries on, NULL where it begins one. */
static inline struct stream *stream_of(struct prefetcher *all, uint64_t line)
{
    struct stream *oldest = all->stream;
    uint64_t least = UINT64_MAX;
    all->clock++;
    for (struct stream *one = all->stream; one < all->stream + STREAMS; one++) {
        int64_t moved = (int64_t)(line - one->last);
        if (moved >= -1 && moved <= 1) {
            one->used = all->clock;
            if (moved) {
                one->steps = one->step == moved ? one->steps + 1 : 1;
                one->step = moved;
                one->last = line;
            }
            return moved ? one : NULL;
        }
        uint64_t worth = one->used + (one->steps >= 2 ? PROTECTED : 0);
        if (worth < least)
            least = worth, oldest = one;
    }
    *oldest = (struct stream){.last = line, .used = all->clock};
    return NULL;
}

/* Two levels of translations of 4 KiB pages; huge pages are not modelled. */
struct tlb {
    struct cache first, second;
    uint64_t last;
};

enum { PAGE_SHIFT = 12 };

static void tlb_make(struct tlb *tlb, int entries, int ways, int second, int second_ways)
{
    cache_make(&tlb->first, entries, ways);
    cache_make(&tlb->second, second, second_ways);
    tlb->last = UINT64_MAX;
}

static inline void tlb_look(struct tlb *tlb, uint64_t page, uint64_t *misses, uint64_t *walks)
{
    if (page == tlb->last)
        return;
    tlb->last = page;
    if (cache_has(&tlb->first, page))
        return;
    ++*misses;
    *walks += !cache_has(&tlb->second, page);
}
#endif
