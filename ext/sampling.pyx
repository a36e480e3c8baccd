"""Where tasks are: cpu-clock samples of one CPU's tasks, or of one task and its descendants on that CPU, from a ring.

Layouts: include/uapi/linux/perf_event.h (perf_event_mmap_page, PERF_RECORD_SAMPLE).
"""

from libc.errno cimport errno
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strerror
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap
from posix.unistd cimport _SC_PAGESIZE, close as c_close, sysconf

cdef extern from "<linux/perf_event.h>" nogil:
    cdef struct perf_event_attr:
        unsigned int type
        unsigned int size
        uint64_t config
        uint64_t sample_freq
        uint64_t sample_type
        uint64_t disabled
        uint64_t inherit
        uint64_t exclude_kernel
        uint64_t exclude_hv
        uint64_t freq
    cdef struct perf_event_mmap_page:
        uint64_t data_head
        uint64_t data_tail
    cdef enum:
        PERF_TYPE_SOFTWARE
        PERF_COUNT_SW_CPU_CLOCK
        PERF_SAMPLE_IP
        PERF_SAMPLE_TID
        PERF_RECORD_SAMPLE
        PERF_FLAG_FD_CLOEXEC

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

cdef extern from "<sys/syscall.h>" nogil:
    const long SYS_perf_event_open

cdef extern from * nogil:
    """
    #define load_head(page) __atomic_load_n(&(page)->data_head, __ATOMIC_ACQUIRE)
    #define store_tail(page, value) __atomic_store_n(&(page)->data_tail, (value), __ATOMIC_RELEASE)
    """
    uint64_t load_head(perf_event_mmap_page *page)
    void store_tail(perf_event_mmap_page *page, uint64_t value)

cdef enum:
    PAGES = 64  # of the ring; a power of two
    SAMPLE = 24  # bytes: header, instruction pointer, pid and tid


cdef class Sampler:
    """Samples in user mode `frequency` times a second of CPU time. pid -1: every task on `cpu`; 0: the calling task and
    the tasks that it starts from now on. Raises OSError with the kernel's errno."""

    cdef int fd
    cdef size_t page_size
    cdef perf_event_mmap_page *page

    def __cinit__(self, int cpu, int pid=-1, int frequency=199):
        cdef perf_event_attr attr
        cdef void *found
        self.fd = -1
        memset(&attr, 0, sizeof(attr))
        attr.size = sizeof(attr)
        attr.type = PERF_TYPE_SOFTWARE
        attr.config = PERF_COUNT_SW_CPU_CLOCK
        attr.freq = 1
        attr.sample_freq = frequency
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID
        attr.inherit = pid >= 0
        attr.exclude_kernel = attr.exclude_hv = 1
        self.page_size = sysconf(_SC_PAGESIZE)
        self.fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, <unsigned long>PERF_FLAG_FD_CLOEXEC)
        if self.fd < 0:
            raise OSError(errno, f"perf_event_open cpu-clock: {strerror(errno).decode()}")
        found = mmap(NULL, (1 + PAGES) * self.page_size, PROT_READ | PROT_WRITE, MAP_SHARED, self.fd, 0)
        if found == MAP_FAILED:
            raise OSError(errno, f"mmap of the samples' ring: {strerror(errno).decode()}")
        self.page = <perf_event_mmap_page *>found

    def __dealloc__(self):
        self.close()

    def close(self):
        if self.page != NULL:
            munmap(self.page, (1 + PAGES) * self.page_size)
            self.page = NULL
        if self.fd >= 0:
            c_close(self.fd)
            self.fd = -1

    def read(self):
        """[(pid, address), ...] since the last call; what came while the ring was full is lost."""
        cdef uint64_t head, tail, size = PAGES * self.page_size
        cdef uint8_t record[SAMPLE]
        cdef uint8_t *ring
        cdef uint32_t kind, i, pid
        cdef uint16_t length
        cdef uint64_t address
        if self.page == NULL:
            return []
        found = []
        ring = <uint8_t *>self.page + self.page_size
        head, tail = load_head(self.page), self.page.data_tail
        while tail < head:
            for i in range(<uint32_t>SAMPLE):  # a record may lie across the ring's end
                record[i] = ring[(tail + i) % size]
            memcpy(&kind, record, 4)
            memcpy(&length, record + 6, 2)
            if kind == PERF_RECORD_SAMPLE and length >= SAMPLE:
                memcpy(&address, record + 8, 8)
                memcpy(&pid, record + 16, 4)
                found.append((pid, address))
            if length == 0:
                break
            tail += length
        store_tail(self.page, tail)
        return found
