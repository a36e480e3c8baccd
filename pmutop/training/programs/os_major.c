/* Major page faults. P: the pages of a file mapping are dropped from the page cache before they are read; N: they stay.
 * Unit: one page read, followed by --compute rounds. Needs a scratch folder on a disk (not tmpfs). */
#include "program.h"

static const char *const kinds[] = {"fadvise", "pageout", NULL};
static int kind;
static long pages, rounds;

static void work(struct worker *worker)
{
    size_t bytes = (size_t)pages * 4096;
    int file = scratch_file(bytes, 0);
    if (fsync(file)) /* dirty pages cannot be dropped */
        fail("cannot sync");
    char *memory = NULL;
    ready(worker);
    while (going(worker)) {
        if (pathological() && kind == 0)
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        if (!memory) {
            memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
            if (memory == MAP_FAILED)
                fail("cannot map");
            madvise(memory, bytes, MADV_RANDOM);
        }
        if (pathological() && kind == 1)
            madvise(memory, bytes, MADV_PAGEOUT);
        for (long i = 0; i < pages && going(worker); i++) {
            size_t page = (size_t)i * 7919 % (size_t)pages;
            uint32_t at = (uint32_t)(page * 4096 + 1);
            worker->check += *(volatile char *)(memory + at) == (char)((at & 0xffff) * 2654435761u >> 16);
            if (rounds)
                worker->random = compute(worker->random, rounds);
            worker->work++;
        }
        if (pathological() && kind == 0) {
            munmap(memory, bytes);
            memory = NULL;
        }
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = choice("kind", kinds);
    pages = number("pages", 2048);
    rounds = number("compute", 0);
    program_run(work);
}
