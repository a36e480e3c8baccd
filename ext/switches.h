/* The system reader: a thread that drains the rings of every CPU, and seals what was credited at each deadline.
 *
 * Nothing here knows Python. The consumer takes sealed slices from a short queue; while it is full, slices grow longer
 * instead of being thrown away. Everything shared is guarded by one lock, held by the thread while it works.
 */
#ifndef SWITCHES_H
#define SWITCHES_H

#include "switch_credit.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

enum { QUEUE = 4, DOUBTS = 4, TURNS_AT_ONCE = 16, TURN_NS = 20000000, QUIET_NS = 5000000, CALM = 3 };

/* Where an event's value comes from. */
enum { FROM_SIBLING, FROM_RUN_TIME, FROM_SWITCHES };

struct settings {
	uint64_t interval; /* ns */
	int priority;      /* of SCHED_FIFO, 0: not wanted */
	int records;       /* switch records may be added where they are needed */
	int columns_before; /* left 0 in front of each row's counts: the reader of /proc fills them in */
	int column[MOST_EVENTS], source[MOST_EVENTS], columns; /* event of the plan (siblings) and FROM_... of each column */
	char online[256];  /* the file that lists the CPUs which are online */
};

struct slice { /* what was sealed; arrays are the slice's own */
	uint64_t number, start, end, late;
	int rows, lives, periods, cpus;
	int64_t *refs;
	int32_t *who;     /* rows x (tid, pid, cpu, it is dead) */
	uint64_t *run;    /* rows: CPU time, ns */
	uint64_t *counts; /* rows x columns x (value, enabled, running) */
	struct life *life;
	struct period *period;
	uint64_t *busy;   /* cpus x (cpu, ns credited to tasks since the start) */
	uint64_t lost, missing, switches, dropped_lives, dropped_periods, merged; /* totals since the start */
	uint64_t deaf_ns; /* the longest time between two drains */
	uint64_t own_ns, ring_bytes, recording; /* recording: CPUs with switch records */
	uint64_t total[MOST_EVENTS], unknown[MOST_EVENTS], idle[MOST_EVENTS];
	uint64_t unknown_ns;
};

struct reader {
	struct settings set;
	struct book book;
	struct stream *stream;
	int streams;
	uint8_t *quiet; /* by CPU number: never disturbed by us (isolated, nohz_full) */
	int quiet_size;
	char online[1024];
	int loadavg;
	int turn_at;

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t sealed;
	struct slice *queue[QUEUE];
	int queued, first, started, stopping, fifo;
	int calm; /* the rings fill slowly */
	int shed; /* only the group without siblings is enabled: samples tell who ran, and no more */
	int ended; /* nobody wants more slices; what is open stays open */
	int32_t tid;
	uint64_t start, merged, deaf;
	struct failure failure;
};

static int is_quiet(const struct reader *r, int cpu)
{
	return cpu < r->quiet_size && r->quiet[cpu];
}

/* --- draining: all rings as one stream in the order of time, so that ids which are used again are told apart --- */

static int peek(struct stream *s)
{
	const char *data = (const char *)s->page + s->page->data_offset;
	if (s->tail >= s->head)
		return 0;
	const struct perf_event_header *h = (const void *)(data + (s->tail & (s->size - 1)));
	uint64_t at = s->tail + (h->type == PERF_RECORD_SAMPLE ? 16u : h->size - 8u); /* who, TIME, ... | ..., who, TIME */
	s->record_time = *(const uint64_t *)(data + (at & (s->size - 1)));
	return 1;
}

static void take(struct book *b, struct stream *s)
{
	const char *data = (const char *)s->page + s->page->data_offset;
	size_t at = s->tail & (s->size - 1);
	const struct perf_event_header *h = (const void *)(data + at);
	size_t size = h->size;
	_Alignas(8) char whole[1024];
	if (at + size > s->size && size <= sizeof whole) {
		memcpy(whole, data + at, s->size - at);
		memcpy(whole + (s->size - at), data, size - (s->size - at));
		h = (const void *)whole;
	}
	on_record(b, s, h);
	s->tail += size ? size : s->head - s->tail;
}

static void sift(struct stream **heap, int n, int at)
{
	for (int child; (child = 2 * at + 1) < n; at = child) {
		child += child + 1 < n && heap[child + 1]->record_time < heap[child]->record_time;
		if (heap[at]->record_time <= heap[child]->record_time)
			return;
		struct stream *s = heap[at];
		heap[at] = heap[child];
		heap[child] = s;
	}
}

static void drain(struct reader *r, struct stream **heap)
{
	int n = 0;
	for (int i = 0; i < r->streams; i++) {
		struct stream *s = &r->stream[i];
		if (!s->open)
			continue;
		s->head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE);
		s->tail = s->page->data_tail;
		if (s->head - s->tail > s->fullest)
			s->fullest = s->head - s->tail;
		if (peek(s))
			heap[n++] = s;
	}
	for (int at = n / 2 - 1; at >= 0; at--)
		sift(heap, n, at);
	while (n) {
		struct stream *s = heap[0];
		uint64_t until = UINT64_MAX;
		for (int child = 1; child <= 2 && child < n; child++)
			until = heap[child]->record_time < until ? heap[child]->record_time : until;
		int more;
		do {
			s->heard = s->record_time;
			take(&r->book, s);
			more = peek(s);
		} while (more && s->record_time <= until);
		if (!more)
			heap[0] = heap[--n];
		sift(heap, n, 0);
	}
	for (int i = 0; i < r->streams; i++)
		if (r->stream[i].open) {
			settle_turn(&r->book, &r->stream[i]);
			settle_tick(&r->book, &r->stream[i]);
			__atomic_store_n(&r->stream[i].page->data_tail, r->stream[i].tail, __ATOMIC_RELEASE);
		}
}

/* --- what is done to the CPUs --- */

/* The group's turn is over and the next one's begins. */
static void turn(struct stream *s, int next)
{
	if (ioctl(s->group[s->active].fd[0], PERF_EVENT_IOC_DISABLE, 0) < 0 || !read_group(s->group[s->active].fd[0], &s->turn))
		return;
	s->turned = s->active;
	s->active = next;
	s->turn_due = 0;
	ioctl(s->group[next].fd[0], PERF_EVENT_IOC_ENABLE, 0);
}

/* Rotation, only where something runs; the last group, which has no siblings, has a turn only while load is shed. */
static void turn_some(struct reader *r)
{
	int last = r->book.plan.groups - 1;
	for (int i = 0, turned = 0; i < r->streams && turned < TURNS_AT_ONCE; i++) {
		r->turn_at = (r->turn_at + 1) % r->streams;
		struct stream *s = &r->stream[r->turn_at];
		int next = r->shed ? last : s->active == last ? 0 : s->active;
		if (next == s->active && last > 1 && !r->shed && !is_quiet(r, s->cpu) && (s->turn_due || s->current > 0))
			next = (s->active + 1) % last;
		if (s->open && next != s->active) {
			turn(s, next);
			turned++;
		}
	}
}

/* Tasks that run or want to, on the whole machine; reading it wakes nobody. */
static int runnable(const struct reader *r)
{
	char text[64] = "";
	const char *at;
	if (r->loadavg < 0 || pread(r->loadavg, text, sizeof text - 1, 0) <= 0 || !(at = strchr(text, '/')))
		return 1 << 20;
	while (at > text && at[-1] != ' ')
		at--;
	return atoi(at);
}

/* A CPU that has been silent may be idle or busy with one task that never switches. Where too few of those who run are
 * known, it is asked once by a clock that fires once; not again until it has switched. */
static void ask_who_runs(struct reader *r)
{
	uint64_t now = monotonic();
	int known = 1, own = sched_getcpu();
	for (int i = 0; i < r->streams; i++)
		known += r->stream[i].open && r->stream[i].cpu != own && r->stream[i].current > 0;
	if (known >= runnable(r))
		return;
	for (int i = 0; i < r->streams; i++) {
		struct stream *s = &r->stream[i];
		if (s->open && s->current < 0 && !s->poked && s->cpu != own && now - s->heard > QUIET_NS && !is_quiet(r, s->cpu)) {
			s->poked = 1;
			ioctl(s->poke, PERF_EVENT_IOC_REFRESH, 1);
		}
	}
}

/* What is still pending there can be credited to nobody any more. */
static void drop_stream(struct reader *r, struct stream *s)
{
	r->book.missing += s->missing;
	credit(&r->book, s, SLOT_UNKNOWN, 0, s->since);
	close_stream(s, &r->book.plan);
}

/* The counts of those who run right now, to be placed among the samples by the next drain. Idle CPUs are not touched. */
static void read_running(struct reader *r)
{
	int own = sched_getcpu();
	for (int i = 0; i < r->streams; i++) {
		struct stream *s = &r->stream[i];
		if (s->open && !s->records && s->cpu == own)
			s->current = r->tid;
		if (!s->open || s->current <= 0 || is_quiet(r, s->cpu))
			continue;
		uint64_t before = monotonic();
		s->ticked = read_group(s->group[s->active].fd[0], &s->tick);
		s->tick_time = before + (monotonic() - before) / 2;
		if (!s->ticked || s->tick.nr != 1 + (uint64_t)r->book.plan.members[s->active]) {
			s->ticked = 0;
			drop_stream(r, s); /* its CPU went offline, and came back perhaps: a group is dead for good then */
		}
	}
}

static size_t ring_bytes(const struct reader *r)
{
	size_t sum = 0;
	for (int i = 0; i < r->streams; i++)
		sum += r->stream[i].open ? r->stream[i].size : 0;
	return sum;
}

/* After a drain: how often the next ones must come (a ring that is mapped anew would be deaf for a grace period of RCU, up to
 * a second: rings do not grow), and CPUs where tasks run without samples get switch records. */
static void adapt(struct reader *r, int sealed)
{
	int calm = 1;
	for (int i = 0; i < r->streams; i++) {
		struct stream *s = &r->stream[i];
		if (!s->open)
			continue;
		calm &= s->size >= MOST_RING && s->fullest < s->size / (r->calm ? 4 : 32);
		s->fullest = 0;
		if (s->open && !s->records && r->set.records && s->doubts >= DOUBTS
		    && (!s->heard_idle || s->doubtful > r->set.interval / 50))
			add_switch_records(s);
		if (sealed)
			s->doubtful = 0;
	}
	r->calm = calm;
}

static int cpu_list(const char *text, uint8_t *set, int size)
{
	int count = 0, from, to, used;
	memset(set, 0, (size_t)size);
	while (sscanf(text, "%d%n", &from, &used) == 1) {
		text += used;
		to = from;
		if (*text == '-' && sscanf(text + 1, "%d%n", &to, &used) == 1)
			text += 1 + used;
		for (int cpu = from; cpu <= to && cpu < size; cpu++)
			count += !set[cpu], set[cpu] = 1;
		if (*text++ != ',')
			break;
	}
	return count;
}

/* Opens CPUs that have come and closes those that have gone. 0: one that is online could not be opened. */
static int follow_cpus(struct reader *r, struct failure *f)
{
	uint8_t set[MOST_CPUS];
	char text[sizeof r->online] = "";
	int fd = open(r->set.online, O_RDONLY | O_CLOEXEC), good = 1, closed = 0;
	ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return fails(f, "read", r->set.online, -1);
	for (int i = 0; i < r->streams; i++)
		closed |= !r->stream[i].open;
	if (!strcmp(text, r->online) && !closed)
		return 1;
	int cpus = cpu_list(text, set, MOST_CPUS);
	if (!cpus) {
		errno = EINVAL;
		return fails(f, "parse", r->set.online, -1);
	}
	r->book.plan.ring_size = r->book.plan.ring_size ? r->book.plan.ring_size : ring_size_of(r->book.plan.ring_budget, cpus);
	for (int i = 0; i < r->streams; i++) {
		struct stream *s = &r->stream[i];
		if (s->open && !(s->cpu < MOST_CPUS && set[s->cpu]))
			drop_stream(r, s);
		if (s->cpu < MOST_CPUS && set[s->cpu]) {
			set[s->cpu] = 0;
			uint64_t busy = s->busy;
			if (!s->open)
				good &= open_stream(s, &r->book.plan, s->cpu, r->book.table.stride, f);
			s->busy = busy;
		}
	}
	for (int cpu = 0; cpu < MOST_CPUS && good; cpu++)
		if (set[cpu]) {
			struct stream *more = realloc(r->stream, ((size_t)r->streams + 1) * sizeof *more);
			if (!more)
				return fails(f, "realloc", "", cpu);
			r->stream = more;
			good &= open_stream(&r->stream[r->streams++], &r->book.plan, cpu, r->book.table.stride, f);
		}
	if (good)
		memcpy(r->online, text, sizeof text);
	return good;
}

/* --- sealing --- */

static void free_slice(struct slice *s)
{
	if (!s)
		return;
	free(s->refs);
	free(s->who);
	free(s->run);
	free(s->counts);
	free(s->life);
	free(s->period);
	free(s->busy);
	free(s);
}

static void fill_rows(const struct reader *r, struct slice *s)
{
	struct table *t = (struct table *)&r->book.table;
	const struct plan *p = &r->book.plan;
	int width = r->set.columns_before + r->set.columns;
	for (int row = 0; row < t->moves; row++) {
		const struct task *task = &t->tasks[t->moved[row]];
		const uint64_t *sums = sums_of(t, t->moved[row]);
		uint64_t *out = s->counts + ((size_t)row * width + r->set.columns_before) * 3;
		s->refs[row] = task->ref;
		s->who[4 * row] = task->tid;
		s->who[4 * row + 1] = task->pid;
		s->who[4 * row + 2] = task->cpu;
		s->who[4 * row + 3] = task->dead != 0;
		s->run[row] = sums[SUM_RUN];
		for (int c = 0; c < r->set.columns; c++, out += 3) {
			int e = r->set.column[c];
			out[1] = out[2] = sums[SUM_RUN];
			if (r->set.source[c] != FROM_SIBLING) {
				out[0] = sums[r->set.source[c] == FROM_RUN_TIME ? SUM_RUN : SUM_SWITCHES];
				continue;
			}
			out[0] = sums[r->book.first_value + e];
			out[1] = sums[SUM_ENABLED];
			out[2] = 0;
			for (int g = 0; g < p->groups; g++)
				for (int m = 0; m < p->members[g]; m++)
					if (p->member[g][m] == e)
						out[2] += sums[SUM_RUNNING + g];
		}
	}
}

static struct slice *new_slice(struct reader *r, uint64_t end, uint64_t late)
{
	struct book *b = &r->book;
	struct slice *s = calloc(1, sizeof *s);
	size_t rows = (size_t)b->table.moves, width = (size_t)(r->set.columns_before + r->set.columns);
	struct timespec own;
	if (!s)
		return NULL;
	s->refs = malloc((rows + 1) * sizeof *s->refs);
	s->who = malloc((rows + 1) * 4 * sizeof *s->who);
	s->run = malloc((rows + 1) * sizeof *s->run);
	s->counts = calloc(rows * width + 1, 3 * sizeof *s->counts);
	s->life = malloc(((size_t)b->n_lives + 1) * sizeof *s->life);
	s->period = malloc(((size_t)b->n_periods + 1) * sizeof *s->period);
	s->busy = malloc(((size_t)r->streams + 1) * 2 * sizeof *s->busy);
	if (!s->refs || !s->who || !s->run || !s->counts || !s->life || !s->period || !s->busy) {
		free_slice(s);
		return NULL;
	}
	s->number = b->slice;
	s->start = r->start;
	s->end = end;
	s->late = late;
	s->rows = (int)rows;
	fill_rows(r, s);
	s->lives = b->n_lives;
	memcpy(s->life, b->lives, (size_t)b->n_lives * sizeof *s->life);
	s->periods = b->n_periods;
	if (b->n_periods)
		memcpy(s->period, b->periods, (size_t)b->n_periods * sizeof *s->period);
	for (int i = 0; i < r->streams; i++) {
		s->busy[2 * i] = (uint64_t)r->stream[i].cpu;
		s->busy[2 * i + 1] = r->stream[i].busy;
		s->recording += r->stream[i].open && r->stream[i].records;
	}
	s->cpus = r->streams;
	s->lost = b->lost;
	s->missing = b->missing;
	s->switches = b->switches;
	s->dropped_lives = b->dropped_lives;
	s->dropped_periods = b->dropped_periods;
	s->merged = r->merged;
	s->deaf_ns = r->deaf;
	r->deaf = 0;
	s->ring_bytes = ring_bytes(r);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
	s->own_ns = (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec;
	memcpy(s->total, b->total, sizeof s->total);
	memcpy(s->unknown, sums_of(&b->table, SLOT_UNKNOWN) + b->first_value, (size_t)b->plan.events * sizeof(uint64_t));
	memcpy(s->idle, sums_of(&b->table, SLOT_IDLE) + b->first_value, (size_t)b->plan.events * sizeof(uint64_t));
	s->unknown_ns = sums_of(&b->table, SLOT_UNKNOWN)[SUM_RUN];
	return s;
}

static void seal(struct reader *r, uint64_t end, uint64_t late)
{
	struct table *t = &r->book.table;
	if (r->queued == QUEUE) { /* nobody takes them: this slice goes on */
		r->merged++;
		return;
	}
	struct slice *s = new_slice(r, end, late);
	if (!s) {
		r->merged++;
		return;
	}
	r->queue[(r->first + r->queued++) % QUEUE] = s;
	for (int32_t i = 0; i < t->moves; i++)
		t->tasks[t->moved[i]].moved = 0;
	t->moves = 0;
	int32_t kept = 0;
	for (int32_t i = 0; i < t->deaths; i++) /* a dead task is kept for one slice more: its id may still be heard */
		if (t->tasks[t->dead[i]].dead < r->book.slice)
			table_release(t, t->dead[i]);
		else
			t->dead[kept++] = t->dead[i];
	t->deaths = kept;
	r->book.n_lives = r->book.n_periods = 0;
	r->book.slice++;
	r->start = end;
	pthread_cond_broadcast(&r->sealed);
}

/* --- the thread --- */

static void sleep_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void *run_reader(void *argument)
{
	struct reader *r = argument;
	struct sched_param fifo = {.sched_priority = r->set.priority};
	uint64_t ticks = (r->set.interval + TURN_NS - 1) / TURN_NS, step = r->set.interval / ticks;
	struct stream **heap = NULL;
	int room = 0;
	pthread_mutex_lock(&r->lock);
	r->tid = (int32_t)syscall(SYS_gettid);
	r->fifo = r->set.priority > 0 && pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) == 0;
	pthread_mutex_unlock(&r->lock);
	uint64_t origin = r->start, drained = origin;
	for (uint64_t tick = 1;; tick++) {
		uint64_t due = origin + tick * step, now;
		sleep_until(due);
		pthread_mutex_lock(&r->lock);
		if (r->stopping)
			break;
		if (room < r->streams) {
			struct stream **more = realloc(heap, (size_t)r->streams * sizeof *heap);
			if (!more) {
				pthread_mutex_unlock(&r->lock);
				continue;
			}
			heap = more;
			room = r->streams;
		}
		int sealing = tick % ticks == 0;
		turn_some(r);
		drain(r, heap);
		if (sealing) {
			read_running(r);
			drain(r, heap);
		}
		now = monotonic();
		if (now - drained > r->deaf)
			r->deaf = now - drained;
		drained = now;
		if (sealing) {
			seal(r, now, now - due);
			follow_cpus(r, &r->failure);
		} else if (tick % ticks == ticks - 1)
			ask_who_runs(r);
		adapt(r, sealing);
		if (r->calm && r->book.plan.groups <= 2 && tick % ticks < ticks - 1) { /* nothing presses: fewer ticks */
			uint64_t ask = tick - tick % ticks + ticks - 1;
			tick = tick + CALM < ask ? tick + CALM - 1 : ask - 1;
		}
		pthread_mutex_unlock(&r->lock);
		now = monotonic();
		if (now > due + step) { /* ticks that are over are not made up for; a deadline among them is the next one */
			uint64_t passed = (now - origin) / step, last = passed - passed % ticks;
			tick = last > tick ? last - 1 : passed;
		}
	}
	pthread_mutex_unlock(&r->lock);
	free(heap);
	return NULL;
}

/* --- for the outside --- */

static void reader_close(struct reader *r)
{
	if (r->started) {
		pthread_mutex_lock(&r->lock);
		r->stopping = 1;
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
		r->started = 0;
	}
	for (int i = 0; i < r->streams; i++)
		if (r->stream[i].open)
			close_stream(&r->stream[i], &r->book.plan);
	free(r->stream);
	r->stream = NULL;
	r->streams = 0;
	while (r->queued) {
		free_slice(r->queue[r->first]);
		r->first = (r->first + 1) % QUEUE;
		r->queued--;
	}
	if (r->loadavg >= 0)
		close(r->loadavg);
	r->loadavg = -1;
	free(r->book.lives);
	free(r->book.periods);
	r->book.lives = NULL;
	r->book.periods = NULL;
	table_free(&r->book.table);
}

/* Opens every CPU; `set`, `book.plan` and `quiet` are filled in. 0: r->failure says which call failed; all is closed. */
static int reader_open(struct reader *r)
{
	pthread_condattr_t clock;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&r->sealed, &clock);
	r->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	r->book.slice = 1;
	r->book.plan.members[r->book.plan.groups++] = 0;
	r->book.first_value = SUM_RUNNING + r->book.plan.groups;
	if (!table_init(&r->book.table, r->book.first_value + r->book.plan.events)) {
		errno = ENOMEM;
		fails(&r->failure, "malloc", "", -1);
		reader_close(r);
		return 0;
	}
	if (!follow_cpus(r, &r->failure)) {
		reader_close(r);
		return 0;
	}
	r->start = monotonic();
	return 1;
}

static int reader_start(struct reader *r)
{
	struct table *t = &r->book.table;
	struct stream **heap = calloc((size_t)r->streams + 1, sizeof *heap);
	if (!heap)
		return fails(&r->failure, "calloc", "", -1);
	drain(r, heap); /* what was counted before the start is the baseline's; lives and periods stay */
	adapt(r, 1);
	free(heap);
	memset(t->sums, 0, (size_t)t->slots * (size_t)t->stride * sizeof *t->sums);
	memset(r->book.total, 0, sizeof r->book.total);
	for (int i = 0; i < r->streams; i++)
		r->stream[i].busy = 0;
	for (int32_t i = 0; i < t->moves; i++)
		t->tasks[t->moved[i]].moved = 0;
	t->moves = r->book.n_periods = 0;
	r->book.missing = r->book.switches = 0;
	r->start = monotonic();
	int number = pthread_create(&r->thread, NULL, run_reader, r);
	if (number) {
		errno = number;
		return fails(&r->failure, "pthread_create", "", -1);
	}
	r->started = 1;
	return 1;
}

/* With load shed no event is counted, only who ran and for how long. */
static void reader_shed(struct reader *r, int shed)
{
	pthread_mutex_lock(&r->lock);
	r->shed = shed != 0;
	pthread_mutex_unlock(&r->lock);
}

/* A task that was there before us, or that was missed: its ref, -1 if there is no memory. Call with the lock held. */
static int64_t reader_adopt(struct reader *r, int32_t tid, int32_t pid)
{
	struct table *t = &r->book.table;
	int32_t slot = table_find(t, tid);
	if (slot >= 0 && t->tasks[slot].dead) {
		table_unmap(t, slot);
		slot = -1;
	}
	if (slot < 0) {
		slot = table_add(t, tid, pid, monotonic());
		if (slot >= 0)
			t->tasks[slot].met = 1;
	}
	return slot < 0 ? -1 : t->tasks[slot].ref;
}

/* A task whose EXIT was missed. Call with the lock held. */
static void reader_forget(struct reader *r, int32_t tid, int64_t ref)
{
	int32_t slot = table_find(&r->book.table, tid);
	if (slot >= 0 && r->book.table.tasks[slot].ref == ref)
		die(&r->book, slot, monotonic());
}

/* Whoever waits for a slice is let go, now and ever after; from any thread. */
static void reader_end(struct reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->ended = 1;
	pthread_cond_broadcast(&r->sealed);
	pthread_mutex_unlock(&r->lock);
}

/* Waits for a sealed slice; NULL after `wait` ns or after reader_end. */
static struct slice *reader_next(struct reader *r, uint64_t wait)
{
	uint64_t until = monotonic() + wait;
	struct timespec t = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
	struct slice *s = NULL;
	pthread_mutex_lock(&r->lock);
	while (!r->queued && !r->ended && pthread_cond_timedwait(&r->sealed, &r->lock, &t) != ETIMEDOUT)
		;
	if (r->queued) {
		s = r->queue[r->first];
		r->first = (r->first + 1) % QUEUE;
		r->queued--;
	}
	pthread_mutex_unlock(&r->lock);
	return s;
}

#endif
