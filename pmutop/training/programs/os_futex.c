/* Futexes. P: --workers meet at one lock (or hand over one turn); N: a lock each (or --batch turns at a time).
 * Unit: one update under the lock, or one turn, with --compute rounds in it. */
#include "program.h"
#include <linux/futex.h>

static const char *const kinds[] = {"mutex", "condition", "wake", "barrier", NULL};
enum kind { MUTEX, CONDITION, WAKE, BARRIER } kind;
static long batch, inside, outside, miss;

static struct field {
    pthread_mutex_t lock[MOST_WORKERS];
    pthread_cond_t your_turn[MOST_WORKERS];
    pthread_barrier_t barrier;
    volatile uint64_t count[MOST_WORKERS][8];
    volatile uint64_t turn;
    volatile uint32_t word;
    volatile int over;
} *field;

static long futex(volatile uint32_t *word, int what, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, what, value, limit, NULL, 0);
}

/* Waits with short limits, as programs do that poll: mostly the word has changed already, now and then it sleeps. */
static void *waiter(void *argument)
{
    (void)argument;
    const struct timespec limit = {0, pathological() ? 5000 : 50000000};
    for (uint32_t i = 0;; i++)
        futex(&field->word, FUTEX_WAIT, pathological() && i % 100 < (uint32_t)miss ? field->word + 1 : field->word, &limit);
    return NULL;
}

static void by_turns(struct worker *worker)
{
    unsigned workers = (unsigned)program.workers, me = (unsigned)worker->index;
    while (going(worker) && !field->over) {
        pthread_mutex_lock(&field->lock[0]);
        while (field->turn % workers != me && !field->over)
            pthread_cond_wait(&field->your_turn[me], &field->lock[0]);
        for (long i = 0; i < batch; i++) {
            worker->random = compute(worker->random, inside);
            field->count[0][0]++;
        }
        worker->work += (double)batch;
        pthread_cond_signal(&field->your_turn[++field->turn % workers]);
        pthread_mutex_unlock(&field->lock[0]);
    }
    pthread_mutex_lock(&field->lock[0]);
    field->over = 1; /* who ends first lets the others go */
    for (unsigned i = 0; i < workers; i++)
        pthread_cond_signal(&field->your_turn[i]);
    pthread_mutex_unlock(&field->lock[0]);
}

static void by_barrier(struct worker *worker)
{
    for (bool more = true; more;) {
        for (long i = 0; i < batch; i++) {
            worker->random = compute(worker->random, inside);
            field->count[worker->index][0]++;
        }
        worker->work += (double)batch;
        if (worker->index == 0 && !going(worker))
            field->over = 1;
        pthread_barrier_wait(&field->barrier);
        more = !field->over;
        pthread_barrier_wait(&field->barrier); /* nobody leaves on a word that is still being written */
    }
}

static void work(struct worker *worker)
{
    struct partner partner = {0};
    if (kind == WAKE && worker->index == 0)
        partner = partner_start(waiter, NULL);
    int mine = pathological() ? 0 : worker->index;
    ready(worker);
    if (kind == CONDITION)
        by_turns(worker);
    else if (kind == BARRIER)
        by_barrier(worker);
    else
        while (going(worker))
            for (long i = 0; i < (kind == WAKE ? batch : 64); i++) {
                if (kind == MUTEX)
                    pthread_mutex_lock(&field->lock[mine]);
                worker->random = compute(worker->random, inside);
                field->count[mine * (kind == MUTEX)][0] += kind == MUTEX || worker->index == 0;
                if (kind == MUTEX)
                    pthread_mutex_unlock(&field->lock[mine]);
                else if (i == batch - 1)
                    field->word++, futex(&field->word, FUTEX_WAKE, 1, NULL);
                worker->random = compute(worker->random, outside);
                worker->work += kind == MUTEX || worker->index == 0;
            }
    partner_end(partner);
}

static double counted(void)
{
    double sum = 0;
    for (int i = 0; i < MOST_WORKERS; i++)
        sum += (double)field->count[i][0];
    return sum;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    kind = (enum kind)choice("kind", kinds);
    text("place", ""); /* where the partner of P runs; the twin has none, but takes the same arguments */
    inside = number("inside", 50);
    outside = number("outside", 0);
    miss = number("miss", 98);
    batch = pathological() ? 1 : number("batch", healthy_batch(inside + outside));
    if (!pathological() && kind != CONDITION && program.workers > cpu_count())
        program.workers = cpu_count(); /* more would wait for a CPU, which is another illness */
    program_check = counted;
    field = mmap(NULL, sizeof *field, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex);
    pthread_condattr_init(&condition);
    pthread_barrierattr_init(&barrier);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < MOST_WORKERS; i++) {
        pthread_mutex_init(&field->lock[i], &mutex);
        pthread_cond_init(&field->your_turn[i], &condition);
    }
    pthread_barrier_init(&field->barrier, &barrier, (unsigned)program.workers);
    program_run(work);
}
