/* RS: operations that wait for one another fill the reservation station. P: one chain of dependent operations;
 * N: the same operations in eight chains. Unit: one operation. check: operations whose results were used. */
#include "hw_order.h"

#define CHUNK 65536
static const char *const bodies[] = {"multiply", "float", "mixed", "shift", NULL};
static int body;
/* The compiler may neither reorder nor combine across this: a chain stays a chain. */
#define STAY(x) __asm__ volatile("" : "+r"(x))
#if defined __x86_64__
#define STAY_FLOAT(x) __asm__ volatile("" : "+x"(x))
#else
#define STAY_FLOAT(x) __asm__ volatile("" : "+w"(x))
#endif

#define ONE(step, v) step(v[0]); step(v[0]); step(v[0]); step(v[0]); step(v[0]); step(v[0]); step(v[0]); step(v[0])
#define EIGHT(step, v) step(a); step(b); step(c); step(d); step(e); step(f); step(g); step(h)

#define CHAINS(name, type, step)                                                   \
    static double name##_one(void)                                                 \
    {                                                                              \
        type v[1] = {(type)3};                                                     \
        for (int i = 0; i < CHUNK; i += 8) {                                       \
            ONE(step, v);                                                          \
        }                                                                          \
        return v[0] == v[0] ? CHUNK : 0;                                           \
    }                                                                              \
    static double name##_eight(void)                                               \
    {                                                                              \
        type a = 3, b = 5, c = 7, d = 9, e = 11, f = 13, g = 15, h = 17;           \
        for (int i = 0; i < CHUNK; i += 8) {                                       \
            EIGHT(step, v);                                                        \
        }                                                                          \
        type sum = a + b + c + d + e + f + g + h;                                  \
        return sum == sum ? CHUNK : 0;                                             \
    }

#define MULTIPLY(x) x = x * x + 13; STAY(x)
#define FLOAT(x) x = x * 0.5 + 1.25; STAY_FLOAT(x)
#define MIXED(x) x = (x ^ (x >> 7)) * 0x2545f491u + 1; STAY(x)
#define SHIFT(x) x = ((x << 3) + 5) ^ (x >> 11); STAY(x)

CHAINS(multiply, uint64_t, MULTIPLY)
CHAINS(floating, double, FLOAT)
CHAINS(mixed, uint64_t, MIXED)
CHAINS(shifts, uint64_t, SHIFT)

static double (*const run[][2])(void) = {{multiply_eight, multiply_one},
                                         {floating_eight, floating_one},
                                         {mixed_eight, mixed_one},
                                         {shifts_eight, shifts_one}};

static void work(struct worker *worker)
{
    double (*chunk)(void) = run[body][pathological()];
    ready(worker);
    while (going(worker)) {
        worker->check += chunk();
        worker->work += CHUNK;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    program_run(work);
}
