/* What an instruction is and which registers it waits for, from the disassembler's text (AT&T order, the target last).
 * x86 is read in full; of other processors' instructions only what the block's end is, so that caches, TLBs and
 * branches are counted there and opcode classes are not. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "counters.h"

enum { NOTHING, GENERAL = 1, VECTOR = 17, STACK87 = 49, FLAGS, REGISTERS }; /* register 0 is always ready */
enum ending { FALLS_THROUGH, CONDITIONAL, INDIRECT };

struct operation {
    uint8_t address[2], from[3], to, flags_to;
    uint8_t latency;
    bool loads, string;
    uint8_t class; /* a counter of opcodes, or 0 */
    uint8_t ending;
    bool call;
};

enum { LOAD_LATENCY = 4, FP_LATENCY = 4, MUL_LATENCY = 3, DIV_LATENCY = 14, X87_LATENCY = 5, MICROCODE_LATENCY = 80 };

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static bool one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (begins(word, *list))
            return true;
    return false;
}

/* "rax", "r10d", "xmm3", "st(1)" and so on, without the %; NOTHING for the stack pointer (the core renames it), rip,
 * segments. */
static uint8_t register_of(const char *name)
{
    static const char *const old[] = {"ax", "bx", "cx", "dx", "si", "di", "bp"};
    if ((*name == 'x' || *name == 'y' || *name == 'z') && begins(name + 1, "mm"))
        return (uint8_t)(VECTOR + (atoi(name + 3) & 31));
    if (begins(name, "st"))
        return STACK87;
    if (*name == 'r' && name[1] >= '0' && name[1] <= '9')
        return (uint8_t)(GENERAL + 7 + (atoi(name + 1) & 7));
    const char *core = (*name == 'r' || *name == 'e') && name[1] && name[2] >= 'a' && name[2] <= 'z' ? name + 1 : name;
    for (int i = 0; i < 7; i++)
        if (begins(core, old[i]) || (i < 4 && core[0] == old[i][0] && (core[1] == 'l' || core[1] == 'h')))
            return (uint8_t)(GENERAL + i);
    return NOTHING;
}

/* Splits at the commas outside of parentheses; returns the number of operands (at most 4). */
static int operands_of(char *text, char **operand)
{
    int count = 0, depth = 0;
    while (*text == ' ')
        text++;
    if (*text)
        operand[count++] = text;
    for (; *text; text++) {
        depth += (*text == '(') - (*text == ')');
        if (*text == ',' && !depth && count < 4) {
            *text++ = 0;
            while (*text == ' ')
                text++;
            operand[count++] = text--;
        }
    }
    return count;
}

static bool is_memory(const char *operand)
{
    if (*operand == '*')
        operand++;
    return *operand != '%' && *operand != '$' ? true : *operand == '%' && strchr(operand, ':');
}

/* Class and latency by mnemonic. A vector instruction works on floating point where its name ends in ss, sd, ps or pd
 * and it does more than move. */
static void classify(struct operation *op, const char *word, bool vector)
{
    static const char *const microcode[] = {"fsin", "fcos", "fptan", "fpatan", "fyl2x", "f2xm1", "fprem", "fscale",
                                            "fbld", "fbstp", "cpuid", "rdtsc", NULL};
    static const char *const not_x87[] = {"fxsave", "fxrstor", "femms", NULL};
    static const char *const wide[] = {"adc", "sbb", "shld", "shrd", "bsr", "bsf", "lzcnt", "tzcnt", "rcl", "rcr",
                                       "adox", "adcx", NULL};
    static const char *const no_arithmetic[] = {"mov", "shuf", "unpck", "blend", "broadcast", "perm", "and", "or",
                                                "xor", "insert", "extract", "test", "gather", NULL};
    size_t length = strlen(word);
    if (one_of(word, microcode)) {
        op->class = MICROCODED_OPS, op->latency = MICROCODE_LATENCY;
    } else if (*word == 'f' && !one_of(word, not_x87)) {
        op->class = X87_OPS, op->latency = X87_LATENCY;
    } else if (strstr(word, "div") || strstr(word, "sqrt")) {
        op->class = DIV_OPS, op->latency = DIV_LATENCY;
    } else if (!vector && (begins(word, "imul") || begins(word, "mul"))) {
        op->class = MUL_OPS, op->latency = MUL_LATENCY;
    } else if (!vector && one_of(word, wide)) {
        op->class = WIDE_OPS, op->latency = 1;
    } else if (vector && length > 3) {
        const char *core = *word == 'v' ? word + 1 : word, *end = word + length - 2;
        bool floats = (*end == 's' || *end == 'p') && (end[1] == 's' || end[1] == 'd');
        if ((floats && !one_of(core, no_arithmetic)) || begins(core, "cvt")) /* cvtsi2sd may end in l or q */
            op->class = FP_OPS, op->latency = FP_LATENCY;
        else if (begins(core, "pmul") || begins(core, "pmadd"))
            op->class = MUL_OPS, op->latency = MUL_LATENCY;
    }
}

static bool writes_flags(const char *word)
{
    static const char *const list[] = {"add", "sub", "cmp", "test", "and", "or", "xor", "inc", "dec", "neg", "sh", "sa",
                                       "ro", "rc", "adc", "sbb", "imul", "mul", "bt", "bs", "ucomi", "comi", "vucomi",
                                       "vcomi", "ptest", "vptest", "lzcnt", "tzcnt", "popcnt", "cmpxchg", "xadd", NULL};
    return one_of(word, list);
}

static void add_source(struct operation *op, uint8_t source)
{
    for (int i = 0; source && i < 3; i++)
        if (!op->from[i] || op->from[i] == source) {
            op->from[i] = source;
            return;
        }
}

static void add_address(struct operation *op, const char *operand)
{
    const char *at = strchr(operand, '(');
    for (int i = 0; at && i < 2; i++) {
        at = strchr(at, '%');
        op->address[i] = at ? register_of(++at) : NOTHING;
    }
}

/* Reads one line of disassembly; `text` is spoilt. */
static struct operation operation_of(char *text, bool x86)
{
    static const char *const no_target[] = {"cmp", "test", "ucomi", "comi", "vucomi", "vcomi", "ptest", "vptest", "push",
                                            "bt", "prefetch", "call", "jmp", "nop", NULL};
    static const char *const fresh_target[] = {"mov", "lea", "pop", "set", "cvt", "lzcnt", "tzcnt", "popcnt", "pshuf",
                                               "pmovmsk", "pabs", "bs", "sqrt", NULL};
    static const char *const strings[] = {"movs", "stos", "cmps", "scas", "lods", NULL};
    struct operation op = {.latency = 1};
    if (!text)
        return op;
    char *word = text, *rest, *operand[4];
    bool locked = false;
    for (;;) { /* prefixes stand as words of their own */
        rest = strchr(word, ' ');
        if (rest)
            *rest++ = 0;
        locked |= begins(word, "lock");
        op.string |= begins(word, "rep");
        if (!rest || !(begins(word, "lock") || begins(word, "rep") || begins(word, "data16") || begins(word, "notrack") ||
                       begins(word, "bnd")))
            break;
        word = rest + strspn(rest, " ");
    }
    if (!x86) {
        bool conditional = begins(word, "b.") || begins(word, "cb") || begins(word, "tb");
        op.ending = conditional                                            ? CONDITIONAL
                    : !strcmp(word, "br") || !strcmp(word, "blr")          ? INDIRECT
                                                                           : FALLS_THROUGH;
        op.call = begins(word, "bl") && (word[2] == 0 || word[2] == 'r');
        return op;
    }
    op.string &= one_of(word, strings);
    int count = rest ? operands_of(rest, operand) : 0;
    bool jump = *word == 'j' || begins(word, "loop"), call = begins(word, "call");
    if (jump || call) {
        bool direct = !count || *operand[0] != '*';
        op.call = call;
        op.ending = !direct ? INDIRECT : jump && !begins(word, "jmp") ? CONDITIONAL : FALLS_THROUGH;
    }
    bool vector = false;
    for (int i = 0; i < count; i++)
        vector |= strstr(operand[i], "mm") != NULL;
    classify(&op, word, vector);
    if (op.string)
        op.class = STRING_OPS;
    if (locked || begins(word, "xchg"))
        op.class = is_memory(count ? operand[count - 1] : "%") || (count && is_memory(operand[0])) ? ATOMIC_OPS : op.class;
    /* who waits for whom */
    const char *core = *word == 'v' && vector ? word + 1 : word;
    bool lea = begins(word, "lea"), targetless = one_of(word, no_target) || jump || begins(word, "ret");
    for (int i = 0; i < count; i++) {
        bool last = i == count - 1 && !(count == 1 && (begins(word, "mul") || begins(word, "div")));
        if (is_memory(operand[i])) {
            add_address(&op, operand[i]);
            if (lea)
                add_source(&op, op.address[0]), add_source(&op, op.address[1]);
            else if (!last || targetless || count == 1)
                op.loads = true;
        } else if (*operand[i] == '%' || (*operand[i] == '*' && operand[i][1] == '%')) {
            uint8_t name = register_of(operand[i] + (*operand[i] == '*' ? 2 : 1));
            if (!last || targetless)
                add_source(&op, name);
            else {
                op.to = name;
                bool three = *word == 'v' && count >= 3 && !begins(core, "fm") && !begins(core, "fnm");
                if (!three && !one_of(core, fresh_target))
                    add_source(&op, name);
            }
        }
    }
    bool erases = (begins(core, "xor") || begins(core, "pxor") || begins(word, "sub") || begins(core, "psub")) && count >= 2 &&
                  !strcmp(operand[0], operand[1]);
    if (erases)
        memset(op.from, 0, sizeof op.from);
    if (lea)
        op.address[0] = op.address[1] = NOTHING;
    if (op.class == X87_OPS || op.class == MICROCODED_OPS) {
        if (begins(word, "fld") || begins(word, "fild"))
            memset(op.from, 0, sizeof op.from);
        else
            add_source(&op, STACK87);
        op.to = STACK87;
    }
    if (count == 1 && !vector && (begins(word, "mul") || begins(word, "div") || begins(word, "idiv") || begins(word, "imul"))) {
        add_source(&op, GENERAL + 0); /* rax */
        op.to = GENERAL + 0;
    }
    if (begins(word, "adc") || begins(word, "sbb") || begins(word, "cmov") || begins(word, "set"))
        add_source(&op, FLAGS);
    if (!vector || targetless)
        op.flags_to = writes_flags(word) ? FLAGS : NOTHING;
    return op;
}

/* ---- how long the chains of dependent instructions are ---- */

/* An ideal core of this width and window: an instruction starts when its operands are there, but not before the one
 * WINDOW earlier is done. Latencies are those of hits in the first cache: misses are counted elsewhere. */
enum { WIDTH = 4, WINDOW = 512, MARKS = 8 };

struct dataflow {
    uint64_t ready[REGISTERS], chain[REGISTERS]; /* when, and how many loads led to it */
    uint64_t done, longest;                      /* of all until now */
    uint64_t issued;                             /* instructions */
    uint64_t mark_done[MARKS], mark_longest[MARKS];
    unsigned marks, since;
};

static inline uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline void dataflow_run(struct dataflow *flow, const struct operation *op, unsigned count)
{
    uint64_t floor = later(flow->mark_done[flow->marks % MARKS], flow->issued / WIDTH);
    uint64_t least = flow->mark_longest[flow->marks % MARKS];
    for (const struct operation *end = op + count; op < end; op++) {
        uint64_t start = later(floor, later(flow->ready[op->address[0]], flow->ready[op->address[1]]));
        uint64_t chain = later(least, later(flow->chain[op->address[0]], flow->chain[op->address[1]]));
        if (op->loads)
            start += LOAD_LATENCY, chain++;
        for (int i = 0; i < 3; i++) {
            start = later(start, flow->ready[op->from[i]]);
            chain = later(chain, flow->chain[op->from[i]]);
        }
        start += op->latency;
        flow->done = later(flow->done, start);
        flow->longest = later(flow->longest, chain);
        flow->ready[op->to] = flow->ready[op->flags_to] = start;
        flow->chain[op->to] = flow->chain[op->flags_to] = chain;
        flow->ready[NOTHING] = flow->chain[NOTHING] = 0;
    }
    flow->issued += count;
    flow->since += count;
    for (; flow->since >= WINDOW / MARKS; flow->since -= WINDOW / MARKS) {
        flow->mark_done[flow->marks % MARKS] = flow->done;
        flow->mark_longest[flow->marks % MARKS] = flow->longest;
        flow->marks++;
    }
}
#endif
