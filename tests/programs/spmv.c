/* Sparse matrix (compressed rows, eight entries each) times vector. --band 0: columns anywhere; else near the diagonal. */
#include "program.h"

static long rows, band;

static void work(struct worker *worker)
{
    enum { ENTRIES = 8 };
    int32_t *column = malloc((size_t)rows * ENTRIES * sizeof *column);
    float *entry = malloc((size_t)rows * ENTRIES * sizeof *entry);
    double *x = malloc((size_t)rows * sizeof *x), *y = malloc((size_t)rows * sizeof *y);
    for (long r = 0; r < rows; r++) {
        x[r] = 1;
        for (int e = 0; e < ENTRIES; e++) {
            long c = band ? r - band / 2 + (long)(xorshift(&worker->random) % (uint64_t)band)
                          : (long)(xorshift(&worker->random) % (uint64_t)rows);
            column[r * ENTRIES + e] = (int32_t)(c < 0 ? 0 : c >= rows ? rows - 1 : c);
            entry[r * ENTRIES + e] = 0.125f;
        }
    }
    ready(worker);
    for (long r = 0; going(worker);) {
        for (int n = 0; n < 4000; n++, r = r + 1 < rows ? r + 1 : 0) {
            double dot = 0;
            for (long e = r * ENTRIES; e < (r + 1) * ENTRIES; e++)
                dot += (double)entry[e] * x[column[e]];
            y[r] = dot;
            worker->check += dot == 1;
        }
        worker->work += 4000;
    }
    free(y);
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    rows = number("rows", 4 << 20);
    band = number("band", 0);
    program_run(work);
}
