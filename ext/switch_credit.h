/* Records to accounts: what each record of a ring says about who ran, and whose the counts since the last one are.
 *
 * A sample is taken in the task that goes out, so all that was counted since the sample before it belongs to that task;
 * nothing needs to be known about who came in. What cannot be said to be one task's (samples lost, a silent task between)
 * goes to SLOT_UNKNOWN, never to a neighbour.
 */
#ifndef SWITCH_CREDIT_H
#define SWITCH_CREDIT_H

#include "switch_rings.h"
#include "switch_table.h"

enum { MET, FORKED, RENAMED, EXECED, EXITED }; /* kinds of struct life */

struct life { /* one lifecycle record, in the order of time */
	int64_t ref;
	uint64_t time;
	int32_t kind, tid, pid, ptid, ppid;
	char comm[16];
};

struct period { /* one stretch of a task on a CPU; times in monotonic ns */
	int64_t cpu, ref, start, end;
};

struct book { /* everything that is credited between two seals, and for good */
	struct plan plan;        /* its last group has no siblings: for load shedding */
	struct table table;
	int first_value; /* place of event 0 in a row of sums */
	uint64_t slice;  /* number of the slice in hand, from 1 */

	struct life *lives;
	int n_lives, room_lives, most_lives;
	struct period *periods;
	int n_periods, room_periods, most_periods;
	uint64_t lost;            /* records, by PERF_RECORD_LOST */
	uint64_t missing;         /* switches without a sample, by the leaders' own values */
	uint64_t switches;        /* samples */
	uint64_t dropped_lives, dropped_periods;
	uint64_t total[MOST_EVENTS]; /* everything that was counted, whoever it is credited to */
};

/* Room for one more; 0: at the limit or out of memory. */
static int make_room(void **array, int used, int *room, int most, size_t size)
{
	if (used < *room)
		return 1;
	int more = *room ? 2 * *room : 256;
	more = more > most ? most : more;
	void *bigger = more > used ? realloc(*array, (size_t)more * size) : NULL;
	if (!bigger)
		return 0;
	*array = bigger;
	*room = more;
	return 1;
}

static void add_life(struct book *b, int kind, int32_t slot, uint64_t time, int32_t ptid, int32_t ppid, const char *comm)
{
	if (!make_room((void **)&b->lives, b->n_lives, &b->room_lives, b->most_lives, sizeof *b->lives)) {
		b->dropped_lives++;
		return;
	}
	const struct task *t = &b->table.tasks[slot];
	struct life *l = &b->lives[b->n_lives++];
	*l = (struct life){.ref = t->ref, .time = time, .kind = kind, .tid = t->tid, .pid = t->pid, .ptid = ptid, .ppid = ppid};
	if (comm)
		snprintf(l->comm, sizeof l->comm, "%s", comm);
}

static void add_period(struct book *b, const struct stream *s, int32_t slot, uint64_t start, uint64_t end)
{
	if (slot < SLOT_FIRST || end <= start || !b->most_periods)
		return;
	if (!make_room((void **)&b->periods, b->n_periods, &b->room_periods, b->most_periods, sizeof *b->periods)) {
		b->dropped_periods++;
		return;
	}
	b->periods[b->n_periods++] =
		(struct period){.cpu = s->cpu, .ref = b->table.tasks[slot].ref, .start = (int64_t)start, .end = (int64_t)end};
}

/* The living slot of a thread id, made if need be. A task that was sealed as dead has none: SLOT_UNKNOWN. */
static int32_t slot_of(struct book *b, int32_t tid, int32_t pid, uint64_t time)
{
	if (tid <= 0)
		return tid == 0 ? SLOT_IDLE : SLOT_UNKNOWN;
	int32_t slot = table_find(&b->table, tid);
	if (slot >= 0)
		return b->table.tasks[slot].dead && b->table.tasks[slot].dead < b->slice ? SLOT_UNKNOWN : slot;
	slot = table_add(&b->table, tid, pid, time);
	if (slot < 0)
		return SLOT_UNKNOWN;
	b->table.tasks[slot].met = 1;
	add_life(b, MET, slot, time, 0, 0, NULL);
	return slot;
}

/* Into `pending`: what group `g` counted since it was last looked at. */
static void gather(struct book *b, struct stream *s, int g, const struct counts *c)
{
	struct group *group = &s->group[g];
	uint64_t switches = c->switches - group->last.switches;
	s->pending[SUM_ENABLED] += c->enabled - group->last.enabled;
	s->pending[SUM_RUNNING + g] += c->running - group->last.running;
	for (int m = 0; m < b->plan.members[g]; m++) {
		int e = b->plan.member[g][m];
		uint64_t more = c->value[m] - group->last.value[m];
		s->pending[b->first_value + e] += more;
		b->total[e] += more;
	}
	s->missing += switches;
	memcpy(&group->last, c, (4 + (size_t)b->plan.members[g]) * sizeof(uint64_t));
}

/* The values that a group had when its turn ended. */
static void settle_turn(struct book *b, struct stream *s)
{
	if (s->turned >= 0)
		gather(b, s, s->turned, &s->turn);
	s->turned = -1;
}

/* All that is pending is this slot's, and `run` ns of CPU time with it, the last of which was at `until`. */
static void credit(struct book *b, struct stream *s, int32_t slot, uint64_t run, uint64_t until)
{
	uint64_t *sums = sums_of(&b->table, slot), *pending = s->pending, elapsed = until - s->since;
	if (run < elapsed && pending[SUM_ENABLED]) /* the rest of the time an idle task was in */
		for (int i = SUM_ENABLED; i < SUM_RUNNING + b->plan.groups; i++)
			pending[i] = (uint64_t)((double)pending[i] * (double)run / (double)elapsed);
	pending[SUM_RUN] = run;
	for (int i = 0; i < b->table.stride; i++) {
		sums[i] += pending[i];
		pending[i] = 0;
	}
	if (slot != SLOT_IDLE)
		s->busy += run;
	if (slot >= SLOT_FIRST) {
		b->table.tasks[slot].cpu = s->cpu;
		table_moved(&b->table, slot);
		add_period(b, s, slot, until - run, until);
	}
	s->since = until;
	s->missing = 0;
}

/* Time that is known to be a task's though its counts are not: it was enabled, but did not run. */
static void give_time(struct book *b, struct stream *s, int32_t slot, uint64_t from, uint64_t until)
{
	uint64_t *sums = sums_of(&b->table, slot);
	if (until <= from)
		return;
	sums[SUM_RUN] += until - from;
	sums[SUM_ENABLED] += until - from;
	s->busy += until - from;
	if (slot >= SLOT_FIRST) {
		b->table.tasks[slot].cpu = s->cpu;
		table_moved(&b->table, slot);
		add_period(b, s, slot, from, until);
	}
}

/* A read(2) that lies between two samples: credited if it is known who ran then, otherwise it waits for the next sample. */
static void settle_tick(struct book *b, struct stream *s)
{
	uint64_t unseen = s->tick.switches - s->group[s->active].last.switches + s->missing;
	uint64_t from = s->silent == 0 ? s->came : s->since;
	int ticked = s->ticked;
	s->ticked = 0;
	if (!ticked || s->current < 0 || s->silent > 0 || unseen != (s->silent == 0) || s->tick_time <= from)
		return;
	gather(b, s, s->active, &s->tick);
	credit(b, s, slot_of(b, s->current, s->current, s->tick_time), s->tick_time - from, s->tick_time);
	s->silent = -1;
}

/* Which group a sample is of. Its id does not tell: where somebody else samples the same software event on the same CPU, the
 * kernel (6.18, perf_prepare_sample with data->sample_flags) fills in the other one's id, and its time by the other's clock.
 * One group is enabled at a time; what the one before it still has to deliver comes first. */
static int group_of(const struct stream *s, const struct counts *c)
{
	const struct counts *last = &s->group[s->turned >= 0 ? s->turned : s->active].last;
	if (s->turned >= 0 && c->switches - last->switches - 1 < s->turn.switches - last->switches && c->enabled <= s->turn.enabled
	    && c->enabled >= last->enabled)
		return s->turned;
	return s->active;
}

static uint64_t believable(const struct stream *s, uint64_t time)
{
	uint64_t enabled = s->pending[SUM_ENABLED], expected = s->since + enabled, slack = 5000000 + enabled / 1000;
	return time + slack < expected || time > expected + slack ? expected : time > s->since ? time : s->since;
}

static void on_sample(struct book *b, struct stream *s, const uint64_t *u, size_t size)
{
	const struct counts *c = (const struct counts *)(u + 2);
	int32_t pid = (int32_t)u[0], tid = (int32_t)(u[0] >> 32), slot = SLOT_UNKNOWN;
	uint64_t time, run, from;
	int32_t between = -1;
	int g;
	if (size == sizeof(struct perf_event_header) + 2 * sizeof *u) { /* who runs, asked by us */
		s->current = tid;
		slot_of(b, tid, pid, u[1]);
		return;
	}
	g = group_of(s, c);
	if (c->nr != 1 + (uint64_t)b->plan.members[g])
		return;
	if (s->turned >= 0 && g != s->turned)
		settle_turn(b, s);
	if (s->ticked && g == s->active && c->enabled > s->tick.enabled)
		settle_tick(b, s);
	gather(b, s, g, c);
	time = believable(s, u[1]);
	from = s->since;
	b->switches++;
	s->missing -= s->missing > 0; /* itself */
	s->heard_idle |= tid == 0;
	run = time - s->since;
	if (s->missing == 0 && tid == -1) /* reaped already: its EXIT has just been here */
		slot = s->exiting > 0 && table_find(&b->table, s->exiting) >= 0 ? table_find(&b->table, s->exiting) : SLOT_UNKNOWN;
	else if (s->missing == 0)
		slot = slot_of(b, tid, pid, time);
	else if (s->records && s->missing == 1 && s->silent == 0) { /* nobody but idle was in between */
		slot = slot_of(b, tid, pid, time);
		run = time - s->came;
		s->missing = 0;
	}
	else if (s->records && s->missing == 1 && s->silent > 0)
		between = s->silent;
	if (s->missing) {
		b->missing += s->missing;
		s->doubtful += between > 0 ? 0 : run;
		s->doubts += s->missing == 1;
	}
	credit(b, s, slot, between > 0 ? 0 : run, time);
	if (between > 0) { /* the counts of two tasks cannot be told apart, their times can */
		give_time(b, s, slot_of(b, between, between, from), from, s->came);
		give_time(b, s, slot_of(b, tid, pid, time), s->came, time);
	}
	if (slot >= SLOT_FIRST)
		sums_of(&b->table, slot)[SUM_SWITCHES]++;
	else if (tid > 0 && (slot = slot_of(b, tid, pid, time)) >= SLOT_FIRST) { /* it ran, though not all of this was its own */
		sums_of(&b->table, slot)[SUM_SWITCHES]++;
		table_moved(&b->table, slot);
	}
	s->previous = tid;
	s->current = s->exiting = s->silent = -1;
	s->poked = 0;
	s->turn_due++;
}

/* next or previous (pid, tid); pid, tid; time. Only where tasks are silent. */
static void on_switch(struct book *b, struct stream *s, const uint64_t *u, int out)
{
	int32_t other = (int32_t)(u[0] >> 32), self = (int32_t)(u[1] >> 32);
	s->current = out ? other : self;
	slot_of(b, other, (int32_t)u[0], u[2]);
	if (!out && other != s->previous) { /* who was in between has left no sample */
		s->silent = s->silent > 0 ? s->silent : other; /* a silent task weighs more than idle */
		s->came = u[2];
	}
}

static void die(struct book *b, int32_t slot, uint64_t time)
{
	if (b->table.tasks[slot].dead)
		return;
	table_died(&b->table, slot, b->slice);
	add_life(b, EXITED, slot, time, 0, 0, NULL);
}

static void on_fork(struct book *b, const uint64_t *u)
{
	int32_t pid = (int32_t)u[0], ppid = (int32_t)(u[0] >> 32), tid = (int32_t)u[1], ptid = (int32_t)(u[1] >> 32);
	int32_t slot = table_find(&b->table, tid);
	uint64_t time = u[2];
	if (slot >= 0 && !b->table.tasks[slot].dead && b->table.tasks[slot].met && time <= b->table.tasks[slot].born) {
		b->table.tasks[slot].met = 0; /* its first sample, on another CPU, was read sooner */
		add_life(b, FORKED, slot, time, ptid, ppid, NULL);
		return;
	}
	if (slot >= 0) { /* the id is used again; if its EXIT was lost, this says it */
		die(b, slot, time);
		table_unmap(&b->table, slot);
	}
	if ((slot = table_add(&b->table, tid, pid, time)) >= 0)
		add_life(b, FORKED, slot, time, ptid, ppid, NULL);
}

static void on_exited(struct book *b, struct stream *s, const uint64_t *u)
{
	int32_t tid = (int32_t)u[1], slot = table_find(&b->table, tid);
	s->exiting = tid;
	if (slot >= 0)
		die(b, slot, u[2]);
}

static void on_comm(struct book *b, const uint64_t *u, uint64_t time, int exec)
{
	int32_t pid = (int32_t)u[0], tid = (int32_t)(u[0] >> 32), slot = table_find(&b->table, tid);
	if (slot >= 0 && b->table.tasks[slot].dead && exec) {
		/* Another thread of the process has called exec and goes on under the id of the first one. Its own id is gone. */
		table_unmap(&b->table, slot);
		for (int32_t i = SLOT_FIRST; i < b->table.slots; i++)
			if (b->table.tasks[i].mapped && b->table.tasks[i].pid == pid)
				die(b, i, time);
		slot = -1;
	}
	if (slot < 0)
		slot = slot_of(b, tid, pid, time);
	if (slot >= SLOT_FIRST)
		add_life(b, exec ? EXECED : RENAMED, slot, time, 0, 0, (const char *)(u + 1));
}

/* One record as it lies in the ring (made whole if it went round the end). */
static void on_record(struct book *b, struct stream *s, const struct perf_event_header *h)
{
	const uint64_t *u = (const uint64_t *)(h + 1);
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		on_sample(b, s, u, h->size);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		on_switch(b, s, u, h->misc & PERF_RECORD_MISC_SWITCH_OUT);
		break;
	case PERF_RECORD_FORK:
		on_fork(b, u);
		break;
	case PERF_RECORD_EXIT:
		on_exited(b, s, u);
		break;
	case PERF_RECORD_COMM:
		on_comm(b, u, s->record_time, h->misc & PERF_RECORD_MISC_COMM_EXEC);
		break;
	case PERF_RECORD_LOST:
		b->lost += u[1];
		s->doubts = 0;
		s->doubtful = 0;
		break;
	}
}

#endif
