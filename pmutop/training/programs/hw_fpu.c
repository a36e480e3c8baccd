/* FPU: floating point that the hardware does not do itself. P: software quad precision, x87 microcode, or denormal
 * operands; N: the same formula in hardware doubles. Unit: one step of the formula. check: steps with a finite result. */
#include "hw_order.h"

#define CHUNK 4096
static const char *const bodies[] = {"quad", "quotient", "polynomial", "sine", "logarithm", "denormal", NULL};
static int body;

/* The formula once for each type; the factors are volatile so that it is not folded away. Eight values side by side: the
 * hardware's own floating point must not wait for itself, that is RS's pathology. */
#define EIGHT(step) step(a); step(b); step(c); step(d); step(e); step(f); step(g); step(h)
#define QUAD(x) x = x * factor + term
#define QUOTIENT(x) x = one / (x + one)
#define POLYNOMIAL(x) t = x + (double)(i & 7), x = ((c3 * t + c2) * t + c1) * t + c0

#define LOOP(name, type, step, constants)                                                                     \
    static type name(type x)                                                                                  \
    {                                                                                                         \
        constants;                                                                                            \
        type a = x, b = x + (type)0.1, c = x + (type)0.2, d = x + (type)0.3;                                  \
        type e = x + (type)0.4, f = x + (type)0.5, g = x + (type)0.6, h = x + (type)0.7;                      \
        for (int i = 0; i < CHUNK; i += 8) {                                                                  \
            EIGHT(step);                                                                                      \
        }                                                                                                     \
        return a + b + c + d + e + f + g + h;                                                                 \
    }
#define FORMULAS(name, type)                                                                                  \
    LOOP(name##_quad, type, QUAD, volatile type factor = (type)0.75; volatile type term = (type)0.25)         \
    LOOP(name##_quotient, type, QUOTIENT, volatile type one = (type)1)                                        \
    LOOP(name##_polynomial, type, POLYNOMIAL, type t; volatile type c0 = (type)0.1; volatile type c1 = (type)0.02; \
         volatile type c2 = (type)0.003; volatile type c3 = (type)0.0005)

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
    double y = x + 0.1, z = x + 0.2, u = x + 0.3;
    for (int i = 0; i < CHUNK; i += 4) {
        x = x * x * 0.25, y = y * y * 0.25, z = z * z * 0.25, u = u * u * 0.25;
        __asm__ volatile("" : "+m"(x), "+m"(y), "+m"(z), "+m"(u));
        x += 0.3, y += 0.3, z += 0.3, u += 0.3;
    }
    return x + y + z + u;
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
