/* Waiting for a CPU. P: --workers sharers pinned on one CPU. N: the first of them alone on it.
 * `storm` also calls the kernel all the time: that it waits is the worse of its two ills.
 * Unit: 1000 rounds of the body by the first sharer (the others' work is not its own). */
#include "program.h"
#include <math.h>

static const char *const bodies[] = {"integer", "float", "stream", "calls", "storm", NULL};
enum { INTEGER, FLOAT, STREAM, CALLS, STORM };
static int body, sharer_nice;
static long size;

static void work(struct worker *worker)
{
    pin(cpu_number(0));
    if (worker->index && sharer_nice)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), sharer_nice);
    long words = size / 8;
    double *data = calloc((size_t)words, 8);
    double sum = 1;
    uint64_t x = worker->random;
    ready(worker);
    long at = 0;
    while (going(worker)) {
        for (int i = 0; i < 20; i++) {
            if (body == INTEGER)
                x = compute(x, 1000);
            else if (body == FLOAT)
                for (int j = 0; j < 250; j++)
                    sum = sqrt(sum * 1.25 + 3);
            else if (body == STREAM)
                for (int j = 0; j < 1000; j++, at = at + 1 < words ? at + 1 : 0)
                    data[at] += sum;
            else
                for (int j = 0; j < 4; j++)
                    x = compute(x + (uint64_t)syscall(SYS_getppid), body == STORM && pathological() ? 20 : 2000);
        }
        if (worker->index == 0)
            worker->work += 20, worker->check += 20;
        if (worker->work >= program.limit)
            break; /* the first sharer's work is all that counts */
    }
    if (worker->index == 0)
        program.common->stop = 1;
    *(volatile double *)data = sum + (double)x;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    body = choice("body", bodies);
    size = number("size", 1 << 20);
    sharer_nice = (int)number("sharer-nice", 0);
    if (!pathological())
        program.workers = 1;
    program_run(work);
}
