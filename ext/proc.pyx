"""Reads every task of the machine from /proc once per tick, without the GIL, into flat blocks.

Per tick: one pass over /proc, schedstat of every known task (a kept descriptor where the budget allows), and only for
tasks whose schedstat moved: stat, status, and their perf groups. A task that did not run has not moved; it gets no row.
Formats: Documentation/filesystems/proc.rst; fs/proc/array.c (do_task_stat), fs/proc/base.c (proc_pid_schedstat).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EMFILE, ENFILE, errno
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport atoi, calloc, free, realloc, strtoull
from libc.string cimport memcpy, memset, strlen, strncmp, strrchr, strstr
from posix.fcntl cimport O_CLOEXEC, O_DIRECTORY, O_RDONLY
from posix.unistd cimport close as c_close, read as c_read

cdef extern from "<fcntl.h>" nogil:
    int openat(int dirfd, const char *path, int flags)

cdef extern from "<unistd.h>" nogil:
    long pread(int fd, void *buffer, size_t count, long offset)
    long sysconf(int name)
    enum: _SC_CLK_TCK
    enum: _SC_PAGESIZE

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR:
        pass
    struct dirent:
        char d_name[256]
    DIR *fdopendir(int fd)
    dirent *readdir(DIR *stream)
    void rewinddir(DIR *stream)
    int closedir(DIR *stream)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec *now)
    enum: CLOCK_MONOTONIC

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <poll.h>
    #include <sys/eventfd.h>
    """
    struct pollfd:
        int fd
        short events
        short revents
    enum: POLLIN
    int ppoll(pollfd *fds, unsigned long count, const timespec *timeout, const void *mask) nogil
    int eventfd(unsigned int value, int flags) nogil
    int eventfd_write(int fd, uint64_t value) nogil
    enum: EFD_CLOEXEC

cdef enum:
    COLUMNS = 12  # events.PROC_EVENTS, in that order
    LEVELS = 4    # slices.LEVELS
    GROUPS = 16   # perf groups per task at most
    MEMBERS = 64  # of a group at most (pmutop._perf)
    COMM = 64     # TASK_COMM_LEN is 16, kernel threads show up to 64
    TEXT = 4096

cdef struct Entry:
    int tid
    int pid                 # 0 = free slot
    int ppid
    int descriptor          # kept descriptor of schedstat, -1 if none
    int threads             # only of a process: num_threads when last read
    unsigned int seen       # tick at which the task was last met
    unsigned int listed     # only of a process: tick at which its threads were last listed
    int kernel
    uint64_t start          # clock ticks after boot
    uint64_t run, delay, slices
    uint64_t ahead          # run minus the system reader's clock, when last filled
    int leaders[GROUPS]     # perf group leaders, -1 if none
    char comm[COMM]
    uint64_t values[COLUMNS]
    int64_t levels[LEVELS]


cdef int64_t now_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


cdef int wait_until(int64_t deadline, int waker) noexcept nogil:
    """0 at the deadline, 1 if the waker was written, -1 if a signal came."""
    cdef timespec left
    cdef pollfd item
    cdef int64_t remaining = deadline - now_ns()
    cdef int ready
    if remaining < 0:
        remaining = 0
    left.tv_sec = remaining // 1000000000
    left.tv_nsec = remaining % 1000000000
    item.fd = waker
    item.events = POLLIN
    return ppoll(&item, 1, &left, NULL)


cdef class Scanner:
    """The table of all tasks, refreshed by `scan()`.

    keep: how many schedstat descriptors may be held open; places: for each perf group of a task the columns of its events,
    counted from 0 behind the /proc ones. Groups of several PMUs may share a column: on a machine with two kinds of cores
    every event of a task is counted by one group for each kind, and the column is their sum (see `add`).
    """

    cdef Entry *entries
    cdef int capacity, used, columns, keep, kept
    cdef int32_t *slot_of      # by tid; -1 = unknown
    cdef int most
    cdef unsigned int tick
    cdef DIR *root
    cdef int root_fd, waker    # waker: an eventfd that ends the sleep
    cdef uint64_t tick_ns, page
    cdef int widths[GROUPS]    # events of each perf group
    cdef int places[GROUPS][MEMBERS]  # and their columns
    cdef int groups
    cdef int32_t *free_slots
    cdef int frees
    cdef int32_t *born
    cdef int borns, born_room
    cdef int32_t *gone
    cdef int gones, gone_room
    cdef int32_t *renamed
    cdef int renames, renamed_room
    cdef int32_t *rows
    cdef uint64_t *counts
    cdef int64_t *levels
    cdef int row_count, row_room
    cdef readonly int64_t stamp   # CLOCK_MONOTONIC ns at which the last scan began
    cdef readonly long refused  # files that could not be read for lack of descriptors since the start

    def __cinit__(self, int keep=512, places=(), root="/proc"):
        cdef int i
        with open("/proc/sys/kernel/pid_max") as limit:
            self.most = int(limit.read()) + 1
        self.slot_of = <int32_t*>calloc(self.most, sizeof(int32_t))  # slot + 1; pages are touched only where tids live
        self.root_fd = openat(-100, root.encode(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if self.root_fd < 0 or self.slot_of == NULL:
            raise OSError(errno, f"open {root}")
        self.root = fdopendir(self.root_fd)
        self.waker = eventfd(0, EFD_CLOEXEC)
        if self.waker < 0:
            raise OSError(errno, "eventfd")
        self.keep = keep
        places = [list(group) for group in places]
        if len(places) > GROUPS or any(len(group) > MEMBERS for group in places):
            raise ValueError(f"at most {GROUPS} groups of {MEMBERS} events")
        self.groups = len(places)
        self.columns = COLUMNS + 1 + max((column for group in places for column in group), default=-1)
        for i, group in enumerate(places):
            self.widths[i] = len(group)
            for member, column in enumerate(group):
                self.places[i][member] = COLUMNS + column
        self.tick_ns = 1000000000 // sysconf(_SC_CLK_TCK)
        self.page = sysconf(_SC_PAGESIZE)

    def __dealloc__(self):
        self.close()
        free(self.entries); free(self.slot_of); free(self.free_slots)
        free(self.born); free(self.gone); free(self.renamed)
        free(self.rows); free(self.counts); free(self.levels)

    def close(self):
        """Close every descriptor; harmless when done twice."""
        cdef int i
        for i in range(self.used):
            if self.entries[i].pid and self.entries[i].descriptor >= 0:
                c_close(self.entries[i].descriptor)
                self.entries[i].descriptor = -1
        if self.root != NULL:
            closedir(self.root)
            self.root = NULL
            c_close(self.waker)

    def stop(self):
        """End the scan that is waiting for its deadline, and all to come; from any thread or signal handler."""
        if self.root != NULL:
            eventfd_write(self.waker, 1)

    def attach(self, int slot, int group, int leader):
        """From the next scan on, read the perf group `leader` (a descriptor, -1 to stop) for the task in `slot`."""
        self.entries[slot].leaders[group] = leader

    def scan(self, int64_t deadline=0):
        """Sleep until `deadline` (CLOCK_MONOTONIC ns), then make one pass; the GIL is not needed in between.

        Returns (born, renamed, gone, rows): lists of slots, `rows` being those that have a row this time; None after
        stop(). The blocks are fetched with `blocks()` before the next scan; slots in `gone` stay readable by `task()`
        until then.
        """
        cdef int woken, i
        if self.root == NULL:
            raise ValueError("this scanner is closed")
        self.release_gone()
        while True:
            with nogil:
                woken = wait_until(deadline, self.waker)
                if not woken:
                    self.stamp = now_ns()
                    self.visit_all()
                    self.finish()
            if not woken:
                break
            PyErr_CheckSignals()
            if woken > 0:
                return None
        return (
            [self.born[i] for i in range(self.borns)],
            [self.renamed[i] for i in range(self.renames)],
            [self.gone[i] for i in range(self.gones)],
            [self.rows[i] for i in range(self.row_count)],
        )

    def blocks(self):
        """(counts, levels) of the rows of the last scan as bytes: uint64 (rows, columns, 3) and int64 (rows, LEVELS)."""
        return (
            PyBytes_FromStringAndSize(<char*>self.counts, self.row_count * self.columns * 3 * sizeof(uint64_t)),
            PyBytes_FromStringAndSize(<char*>self.levels, self.row_count * LEVELS * sizeof(int64_t)),
        )

    def task(self, int slot):
        """(pid, tid, ppid, start in clock ticks after boot, comm as bytes, is a kernel thread) of a slot."""
        cdef Entry *entry = &self.entries[slot]
        return entry.pid, entry.tid, entry.ppid, entry.start, entry.comm, bool(entry.kernel)

    def fill(self, bytes who, bytes run, bytearray counts, bytearray levels, int width):
        """For the system reader: the /proc columns of the given tasks only, into the front of each row of `counts`.

        who: int32 (rows, 4): tid, pid, CPU, whether it is dead; run: uint64 (rows,), CPU ns by another clock that began with
        the task or with us; counts: uint64 (rows, width, 3); levels: int64 (rows, LEVELS). The row of a task that is dead has
        its run time carried on by `run`, the rest stays as it was last, with time_enabled 0. Returns (born, renamed, slots):
        slots met for the first time or under a new name; the slot of each row, -1 if it was never seen alive.
        """
        cdef const int32_t *tasks = <const int32_t*><const char*>who
        cdef const uint64_t *clock = <const uint64_t*><const char*>run
        cdef uint64_t *out = <uint64_t*><char*>counts
        cdef int64_t *level = <int64_t*><char*>levels
        cdef int rows = len(who) // 16, i
        cdef int32_t *slots = <int32_t*>calloc(rows + 1, sizeof(int32_t))
        if slots == NULL:
            raise MemoryError
        if len(run) != rows * 8 or len(counts) != rows * width * 24 or len(levels) != rows * LEVELS * 8 or width < COLUMNS:
            free(slots)
            raise ValueError("blocks of different lengths")
        self.release_gone()
        with nogil:
            for i in range(rows):
                slots[i] = self.fill_row(tasks + 4 * i, clock[i], out + 3 * width * i, level + LEVELS * i)
        try:
            return (
                [self.born[i] for i in range(self.borns)],
                [self.renamed[i] for i in range(self.renames)],
                [slots[i] for i in range(rows)],
            )
        finally:
            free(slots)

    cdef int fill_row(self, const int32_t *who, uint64_t clock, uint64_t *out, int64_t *level) noexcept nogil:
        cdef int tid = who[0], slot = -1, i
        cdef int64_t now = 0
        cdef Entry *entry
        level[0] = c'X'
        level[1] = who[2]
        if not who[3]:
            slot = self.visit_task(who[1], tid)
            now = now_ns() if slot >= 0 else 0
        if slot < 0 and tid < self.most:
            slot = self.slot_of[tid] - 1
        if slot < 0:
            out[0] = out[1] = out[2] = clock
            return -1
        entry = &self.entries[slot]
        memcpy(level, entry.levels, LEVELS * sizeof(int64_t))
        level[1] = who[2]
        for i in range(COLUMNS):
            out[3 * i] = entry.values[i]
            out[3 * i + 1] = out[3 * i + 2] = now
        if now:
            entry.ahead = entry.run - clock
        else:
            level[0] = c'X'
            out[0] = entry.ahead + clock
            out[1] = out[2] = now_ns()
        return slot

    def drop(self, tids):
        """For the system reader: forget tasks that are known to be dead."""
        cdef int slot
        for tid in tids:
            slot = self.slot_of[tid] - 1 if 0 <= tid < self.most else -1
            if slot >= 0:
                if self.entries[slot].descriptor >= 0:
                    c_close(self.entries[slot].descriptor)
                    self.kept -= 1
                self.forget(slot)

    def busy(self, int slot):
        """Run time of the task so far, ns: what the hot set is chosen by."""
        return self.entries[slot].run

    cdef void release_gone(self):
        cdef int i, slot
        for i in range(self.gones):
            slot = self.gone[i]
            self.entries[slot].pid = 0
            self.free_slots[self.frees] = slot
            self.frees += 1
        self.gones = self.borns = self.renames = self.row_count = 0
        self.tick += 1

    cdef void visit_all(self) noexcept nogil:
        cdef dirent *item
        rewinddir(self.root)
        while True:
            item = readdir(self.root)
            if item == NULL:
                return
            if c'1' <= item.d_name[0] <= c'9':
                self.visit_process(atoi(item.d_name))

    cdef void visit_process(self, int pid) noexcept nogil:
        """The main thread, then the others where there are any and somebody of the process may have made more."""
        cdef int slot = self.visit_task(pid, pid)
        cdef Entry *entry
        if slot < 0:
            return
        entry = &self.entries[slot]
        if entry.threads > 1 or entry.listed:
            self.visit_threads(pid)
            self.entries[slot].listed = self.tick  # visiting may have moved the table

    cdef void visit_threads(self, int pid) noexcept nogil:
        cdef char path[64]
        cdef dirent *item
        cdef DIR *folder
        cdef int fd, tid
        snprintf(path, sizeof(path), "%d/task", pid)
        fd = openat(self.root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if fd < 0:
            self.note_refusal()
            return
        folder = fdopendir(fd)
        while True:
            item = readdir(folder)
            if item == NULL:
                break
            tid = atoi(item.d_name)
            if tid > 0 and tid != pid:
                self.visit_task(pid, tid)
        closedir(folder)

    cdef int visit_task(self, int pid, int tid) noexcept nogil:
        """Refresh one task; returns its slot, or -1 if it is gone."""
        cdef uint64_t run = 0, delay = 0, slices = 0
        cdef int slot, known
        cdef Entry *entry
        if tid >= self.most:
            return -1
        slot = self.slot_of[tid] - 1
        known = slot >= 0
        if known and self.entries[slot].seen == self.tick:
            return slot
        if not self.read_schedstat(pid, tid, slot, &run, &delay, &slices):
            return -1
        if not known:
            slot = self.new_slot()
            if slot < 0:
                return -1
            entry = &self.entries[slot]
            entry.pid, entry.tid = pid, tid
            self.slot_of[tid] = slot + 1
            if not self.read_row(slot):
                self.forget(slot)
                return -1
            self.push(&self.born, &self.borns, &self.born_room, slot)
            self.keep_descriptor(slot)
        else:
            entry = &self.entries[slot]
            if run == entry.run and delay == entry.delay and slices == entry.slices:
                entry.seen = self.tick
                return slot
            if not self.read_row(slot):
                return -1
        entry.seen = self.tick
        entry.run, entry.delay, entry.slices = run, delay, slices
        entry.values[0], entry.values[1], entry.values[2] = run, delay, slices
        self.add_row(slot)
        return slot

    cdef bint read_schedstat(self, int pid, int tid, int slot, uint64_t *run, uint64_t *delay, uint64_t *slices) noexcept nogil:
        cdef char text[128]
        cdef char path[64]
        cdef char *at
        cdef long got = -1
        if slot >= 0 and self.entries[slot].descriptor >= 0:
            got = pread(self.entries[slot].descriptor, text, sizeof(text) - 1, 0)
        else:
            snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid)
            got = self.read_file(path, text, sizeof(text) - 1)
        if got <= 0:
            return False
        text[got] = 0
        run[0] = strtoull(text, &at, 10)
        delay[0] = strtoull(at, &at, 10)
        slices[0] = strtoull(at, &at, 10)
        return True

    cdef long read_file(self, const char *path, char *text, size_t room) noexcept nogil:
        cdef int fd = openat(self.root_fd, path, O_RDONLY | O_CLOEXEC)
        cdef long got
        if fd < 0:
            self.note_refusal()
            return -1
        got = c_read(fd, text, room)
        c_close(fd)
        return got

    cdef void note_refusal(self) noexcept nogil:
        if errno == EMFILE or errno == ENFILE:
            self.refused += 1

    cdef void keep_descriptor(self, int slot) noexcept nogil:
        cdef char path[64]
        cdef Entry *entry = &self.entries[slot]
        if self.kept >= self.keep:
            return
        snprintf(path, sizeof(path), "%d/task/%d/schedstat", entry.pid, entry.tid)
        entry.descriptor = openat(self.root_fd, path, O_RDONLY | O_CLOEXEC)
        if entry.descriptor >= 0:
            self.kept += 1

    cdef bint read_row(self, int slot) noexcept nogil:
        """stat and status of one task into its entry; False if it is gone or is another task under the same number."""
        cdef char path[64]
        cdef char text[TEXT]
        cdef char *at
        cdef char *name
        cdef char *end
        cdef long got
        cdef int i, length
        cdef uint64_t fields[50]
        cdef Entry *entry = &self.entries[slot]
        snprintf(path, sizeof(path), "%d/task/%d/stat", entry.pid, entry.tid)
        got = self.read_file(path, text, TEXT - 1)
        if got <= 0:
            return False
        text[got] = 0
        end = strrchr(text, c')')
        name = strstr(text, "(")
        if end == NULL or name == NULL or end - text + 4 > got:
            return False
        at = end + 4
        for i in range(4, 44):  # numbered as in proc.rst, field 3 being the state; ppid is field 4
            fields[i] = strtoull(at, &at, 10)  # negative numbers wrap and are cast back below
        if entry.start and entry.start != fields[22]:
            return False
        length = min(<int>(end - name - 1), COMM - 1)
        if strncmp(entry.comm, name + 1, length) or entry.comm[length] or entry.ppid != <int>fields[4]:
            if entry.start:
                self.push(&self.renamed, &self.renames, &self.renamed_room, slot)
            memcpy(entry.comm, name + 1, length)
            memset(entry.comm + length, 0, COMM - length)
            entry.ppid = <int>fields[4]
        entry.start = fields[22]
        entry.kernel = (fields[9] & 0x00200000) != 0  # PF_KTHREAD, include/linux/sched.h
        entry.threads = <int>fields[20]
        entry.values[3] = fields[14] * self.tick_ns
        entry.values[4] = fields[15] * self.tick_ns
        entry.values[5] = fields[10]
        entry.values[6] = fields[12]
        if entry.tid == entry.pid:  # these are the process's, and stand in the stat of every thread
            entry.values[7] = fields[11]
            entry.values[8] = fields[16] * self.tick_ns
            entry.values[9] = fields[17] * self.tick_ns
        entry.levels[0] = end[2]
        entry.levels[1] = <int64_t>fields[39]
        entry.levels[2] = <int64_t>fields[19]
        entry.levels[3] = <int64_t>(fields[24] * self.page)
        snprintf(path, sizeof(path), "%d/task/%d/status", entry.pid, entry.tid)
        got = self.read_file(path, text, TEXT - 1)
        if got > 0:
            text[got] = 0
            entry.values[10] = field_of(text, "\nvoluntary_ctxt_switches:")
            entry.values[11] = field_of(text, "\nnonvoluntary_ctxt_switches:")
        return True

    cdef int new_slot(self) noexcept nogil:
        cdef int slot, i
        if self.frees:
            self.frees -= 1
            slot = self.free_slots[self.frees]
        else:
            if self.used == self.capacity:
                self.capacity = max(256, self.capacity * 2)
                self.entries = <Entry*>realloc(self.entries, self.capacity * sizeof(Entry))
                self.free_slots = <int32_t*>realloc(self.free_slots, self.capacity * sizeof(int32_t))
                if self.entries == NULL or self.free_slots == NULL:
                    return -1
            slot = self.used
            self.used += 1
        memset(&self.entries[slot], 0, sizeof(Entry))
        self.entries[slot].descriptor = -1
        for i in range(GROUPS):
            self.entries[slot].leaders[i] = -1
        return slot

    cdef void forget(self, int slot) noexcept nogil:
        """A slot that never became a task."""
        self.slot_of[self.entries[slot].tid] = 0
        self.entries[slot].pid = 0
        self.free_slots[self.frees] = slot
        self.frees += 1

    cdef void finish(self) noexcept nogil:
        """Whoever was not met is gone: its perf groups can still be read, its /proc columns stay as they were last."""
        cdef int slot
        cdef Entry *entry
        for slot in range(self.used):
            entry = &self.entries[slot]
            if not entry.pid or entry.seen == self.tick:
                continue
            if entry.descriptor >= 0:
                c_close(entry.descriptor)
                entry.descriptor = -1
                self.kept -= 1
            self.slot_of[entry.tid] = 0
            self.push(&self.gone, &self.gones, &self.gone_room, slot)
            if entry.leaders[0] >= 0:
                self.add_row(slot)

    cdef void add_row(self, int slot) noexcept nogil:
        cdef Entry *entry = &self.entries[slot]
        cdef uint64_t block[3 + 64]
        cdef uint64_t *out
        cdef int i, group
        cdef int64_t now = now_ns()
        if self.row_count == self.row_room:
            self.row_room = max(256, self.row_room * 2)
            self.rows = <int32_t*>realloc(self.rows, self.row_room * sizeof(int32_t))
            self.counts = <uint64_t*>realloc(self.counts, self.row_room * self.columns * 3 * sizeof(uint64_t))
            self.levels = <int64_t*>realloc(self.levels, self.row_room * LEVELS * sizeof(int64_t))
        self.rows[self.row_count] = slot
        memcpy(self.levels + self.row_count * LEVELS, entry.levels, LEVELS * sizeof(int64_t))
        out = self.counts + self.row_count * self.columns * 3
        self.row_count += 1
        for i in range(COLUMNS):
            out[3 * i] = entry.values[i]
            out[3 * i + 1] = out[3 * i + 2] = now if entry.seen == self.tick else 0  # gone: /proc told nothing
        memset(out + 3 * COLUMNS, 0, (self.columns - COLUMNS) * 3 * sizeof(uint64_t))
        for group in range(self.groups):
            if entry.leaders[group] >= 0 and c_read(entry.leaders[group], block, sizeof(block)) > 0:
                for i in range(self.widths[group]):
                    add(out + 3 * self.places[group][i], block[3 + i], block[1], block[2])

    cdef void push(self, int32_t **items, int *count, int *room, int slot) noexcept nogil:
        if count[0] == room[0]:
            room[0] = max(64, room[0] * 2)
            items[0] = <int32_t*>realloc(items[0], room[0] * sizeof(int32_t))
        items[0][count[0]] = slot
        count[0] += 1


cdef void add(uint64_t *total, uint64_t value, uint64_t enabled, uint64_t running) noexcept nogil:
    """One PMU's (value, time_enabled, time_running) into the column of an event that several PMUs count.

    A task's event is enabled on every PMU for as long as the task runs anywhere, and running on one only while the task is
    on its cores (perf_event_open(2); merge_sched_in in kernel/events/core.c). So values and running times add up, enabled is
    the same stretch seen by each: the shortest, for they are not read at the same instant, and what ran all of it is exact.
    A PMU on whose cores the task never was has running 0 and adds an exact 0; only what no PMU counted is uncounted.
    """
    total[0] += value
    total[1] = enabled if total[1] == 0 or enabled < total[1] else total[1]
    total[2] += running
    if total[2] > total[1]:
        total[2] = total[1]


cdef uint64_t field_of(const char *text, const char *name) noexcept nogil:
    cdef const char *at = strstr(text, name)
    if at == NULL:
        return 0
    return strtoull(at + strlen(name), NULL, 10)
