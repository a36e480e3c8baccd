/* Programs that are well: what a machine does all day, at the rates at which it does no harm. There is no P.
 * Unit: one step of the body, the same for ever; --size sets the memory, --rate the events a second of the timer. */
#include "program.h"
#include <math.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

static long size, rate;
static char *data;
static int file;

static const char *const kinds[] = {"integer", "float",    "stream", "hash",  "allocate", "timer", "compress",
                                    "btree",   "pager",    "sort",   "text",  "matrix",   "log",   "random",
                                    "loop",    "scan",     NULL};

static double integer(struct worker *worker)
{
    worker->random = compute(worker->random, 20000);
    return 1;
}

static double floating(struct worker *worker)
{
    double x = 1 + (double)(worker->random & 7);
    for (int i = 0; i < 2000; i++)
        x = sin(x) * 3 + sqrt(x * x + 1);
    worker->random += (uint64_t)x;
    return x == x;
}

static double stream(struct worker *worker)
{
    double *a = (double *)data, *b = a + size / 16;
    for (long i = 0; i < size / 16; i++)
        a[i] = b[i] * 3 + (double)(worker->random & 1);
    return 1;
}

static double hash(struct worker *worker) /* a cached file read in blocks, as gzip or sha1sum do */
{
    static char block[1 << 16];
    ssize_t done = read(file, block, sizeof block);
    if (done <= 0)
        return lseek(file, 0, SEEK_SET) == 0;
    uint32_t h = 2166136261u;
    for (ssize_t i = 0; i < done; i++)
        h = (h ^ (uint8_t)block[i]) * 16777619u;
    worker->random += h;
    return 1;
}

static double allocate(struct worker *worker) /* lists of small objects, freed in another order: few calls to the kernel */
{
    void *object[512];
    for (int i = 0; i < 512; i++) {
        object[i] = malloc(16 + xorshift(&worker->random) % 400);
        *(uint64_t *)object[i] = worker->random;
    }
    for (int i = 0; i < 512; i++)
        free(object[i * 77 % 512]);
    return 1;
}

static double timer(struct worker *worker) /* a frame of work `rate` times a second */
{
    worker->random = compute(worker->random, size);
    nanosleep(&(struct timespec){0, 1000000000 / rate}, NULL);
    return 1;
}

static double loop(struct worker *worker) /* a server that is hardly asked: an event, a little work, and to sleep again */
{
    static __thread int poll = -1, clock;
    struct epoll_event event = {.events = EPOLLIN};
    uint64_t times;
    if (poll < 0) {
        struct itimerspec every = {{0, 1000000000 / rate}, {0, 1000000000 / rate}};
        poll = epoll_create1(0), clock = timerfd_create(CLOCK_MONOTONIC, 0);
        if (timerfd_settime(clock, 0, &every, NULL) || epoll_ctl(poll, EPOLL_CTL_ADD, clock, &event))
            fail("cannot set a timer");
    }
    if (epoll_wait(poll, &event, 1, 1000) == 1 && read(clock, &times, sizeof times) != sizeof times)
        fail("cannot read a timer");
    worker->random = compute(worker->random, size);
    return 1;
}

static double scan(struct worker *worker) /* what a monitor does: `size` files of /proc read, and to sleep again */
{
    static const char *const files[] = {"/proc/self/stat", "/proc/self/status", "/proc/loadavg", "/proc/meminfo"};
    char text[4096];
    for (long i = 0; i < size; i++) {
        int one = open(files[i % 4], O_RDONLY);
        ssize_t length = read(one, text, sizeof text);
        close(one);
        for (ssize_t at = 0; at < length; at++)
            worker->random = worker->random * 31 + (uint8_t)text[at];
    }
    nanosleep(&(struct timespec){0, 1000000000 / rate - 1}, NULL);
    return 1;
}

static double compress(struct worker *worker) /* match search in a window by a hash of three bytes */
{
    static __thread uint32_t last[1 << 14];
    long start = (long)(xorshift(&worker->random) % (uint64_t)(size - (1 << 15))), matched = 0;
    const uint8_t *text = (uint8_t *)data + start;
    for (uint32_t i = 0; i + 260 < 1 << 15; i++) {
        uint32_t key = (text[i] | (uint32_t)text[i + 1] << 8 | (uint32_t)text[i + 2] << 16) * 2654435761u >> 18;
        uint32_t from = last[key], length = 0;
        last[key] = i;
        if (from < i)
            while (length < 258 && text[from + length] == text[i + length])
                length++;
        matched += length;
        i += length > 3 ? length - 1 : 0;
    }
    worker->random += (uint64_t)matched;
    return 1;
}

static double btree(struct worker *worker) /* sorted pages in memory, a binary search in each level */
{
    uint64_t *page = (uint64_t *)data, wanted = xorshift(&worker->random);
    long pages = size / 4096, at = 0;
    for (int i = 0; i < 500; i++) {
        for (at = 0; at < pages;) {
            long low = 0, high = 511;
            while (low < high) {
                long middle = (low + high) / 2;
                if (page[at * 512 + middle] < wanted)
                    low = middle + 1;
                else
                    high = middle;
            }
            at = at * 16 + 1 + (low & 15);
        }
        wanted = wanted * 6364136223846793005ull + 1;
    }
    worker->random += (uint64_t)at;
    return 1;
}

static double pager(struct worker *worker) /* pages of a cached file through an own small cache, records parsed in each */
{
    static __thread uint64_t cache[64][512], tag[64];
    for (int i = 0; i < 20; i++) {
        uint64_t page = xorshift(&worker->random) % (uint64_t)(size / 4096) >> (worker->random >> 62);
        uint64_t *slot = cache[page % 64];
        if (tag[page % 64] != page + 1) {
            tag[page % 64] = page + 1;
            if (pread(file, slot, 4096, (off_t)page * 4096) != 4096)
                fail("short read");
        }
        for (int pass = 0; pass < rate; pass++)
            for (int j = 0; j < 512; j++)
                worker->random += slot[j] * 31 ^ worker->random >> 7;
    }
    return 1;
}

static int smaller(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double sort(struct worker *worker)
{
    uint32_t list[4096];
    for (int i = 0; i < 4096; i++)
        list[i] = (uint32_t)xorshift(&worker->random);
    qsort(list, 4096, sizeof *list, smaller);
    return list[0] <= list[4095];
}

static double text_work(struct worker *worker) /* formatting and parsing */
{
    char line[128];
    double sum = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "%llu %.6f %s", (unsigned long long)xorshift(&worker->random), 1.5 * i, "name");
        sum += strtod(strchr(line, ' '), NULL);
    }
    return sum > 0;
}

static double matrix(struct worker *worker)
{
    static __thread double a[64][64], b[64][64], c[64][64];
    a[worker->random & 63][3] += 1;
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 64; k++)
            for (int j = 0; j < 64; j++)
                c[i][j] += a[i][k] * b[k][j];
    worker->random += (uint64_t)c[5][5] + 1;
    return 1;
}

static double log_line(struct worker *worker) /* a line written for every `size` rounds of work */
{
    static int null = -1;
    if (null < 0)
        null = open("/dev/null", O_WRONLY);
    worker->random = compute(worker->random, size);
    return write(null, "a line of a log file\n", 21) == 21;
}

static double random_access(struct worker *worker) /* a healthy program to the kernel, whatever its cache may say */
{
    uint64_t *word = (uint64_t *)data;
    for (int i = 0; i < 1000; i++)
        word[xorshift(&worker->random) % (uint64_t)(size / 8)]++;
    return 1;
}

static double (*const bodies[])(struct worker *) = {integer,  floating, stream, hash,      allocate, timer,    compress,
                                                    btree,    pager,    sort,   text_work, matrix,   log_line, random_access,
                                                    loop,     scan};
static int kind;

static void work(struct worker *worker)
{
    bool needs_file = bodies[kind] == hash || bodies[kind] == pager;
    file = needs_file ? scratch_file((size_t)size, 0) : -1;
    data = malloc((size_t)size);
    for (long i = 0; i + 8 <= size; i += 8)
        *(uint64_t *)(data + i) = bodies[kind] == compress ? xorshift(&worker->random) & 0x0303030303030303
                                                          : 0x9e3779b97f4a7c15u * (uint64_t)i;
    ready(worker);
    while (going(worker)) {
        worker->check += bodies[kind](worker);
        worker->work++;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = choice("kind", kinds);
    size = number("size", 8 << 20);
    rate = number("rate", 100);
    program_run(work);
}
