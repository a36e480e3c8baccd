/* Process and thread creation. P: a new task for every item; N: the items are done in the process itself.
 * Unit: one item, --compute rounds long; the parent has --memory bytes touched, which fork must copy the map of. */
#include "program.h"
#include <spawn.h>

static const char *const kinds[] = {"fork", "vfork", "spawn", "thread", "touch", NULL};
enum kind { FORK, VFORK, SPAWN, THREAD, TOUCH } kind;
static long rounds, batch;
static size_t memory;
static char *ballast;
static char rounds_text[32];
extern char **environ;

static int item(void)
{
    if (kind == TOUCH) /* the child writes to what it shares with the parent: copies on top of the fork */
        for (size_t at = 0; at < memory; at += 4096)
            ballast[at]++;
    return (compute(1, rounds) & 0) == 0 ? 7 : 0;
}

static void *item_thread(void *argument)
{
    return (void *)(intptr_t)(argument ? 0 : item());
}

static pid_t create(void)
{
    char *arguments[] = {"item", "--leaf", rounds_text, NULL};
    pid_t pid = -1;
    if (kind == SPAWN) {
        if ((errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ)))
            fail("cannot spawn");
    } else if (kind == VFORK) {
        if ((pid = vfork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(1);
        }
    } else if ((pid = fork()) == 0) {
        _exit(item());
    }
    if (pid < 0)
        fail("cannot fork");
    return pid;
}

static void work(struct worker *worker)
{
    pid_t pid[64];
    pthread_t thread[64];
    if (memory) {
        ballast = mmap(NULL, memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(ballast, memory, MADV_NOHUGEPAGE);
        memset(ballast, 1, memory);
    }
    ready(worker);
    while (going(worker)) {
        for (long i = 0; i < batch; i++)
            if (!pathological())
                worker->check += item() == 7;
            else if (kind == THREAD)
                pthread_create(&thread[i], NULL, item_thread, NULL);
            else
                pid[i] = create();
        for (long i = 0; i < batch && pathological(); i++) {
            void *result = NULL;
            int status = 0;
            if (kind == THREAD) {
                pthread_join(thread[i], &result);
                worker->check += (intptr_t)result == 7;
            } else {
                while (waitpid(pid[i], &status, 0) < 0 && errno == EINTR)
                    ;
                worker->check += WIFEXITED(status) && WEXITSTATUS(status) == 7;
            }
        }
        worker->work += (double)batch;
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--leaf")) {
        rounds = atol(argv[2]);
        return item();
    }
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    rounds = number("compute", 1000);
    memory = (size_t)number("memory", 0);
    batch = number("batch", 1);
    if (batch < 1 || batch > 64)
        batch = 64;
    snprintf(rounds_text, sizeof rounds_text, "%ld", rounds);
    program_run(work);
}
