/* Context switches. P: every message is handed over alone, so both sides sleep and wake for each; N: --batch messages
 * at a time through the same channel. Unit: one message of --bytes bytes delivered, with --compute rounds on it on both
 * sides. */
#include "program.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

static const char *const kinds[] = {"pipe", "oneway", "socket", "eventfd", "yield", "sleep", NULL};
enum kind { PIPE, ONEWAY, SOCKET, EVENTFD, YIELD, SLEEP } kind;
static const char *const places[] = {"free", "same", "apart", NULL};
static int place;
static long bytes, batch, rounds;

struct channel {
    int out, in;           /* the driver's ends; the partner has them the other way round */
    int partner_out, partner_in;
    volatile uint64_t *delivered;
};

/* False when the program ends, or the other side did. */
static bool move(int file, char *buffer, size_t size, bool out)
{
    while (size) {
        ssize_t done = out ? write(file, buffer, size) : read(file, buffer, size);
        if (done == 0 || (done < 0 && (errno != EINTR || program.common->stop)))
            return false;
        if (done > 0) {
            buffer += done;
            size -= (size_t)done;
        }
    }
    return true;
}

static void settle(int which)
{
    if (place)
        pin(cpu_number(place == 1 ? 0 : which));
}

static void *answer(void *argument)
{
    struct channel *channel = argument;
    size_t size = (size_t)(kind == EVENTFD ? 8 : bytes * batch);
    char *buffer = calloc(1, size);
    uint64_t x = 1, count;
    settle(1);
    for (;;) {
        if (kind == YIELD) {
            sched_yield();
            x = compute(x, rounds);
            ++*channel->delivered;
            continue;
        }
        if (!move(channel->partner_in, buffer, size, false))
            return NULL;
        for (long i = 0; i < batch; i++)
            x = compute(x, rounds);
        memcpy(&count, buffer, 8);
        *channel->delivered += kind == EVENTFD ? count : (uint64_t)batch;
        if (kind != ONEWAY && !move(channel->partner_out, buffer, size, true))
            return NULL;
    }
}

static void open_channel(struct channel *channel)
{
    int there[2] = {-1, -1}, back[2] = {-1, -1};
    if (kind == SOCKET) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, there))
            fail("cannot make a socket pair");
        *channel = (struct channel){there[0], there[0], there[1], there[1], NULL};
    } else if (kind == EVENTFD) {
        int a = eventfd(0, 0), b = eventfd(0, 0);
        *channel = (struct channel){a, b, b, a, NULL};
    } else {
        if (pipe(there) || pipe(back))
            fail("cannot make a pipe");
        /* P: one message fills the pipe, so the writer waits for every one; N: a batch fits */
        fcntl(there[1], F_SETPIPE_SZ, kind == ONEWAY && pathological() ? 4096 : 1 << 20);
        *channel = (struct channel){there[1], back[0], back[1], there[0], NULL};
    }
}

static void work(struct worker *worker)
{
    struct channel channel = {0};
    volatile uint64_t *delivered =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t size = (size_t)(bytes * batch);
    char *buffer = calloc(1, size < 8 ? 8 : size);
    struct partner partner = {0};
    double own = 0; /* items of the driver itself, where partner and driver do the same */
    if (kind != SLEEP && (kind != YIELD || pathological())) { /* N of yield works alone */
        if (kind != YIELD)
            open_channel(&channel);
        channel.delivered = delivered;
        partner = partner_start(answer, &channel);
    }
    settle(0);
    uint64_t x = 1, value = (uint64_t)batch;
    bool open = true;
    ready(worker);
    uint64_t before = *delivered;
    while (open && going(worker)) {
        if (kind == SLEEP || kind == YIELD) {
            for (long i = 0; i < batch; i++)
                x = compute(x, rounds);
            own += (double)batch;
            if (kind == SLEEP)
                nanosleep(&(struct timespec){0, 1000}, NULL);
            else if (pathological())
                sched_yield();
            worker->work = own + (double)(*delivered - before);
            continue;
        }
        if (kind == EVENTFD)
            memcpy(buffer, &value, 8);
        for (long i = 0; i < batch; i++) /* both sides have work to do */
            x = compute(x, rounds);
        size_t part = kind == EVENTFD ? 8 : size;
        open = move(channel.out, buffer, part, true) && (kind == ONEWAY || move(channel.in, buffer, part, false));
        worker->work += (double)batch;
    }
    worker->check = own + (double)(*delivered - before);
    partner_end(partner);
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    place = choice("place", places);
    bytes = number("bytes", 1);
    rounds = number("compute", 20);
    if (kind == ONEWAY)
        bytes = 4096;
    bool whole = kind == EVENTFD || kind == SLEEP || kind == YIELD;
    long most = whole ? healthy_batch(rounds) : (kind == SOCKET ? 1 << 16 : 1 << 20) / bytes; /* what the channel holds */
    long usual = healthy_batch(rounds);
    batch = pathological() ? 1 : number("batch", usual < most ? usual : most);
    if (!pathological() && rounds < 300000 / batch)
        rounds = 300000 / batch; /* N would be a storm of copying; more work for N makes the measured factor smaller */
    program_run(work);
}
