"""The system reader: per-CPU groups sampled at every context switch, read by a native thread (see switches.h)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strerror

cdef extern from "switches.h" nogil:
    enum: MOST_MEMBERS, MOST_GROUPS, MOST_EVENTS, MOST_KINDS, MOST_CPUS
    enum: FROM_SIBLING, FROM_RUN_TIME, FROM_SWITCHES
    struct event_spec:
        unsigned int type
        uint64_t config, config1, config2
        int exclude_kernel, exclude_user
        char filter[128]
        char path[256]
        char name[64]
    struct plan:
        event_spec event[8][64]
        uint8_t kind[8192]
        int events, groups
        int members[16]
        int member[16][16]
        size_t ring_budget, ring_size
    struct settings:
        uint64_t interval
        int priority, records, columns_before, columns
        int column[64]
        int source[64]
        char online[256]
    struct failure:
        int number, cpu
        const char *call
        char event[256]
    struct task:
        pass
    struct table:
        unsigned int live
    struct book:
        plan plan
        table table
        int most_lives, most_periods
    struct life:
        int64_t ref
        uint64_t time
        int32_t kind, tid, pid, ptid, ppid
        char comm[16]
    struct period:
        pass
    struct slice_t "slice":
        uint64_t number, start, end, late
        int rows, lives, periods, cpus
        int64_t *refs
        int32_t *who
        uint64_t *run
        uint64_t *counts
        life *life
        period *period
        uint64_t *busy
        uint64_t lost, missing, switches, dropped_lives, dropped_periods, merged
        uint64_t deaf_ns, own_ns, ring_bytes, recording, unknown_ns
        uint64_t total[64]
        uint64_t unknown[64]
        uint64_t idle[64]
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    struct reader:
        settings set
        book book
        int streams, started, fifo, ended
        int32_t tid
        uint8_t *quiet
        int quiet_size
        uint64_t start
        pthread_mutex_t lock
        failure failure
    int reader_open(reader *r)
    int reader_start(reader *r)
    void reader_close(reader *r)
    void reader_end(reader *r)
    void reader_shed(reader *r, int shed)
    slice_t *reader_next(reader *r, uint64_t wait)
    int64_t reader_adopt(reader *r, int32_t tid, int32_t pid)
    void reader_forget(reader *r, int32_t tid, int64_t ref)
    void free_slice(slice_t *s)
    size_t ring_size_of(size_t budget, int cpus)

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int us)

cdef enum:
    SOFTWARE = 1  # PERF_TYPE_SOFTWARE

#: Kinds of lifecycle records, in the order of switch_credit.h.
MET, FORKED, RENAMED, EXECED, EXITED = range(5)

#: PERF_TYPE_SOFTWARE events that the samples themselves give, without a counter.
SYNTHETIC = {0: FROM_RUN_TIME, 1: FROM_RUN_TIME, 3: FROM_SWITCHES}  # cpu-clock, task-clock, context-switches

cdef uint64_t PATIENCE = 100_000_000  # ns between two looks for signals while waiting


class SwitchError(OSError):
    """A system call failed: errno kept; `call`, `event` and `cpu` (-1: none) named."""

    def __init__(self, int number, str call, str event, int cpu):
        place = f" on CPU {cpu}" if cpu >= 0 else ""
        super().__init__(number, f"{call} {event}{place}: {strerror(number).decode()}")
        self.call = call
        self.event = event
        self.cpu = cpu


cdef class Sealed:
    """What was credited between two deadlines. Times are CLOCK_MONOTONIC ns; totals run since the start.

    refs: int64 (rows,); who: int32 (rows, 4): tid, pid, CPU it ran on last, whether it is dead; run: uint64 (rows,), CPU ns; counts: a bytearray of uint64
    (rows, before + columns, 3): value, time_enabled, time_running since the task was met; lives: list of
    (kind, ref, time, tid, pid, ptid, ppid, comm bytes); periods: int64 (n, 4): cpu, ref, start, end.
    """

    cdef readonly uint64_t number, start, end, late
    cdef readonly int rows
    cdef readonly bytes refs, who, run, periods
    cdef readonly bytearray counts
    cdef readonly list lives
    cdef readonly dict busy_ns  # CPU -> ns credited to tasks
    cdef readonly dict totals  # lost, missing, switches, ...: see Switches.TOTALS
    cdef readonly list total, unknown, idle  # by sibling event: all that was counted, nobody's, the idle tasks'


cdef class Switches:
    """Counts of every task on the machine, from samples at context switches on every CPU that is online.

    events: objects with name, type, config, config1, config2, filter, path, mode (pmutop.events.Event), a column each; cpu-clock,
    task-clock and context-switches need no counter. groups: lists of places in `events` that are counted together, taking
    turns every 20 ms (an event may be in several); None = all in one. interval: seconds between two seals.
    kinds: where the cores differ, (CPUs, events) for each kind: the same events in the same order, as that kind counts them.
    before: columns left 0 in front of each row. priority: of SCHED_FIFO, 0 = ordinary. ring_bytes: of all rings together; ring_size: of each (0 = by the number of CPUs).
    periods: most scheduling periods kept for a slice (0 = none). quiet: CPUs that are never interrupted.
    records: switch records may be added on CPUs where tasks leave no samples (see switch_rings.h).
    online: the file that lists the CPUs. Raises SwitchError after closing whatever was opened.

    Opened, it samples; `adopt` what is there already, then `start` the thread, then call `next` for ever.
    """

    cdef reader *r
    cdef int waiting  # threads in `next`
    cdef readonly tuple names  # of the sibling events, the order of Sealed.total
    cdef readonly double interval

    #: `deaf_ns`, the longest time between two drains of the rings, is of the slice alone.
    TOTALS = ("lost", "missing", "switches", "dropped_lives", "dropped_periods", "merged", "deaf_ns", "own_ns", "ring_bytes",
              "recording_cpus", "unknown_ns")

    def __cinit__(self, events, groups=None, double interval=0.4, *, kinds=(), int before=0, int priority=10,
                  size_t ring_bytes=64 << 20, size_t ring_size=0, int periods=65536, quiet=(), bint records=True,
                  str online="/sys/devices/system/cpu/online", int most_lives=1 << 18):
        cdef plan *p
        cdef int i, number, place, kind
        events = list(events)
        kinds = [(cpus, list(same)) for cpus, same in kinds]
        self.r = <reader*>calloc(1, sizeof(reader))
        if not self.r:
            raise MemoryError
        if not 0 < len(events) <= MOST_EVENTS or interval < 0.001 or len(online.encode()) > 255:
            raise ValueError(f"1 to {MOST_EVENTS} events and at least 1 ms, please")
        if len(kinds) >= MOST_KINDS or any(len(same) != len(events) for _, same in kinds):
            raise ValueError(f"at most {MOST_KINDS - 1} kinds of cores, each with all the events")
        self.interval = interval
        p = &self.r.book.plan
        self.r.set.interval = <uint64_t>(interval * 1e9)
        self.r.set.priority = priority
        self.r.set.records = records
        self.r.set.columns_before = before
        self.r.set.columns = len(events)
        copy_text(self.r.set.online, online, 256)
        self.r.book.most_lives = most_lives
        self.r.book.most_periods = periods
        p.ring_budget = ring_bytes
        p.ring_size = ring_size
        names = []
        for i, event in enumerate(events):
            self.r.set.source[i] = SYNTHETIC.get(event.config, FROM_SIBLING) if event.type == SOFTWARE else FROM_SIBLING
            if self.r.set.source[i] != FROM_SIBLING:
                continue
            number = p.events
            self.r.set.column[i] = number
            put_event(&p.event[0][number], event)
            for kind, (_, same) in enumerate(kinds, start=1):
                put_event(&p.event[kind][number], same[i])
            names.append(event.name)
            p.events += 1
        self.names = tuple(names)
        for kind, (cpus, _) in enumerate(kinds, start=1):
            for i in cpus:
                if 0 <= i < MOST_CPUS:
                    p.kind[i] = kind
        if groups is None:
            groups = [range(len(events))]
        for group in groups:
            members = [i for i in group if self.r.set.source[i] == FROM_SIBLING]
            if p.groups == MOST_GROUPS - 1 or len(members) > MOST_MEMBERS:
                raise ValueError(f"at most {MOST_GROUPS - 1} groups of {MOST_MEMBERS} events")
            for place, i in enumerate(members):
                p.member[p.groups][place] = self.r.set.column[i]
            p.members[p.groups] = len(members)
            p.groups += bool(members)
        quiet = [cpu for cpu in quiet if cpu >= 0]
        if quiet:
            self.r.quiet_size = max(quiet) + 1
            self.r.quiet = <uint8_t*>calloc(self.r.quiet_size, 1)
            if not self.r.quiet:
                raise MemoryError
            for i in quiet:
                self.r.quiet[i] = 1
        if not reader_open(self.r):
            self.fail()

    cdef fail(self):
        cdef failure *f = &self.r.failure
        error = SwitchError(f.number, f.call.decode(), f.event.decode(), f.cpu)
        self.close()
        raise error

    cdef must_be_open(self):
        if not self.r:
            raise ValueError("this reader is closed")

    @property
    def fifo(self):
        """Whether the thread runs under SCHED_FIFO (known once `start` was called and a slice was sealed)."""
        self.must_be_open()
        return bool(self.r.fifo)

    @property
    def known(self):
        """Tasks in the table, the dead of the last slice included."""
        self.must_be_open()
        return self.r.book.table.live

    def start(self):
        """Begin: the first slice starts now. Returns its start, monotonic ns."""
        self.must_be_open()
        if self.r.started:
            raise ValueError("this reader runs already")
        if not reader_start(self.r):
            self.fail()
        return self.r.start

    def adopt(self, tasks):
        """Give tasks that are there already their refs: an iterable of (tid, pid) -> list of refs. Known ones keep theirs."""
        cdef list refs = []
        cdef int64_t ref
        self.must_be_open()
        pairs = list(tasks)
        lock(self.r)
        try:
            for tid, pid in pairs:
                ref = reader_adopt(self.r, tid, pid)
                refs.append(ref)
        finally:
            pthread_mutex_unlock(&self.r.lock)
        return refs

    def forget(self, tasks):
        """Declare tasks dead whose end was missed: an iterable of (tid, ref); an EXITED record follows in the next slice."""
        self.must_be_open()
        pairs = list(tasks)
        lock(self.r)
        try:
            for tid, ref in pairs:
                reader_forget(self.r, tid, ref)
        finally:
            pthread_mutex_unlock(&self.r.lock)

    def shed(self, bint less):
        """Count no events, only who ran and for how long (True), or all again (False): from the next 20 ms on."""
        self.must_be_open()
        reader_shed(self.r, less)

    def stop(self):
        """End the wait of `next`, now and ever after; from any thread or signal handler. Harmless when closed."""
        if self.r:
            reader_end(self.r)

    def next(self):
        """The next sealed slice; waits for it without the interpreter's lock. None after `stop`."""
        cdef slice_t *s = NULL
        cdef reader *r
        while not s:
            PyErr_CheckSignals()
            self.must_be_open()
            if self.r.ended:
                return None
            r = self.r
            if not self.r.started:
                raise ValueError("this reader was not started")
            self.waiting += 1
            with nogil:
                s = reader_next(r, PATIENCE)
            self.waiting -= 1
            if not self.r:  # closed meanwhile by another thread
                free_slice(s)
                return None
        try:
            return self.sealed(s)
        finally:
            free_slice(s)

    cdef Sealed sealed(self, slice_t *s):
        cdef Sealed out = Sealed.__new__(Sealed)
        cdef int i, events = self.r.book.plan.events, width = self.r.set.columns_before + self.r.set.columns
        cdef life *l
        out.number, out.start, out.end, out.late, out.rows = s.number, s.start, s.end, s.late, s.rows
        out.refs = PyBytes_FromStringAndSize(<char*>s.refs, s.rows * sizeof(int64_t))
        out.who = PyBytes_FromStringAndSize(<char*>s.who, s.rows * 4 * sizeof(int32_t))
        out.run = PyBytes_FromStringAndSize(<char*>s.run, s.rows * sizeof(uint64_t))
        out.counts = PyByteArray_FromStringAndSize(<char*>s.counts, <Py_ssize_t>s.rows * width * 3 * sizeof(uint64_t))
        out.periods = PyBytes_FromStringAndSize(<char*>s.period, <Py_ssize_t>s.periods * 32)
        out.lives = []
        for i in range(s.lives):
            l = &s.life[i]
            out.lives.append((l.kind, l.ref, l.time, l.tid, l.pid, l.ptid, l.ppid, <bytes>l.comm))
        out.busy_ns = {s.busy[2 * i]: s.busy[2 * i + 1] for i in range(s.cpus)}
        out.totals = dict(zip(self.TOTALS, (s.lost, s.missing, s.switches, s.dropped_lives, s.dropped_periods, s.merged, s.deaf_ns,
                                            s.own_ns, s.ring_bytes, s.recording, s.unknown_ns)))
        out.total = [s.total[i] for i in range(events)]
        out.unknown = [s.unknown[i] for i in range(events)]
        out.idle = [s.idle[i] for i in range(events)]
        return out

    def close(self):
        """Stop the thread and close everything; harmless when done twice."""
        cdef reader *r = self.r
        if r:
            self.r = NULL
            reader_end(r)
            while self.waiting:  # another thread is in `next`
                with nogil:
                    usleep(1000)
            with nogil:
                reader_close(r)
            free(r.quiet)
            free(r)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()

    def __dealloc__(self):
        if self.r:
            reader_close(self.r)
            free(self.r.quiet)
            free(self.r)


cdef void lock(reader *r) noexcept:
    with nogil:
        pthread_mutex_lock(&r.lock)


cdef put_event(event_spec *spec, event):
    spec.type = event.type
    spec.config = event.config
    spec.config1 = event.config1
    spec.config2 = event.config2
    spec.exclude_kernel = event.mode == "u"
    spec.exclude_user = event.mode == "k"
    copy_text(spec.filter, event.filter, 128)
    copy_text(spec.path, event.path, 256)
    copy_text(spec.name, event.pmu if event.path else event.name, 64)


cdef copy_text(char *place, str text, Py_ssize_t size):
    cdef bytes raw = text.encode(errors="surrogateescape")
    if len(raw) >= size:
        raise ValueError(f"longer than {size - 1} bytes: {text}")
    memset(place, 0, size)
    for i, byte in enumerate(raw):
        place[i] = byte


def ring_size(budget, cpus):
    """Bytes of the ring of each of `cpus` CPUs when all together may take `budget`."""
    return ring_size_of(budget, cpus)
