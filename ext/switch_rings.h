/* The events of one CPU and the ring that they share: opened whole or not at all, grown, closed.
 *
 * A group is a leader that overflows at each context switch and carries the values of its siblings; several groups
 * take turns, one enabled at a time, so that rotation is never left to the kernel (it loses the first sample after each
 * gap). Beside them: a dummy event for COMM, FORK and EXIT, and a one-shot clock that asks a CPU who is running.
 * Layouts: include/uapi/linux/perf_event.h.
 */
#ifndef SWITCH_RINGS_H
#define SWITCH_RINGS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_MEMBERS = 16,
	MOST_GROUPS = 16,
	MOST_EVENTS = 64,
	MOST_KINDS = 8, /* of cores */
	MOST_CPUS = 8192,
	LEAST_RING = 1 << 14,
	MOST_RING = 1 << 21, /* 20,000 records: 100 ms at 200,000 switches a second */
	POKE_PERIOD = 10000,  /* ns; the least that the kernel's clock event takes */
};

struct event_spec { /* one event as perf_event_attr wants it */
	uint32_t type;
	uint64_t config, config1, config2;
	int exclude_kernel, exclude_user;
	char filter[128], path[256], name[64];
};

struct plan { /* what is opened on every CPU */
	struct event_spec event[MOST_KINDS][MOST_EVENTS]; /* the same events as each kind of core counts them */
	uint8_t kind[MOST_CPUS];
	int events, groups;
	int members[MOST_GROUPS];              /* siblings of each leader */
	int member[MOST_GROUPS][MOST_MEMBERS]; /* as places in event[] */
	size_t ring_budget, ring_size;        /* bytes, of all rings together, of each */
};

struct counts { /* read(2) and PERF_SAMPLE_READ alike, with GROUP and both times */
	uint64_t nr, enabled, running, switches, value[MOST_MEMBERS];
};

struct group {
	int fd[1 + MOST_MEMBERS];
	struct counts last; /* as credited */
};

struct stream { /* one CPU */
	int cpu, open, dummy, poke;
	struct group group[MOST_GROUPS];
	struct perf_event_mmap_page *page;
	size_t size;           /* of the data, a power of two */
	uint64_t head, tail;   /* what is being drained */
	uint64_t record_time;  /* of the record at `tail` */

	int active;            /* the group that is enabled */
	int turned;            /* the group that was enabled before and is still to be settled, -1: none */
	struct counts turn;    /* its values when it was disabled */
	int ticked;            /* `tick` is still to be credited */
	struct counts tick;
	uint64_t tick_time;

	int records;           /* switch records are on: some tasks are silent here, perhaps idle */
	int heard_idle;
	int doubts;            /* samples missing in front of a sample, since it was opened or lost records */
	uint64_t doubtful;     /* ns that could be given to nobody, in this slice */
	int32_t current;       /* who runs: tid, 0 idle, -1 not known */
	int32_t previous;      /* whose sample came last */
	int32_t exiting;       /* whose EXIT came since the last sample, -1 */
	int32_t silent;        /* who ran before `current` without a sample, -1 */
	uint64_t since, came;  /* all before `since` is credited; when `current` came in after a silent one */
	uint64_t missing;      /* switches without a sample in what is pending */
	uint64_t *pending;     /* sums that are nobody's yet */
	uint64_t heard;        /* time of the last record */
	uint64_t fullest;      /* bytes found at a drain */
	uint64_t busy;         /* ns credited to others than idle */
	int poked, turn_due;   /* asked who runs since the last sample; records since the last rotation */
};

struct failure { /* of a system call, for the OSError */
	int number, cpu;
	const char *call;
	char event[256];
};

static int fails(struct failure *f, const char *call, const char *event, int cpu)
{
	f->number = errno;
	f->call = call;
	f->cpu = cpu;
	snprintf(f->event, sizeof f->event, "%s", event);
	return 0;
}

static uint64_t monotonic(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_event(struct perf_event_attr *attr, int cpu, int leader)
{
	attr->size = sizeof *attr;
	attr->use_clockid = 1; /* one clock for all, leaders and siblings, or the kernel refuses the group and the ring */
	attr->clockid = CLOCK_MONOTONIC;
	return (int)syscall(SYS_perf_event_open, attr, -1, cpu, leader, (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

static int read_group(int fd, struct counts *c)
{
	ssize_t got;
	memset(c, 0, sizeof *c);
	while ((got = read(fd, c, sizeof *c)) < 0 && errno == EINTR)
		;
	return got > 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void unmap_ring(struct stream *s)
{
	if (s->page)
		munmap(s->page, s->size + (size_t)sysconf(_SC_PAGESIZE));
	s->page = NULL;
}

static void close_stream(struct stream *s, const struct plan *p)
{
	unmap_ring(s);
	close_fd(&s->poke);
	close_fd(&s->dummy);
	for (int g = p->groups - 1; g >= 0; g--)
		for (int m = p->members[g]; m >= 0; m--)
			close_fd(&s->group[g].fd[m]);
	free(s->pending);
	s->pending = NULL;
	s->open = 0;
}

/* Maps a ring of `size` bytes, or half of it and so on while locked memory does not suffice; all events write to it. */
static int map_ring(struct stream *s, const struct plan *p, size_t size, struct failure *f)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int leader = s->group[0].fd[0];
	void *at = MAP_FAILED;
	if (size < page)
		size = page;
	for (; size >= page && at == MAP_FAILED; size /= 2) {
		at = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, leader, 0);
		if (at == MAP_FAILED && errno != EPERM && errno != ENOMEM)
			break;
		s->size = size;
	}
	if (at == MAP_FAILED)
		return fails(f, "mmap", "ring", s->cpu);
	s->page = at;
	for (int g = 1; g < p->groups; g++)
		if (ioctl(s->group[g].fd[0], PERF_EVENT_IOC_SET_OUTPUT, leader) < 0)
			return fails(f, "PERF_EVENT_IOC_SET_OUTPUT", "context-switches", s->cpu);
	if (ioctl(s->dummy, PERF_EVENT_IOC_SET_OUTPUT, leader) < 0)
		return fails(f, "PERF_EVENT_IOC_SET_OUTPUT", "dummy", s->cpu);
	if (ioctl(s->poke, PERF_EVENT_IOC_SET_OUTPUT, leader) < 0)
		return fails(f, "PERF_EVENT_IOC_SET_OUTPUT", "cpu-clock", s->cpu);
	return 1;
}

/* No IDENTIFIER: see group_of. */
enum { WHO_AND_WHEN = PERF_SAMPLE_TID | PERF_SAMPLE_TIME };

static int open_dummy(const struct stream *s)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	a.sample_type = WHO_AND_WHEN;
	a.disabled = a.task = a.comm = a.comm_exec = a.sample_id_all = 1;
	a.context_switch = s->records != 0;
	return open_event(&a, s->cpu, -1);
}

/* From now on with switch records (two for each switch, which doubles the cost): for a CPU whose idle task or others leave
 * no samples, as some hypervisors' kernels have it. */
static int add_switch_records(struct stream *s)
{
	int fd, old = s->dummy;
	s->records = 1;
	if ((fd = open_dummy(s)) < 0)
		return 0;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->group[0].fd[0]) < 0) {
		close(fd);
		return 0;
	}
	ioctl(old, PERF_EVENT_IOC_DISABLE, 0); /* disabled first: no FORK may come twice */
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	close(old);
	s->dummy = fd;
	return 1;
}

static int open_group(struct stream *s, const struct plan *p, int g, struct failure *f)
{
	struct group *group = &s->group[g];
	for (int m = 0; m <= p->members[g]; m++) {
		struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES};
		const struct event_spec *e = m ? &p->event[p->kind[s->cpu]][p->member[g][m - 1]] : NULL;
		a.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
		if (e) {
			a.type = e->type;
			a.config = e->config;
			a.config1 = e->config1;
			a.config2 = e->config2;
			if (e->path[0])
				a.config1 = (uintptr_t)e->path; /* a uprobe's file */
			a.exclude_kernel = a.exclude_hv = e->exclude_kernel != 0;
			a.exclude_user = e->exclude_user != 0;
		} else {
			/* Enabled when all siblings are in: a software sibling of another kind that joins an enabled leader
			 * stays 0 for ever. Never exclude_kernel: a switch happens in the kernel. */
			a.disabled = 1;
			a.sample_period = 1;
			a.sample_type = WHO_AND_WHEN | PERF_SAMPLE_READ;
			a.sample_id_all = 1;
			a.watermark = 1;
			a.wakeup_watermark = 1u << 30; /* nobody polls */
		}
		group->fd[m] = open_event(&a, s->cpu, m ? group->fd[0] : -1);
		if (group->fd[m] < 0)
			return fails(f, "perf_event_open", e ? e->name : "context-switches", s->cpu);
		if (e && e->filter[0] && ioctl(group->fd[m], PERF_EVENT_IOC_SET_FILTER, e->filter) < 0)
			return fails(f, "PERF_EVENT_IOC_SET_FILTER", e->name, s->cpu);
	}
	return 1;
}

static int open_stream(struct stream *s, const struct plan *p, int cpu, int stride, struct failure *f)
{
	struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	memset(s, 0, sizeof *s);
	s->cpu = cpu;
	s->dummy = s->poke = s->turned = s->current = s->previous = s->exiting = s->silent = -1;
	for (int g = 0; g < MOST_GROUPS; g++)
		for (int m = 0; m <= MOST_MEMBERS; m++)
			s->group[g].fd[m] = -1;
	clock.disabled = 1;
	clock.sample_period = POKE_PERIOD;
	clock.sample_type = WHO_AND_WHEN;
	s->pending = calloc((size_t)stride, sizeof *s->pending);
	int good = s->pending ? 1 : fails(f, "calloc", "", cpu);
	for (int g = 0; good && g < p->groups; g++)
		good = open_group(s, p, g, f);
	if (good && (s->dummy = open_dummy(s)) < 0)
		good = fails(f, "perf_event_open", "dummy", cpu);
	if (good && (s->poke = open_event(&clock, cpu, -1)) < 0)
		good = fails(f, "perf_event_open", "cpu-clock", cpu);
	good = good && map_ring(s, p, p->ring_size, f);
	if (good && (ioctl(s->dummy, PERF_EVENT_IOC_ENABLE, 0) < 0 || ioctl(s->group[0].fd[0], PERF_EVENT_IOC_ENABLE, 0) < 0))
		good = fails(f, "PERF_EVENT_IOC_ENABLE", "context-switches", cpu);
	if (!good) {
		close_stream(s, p);
		return 0;
	}
	s->since = s->heard = monotonic();
	s->open = 1;
	return 1;
}

/* Bytes that the ring of each CPU may take, so that all together stay within the budget. */
static size_t ring_size_of(size_t budget, int cpus)
{
	size_t size = MOST_RING;
	while (size > LEAST_RING && size * (size_t)cpus > budget)
		size /= 2;
	return size;
}

#endif
