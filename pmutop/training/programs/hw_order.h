/* The order in which memory is visited: the same code for P (scattered) and N (one after the other).
 * A bijection of 0..n-1 computed, not stored: no index array disturbs the caches, and the init phase stays short. */
#ifndef HW_ORDER_H
#define HW_ORDER_H
#include "program.h"

struct order {
    uint64_t count, mask, multiplier, second;
    int shift;
};

SHARED struct order order_of(uint64_t count, bool scattered)
{
    uint64_t power = 1;
    int bits = 0;
    while (power < count)
        power *= 2, bits++;
    if (!scattered)
        return (struct order){count, power - 1, 1, 1, 63};
    return (struct order){count, power - 1, 0x9e3779b97f4a7c15ull, 0xd1342543de82ef95ull, bits / 2 + 1};
}

/* The place of the i-th visit. Multiplying by an odd number and xor with the upper half are both invertible modulo a
 * power of two; what falls outside is sent on along its cycle, which stays a bijection. */
static inline uint64_t place_of(const struct order *order, uint64_t i)
{
    do {
        i = i * order->multiplier & order->mask;
        i ^= i >> order->shift;
        i = i * order->second & order->mask;
        i ^= i >> order->shift;
    } while (i >= order->count);
    return i;
}

SHARED void *memory_of(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("cannot take %zu bytes", bytes);
    return memory;
}

/* What the programs that visit memory do between two looks at the clock: `at_once` visits, then for each visit --between
 * rounds of healthy work in the core (some 8 instructions, none of which waits, and now and then a bit scan, of which
 * software floating point is full): few programs do one thing only. */
SHARED int at_once = 20000;
SHARED uint64_t between;

SHARED void mixed_start(void)
{
    between = (uint64_t)number("between", 0);
    if (between)
        at_once = 400;
}

SHARED void core_work(void)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (uint64_t i = between * (uint64_t)at_once; i; i--) {
        a += i, b ^= i, c -= i, d += i ^ 3;
        if (!(i & 63))
            a += (uint64_t)__builtin_ctzll(i);
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
}
#endif
