/* FPU: floating point that the hardware does not do itself. P: software quad precision, x87 microcode, or denormal
 * operands; N: the same formula in hardware doubles. Unit: one step of the formula. check: steps with a finite result. */
#include "hw_order.h"

#define CHUNK 4096
static const char *const bodies[] = {"quad", "quotient", "polynomial", "sine", "logarithm", "denormal", NULL};
static int body;

/* The formula once for each type; the factors are volatile so that it is not folded away. */
#define FORMULAS(name, type)                                                                                  \
    static type name##_quad(type x)                                                                           \
    {                                                                                                         \
        volatile type factor = (type)0.75, term = (type)0.25;                                                 \
        for (int i = 0; i < CHUNK; i++)                                                                       \
            x = x * factor + term;                                                                            \
        return x;                                                                                             \
    }                                                                                                         \
    static type name##_quotient(type x)                                                                       \
    {                                                                                                         \
        volatile type one = (type)1;                                                                          \
        for (int i = 0; i < CHUNK; i++)                                                                       \
            x = one / (x + one);                                                                              \
        return x;                                                                                             \
    }                                                                                                         \
    static type name##_polynomial(type x)                                                                     \
    {                                                                                                         \
        volatile type c[4] = {(type)0.1, (type)0.2, (type)0.15, (type)0.05};                                  \
        type sum = 0;                                                                                         \
        for (int i = 0; i < CHUNK; i++) {                                                                     \
            type t = x + (type)(i & 7);                                                                       \
            sum += ((c[3] * t + c[2]) * t + c[1]) * t + c[0];                                                 \
        }                                                                                                     \
        return sum;                                                                                           \
    }

#if defined __x86_64__ || defined __i386__
FORMULAS(slow, __float128)
#elif __LDBL_MANT_DIG__ == 113
FORMULAS(slow, long double) /* software there too */
#else
FORMULAS(slow, double)
#endif
FORMULAS(fast, double)

#if defined __x86_64__ || defined __i386__
static double x87_sine(double x)
{
    long double y = x;
    for (int i = 0; i < CHUNK; i++) {
        __asm__ volatile("fsin" : "+t"(y));
        y += 0.3L;
    }
    return (double)y;
}

static double x87_logarithm(double x)
{
    long double y = x + 2;
    for (int i = 0; i < CHUNK; i++) {
        __asm__ volatile("fyl2x" : "+t"(y) : "u"(1.0L) : "st(1)"); /* 1 * log2(y) */
        y = (y < 0 ? -y : y) + 1.5L;
    }
    return (double)y;
}

static double multiplied(double x)
{
    for (int i = 0; i < CHUNK; i++) {
        x = x * x * 0.25;
        __asm__ volatile("" : "+m"(x));
        x += 0.3;
    }
    return x;
}
#endif

static double denormal(double scale)
{
    static double value[64];
    double sum = 0;
    if (value[1] == 0)
        for (int i = 0; i < 64; i++)
            value[i] = scale * (i + 1);
    for (int i = 0; i < CHUNK; i++) {
        double v = value[i & 63];
        v = v * 0.5 + v * 0.25;
        value[i & 63] = v * 1.3333333333333333;
        sum += v;
    }
    return sum;
}

static double chunk(void)
{
    bool slow = pathological();
    switch (body) {
    case 0: return slow ? (double)slow_quad(1) : fast_quad(1);
    case 1: return slow ? (double)slow_quotient(1) : fast_quotient(1);
    case 2: return slow ? (double)slow_polynomial(1) : fast_polynomial(1);
#if defined __x86_64__ || defined __i386__
    case 3: return slow ? x87_sine(0.7) : multiplied(0.7);
    case 4: return slow ? x87_logarithm(0.7) : multiplied(0.7);
#endif
    default: return denormal(slow ? 1e-310 : 1);
    }
}

static void work(struct worker *worker)
{
    ready(worker);
    while (going(worker)) {
        double result = chunk();
        worker->check += result - result == 0 ? CHUNK : 0;
        worker->work += CHUNK;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    program_run(work);
}
