/* Migration. P: the program hops (or is sent) from CPU to CPU every --hop rounds of work; N: it stays where it is.
 * Unit: one visit of an element of its --size bytes, with --compute rounds on it. Needs two CPUs. */
#include "program.h"

static const char *const kinds[] = {"self", "sent", NULL};
static int kind;
static long size, hop, rounds;

struct order {
    pid_t who;
    volatile long *wanted; /* the hop that the worker has reached */
};

/* Sends the worker to the next CPU as often as it asks; the worker goes on working meanwhile. */
static void *send(void *argument)
{
    struct order *order = argument;
    cpu_set_t set;
    for (long done = 0;; done++) {
        CPU_ZERO(&set);
        CPU_SET(cpu_number((int)(done & 1)), &set);
        sched_setaffinity(order->who, sizeof set, &set);
        while (*order->wanted <= done)
            nanosleep(&(struct timespec){0, 20000}, NULL);
    }
    return NULL;
}

static void work(struct worker *worker)
{
    long words = size / 8, at = 0, hops = 0, left = hop;
    uint64_t *data = calloc((size_t)words, 8), x = worker->random;
    int first = cpu_number(worker->index), second = cpu_number(worker->index + 1);
    volatile long *wanted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct order order = {(pid_t)syscall(SYS_gettid), wanted};
    struct partner partner = {0};
    if (pathological() && kind == 1)
        partner = partner_start(send, &order);
    else
        pin(first);
    ready(worker);
    while (going(worker)) {
        for (long i = 0; i < 256; i++) {
            data[at]++;
            at = at + 8 < words ? at + 8 : 0;
            x = compute(x, rounds);
        }
        worker->work += 256;
        if (pathological() && (left -= 256) <= 0) {
            left = hop;
            *wanted = ++hops;
            if (kind == 0)
                pin(hops & 1 ? second : first);
        }
    }
    for (at = 0; at < words; at++)
        worker->check += (double)data[at];
    partner_end(partner);
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = choice("kind", kinds);
    size = number("size", 32 << 10);
    hop = number("hop", 1024);
    rounds = number("compute", 4);
    program_run(work);
}
