/* Small programs for the simulator's oracles: no C library and no start-up code, so that QEMU and valgrind run the same
 * instructions on the same addresses. Built once with each of -DKERNEL=0 .. 11. */
typedef unsigned long word;
typedef unsigned char byte;
#define ALIGNED __attribute__((aligned(4096)))
#define LINES 4096
static ALIGNED word memory[LINES * 8];
static word state = 88172645463325252ul;

static inline word random_word(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void leave(word code)
{
#if defined __x86_64__
    __asm__ volatile("syscall" : : "a"(231), "D"(code & 0));
#else
    register word x0 __asm__("x0") = code & 0, x8 __asm__("x8") = 94;
    __asm__ volatile("svc 0" : : "r"(x0), "r"(x8));
#endif
    __builtin_unreachable();
}

#if KERNEL == 0 /* reads one line after the other, three times over more than the last cache */
static word kernel(void)
{
    word sum = 0;
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < LINES * 8; i += 4)
            sum += *(volatile word *)&memory[i];
    return sum;
}
#elif KERNEL == 1 /* writes bytes */
static word kernel(void)
{
    volatile byte *at = (byte *)memory;
    for (int i = 0; i < 100000; i++)
        at[i] = (byte)i;
    return at[5];
}
#elif KERNEL == 2 /* random reads and writes in 32 KiB */
static word kernel(void)
{
    for (int i = 0; i < 40000; i++)
        memory[random_word() % 4096] += (word)i;
    return memory[7];
}
#elif KERNEL == 3 /* random reads in 256 KiB */
static word kernel(void)
{
    word sum = 0;
    for (int i = 0; i < 60000; i++)
        sum += *(volatile word *)&memory[random_word() % (LINES * 8)];
    return sum;
}
#elif KERNEL == 4 /* a chain of pointers in scattered order through 48 KiB */
static word kernel(void)
{
    enum { COUNT = 768 };
    for (word i = 0; i < COUNT; i++)
        memory[(i * 485 % COUNT) * 8] = ((i + 1) * 485 % COUNT) * 8;
    word at = 0;
    for (int i = 0; i < 60000; i++)
        at = *(volatile word *)&memory[at];
    return at;
}
#elif KERNEL == 5 /* matrix product, 40 x 40, columns by stride */
static word kernel(void)
{
    enum { SIDE = 40 };
    volatile word *a = memory, *b = memory + 4096, *c = memory + 8192;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            word sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += a[i * SIDE + k] * b[k * SIDE + j];
            c[i * SIDE + j] = sum;
        }
    return c[3];
}
#elif KERNEL == 6 /* five-point stencil on 100 x 100 */
static word kernel(void)
{
    enum { SIDE = 100 };
    volatile word *from = memory, *to = memory + 16384;
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < SIDE - 1; i++)
            for (int j = 1; j < SIDE - 1; j++)
                to[i * SIDE + j] = from[i * SIDE + j] + from[i * SIDE + j - 1] + from[i * SIDE + j + 1] +
                                   from[(i - 1) * SIDE + j] + from[(i + 1) * SIDE + j];
    return to[101];
}
#elif KERNEL == 7 /* transposes 90 x 90 in place, over and over */
static word kernel(void)
{
    enum { SIDE = 90 };
    volatile word *m = memory;
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < i; j++) {
                word other = m[i * SIDE + j];
                m[i * SIDE + j] = m[j * SIDE + i];
                m[j * SIDE + i] = other + 1;
            }
    return m[7];
}
#elif KERNEL == 8 /* shell sort of 4000 random words */
static word kernel(void)
{
    enum { COUNT = 4000 };
    for (int i = 0; i < COUNT; i++)
        memory[i] = random_word();
    for (int gap = COUNT / 2; gap > 0; gap /= 2)
        for (int i = gap; i < COUNT; i++) {
            word moved = memory[i];
            int at = i;
            for (; at >= gap && memory[at - gap] > moved; at -= gap)
                memory[at] = memory[at - gap];
            memory[at] = moved;
        }
    return memory[0];
}
#elif KERNEL == 9 /* binary search in 200 KiB */
static word kernel(void)
{
    enum { COUNT = 25000 };
    for (word i = 0; i < COUNT; i++)
        memory[i] = i * 3;
    word found = 0;
    for (int i = 0; i < 6000; i++) {
        word wanted = random_word() % (COUNT * 3), low = 0, high = COUNT;
        while (low < high) {
            word middle = (low + high) / 2;
            if (*(volatile word *)&memory[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        found += low;
    }
    return found;
}
#elif KERNEL == 10 /* words that lie across two lines, one after the other: cachegrind counts two missed lines once */
static word kernel(void)
{
    word sum = 0;
    for (int i = 0; i < 50000; i++)
        sum += *(volatile word *)((byte *)memory + i % 2000 * 64 + 60);
    return sum;
}
#elif KERNEL == 11 /* more code than the first caches hold: 600 functions, called in scattered order */
#define F1(n) static __attribute__((noinline)) word f##n(word x) { x += memory[(n) * 8 & 4095]; \
    x = (x ^ x >> 7) * 0x2545f4914f6cdd1dul; x += x << 9; x ^= x >> 23; return x + memory[x & 255] * (n); }
#define F10(n) F1(n##0) F1(n##1) F1(n##2) F1(n##3) F1(n##4) F1(n##5) F1(n##6) F1(n##7) F1(n##8) F1(n##9)
#define F100(n) F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
#define N1(n) f##n,
#define N10(n) N1(n##0) N1(n##1) N1(n##2) N1(n##3) N1(n##4) N1(n##5) N1(n##6) N1(n##7) N1(n##8) N1(n##9)
#define N100(n) N10(n##0) N10(n##1) N10(n##2) N10(n##3) N10(n##4) N10(n##5) N10(n##6) N10(n##7) N10(n##8) N10(n##9)
F100(1) F100(2) F100(3) F100(4) F100(5) F100(6)
static word (*const functions[])(word) = {N100(1) N100(2) N100(3) N100(4) N100(5) N100(6)};
static word kernel(void)
{
    word x = 1;
    for (int i = 0; i < 12000; i++)
        x = functions[random_word() % 600](x);
    return x;
}
#endif

/* On a stack of our own: where the kernel puts it depends on the environment, and with it which lines share a set. */
static ALIGNED byte stack[65536] __attribute__((used));
__attribute__((used)) static void run(void) { leave(kernel()); }
#if defined __x86_64__
__asm__(".globl _start\n_start: lea stack+65536(%rip), %rsp\n call run\n");
#else
__asm__(".globl _start\n_start: adrp x9, stack\n add x9, x9, #:lo12:stack\n add x9, x9, #16, lsl #12\n mov sp, x9\n bl run\n");
#endif
