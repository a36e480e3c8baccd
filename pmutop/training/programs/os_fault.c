/* Minor page faults. P: memory is taken, touched once and given back; N: the same touches on memory that is kept.
 * Unit: one page touched, followed by --compute rounds of work on it. --again N: dropped and touched N times more. */
#include "program.h"
#include <malloc.h>

static const char *const kinds[] = {"anonymous", "dontneed", "malloc", "punch", "truncate",
                                    "temporary", "private", "cached", "remap",
                                    "break", NULL};
enum kind { ANONYMOUS, DONTNEED, MALLOC, PUNCH, TRUNCATE, TEMPORARY, PRIVATE, CACHED, REMAP, BREAK } kind;
static long pages, rounds, again, allocated;
static size_t bytes;

static char *map(int file, int flags)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED)
        fail("cannot map %zu bytes", bytes);
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* a huge page would make one fault of 512 */
    if (kind == CACHED)
        madvise(memory, bytes, MADV_RANDOM); /* no faulting of the neighbours */
    return memory;
}

static int new_file(void)
{
    int file = scratch_file(0, 0);
    if (allocated) /* blocks on the disk, given back with the file: a wait where the file system is mounted with discard */
        if (fallocate(file, 0, 0, (off_t)bytes))
            fail("cannot allocate blocks");
    for (long i = 0; i < pages; i++) /* written: an allocated page that is not in the cache yet would be a major fault */
        if (pwrite(file, "", 1, (off_t)i * 4096) != 1)
            fail("cannot write");
    return file;
}

static double touch(char *memory, uint64_t *x)
{
    double touched = 0;
    for (long i = 0; i < pages; i++) {
        volatile char *at = memory + i * 4096;
        if (kind == CACHED)
            touched += *at == memory[0];
        else
            *at = 7, touched += *at == 7;
        if (rounds)
            *x = compute(*x, rounds);
    }
    return touched;
}

static void work(struct worker *worker)
{
    int file = -1;
    if (kind == PUNCH)
        file = memfd_create("workload", 0);
    else if (kind == PRIVATE || kind == CACHED || kind == REMAP)
        file = scratch_file(0, 0);
    else if (kind == TRUNCATE || kind == TEMPORARY)
        file = new_file();
    if (file >= 0 && ftruncate(file, (off_t)bytes))
        fail("cannot size a file");
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : kind == PRIVATE ? MAP_PRIVATE : MAP_SHARED;
    bool kept = !pathological() || kind == DONTNEED || kind == PUNCH;
    char *memory = kept || kind == CACHED ? map(file, flags) : NULL;
    if (memory) {
        memset(memory, 7, bytes);
        if (kind == CACHED && pathological())
            munmap(memory, bytes);
    }
    ready(worker);
    while (going(worker)) {
        if (pathological())
            switch (kind) {
            case MALLOC:
            case BREAK: memory = malloc(bytes); break;
            case DONTNEED: madvise(memory, bytes, MADV_DONTNEED); break;
            case PUNCH: fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes); break;
            case TRUNCATE:
                if (ftruncate(file, 0) || ftruncate(file, (off_t)bytes))
                    fail("cannot truncate");
                memory = map(file, flags);
                break;
            case TEMPORARY:
                file = new_file();
                memory = map(file, flags);
                break;
            default: memory = map(file, flags);
            }
        worker->check += touch(memory, &worker->random);
        for (long i = 0; i < again; i++) {
            if (pathological())
                madvise(memory, bytes, MADV_DONTNEED);
            worker->check += touch(memory, &worker->random);
        }
        worker->work += (double)(pages * (1 + again));
        if (!kept) {
            if (kind == MALLOC || kind == BREAK)
                free(memory);
            else
                munmap(memory, bytes);
            if (kind == TEMPORARY)
                close(file);
        }
    }
}

int main(int argc, char **argv)
{
    mallopt(M_TOP_PAD, 0); /* before the first allocation: no spare room at the top of the heap */
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    pages = number("pages", 16);
    rounds = number("compute", 0);
    again = number("again", 0);
    allocated = number("allocated", 0);
    bytes = (size_t)pages * 4096;
    if (kind == MALLOC) /* every block is a mapping of its own */
        mallopt(M_MMAP_THRESHOLD, 4096);
    if (kind == BREAK) { /* every block is at the end of the heap, and the heap is trimmed after it */
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, 0);
    }
    program_run(work);
}
