/* What is counted, and the page in which it is read. One slot a thread, of all processes that came from one command. */
#ifndef COUNTERS_H
#define COUNTERS_H
#include <stdint.h>

/* In the order of pmutop/sources/simulated.py, which holds the units and what they mean. */
#define COUNTERS(X)                                                                                                      \
    X(INSTRUCTIONS, "instructions")                                                                                      \
    X(LOADS, "loads")                                                                                                    \
    X(STORES, "stores")                                                                                                  \
    X(L1D_MISSES, "l1d-misses")                                                                                          \
    X(L2_MISSES, "l2-misses")                                                                                            \
    X(L3_MISSES, "l3-misses")                                                                                            \
    X(L1I_MISSES, "l1i-misses")                                                                                          \
    X(L2I_MISSES, "l2i-misses")                                                                                          \
    X(L3I_MISSES, "l3i-misses")                                                                                          \
    X(DTLB_MISSES, "dtlb-misses")                                                                                        \
    X(DTLB_WALKS, "dtlb-walks")                                                                                          \
    X(ITLB_MISSES, "itlb-misses")                                                                                        \
    X(ITLB_WALKS, "itlb-walks")                                                                                          \
    X(PREFETCHES, "prefetches")                                                                                          \
    X(PREFETCH_L2_MISSES, "prefetch-l2-misses")                                                                          \
    X(PREFETCH_L3_MISSES, "prefetch-l3-misses")                                                                          \
    X(BRANCHES, "branches")                                                                                              \
    X(BRANCH_MISSES, "branch-misses")                                                                                    \
    X(INDIRECT_BRANCHES, "indirect-branches")                                                                            \
    X(INDIRECT_MISSES, "indirect-misses")                                                                                \
    X(CALLS, "calls")                                                                                                    \
    X(FP_OPS, "fp-ops")                                                                                                  \
    X(X87_OPS, "x87-ops")                                                                                                \
    X(MICROCODED_OPS, "microcoded-ops")                                                                                  \
    X(DIV_OPS, "div-ops")                                                                                                \
    X(MUL_OPS, "mul-ops")                                                                                                \
    X(WIDE_OPS, "wide-ops")                                                                                              \
    X(STRING_OPS, "string-ops")                                                                                          \
    X(ATOMIC_OPS, "atomic-ops")                                                                                          \
    X(PATH_INSTRUCTIONS, "path-instructions")                                                                            \
    X(PATH_DEPTH, "path-depth")                                                                                          \
    X(PATH_LOADS, "path-loads")

#define NAME_OF(symbol, name) symbol,
enum counter { COUNTERS(NAME_OF) COUNTED };
#undef NAME_OF

#define PAGE_MAGIC 0x31304d49534d5550ull /* "PUMSIM01" */
#define SLOTS 16384
#define PLACES 512
enum { FREE, LIVE, ENDED };

struct slot {
    uint32_t state, pid, tid, unused;
    uint64_t count[COUNTED]; /* running totals; whoever reads them while they move gets values of about now */
    uint64_t placed;         /* how many places were noted in all; the last PLACES of them are kept */
    uint64_t place[PLACES];  /* where the thread was, noted each time that so much had cost it */
};

struct page {
    uint64_t magic;
    uint32_t counted, slots;
    uint32_t next, unused; /* slots were claimed below this number; it runs on when they are used again */
    char names[4096 - 24]; /* one a line, in order */
    struct slot slot[SLOTS];
};
#endif
