/* A QEMU user-mode plugin that counts what a PMU would: caches, TLBs, branches, opcodes and chains of dependent
 * instructions of the program that runs under it, thread by thread, into a page that is read from outside at any time.
 *
 *   qemu-x86_64 -plugin PLUGIN,page=FILE[,l1d=SIZE:WAYS][,l1i=..][,l2=..][,l3=..][,line=64][,prefetch=0][,trace=FILE] PROGRAM
 *
 * A size of 0 leaves a cache of the second or third level out. trace: every data access as (address, bytes | store << 32),
 * for short programs of one thread. What is modelled is user mode alone: no kernel, no other processes, no cycles. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "branches.h"
#include "caches.h"
#include "counters.h"
#include "instructions.h"
#include "qemu_api.h"
#include "successor.h"

VISIBLE int qemu_plugin_version = 1;

enum { CORES = 1 << 16 }; /* threads that one process may have */
/* Chains are followed in so many of so many instructions: the rest would only cost time. */
enum { FOLLOWED = 1024, OF = 8192 };

/* Where a thread is is noted each time that it has cost so much, in instructions; what a miss costs is a guess. */
enum { EACH = 1 << 19, COST_L2_MISS = 40, COST_L3_MISS = 300, COST_WRONG_BRANCH = 30 };

static struct geometry l1d_size = {48 << 10, 12}, l1i_size = {32 << 10, 8}, l2_size = {1 << 20, 16}, l3_size = {32 << 20, 16};
static int line_shift = 6;
static bool prefetches = true, is_x86;
static struct page *page;
static struct shared_cache l3;
static FILE *trace;

/* One straight piece of code as it was translated. */
struct piece {
    struct piece *next;
    uint64_t start, end; /* end: where it goes on unless it jumps */
    unsigned count, calls, classes[WIDE_OPS + 3 - FP_OPS];
    uint8_t ending;
    struct operation operation[];
};

struct core {
    uint64_t *count; /* in the page; NULL until claimed, and again after a fork */
    struct slot *slot;
    uint64_t line, access_end, access_by; /* the last data access */
    struct cache l1d, l1i, l2;
    struct tlb data, code;
    struct prefetcher prefetcher;
    struct predictor predictor;
    struct dataflow flow;
    uint64_t noted; /* cost at which the last place was noted */
    const struct piece *before;
};

static struct core *cores[CORES];
static struct piece *pieces;
static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- threads and their slots ---- */

static void claim(struct core *core)
{
    for (;;) {
        struct slot *slot = &page->slot[__atomic_fetch_add(&page->next, 1, __ATOMIC_RELAXED) % SLOTS];
        uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
        if (state != LIVE && __atomic_compare_exchange_n(&slot->state, &state, LIVE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            memset(slot->count, 0, sizeof slot->count);
            slot->placed = 0;
            core->noted = 0;
            slot->pid = (uint32_t)getpid();
            __atomic_store_n(&slot->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
            core->slot = slot;
            core->count = slot->count;
            return;
        }
    }
}

static struct core *core_begin(unsigned number)
{
    struct core *core = cores[number] = calloc(1, sizeof *core);
    cache_make(&core->l1d, l1d_size.size >> line_shift, l1d_size.ways);
    cache_make(&core->l1i, l1i_size.size >> line_shift, l1i_size.ways);
    cache_make(&core->l2, l2_size.size >> line_shift, l2_size.ways);
    tlb_make(&core->data, 64, 4, 2048, 8);
    tlb_make(&core->code, 64, 4, 2048, 8);
    core->line = UINT64_MAX;
    return core;
}

static void core_end(plugin_id id, unsigned number)
{
    (void)id;
    struct core *core = cores[number];
    if (!core)
        return;
    cores[number] = NULL;
    if (core->slot)
        __atomic_store_n(&core->slot->state, ENDED, __ATOMIC_RELEASE);
    cache_free(&core->l1d);
    cache_free(&core->l1i);
    cache_free(&core->l2);
    cache_free(&core->data.first), cache_free(&core->data.second);
    cache_free(&core->code.first), cache_free(&core->code.second);
    free(core);
}

/* The child has one thread and counts from 0; its caches are as warm as its parent's. */
static void forked(void)
{
    for (int i = 0; i < CORES; i++)
        if (cores[i])
            cores[i]->count = NULL, cores[i]->slot = NULL;
    atomic_flag_clear(&l3.busy);
}

static void ended(plugin_id id, void *unused)
{
    (void)id, (void)unused;
    for (int i = 0; i < CORES; i++)
        if (cores[i] && cores[i]->slot)
            __atomic_store_n(&cores[i]->slot->state, ENDED, __ATOMIC_RELEASE);
    if (trace)
        fclose(trace);
}

/* ---- data ---- */

/* Fetches a line ahead of its use: into the first cache too where it will be needed soon. */
static inline void fetch(struct core *core, uint64_t line, bool near)
{
    uint64_t *count = core->count;
    if (near) {
        count[PREFETCHES] += !cache_has(&core->l1d, line);
        return;
    }
    if (core->l2.sets && cache_has(&core->l2, line))
        return;
    count[PREFETCH_L2_MISSES]++;
    if (l3.cache.sets)
        count[PREFETCH_L3_MISSES] += !shared_has(&l3, line);
}

static inline void prefetch(struct core *core, uint64_t line)
{
    struct stream *stream = stream_of(&core->prefetcher, line);
    if (!stream || stream->steps < 2)
        return;
    int first = stream->steps == 2 ? 1 : 0; /* one that was followed before lacks only its farthest lines */
    for (int ahead = first ? 1 : FAR; ahead <= FAR; ahead++)
        fetch(core, line + (uint64_t)(stream->step * ahead), false);
    for (int ahead = first ? 1 : NEAR; ahead <= NEAR; ahead++)
        fetch(core, line + (uint64_t)(stream->step * ahead), true);
}

static inline void data_line(struct core *core, uint64_t line)
{
    uint64_t *count = core->count;
    core->line = line;
    tlb_look(&core->data, line >> (PAGE_SHIFT - line_shift), &count[DTLB_MISSES], &count[DTLB_WALKS]);
    if (!cache_has(&core->l1d, line)) {
        count[L1D_MISSES]++;
        bool missed = !core->l2.sets || !cache_has(&core->l2, line);
        count[L2_MISSES] += core->l2.sets && missed;
        if (missed && l3.cache.sets)
            count[L3_MISSES] += !shared_has(&l3, line);
    }
    if (prefetches)
        prefetch(core, line);
}

static void access_data(unsigned number, memory_info info, uint64_t address, void *by)
{
    struct core *core = cores[number];
    uint64_t bytes = 1u << qemu_plugin_mem_size_shift(info), first = address >> line_shift;
    bool store = qemu_plugin_mem_is_store(info);
    /* one instruction's wide access comes in parts: it is counted once */
    if (address != core->access_end || (uint64_t)by != core->access_by)
        core->count[store ? STORES : LOADS]++;
    core->access_end = address + bytes;
    core->access_by = (uint64_t)by;
    if (trace) {
        uint64_t record[2] = {address, bytes | (uint64_t)store << 32};
        fwrite(record, sizeof record, 1, trace);
    }
    if (first != core->line)
        data_line(core, first);
    if ((address + bytes - 1) >> line_shift != first)
        data_line(core, first + 1);
}

/* ---- code ---- */

static inline void fetch_code(struct core *core, const struct piece *piece)
{
    uint64_t *count = core->count;
    for (uint64_t line = piece->start >> line_shift; line <= (piece->end - 1) >> line_shift; line++) {
        tlb_look(&core->code, line >> (PAGE_SHIFT - line_shift), &count[ITLB_MISSES], &count[ITLB_WALKS]);
        if (cache_has(&core->l1i, line))
            continue;
        count[L1I_MISSES]++;
        bool missed = !core->l2.sets || !cache_has(&core->l2, line);
        count[L2I_MISSES] += core->l2.sets && missed;
        if (missed && l3.cache.sets)
            count[L3I_MISSES] += !shared_has(&l3, line);
    }
}

static inline void arrive(struct core *core, const struct piece *before, uint64_t here)
{
    uint64_t *count = core->count;
    if (before->ending == CONDITIONAL) {
        count[BRANCHES]++;
        count[BRANCH_MISSES] += direction_missed(&core->predictor, before->end, here != before->end);
    } else if (before->ending == INDIRECT) {
        count[INDIRECT_BRANCHES]++;
        count[INDIRECT_MISSES] += target_missed(&core->predictor, before->end, here);
    }
}

static inline void follow(struct core *core, const struct piece *piece)
{
    uint64_t done = core->flow.done, longest = core->flow.longest, *count = core->count;
    dataflow_run(&core->flow, piece->operation, piece->count);
    count[PATH_INSTRUCTIONS] += piece->count;
    count[PATH_DEPTH] += core->flow.done - done;
    count[PATH_LOADS] += core->flow.longest - longest;
}

static inline void note_place(struct core *core)
{
    const uint64_t *count = core->count;
    uint64_t cost = count[INSTRUCTIONS] + count[L2_MISSES] * COST_L2_MISS + count[L3_MISSES] * COST_L3_MISS +
                    (count[BRANCH_MISSES] + count[INDIRECT_MISSES]) * COST_WRONG_BRANCH;
    if (cost - core->noted < EACH)
        return;
    core->noted = cost;
    core->slot->place[core->slot->placed % PLACES] = core->before->start; /* it has just run: its misses are counted */
    __atomic_store_n(&core->slot->placed, core->slot->placed + 1, __ATOMIC_RELEASE);
}

static void execute(unsigned number, void *data)
{
    const struct piece *piece = data;
    struct core *core = cores[number] ? cores[number] : core_begin(number);
    if (!core->count)
        claim(core);
    uint64_t *count = core->count;
    if (core->before) {
        arrive(core, core->before, piece->start);
        note_place(core);
    }
    if (piece != core->before) /* its lines are the last ones used */
        fetch_code(core, piece);
    core->before = piece;
    count[INSTRUCTIONS] += piece->count;
    count[CALLS] += piece->calls;
    for (int i = FP_OPS; i <= ATOMIC_OPS; i++)
        count[i] += piece->classes[i - FP_OPS];
    if (count[INSTRUCTIONS] % OF < FOLLOWED)
        follow(core, piece);
}

static void translate(plugin_id id, struct block *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    struct piece *piece = calloc(1, sizeof *piece + count * sizeof *piece->operation);
    piece->count = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        struct instruction *instruction = qemu_plugin_tb_get_insn(block, i);
        char *text = qemu_plugin_insn_disas(instruction);
        struct operation *op = &piece->operation[i];
        *op = operation_of(text, is_x86);
        free(text);
        uint64_t at = qemu_plugin_insn_vaddr(instruction);
        if (i == 0)
            piece->start = at;
        piece->end = at + qemu_plugin_insn_size(instruction);
        piece->ending = op->ending;
        piece->calls += op->call;
        if (op->class)
            piece->classes[op->class - FP_OPS]++;
        /* a repeated string instruction makes one access after the other, each counted */
        qemu_plugin_register_vcpu_mem_cb(instruction, access_data, NO_REGISTERS, LOADS_AND_STORES, op->string ? NULL : (void *)at);
    }
    pthread_mutex_lock(&pieces_lock);
    piece->next = pieces;
    pieces = piece;
    pthread_mutex_unlock(&pieces_lock);
    qemu_plugin_register_vcpu_tb_exec_cb(block, execute, NO_REGISTERS, piece);
}

/* All translations are thrown away (a program that makes code); every thread stands still. */
static void flushed(plugin_id id)
{
    (void)id;
    for (int i = 0; i < CORES; i++)
        if (cores[i])
            cores[i]->before = NULL;
    for (struct piece *next; pieces; pieces = next) {
        next = pieces->next;
        free(pieces);
    }
}

/* ---- the start ---- */

static bool option(const char *argument, const char *name, const char **value)
{
    size_t length = strlen(name);
    *value = argument + length + 1;
    return !strncmp(argument, name, length) && argument[length] == '=';
}

static bool set_geometry(struct geometry *geometry, const char *value)
{
    return sscanf(value, "%ld:%d", &geometry->size, &geometry->ways) == 2 &&
           (!geometry->size || (geometry->ways > 0 && geometry->size >= geometry->ways << line_shift));
}

static bool open_page(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *page))
        return false;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED)
        return false;
#define NAME_LINE(symbol, name) name "\n"
    strcpy(page->names, COUNTERS(NAME_LINE));
    page->counted = COUNTED, page->slots = SLOTS;
    __atomic_store_n(&page->magic, PAGE_MAGIC, __ATOMIC_RELEASE);
    return true;
}

VISIBLE int qemu_plugin_install(plugin_id id, const struct emulator *emulator, int count, char **argument)
{
    const struct { const char *name; struct geometry *geometry; } caches[] = {
        {"l1d", &l1d_size}, {"l1i", &l1i_size}, {"l2", &l2_size}, {"l3", &l3_size}};
    const char *path = NULL, *value;
    is_x86 = !strcmp(emulator->target, "x86_64") || !strcmp(emulator->target, "i386");
    for (int i = 0; i < count; i++) {
        bool known = false, good = true;
        for (int k = 0; k < 4; k++)
            if (option(argument[i], caches[k].name, &value))
                known = true, good = set_geometry(caches[k].geometry, value);
        if (option(argument[i], "page", &value))
            known = true, path = value;
        if (option(argument[i], "line", &value))
            known = true, line_shift = __builtin_ctz((unsigned)atoi(value) | 1u << 12);
        if (option(argument[i], "prefetch", &value))
            known = true, prefetches = atoi(value);
        if (option(argument[i], "trace", &value))
            known = true, good = (trace = fopen(value, "wb")) != NULL;
        if (!known || !good) {
            fprintf(stderr, "simulator: cannot understand %s\n", argument[i]);
            return 1;
        }
    }
    if (!path || !open_page(path)) {
        fprintf(stderr, "simulator: cannot open the page %s\n", path ? path : "(page= is missing)");
        return 1;
    }
    cache_make(&l3.cache, l3_size.size >> line_shift, l3_size.ways);
    pthread_atfork(NULL, NULL, forked);
    if (!emulator->whole_system && !trace)
        remember_options(count, argument);
    qemu_plugin_register_vcpu_syscall_cb(id, before_syscall);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_exit_cb(id, core_end);
    qemu_plugin_register_flush_cb(id, flushed);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
