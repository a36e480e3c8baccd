/* What every workload shares: options, workers, the end of the init phase, pacing, and the count of work.
 *
 *   program_start(argc, argv)      first; reads the options below and notes the rest
 *   text("kind", "pipe"), number("size", 4096), pathological()
 *   program_run(body)              starts the workers, ends the program
 * and in body(worker), once per worker:
 *   ready(worker)                  end of the init phase, for all workers together; the clocks start
 *   while (going(worker)) { one chunk of work; worker->work += units; }
 *
 * Common options: --variant P|N  --seconds S  --work UNITS (stop at either)  --workers K  --as process|thread
 * --duty PERCENT  --period MS  --cpus 0,1  --nice N  --ready-fd FD. Numbers take the suffixes K, M and G.
 * Programs of fixed iterations use iteration() instead of going(), and meet() between phases; the last line then has
 * "iterations": [seconds of each] as well. --iterations N ends them, --repeat R makes each R rounds long.
 * Nothing is written to stdout but the last line:
 *   {"work": units, "seconds": wall, "cpu_seconds": own and children's, "check": what was really done}
 * `check` is counted from results, not from the loop: P and N must agree on check / work. */
#ifndef PROGRAM_H
#define PROGRAM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHARED static __attribute__((unused))
#define MOST_WORKERS 64
#define MOST_ITERATIONS 4096

struct worker {
    int index;
    double work;      /* units done since ready() */
    double check;     /* the same, counted from results */
    double seconds;   /* wall time from ready() to the end of the body */
    double cpu;       /* CPU time of the same stretch; children that were waited for included */
    double began, cpu_began, until, pulse; /* own clocks */
    uint64_t random;
    char keep_apart[64]; /* each worker counts in its own cache lines */
};

struct common {
    pthread_barrier_t barrier;
    volatile int stop, more;
    int iterations;
    long rounds;
    double ended[MOST_ITERATIONS]; /* seconds since ready(), one per iteration() */
    struct worker worker[MOST_WORKERS];
};

static struct {
    int argc;
    char **argv;
    bool *used;
    bool pathological, threads;
    double seconds, limit, duty, period;
    int workers, ready_fd;
    long repeat;
    pid_t parent;
    struct common *common; /* shared by worker processes */
} program;

SHARED void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    if (errno)
        fprintf(stderr, ": %s", strerror(errno));
    fputc('\n', stderr);
    _exit(1);
}

SHARED double clock_of(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- options ---- */

/* Given twice, the last one holds. */
SHARED const char *text(const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < program.argc; i += 2)
        if (!strncmp(program.argv[i], "--", 2) && !strcmp(program.argv[i] + 2, name)) {
            program.used[i] = program.used[i + 1] = true;
            otherwise = program.argv[i + 1];
        }
    return otherwise;
}

SHARED double real(const char *name, double otherwise)
{
    const char *value = text(name, NULL);
    if (!value)
        return otherwise;
    char *end;
    double number = strtod(value, &end);
    if (*end == 'K')
        number *= 1024, end++;
    else if (*end == 'M')
        number *= 1 << 20, end++;
    else if (*end == 'G')
        number *= 1 << 30, end++;
    if (end == value || *end) {
        errno = 0;
        fail("--%s %s is not a number", name, value);
    }
    return number;
}

SHARED long number(const char *name, long otherwise) { return (long)real(name, (double)otherwise); }

SHARED bool pathological(void) { return program.pathological; }

/* The position of a name in a list that ends with NULL: programs choose their bodies from tables. */
SHARED int choice(const char *name, const char *const list[])
{
    const char *value = text(name, list[0]);
    for (int i = 0; list[i]; i++)
        if (!strcmp(list[i], value))
            return i;
    errno = 0;
    fail("--%s %s is not known", name, value);
    return -1;
}

/* ---- processors ---- */

SHARED void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("cannot run on CPU %d", cpu);
}

/* The n-th CPU this program may use, counted round and round. */
SHARED int cpu_number(int n)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int count = CPU_COUNT(&set);
    n %= count;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && n-- == 0)
            return cpu;
    return 0;
}

SHARED int cpu_count(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}

/* Dies with its parent: a killed runner leaves no orphans. Forked children lose this setting and ask again. */
SHARED void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

/* ---- small work ---- */

SHARED inline uint64_t xorshift(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* About a nanosecond a round, nothing in memory: the useful work between two events. */
SHARED __attribute__((noinline)) uint64_t compute(uint64_t x, long rounds)
{
    for (long i = 0; i < rounds; i++)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* How many items of so many rounds a healthy twin does between two events: about 4 ms of work. */
SHARED long healthy_batch(long rounds) { return 4000000 / (rounds + 2); }

/* A file in the scratch folder, already unlinked, of so many bytes. */
SHARED int scratch_file(size_t bytes, int flags)
{
    char name[512];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/pmutop-workload-XXXXXX", folder && *folder ? folder : "/tmp");
    int file = mkostemp(name, flags);
    if (file < 0)
        fail("cannot make %s", name);
    unlink(name);
    static char block[1 << 16];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 2654435761u >> 16);
    for (size_t done = 0; done < bytes; done += sizeof block) {
        size_t part = bytes - done < sizeof block ? bytes - done : sizeof block;
        if (write(file, block, part) != (ssize_t)part)
            fail("cannot write %s", name);
    }
    return file;
}

/* ---- start, workers, end ---- */

SHARED void stop_now(int signal)
{
    (void)signal;
    if (program.common)
        program.common->stop = 1;
}

SHARED void program_start(int argc, char **argv)
{
    program.argc = argc;
    program.argv = argv;
    program.used = calloc((size_t)argc + 2, sizeof *program.used);
    program.parent = getppid();
    const char *parent = text("parent", NULL); /* the runner's pid: closes the race between fork and prctl */
    die_with(parent ? atoi(parent) : program.parent);
    program.pathological = text("variant", "P")[0] == 'P';
    program.seconds = real("seconds", 1e9);
    program.limit = real("iterations", real("work", 1e300));
    program.duty = real("duty", 100) / 100;
    program.period = real("period", 100) / 1000;
    program.repeat = number("repeat", 1);
    program.workers = (int)number("workers", 1);
    program.threads = text("as", "process")[0] == 't';
    program.ready_fd = (int)number("ready-fd", -1);
    if (program.workers < 1 || program.workers > MOST_WORKERS || program.duty <= 0 || program.duty > 1) {
        errno = 0;
        fail("--workers 1..%d, --duty above 0 and up to 100", MOST_WORKERS);
    }
    const char *cpus = text("cpus", NULL);
    if (cpus) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (char *at = (char *)cpus; *at; at += *at == ',')
            CPU_SET(strtol(at, &at, 10), &set);
        if (sched_setaffinity(0, sizeof set, &set))
            fail("cannot run on CPUs %s", cpus);
    }
    int nice_value = (int)number("nice", 0);
    errno = 0;
    if (nice_value && nice(nice_value) == -1 && errno)
        fail("cannot set nice %d", nice_value);
    /* no SA_RESTART: a blocked read must end too */
    struct sigaction action = {.sa_handler = stop_now};
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    program.common = mmap(NULL, sizeof *program.common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (program.common == MAP_FAILED)
        fail("no memory");
}

SHARED double cpu_used(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    double micro = (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec +
                            children.ru_stime.tv_usec);
    return micro * 1e-6 + (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
                                   children.ru_stime.tv_sec);
}

SHARED void ready(struct worker *worker)
{
    pthread_barrier_wait(&program.common->barrier);
    if (worker->index == 0 && program.ready_fd >= 0) {
        if (write(program.ready_fd, "ready\n", 6) != 6)
            fail("cannot write to the ready descriptor");
        close(program.ready_fd);
    }
    worker->cpu_began = cpu_used();
    worker->began = worker->pulse = clock_of(CLOCK_MONOTONIC);
    worker->until = worker->began + program.seconds;
}

/* Sleeps through the idle part of each period when --duty is below 100: as much as the work before it demands. */
SHARED void pace(struct worker *worker, double now)
{
    double worked = now - worker->pulse;
    if (program.duty == 1 || worked < program.duty * program.period)
        return;
    double idle = worked * (1 / program.duty - 1);
    nanosleep(&(struct timespec){(time_t)idle, (long)((idle - (double)(time_t)idle) * 1e9)}, NULL);
    worker->pulse = clock_of(CLOCK_MONOTONIC);
}

/* False when the time or the work is up. */
SHARED bool going(struct worker *worker)
{
    if (program.common->stop || worker->work * program.workers >= program.limit)
        return false;
    double now = clock_of(CLOCK_MONOTONIC);
    pace(worker, now);
    return now < worker->until;
}

/* All workers wait here for one another. */
SHARED void meet(void) { pthread_barrier_wait(&program.common->barrier); }

/* True for all workers or for none, at the start of each iteration; one unit of work. Never inlined: a uprobe on it tells
 * progress (pmutop --progress /path/app_chase:iteration). */
SHARED __attribute__((noinline)) bool iteration(struct worker *worker)
{
    struct common *common = program.common;
    pace(worker, clock_of(CLOCK_MONOTONIC));
    meet();
    if (worker->index == 0) {
        double now = clock_of(CLOCK_MONOTONIC) - worker->began;
        worker->work = (double)common->rounds++ / (double)program.repeat;
        if (common->rounds > 1 && (common->rounds - 1) % program.repeat == 0) {
            if (common->iterations < MOST_ITERATIONS)
                common->ended[common->iterations++] = now;
        }
        common->more = !common->stop && now < program.seconds &&
                       (double)(common->rounds - 1) < program.limit * (double)program.repeat;
    }
    meet();
    return common->more;
}

/* The part of 0..n-1 that is this worker's. */
SHARED long part_from(const struct worker *worker, long n) { return n * worker->index / program.workers; }
SHARED long part_to(const struct worker *worker, long n) { return n * (worker->index + 1) / program.workers; }

static void (*program_body)(struct worker *);
static double (*program_check)(void); /* where the check can only be taken when all workers are done */

SHARED void *worker_main(void *argument)
{
    struct worker *worker = argument;
    program_body(worker);
    worker->seconds = clock_of(CLOCK_MONOTONIC) - worker->began;
    if (!program.threads || worker->index == 0)
        worker->cpu = cpu_used() - worker->cpu_began;
    return NULL;
}

SHARED void program_run(void (*body)(struct worker *))
{
    for (int i = 1; i < program.argc; i++)
        if (!program.used[i]) {
            errno = 0;
            fail("%s: %s is not an option here", program.argv[0], program.argv[i]);
        }
    program_body = body;
    struct common *common = program.common;
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&common->barrier, &shared, (unsigned)program.workers);
    pthread_t thread[MOST_WORKERS];
    pid_t child[MOST_WORKERS], self = getpid();
    for (int i = 0; i < program.workers; i++) {
        common->worker[i].index = i;
        common->worker[i].random = 88172645463325252ull * (unsigned)(2 * i + 1);
    }
    for (int i = 1; i < program.workers; i++)
        if (program.threads) {
            if ((errno = pthread_create(&thread[i], NULL, worker_main, &common->worker[i])))
                fail("cannot start a thread");
        } else if ((child[i] = fork()) == 0) {
            die_with(self);
            worker_main(&common->worker[i]);
            _exit(0);
        } else if (child[i] < 0) {
            fail("cannot start a worker");
        }
    worker_main(&common->worker[0]);
    double work = 0, check = 0, cpu = 0;
    for (int i = 0; i < program.workers; i++) {
        if (i > 0 && program.threads)
            pthread_join(thread[i], NULL);
        else if (i > 0)
            while (waitpid(child[i], NULL, 0) < 0 && errno == EINTR)
                ;
        work += common->worker[i].work;
        check += common->worker[i].check;
        cpu += common->worker[i].cpu;
    }
    if (program_check)
        check = program_check();
    printf("{\"work\": %.17g, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"check\": %.17g", work,
           common->worker[0].seconds, cpu, check);
    if (common->rounds)
        printf(", \"iterations\": [");
    for (int i = 0; i < common->iterations; i++)
        printf("%s%.6f", i ? ", " : "", common->ended[i] - (i ? common->ended[i - 1] : 0));
    puts(common->rounds ? "]}" : "}");
    fflush(stdout);
    _exit(0); /* partner threads may still be blocked */
}

/* ---- a partner that answers until the program ends ---- */

struct partner {
    pid_t pid;
    pthread_t thread;
};

SHARED struct partner partner_start(void *(*body)(void *), void *argument)
{
    struct partner partner = {0};
    pid_t self = getpid();
    if (program.threads) {
        if ((errno = pthread_create(&partner.thread, NULL, body, argument)))
            fail("cannot start a thread");
        pthread_detach(partner.thread);
    } else if ((partner.pid = fork()) == 0) {
        die_with(self);
        body(argument);
        _exit(0);
    } else if (partner.pid < 0) {
        fail("cannot start a partner");
    }
    return partner;
}

SHARED void partner_end(struct partner partner)
{
    if (partner.pid) {
        kill(partner.pid, SIGKILL);
        while (waitpid(partner.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}
#endif
