/* The part of QEMU's plugin API, version 1, that is used here. Debian's qemu-user loads plugins but ships no header;
 * the API is documented in QEMU's docs/devel/tcg-plugins.rst. The symbols are found in the emulator that loads us. */
#ifndef QEMU_API_H
#define QEMU_API_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VISIBLE __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t memory_info;
struct block;
struct instruction;
struct emulator {
    const char *target;
    struct { int least, current; } version;
    bool whole_system;
};
enum { NO_REGISTERS = 0 };     /* a callback reads no registers */
enum { LOADS_AND_STORES = 3 }; /* which accesses a memory callback is for */

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct block *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct block *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct instruction *, void (*)(unsigned, memory_info, uint64_t, void *), int,
                                             int, void *);
extern void qemu_plugin_register_vcpu_exit_cb(plugin_id, void (*)(plugin_id, unsigned));
extern void qemu_plugin_register_flush_cb(plugin_id, void (*)(plugin_id));
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                                     uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
extern size_t qemu_plugin_tb_n_insns(const struct block *);
extern struct instruction *qemu_plugin_tb_get_insn(const struct block *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct instruction *);
extern size_t qemu_plugin_insn_size(const struct instruction *);
extern char *qemu_plugin_insn_disas(const struct instruction *);
extern unsigned qemu_plugin_mem_size_shift(memory_info);
extern bool qemu_plugin_mem_is_store(memory_info);
#endif
