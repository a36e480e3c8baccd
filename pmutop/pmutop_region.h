/* Marks regions of a program so that pmutop can count them as tasks of their own: include it, and write
 *
 *     pmutop_region_begin("solve");   ...   pmutop_region_end();
 *
 * Without PMUTOP_REGIONS in the environment a mark costs one branch. With it, each thread opens its own counter group and
 * each region that ends adds a line to that file, a wide CSV: type (the name), path (the place), and a column per event.
 * PMUTOP_EVENTS lists the events as NAME=TYPE:CONFIG (numbers of perf_event_attr; a u or k behind means user or kernel mode
 * only), separated by blanks; pmutop writes it.
 * Regions nest: the n-th region inside another gets that one's place and .n, those outside all others 0.n. A program that
 * hands tasks to several threads names the place itself, as only it knows who created the task:
 *
 *     pmutop_region_begin_at("solve", "0.3.1");
 *
 * An inner region's own line is written inside the outer one and counted there. Linux; C99 with GNU extensions.
 */
#ifndef PMUTOP_REGION_H
#define PMUTOP_REGION_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PMUTOP_EVENTS_MAX 16
#define PMUTOP_DEPTH_MAX 32
#define PMUTOP_PLACE_MAX 256

struct pmutop_count { uint64_t number, enabled, running, value[PMUTOP_EVENTS_MAX]; };

struct pmutop_open_region {
    const char *name;
    char place[PMUTOP_PLACE_MAX];
    int children;
    struct pmutop_count before;
};

static struct { int state, output, events; char header[1024]; uint32_t type[PMUTOP_EVENTS_MAX]; uint64_t config[PMUTOP_EVENTS_MAX]; char mode[PMUTOP_EVENTS_MAX]; } pmutop_plan;
static int pmutop_children; /* regions outside all others, over all threads */
static __thread struct { int opened, leader, depth; struct pmutop_open_region open[PMUTOP_DEPTH_MAX]; } pmutop_own;

/* Reads the environment once; returns whether regions are wanted. state: 0 unknown, 1 being read, 2 on, 3 off. */
static inline int pmutop_wanted(void)
{
    int state = __atomic_load_n(&pmutop_plan.state, __ATOMIC_ACQUIRE), expected = 0, used;
    if (state >= 2) return state == 2;
    if (!__atomic_compare_exchange_n(&pmutop_plan.state, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        while ((state = __atomic_load_n(&pmutop_plan.state, __ATOMIC_ACQUIRE)) == 1) { }
        return state == 2;
    }
    const char *file = getenv("PMUTOP_REGIONS"), *at = getenv("PMUTOP_EVENTS");
    state = 3;
    if (file && *file && at) {
        char name[96];
        int length = snprintf(pmutop_plan.header, sizeof pmutop_plan.header, "type,path");
        while (pmutop_plan.events < PMUTOP_EVENTS_MAX) {
            unsigned type;
            unsigned long long config;
            if (sscanf(at, " %95[^= ]=%u:%lli%n", name, &type, (long long *)&config, &used) < 3) break;
            if (length + strlen(name) + 3 > sizeof pmutop_plan.header) break;
            length += sprintf(pmutop_plan.header + length, ",%s", name);
            pmutop_plan.type[pmutop_plan.events] = type;
            pmutop_plan.config[pmutop_plan.events] = config;
            at += used;
            if (*at == 'u' || *at == 'k') pmutop_plan.mode[pmutop_plan.events] = *at++;
            pmutop_plan.events++;
        }
        strcpy(pmutop_plan.header + length, "\n");
        int fresh = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fresh >= 0) {
            if (write(fresh, pmutop_plan.header, strlen(pmutop_plan.header)) < 0) perror("pmutop region");
            close(fresh);
        }
        pmutop_plan.output = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (pmutop_plan.output >= 0 && pmutop_plan.events > 0) state = 2;
        else fprintf(stderr, "pmutop region: %s: %s\n", file, pmutop_plan.events ? strerror(errno) : "no events");
    }
    __atomic_store_n(&pmutop_plan.state, state, __ATOMIC_RELEASE);
    return state == 2;
}

/* Opens this thread's group, all or nothing; leader -1 where the kernel refuses (then the cells stay empty). */
static inline void pmutop_open_group(void)
{
    int fd[PMUTOP_EVENTS_MAX];
    pmutop_own.opened = 1;
    pmutop_own.leader = -1;
    for (int i = 0; i < pmutop_plan.events; i++) {
        struct perf_event_attr attr;
        memset(&attr, 0, sizeof attr);
        attr.size = sizeof attr;
        attr.type = pmutop_plan.type[i];
        attr.config = pmutop_plan.config[i];
        attr.exclude_kernel = pmutop_plan.mode[i] == 'u';
        attr.exclude_user = pmutop_plan.mode[i] == 'k';
        attr.disabled = !i; /* members that join a running leader may never start */
        attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        fd[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, i ? fd[0] : -1, PERF_FLAG_FD_CLOEXEC);
        if (fd[i] < 0) {
            fprintf(stderr, "pmutop region: event %d of the group: %s\n", i, strerror(errno));
            while (i--) close(fd[i]);
            return;
        }
    }
    if (ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0) == 0) pmutop_own.leader = fd[0];
}

static inline void pmutop_read(struct pmutop_count *count)
{
    if (pmutop_own.leader < 0 || read(pmutop_own.leader, count, sizeof *count) <= 0) memset(count, 0, sizeof *count);
}

static inline void pmutop_region_begin_at(const char *name, const char *place)
{
    if (!pmutop_wanted()) return;
    if (!pmutop_own.opened) pmutop_open_group();
    int depth = pmutop_own.depth++;
    if (depth >= PMUTOP_DEPTH_MAX) return; /* deeper regions are counted in the outer one only */
    struct pmutop_open_region *region = &pmutop_own.open[depth];
    region->name = name;
    region->children = 0;
    if (place) snprintf(region->place, sizeof region->place, "%s", place);
    else if (!depth) snprintf(region->place, sizeof region->place, "0.%d", __atomic_fetch_add(&pmutop_children, 1, __ATOMIC_RELAXED));
    else if (snprintf(region->place, sizeof region->place, "%s.%d", region[-1].place, region[-1].children++) >= PMUTOP_PLACE_MAX)
        snprintf(region->place, sizeof region->place, "%s", region[-1].place);
    pmutop_read(&region->before);
}

static inline void pmutop_region_begin(const char *name) { pmutop_region_begin_at(name, NULL); }

static inline void pmutop_region_end(void)
{
    struct pmutop_count after;
    if (!pmutop_wanted() || !pmutop_own.depth) return;
    pmutop_read(&after);
    if (--pmutop_own.depth >= PMUTOP_DEPTH_MAX) return;
    struct pmutop_open_region *region = &pmutop_own.open[pmutop_own.depth];
    char line[PMUTOP_PLACE_MAX + 128 + PMUTOP_EVENTS_MAX * 24];
    int length = snprintf(line, PMUTOP_PLACE_MAX + 128, "%.100s,%s", region->name, region->place);
    uint64_t enabled = after.enabled - region->before.enabled, running = after.running - region->before.running;
    for (int i = 0; i < pmutop_plan.events; i++) {
        uint64_t value = after.value[i] - region->before.value[i];
        if (!after.number || !running) length += sprintf(line + length, ","); /* not counted is not 0 */
        else if (running < enabled) length += sprintf(line + length, ",%.0f", (double)value * enabled / running);
        else length += sprintf(line + length, ",%llu", (unsigned long long)value);
    }
    line[length++] = '\n';
    if (write(pmutop_plan.output, line, length) < 0) perror("pmutop region"); /* one write: lines never mix */
}

#endif
