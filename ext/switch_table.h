/* Who ran: an open-addressing map from thread id to what has been credited to that life of it. */
#ifndef SWITCH_TABLE_H
#define SWITCH_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Places in a row of sums; behind them the running time of each group, then the value of each event. */
enum { SUM_RUN, SUM_SWITCHES, SUM_ENABLED, SUM_RUNNING };

/* Slots that are no task: what ran nobody (idle) and what cannot be said to be anyone's. */
enum { SLOT_IDLE, SLOT_UNKNOWN, SLOT_FIRST };

struct task {
	int64_t ref;      /* unique for one life of a thread id */
	int32_t tid, pid; /* pid: the thread group */
	int32_t cpu;      /* where it ran last */
	uint8_t mapped;   /* its tid leads here */
	uint8_t met;      /* known from a sample or from /proc: its FORK may still come */
	uint8_t moved;    /* in this slice */
	uint64_t born;    /* when it was first heard of */
	uint64_t dead;    /* the slice in which it ended, 0: alive */
};

struct table {
	struct task *tasks;
	uint64_t *sums; /* stride values for each slot */
	int stride;
	int32_t slots, room, unused; /* handed out so far, allocated, head of the free list (linked by cpu) */
	int32_t *map;                /* slot + 1, 0: empty */
	uint32_t mask, live;
	int64_t next_ref;
	int32_t *moved, *dead; /* slots, as many places as `room` */
	int32_t moves, deaths;
};

static inline uint64_t *sums_of(struct table *t, int32_t slot)
{
	return t->sums + (size_t)slot * t->stride;
}

static inline uint32_t home_of(const struct table *t, int32_t tid)
{
	return (uint32_t)tid * 2654435761u >> 7 & t->mask;
}

static void table_free(struct table *t)
{
	free(t->tasks);
	free(t->sums);
	free(t->map);
	free(t->moved);
	free(t->dead);
	memset(t, 0, sizeof *t);
}

/* Twice the room for slots, and a map at most a quarter full. 0: no memory, nothing changed that matters. */
static int table_grow(struct table *t)
{
	int32_t room = t->room ? 2 * t->room : 1024;
	uint32_t places = 4 * (uint32_t)room;
	struct task *tasks = realloc(t->tasks, room * sizeof *tasks);
	if (tasks)
		t->tasks = tasks;
	uint64_t *sums = realloc(t->sums, (size_t)room * t->stride * sizeof *sums);
	if (sums)
		t->sums = sums;
	int32_t *moved = realloc(t->moved, room * sizeof *moved), *dead = realloc(t->dead, room * sizeof *dead);
	if (moved)
		t->moved = moved;
	if (dead)
		t->dead = dead;
	int32_t *map = calloc(places, sizeof *map);
	if (!tasks || !sums || !moved || !dead || !map) {
		free(map);
		return 0;
	}
	free(t->map);
	t->map = map;
	t->mask = places - 1;
	t->room = room;
	for (int32_t slot = SLOT_FIRST; slot < t->slots; slot++)
		if (t->tasks[slot].mapped) {
			uint32_t at = home_of(t, t->tasks[slot].tid);
			while (map[at])
				at = (at + 1) & t->mask;
			map[at] = slot + 1;
		}
	return 1;
}

static int table_init(struct table *t, int stride)
{
	memset(t, 0, sizeof *t);
	t->stride = stride;
	t->next_ref = 1;
	t->unused = -1;
	if (!table_grow(t)) {
		table_free(t);
		return 0;
	}
	t->slots = SLOT_FIRST;
	memset(t->tasks, 0, SLOT_FIRST * sizeof *t->tasks);
	memset(t->sums, 0, SLOT_FIRST * stride * sizeof *t->sums);
	return 1;
}

/* The slot of a thread id, -1: not known. */
static inline int32_t table_find(const struct table *t, int32_t tid)
{
	for (uint32_t at = home_of(t, tid); t->map[at]; at = (at + 1) & t->mask)
		if (t->tasks[t->map[at] - 1].tid == tid)
			return t->map[at] - 1;
	return -1;
}

/* A new life for a thread id that is not in the map. -1: no memory. */
static int32_t table_add(struct table *t, int32_t tid, int32_t pid, uint64_t born)
{
	int32_t slot = t->unused;
	if (slot >= 0)
		t->unused = t->tasks[slot].cpu;
	else if (t->slots < t->room || table_grow(t))
		slot = t->slots++;
	else
		return -1;
	uint32_t at = home_of(t, tid);
	while (t->map[at])
		at = (at + 1) & t->mask;
	t->map[at] = slot + 1;
	t->tasks[slot] = (struct task){.ref = t->next_ref++, .tid = tid, .pid = pid, .cpu = -1, .mapped = 1, .born = born};
	memset(sums_of(t, slot), 0, t->stride * sizeof *t->sums);
	t->live++;
	return slot;
}

/* The thread id leads nowhere any more; the slot keeps its sums until it is released. */
static void table_unmap(struct table *t, int32_t slot)
{
	uint32_t hole = home_of(t, t->tasks[slot].tid);
	if (!t->tasks[slot].mapped)
		return;
	while (t->map[hole] != slot + 1)
		hole = (hole + 1) & t->mask;
	for (uint32_t at = (hole + 1) & t->mask; t->map[at]; at = (at + 1) & t->mask) {
		uint32_t home = home_of(t, t->tasks[t->map[at] - 1].tid);
		if (((at - home) & t->mask) >= ((at - hole) & t->mask)) { /* it may move up without passing its home */
			t->map[hole] = t->map[at];
			hole = at;
		}
	}
	t->map[hole] = 0;
	t->tasks[slot].mapped = 0;
	t->live--;
}

static void table_release(struct table *t, int32_t slot)
{
	table_unmap(t, slot);
	t->tasks[slot].cpu = t->unused;
	t->unused = slot;
}

static inline void table_moved(struct table *t, int32_t slot)
{
	if (!t->tasks[slot].moved) {
		t->tasks[slot].moved = 1;
		t->moved[t->moves++] = slot;
	}
}

static void table_died(struct table *t, int32_t slot, uint64_t slice)
{
	t->tasks[slot].dead = slice;
	t->dead[t->deaths++] = slot;
}

#endif
