/* Phases, each under a name of its own (comm), one after the other for ever: `chase` through a shuffled ring of 32 MB,
 * `sums` of a page in the first cache, `guess` at random bits. So a log tells which label was said of which phase. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { RING = 1 << 19, SECONDS = 2 };
static struct { uint32_t next, rest[15]; } *ring;
static uint32_t page[1024];
static volatile uint64_t result;

static uint64_t random_of(uint64_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static void chase(void)
{
    static uint32_t at;
    for (int i = 0; i < 20000; i++)
        at = ring[at].next;
    result += at;
}

static void sums(void)
{
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 1024; i += 4)
            page[i] += 1, page[i + 1] += 2, page[i + 2] += 3, page[i + 3] += 4;
}

static void guess(void)
{
    static uint64_t state = 88172645463325252ull;
    for (int i = 0; i < 20000; i++)
        if (random_of(&state) >> 40 & 1)
            result += 3;
        else
            result ^= 5;
}

static void phase(const char *name, void (*work)(void))
{
    prctl(PR_SET_NAME, name);
    for (time_t end = time(NULL) + SECONDS; time(NULL) < end;)
        work();
}

int main(void)
{
    uint64_t state = 1;
    ring = malloc(RING * sizeof *ring);
    for (uint32_t i = 0; i < RING; i++)
        ring[i].next = i;
    for (uint32_t i = RING - 1; i > 0; i--) { /* Sattolo: one ring of all */
        uint32_t j = (uint32_t)(random_of(&state) % i), kept = ring[i].next;
        ring[i].next = ring[j].next, ring[j].next = kept;
    }
    for (;;) {
        phase("chase", chase);
        phase("sums", sums);
        phase("guess", guess);
    }
}
