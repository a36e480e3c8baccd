"""perf_event_open: one group of events on one target, opened whole or not at all.

Layouts: include/uapi/linux/perf_event.h. Every count leaves as value, time_enabled, time_running; nothing is scaled here.
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset, strerror
from posix.unistd cimport close as c_close, read as c_read

cdef extern from "<linux/perf_event.h>" nogil:
    cdef struct perf_event_attr:
        unsigned int type
        unsigned int size
        uint64_t config
        uint64_t config1
        uint64_t config2
        uint64_t sample_period
        uint64_t read_format
        uint64_t disabled
        uint64_t inherit
        uint64_t pinned
        uint64_t exclude_user
        uint64_t exclude_kernel
        uint64_t exclude_hv
        uint64_t enable_on_exec
    cdef enum:
        PERF_FORMAT_TOTAL_TIME_ENABLED
        PERF_FORMAT_TOTAL_TIME_RUNNING
        PERF_FORMAT_GROUP
        PERF_FLAG_FD_CLOEXEC
        PERF_IOC_FLAG_GROUP
        PERF_EVENT_IOC_ENABLE
        PERF_EVENT_IOC_DISABLE
        PERF_EVENT_IOC_RESET
        PERF_EVENT_IOC_SET_FILTER

cdef extern from "<sys/ioctl.h>" nogil:
    int ioctl(int fd, unsigned long request, ...)

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

cdef extern from "<sys/syscall.h>" nogil:
    const long SYS_perf_event_open

cdef enum:
    MOST = 64  # members of one group; far above any PMU


class CountError(OSError):
    """A perf call failed: errno kept, `call` and `event` named."""

    def __init__(self, int number, str call, str event):
        super().__init__(number, f"{call} {event}: {strerror(number).decode()}")
        self.call = call
        self.event = event


cdef class Group:
    """A group of perf events that are scheduled together, on one task or one CPU.

    events: objects with name, type, config, config1, config2, mode, filter, path (pmutop.events.Event); the first one leads.
    pid, cpu: as in perf_event_open(2) (pid 0 = the calling thread, -1 = every task of `cpu`).
    Opened disabled unless enable_on_exec is asked for; `enable()` starts it. Raises CountError with the errno of the
    kernel (EACCES, EMFILE, ENOENT, ESRCH, EINVAL, ...) after closing whatever was already open.
    """

    cdef int fds[MOST]
    cdef readonly int size
    cdef readonly tuple names

    def __cinit__(self, events, int pid, int cpu=-1, bint inherit=False, bint exclude_kernel=False,
                  bint pinned=False, bint enable_on_exec=False):
        cdef perf_event_attr attr
        cdef int leader = -1
        cdef long fd
        cdef bytes event_filter, event_path
        self.size = 0
        self.names = tuple(event.name for event in events)
        if not 0 < len(self.names) <= MOST:
            raise ValueError(f"a group has 1 to {MOST} events, not {len(self.names)}")
        for event in events:
            memset(&attr, 0, sizeof(attr))
            attr.size = sizeof(attr)
            attr.type = event.type
            attr.config = event.config
            attr.config1 = event.config1
            attr.config2 = event.config2
            if event.path:
                event_path = event.path.encode(errors="surrogateescape")
                attr.config1 = <uint64_t><size_t><char*>event_path
            attr.read_format = (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
            attr.inherit = inherit
            attr.exclude_kernel = exclude_kernel or event.mode == "u"
            attr.exclude_user = event.mode == "k"
            attr.exclude_hv = attr.exclude_kernel
            if leader < 0:
                attr.disabled = 1
                attr.pinned = pinned
                attr.enable_on_exec = enable_on_exec
            fd = syscall(SYS_perf_event_open, &attr, pid, cpu, leader, <unsigned long>PERF_FLAG_FD_CLOEXEC)
            if fd < 0:
                self.fail("perf_event_open", event.name)
            self.fds[self.size] = fd
            self.size += 1
            if leader < 0:
                leader = fd
            if event.filter:
                event_filter = event.filter.encode()
                if ioctl(fd, PERF_EVENT_IOC_SET_FILTER, <char*>event_filter) < 0:
                    self.fail("PERF_EVENT_IOC_SET_FILTER", event.name)

    cdef fail(self, str call, str event):
        cdef int number = errno
        self.close()
        raise CountError(number, call, event)

    @property
    def leader(self):
        """The leader's file descriptor; -1 once closed."""
        return self.fds[0] if self.size else -1

    def enable(self):
        self.control(PERF_EVENT_IOC_ENABLE, "PERF_EVENT_IOC_ENABLE")

    def disable(self):
        self.control(PERF_EVENT_IOC_DISABLE, "PERF_EVENT_IOC_DISABLE")

    def reset(self):
        """Set the values to 0; the times go on (perf_event.h)."""
        self.control(PERF_EVENT_IOC_RESET, "PERF_EVENT_IOC_RESET")

    cdef control(self, unsigned long request, str call):
        self.must_be_open()
        if ioctl(self.fds[0], request, <unsigned long>PERF_IOC_FLAG_GROUP) < 0:
            raise CountError(errno, call, self.names[0])

    cdef must_be_open(self):
        if not self.size:
            raise ValueError("this group is closed")

    def read(self):
        """Running totals: a list of (value, time_enabled, time_running), times in ns, one per event.

        A pinned group that lost its counter reads nothing: every event is then (0, 0, 0), that is, uncounted.
        """
        cdef uint64_t block[3 + MOST]
        cdef long got
        self.must_be_open()
        with nogil:
            got = read_block(self.fds[0], block)
        if got < 0:
            raise CountError(errno, "read", self.names[0])
        if got == 0:
            return [(0, 0, 0)] * self.size
        return [(block[3 + i], block[1], block[2]) for i in range(min(self.size, <int>block[0]))]

    def close(self):
        """Close every member; harmless when done twice."""
        while self.size:
            self.size -= 1
            c_close(self.fds[self.size])

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()

    def __dealloc__(self):
        while self.size:
            self.size -= 1
            c_close(self.fds[self.size])


cdef long read_block(int fd, uint64_t *block) noexcept nogil:
    cdef long got
    while True:
        got = c_read(fd, block, (3 + MOST) * sizeof(uint64_t))
        if got >= 0 or errno != EINTR:
            return got


def detached_tracefs():
    """A descriptor of a tracefs that is mounted nowhere: tracepoint ids can be read below /proc/self/fd/N.

    For machines where nobody mounted tracefs; changes nothing that another process could see. Needs CAP_SYS_ADMIN
    (fsopen, fsconfig, fsmount: include/uapi/linux/mount.h; the numbers are the same on every architecture).
    Raises CountError.
    """
    cdef long context = syscall(430, b"tracefs", <unsigned long>1)  # FSOPEN_CLOEXEC
    cdef long mounted
    if context < 0:
        raise CountError(errno, "fsopen", "tracefs")
    if syscall(431, context, <long>6, NULL, NULL, <long>0) < 0:  # FSCONFIG_CMD_CREATE
        c_close(<int>context)
        raise CountError(errno, "fsconfig", "tracefs")
    mounted = syscall(432, context, <unsigned long>1, <unsigned long>0)  # FSMOUNT_CLOEXEC
    c_close(<int>context)
    if mounted < 0:
        raise CountError(errno, "fsmount", "tracefs")
    return mounted
