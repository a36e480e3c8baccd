/* LZ77 with hash chains, window 64 KiB, lazy matching. */
#include "program.h"

enum { WINDOW = 1 << 16, HASH = 1 << 15, LONGEST = 258 };
static int32_t head[HASH], prev[WINDOW];
static uint8_t *src;
static long size;

static unsigned key(long i) { return ((unsigned)src[i] << 10 ^ (unsigned)src[i + 1] << 5 ^ src[i + 2]) & (HASH - 1); }

static long longest(long i, long *distance)
{
    long best = 2, tries = 32, limit = size - i < LONGEST ? size - i : LONGEST;
    for (int32_t c = head[key(i)]; c >= 0 && i - c < WINDOW && tries--; c = prev[c & (WINDOW - 1)]) {
        if (src[c + best] != src[i + best])
            continue;
        long n = 0;
        while (n < limit && src[c + n] == src[i + n]) n++;
        if (n > best) best = n, *distance = i - c;
        if (n == limit) break;
    }
    return best;
}

static void note(long i) { unsigned k = key(i); prev[i & (WINDOW - 1)] = head[k]; head[k] = (int32_t)i; }

static void work(struct worker *worker)
{
    static const char *const words[] = {"the ", "compiler ", "of ", "a ", "loop ", "memory ", "that ", "waits ", "for ", "data, ", "and ", "so\n"};
    size = 4 << 20;
    src = malloc((size_t)size + 512);
    for (long i = 0; i < size;) {
        uint64_t r = xorshift(&worker->random) >> 20;
        i += r % 7 == 0 ? sprintf((char *)src + i, "%u ", (unsigned)(r >> 8) % 100000) : sprintf((char *)src + i, "%s", words[r % 12]);
    }
    ready(worker);
    while (going(worker)) {
        long out = 0, done = 0;
        memset(head, 0xff, sizeof head);
        for (long i = 0; i + LONGEST < size; ) {
            if (i - done > 1 << 14) {
                worker->work += (double)(i - done), worker->check += (double)(i - done), done = i;
                if (!going(worker)) break;
            }
            long distance = 0, n = longest(i, &distance), unused;
            note(i);
            if (n > 2 && n < 32 && longest(i + 1, &unused) > n) n = 1;
            else if (n <= 2) n = 1;
            for (long k = 1; k < n; k++) note(i + k);
            i += n, out += n > 1 ? 3 : 1;
        }
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program_run(work);
}
