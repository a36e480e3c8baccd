/* Micro-benchmarks of known counts: `micro KIND SIZE [check]` does SIZE of one thing, inside a region called KIND.
 *
 *   linear    SIZE instructions of four bytes, straight code, once (Korn, Teller and Castillo, 2.2.1)
 *   loop      SIZE turns of 33 loads, additions and stores, and two instructions that make it a loop (2.2.2)
 *   array     SIZE elements of four bytes, each read, incremented and written, in order (2.2.3)
 *   shuffled  the same in whole lines of 16, line after line in scattered order, so that nothing can be fetched ahead
 *   pages     SIZE pages touched for the first time
 *   switches  SIZE short sleeps        forks     SIZE children that end at once, each waited for
 *   syscalls  SIZE calls of getppid    clock     SIZE microseconds of the scheduler's own CPU time
 *
 * What the counted code did is checked from its results (of the arrays with `check` only); exit code 1 where it did something
 * else. */
#include "hw_order.h"
#include "pmutop_region.h"

#define LINE 64
#define SLED 524288 /* instructions of the longest straight code */

#if defined(__x86_64__)
#define TRIPLE "movl (%[at]), %k[x]\n addl $1, %k[x]\n movl %k[x], (%[at])\n"
#elif defined(__aarch64__)
#define TRIPLE "ldr %w[x], [%[at]]\n add %w[x], %w[x], #1\n str %w[x], [%[at]]\n"
#else
#error no instructions of known number for this architecture
#endif

static bool linear(long count)
{
    uint64_t done = 0, entry = (uint64_t)count * 4;
#if defined(__x86_64__)
    __asm__ volatile("negq %[entry]\n leaq 2f(%%rip), %%rdx\n addq %%rdx, %[entry]\n jmp *%[entry]\n"
                     ".p2align 6\n .rept 524288\n leaq 1(%%rax), %%rax\n .endr\n 2:"
                     : "+a"(done), [entry] "+r"(entry) : : "rdx", "cc");
#else
    __asm__ volatile("adrp x9, 2f\n add x9, x9, :lo12:2f\n sub %[entry], x9, %[entry]\n br %[entry]\n"
                     ".p2align 6\n .rept 524288\n add %[done], %[done], #1\n .endr\n 2:"
                     : [done] "+r"(done), [entry] "+r"(entry) : : "x9", "cc");
#endif
    return done == (uint64_t)count;
}

static bool loop(long turns)
{
    uint32_t cell = 0;
    uint64_t left = (uint64_t)turns, x;
#if defined(__x86_64__)
    __asm__ volatile("1:\n .rept 33\n" TRIPLE ".endr\n decq %[left]\n jnz 1b"
                     : [left] "+r"(left), [x] "=&r"(x) : [at] "r"(&cell) : "memory", "cc");
#else
    __asm__ volatile("1:\n .rept 33\n" TRIPLE ".endr\n subs %[left], %[left], #1\n b.ne 1b"
                     : [left] "+r"(left), [x] "=&r"(x) : [at] "r"(&cell) : "memory", "cc");
#endif
    return cell == (uint32_t)(33 * turns);
}

static uint32_t *element; /* of array and shuffled: there, and in no cache */

static bool array(long count)
{
    uint64_t x;
    for (long i = 0; i < count; i++)
        __asm__ volatile(TRIPLE : [x] "=&r"(x) : [at] "r"(element + i) : "memory");
    return true;
}

static bool shuffled(long count)
{
    long lines = count * 4 / LINE;
    struct order order = order_of((uint64_t)lines, true);
    for (long i = 0; i < lines; i++) {
        uint32_t *at = element + place_of(&order, (uint64_t)i) * (LINE / 4);
        uint64_t x;
        for (int j = 0; j < LINE / 4; j++, at++)
            __asm__ volatile(TRIPLE : [x] "=&r"(x) : [at] "r"(at) : "memory");
    }
    return true;
}

static void array_prepare(long count)
{
    element = mmap(NULL, (size_t)count * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (element == MAP_FAILED)
        fail("cannot take %ld bytes", count * 4);
    for (long i = 0; i < count; i += LINE / 4) /* the kernel has just written zeroes there */
#if defined(__x86_64__)
        __asm__ volatile("clflush (%0)" : : "r"(element + i) : "memory");
    __asm__ volatile("mfence" : : : "memory");
#else
        __asm__ volatile("dc civac, %0" : : "r"(element + i) : "memory");
    __asm__ volatile("dsb sy" : : : "memory");
#endif
}

static bool array_check(long count)
{
    for (long i = 0; i < count; i++)
        if (element[i] != 1)
            return false;
    return true;
}

static bool pages(long count)
{
    long size = sysconf(_SC_PAGESIZE);
    volatile char *memory = memory_of((size_t)(count * size));
    for (long i = 0; i < count; i++)
        memory[i * size] = 1;
    return true;
}

static bool switches(long count)
{
    while (count--) /* long enough to be asleep before it is over */
        nanosleep(&(struct timespec){0, 20000}, NULL);
    return true;
}

static bool forks(long count)
{
    while (count--) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return false;
    }
    return true;
}

static bool syscalls(long count)
{
    while (count--)
        syscall(SYS_getppid);
    return true;
}

static bool clocked(long count)
{
    double until = clock_of(CLOCK_THREAD_CPUTIME_ID) + 1e-6 * (double)count;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
    return true;
}

static const struct kind {
    const char *name;
    bool (*work)(long);
    void (*prepare)(long);
    bool (*check)(long); /* only where it is asked for: it walks the memory again, and the process is counted whole */
} kinds[] = {
    {"linear", linear, NULL, NULL},
    {"loop", loop, NULL, NULL},
    {"array", array, array_prepare, array_check},
    {"shuffled", shuffled, array_prepare, array_check},
    {"pages", pages, NULL, NULL},
    {"switches", switches, NULL, NULL},
    {"forks", forks, NULL, NULL},
    {"syscalls", syscalls, NULL, NULL},
    {"clock", clocked, NULL, NULL},
};

int main(int argc, char **argv)
{
    long size = argc >= 3 ? atol(argv[2]) : 0;
    bool checked = argc == 4 && !strcmp(argv[3], "check");
    errno = 0;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* pages of one size; where it is refused they are so already */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size > 0 && !strcmp(argv[1], kinds[i].name)) {
            if ((kinds[i].work == linear && size > SLED) || (kinds[i].work == shuffled && size % (LINE / 4)))
                break;
            if (kinds[i].prepare)
                kinds[i].prepare(size);
            pmutop_region_begin(kinds[i].name);
            bool done = kinds[i].work(size);
            pmutop_region_end();
            return !done || (checked && kinds[i].check && !kinds[i].check(size));
        }
    errno = 0;
    fail("micro KIND SIZE [check]: no such kind, or no such size");
}
