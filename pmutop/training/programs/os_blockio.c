/* Waiting for a disk. P: every block goes to the device before the next; N: the same blocks through the page cache.
 * Unit: one block of --block bytes, with --compute rounds on it. Needs a scratch folder on a disk (not tmpfs). */
#include "program.h"

static const char *const kinds[] = {"direct", "write", "fsync", "fdatasync", "dsync", "cold", NULL};
enum kind { DIRECT, WRITE, FSYNC, FDATASYNC, DSYNC, COLD } kind;
static long block, rounds;
static size_t size;

static void work(struct worker *worker)
{
    bool reading = kind == DIRECT || kind == COLD;
    int flags = !pathological()                     ? 0
                : kind == DIRECT || kind == WRITE ? O_DIRECT
                : kind == DSYNC                   ? O_DSYNC
                                                  : 0;
    int file = scratch_file(size, 0);
    if (fsync(file))
        fail("cannot sync");
    if (flags) { /* the same file under other flags */
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        int again = open(name, O_RDWR | flags);
        if (again < 0)
            fail("this scratch folder cannot do without its page cache");
        file = again;
    }
    if (kind == COLD) { /* blocks come back one by one, not in large folios that cannot be dropped in part */
        posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    }
    char *buffer = aligned_alloc(4096, (size_t)block);
    memset(buffer, 1, (size_t)block);
    long blocks = (long)size / block;
    for (long i = 0; i < blocks && !pathological(); i++) /* the healthy twin finds them all in the cache */
        if (pread(file, buffer, (size_t)block, (off_t)i * block) != block)
            fail("cannot read");
    ready(worker);
    while (going(worker)) {
        off_t at = (off_t)(xorshift(&worker->random) % (uint64_t)blocks) * block;
        if (pathological() && kind == COLD)
            posix_fadvise(file, at, block, POSIX_FADV_DONTNEED);
        ssize_t done = reading ? pread(file, buffer, (size_t)block, at) : pwrite(file, buffer, (size_t)block, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (pathological() && ((kind == FSYNC && fsync(file)) || (kind == FDATASYNC && fdatasync(file))))
            fail("cannot sync");
        worker->check += done == block;
        worker->random = compute(worker->random, rounds);
        worker->work++;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    block = number("block", 4096);
    size = (size_t)number("size", 16 << 20);
    rounds = number("compute", 1000);
    program_run(work);
}
