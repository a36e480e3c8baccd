/* System calls. P: one call for every item; N: one call for --batch items (up to 64 KiB at once).
 * Unit: one item (a byte read or written, an answer used), with --compute rounds on it. */
#include "program.h"
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

static const char *const kinds[] = {"read",  "write", "getppid", "clock", "lseek", "stat",
                                    "pread", "poll",  "open",    "mix",   NULL};
enum kind { READ, WRITE, GETPPID, CLOCK, LSEEK, STAT, PREAD, POLL, OPEN, MIX, KINDS } kind;
static long batch, rounds, chunk;

/* One call that yields `items` items; 1 per item that came back as it should. */
static long call(enum kind which, int file, char *buffer, long items, long turn)
{
    struct timespec t;
    struct stat status;
    switch (which) {
    case READ: return read(file, buffer, (size_t)(items * chunk)) / chunk;
    case WRITE: return write(file, buffer, (size_t)(items * chunk)) / chunk;
    case GETPPID: return syscall(SYS_getppid) == program.parent ? items : items;
    case CLOCK: return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0 ? items : 0;
    case LSEEK: return lseek(file, turn & 0xffff, SEEK_SET) == (turn & 0xffff) ? items : 0;
    case STAT: return fstatat(AT_FDCWD, "/proc/self", &status, AT_SYMLINK_NOFOLLOW) == 0 ? items : 0;
    case PREAD: return pread(file, buffer, (size_t)(items * chunk), 0) / chunk;
    case POLL: return poll(&(struct pollfd){file, POLLIN, 0}, 1, 0) >= 0 ? items : 0;
    case OPEN: return close(open("/dev/null", O_RDONLY)) == 0 ? items : 0;
    default: return call((enum kind)(turn % MIX == READ || turn % MIX == WRITE ? GETPPID : turn % MIX), file, buffer,
                         items, turn);
    }
}

static void work(struct worker *worker)
{
    char *buffer = calloc((size_t)(batch * chunk) + 8, 1);
    bool on_file = kind == LSEEK || kind == PREAD || kind == MIX;
    int file = on_file ? scratch_file((size_t)(batch * chunk), 0)
                       : open(kind == WRITE ? "/dev/null" : "/dev/zero", O_RDWR);
    uint64_t x = worker->random;
    ready(worker);
    for (long turn = 0; going(worker);) {
        for (int i = 0; i < (pathological() ? 64 : 1); i++, turn++) {
            worker->check += (double)call(kind, file, buffer, batch, turn);
            for (long item = 0; item < batch; item++)
                x = compute(x ^ (uint64_t)buffer[item * chunk], rounds);
            worker->work += (double)batch;
        }
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    chunk = number("chunk", 1);
    rounds = number("compute", 4);
    long most = (1 << 16) / chunk, usual = healthy_batch(rounds);
    batch = pathological() ? 1 : number("batch", usual < most ? usual : most);
    program_run(work);
}
