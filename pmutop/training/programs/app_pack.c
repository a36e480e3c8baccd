/* Pack: LZ-like compression of --size bytes of text in blocks of 64 KiB. Iteration: all blocks. */
#include "program.h"

static long size;
static uint8_t *input;

static long pack(const uint8_t *block, long length, uint32_t *last)
{
    long out = 0;
    memset(last, 0, 4 << 13);
    for (long i = 0; i + 8 < length;) {
        uint32_t word;
        memcpy(&word, block + i, 4);
        uint32_t *slot = &last[word * 2654435761u >> 19];
        long from = (long)*slot - 1, match = 0;
        *slot = (uint32_t)i + 1;
        while (from >= 0 && i + match < length && block[from + match] == block[i + match])
            match++;
        out += match >= 4 ? 3 : 1;
        i += match >= 4 ? match : 1;
    }
    return out;
}

static void work(struct worker *worker)
{
    uint32_t last[1 << 13];
    long blocks = size >> 16;
    ready(worker);
    while (iteration(worker)) {
        long out = 0;
        for (long i = part_from(worker, blocks); i < part_to(worker, blocks); i++)
            out += pack(input + (i << 16), 1 << 16, last);
        worker->check += worker->index == 0 && out > 0 && out < size;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program.threads = true;
    size = number("size", 8 << 20);
    input = malloc((size_t)size);
    uint64_t x = 42;
    for (long i = 0; i < size; i++) /* words of a small language */
        input[i] = (uint8_t)(i % 6 == 5 ? ' ' : 'a' + (xorshift(&x) & (x >> 8) & 15));
    program_run(work);
}
