/* A small backtracking matcher (literals, ., *, classes by letter range, $) over random words. */
#include "program.h"

static int match_here(const char *re, const char *s);

static int one(const char *re, const char *s, int *length)
{
    if (*re == '[') {
        *length = 5; /* [x-y] */
        return *s >= re[1] && *s <= re[3] && *s;
    }
    *length = 1;
    return *s && (*re == '.' || *re == *s);
}

static int match_star(const char *re, const char *rest, const char *s)
{
    int length;
    do
        if (match_here(rest, s))
            return 1;
    while (one(re, s++, &length));
    return 0;
}

static int match_here(const char *re, const char *s)
{
    int length;
    if (!*re) return 1;
    if (re[0] == '$' && !re[1]) return !*s;
    int fits = one(re, s, &length);
    if (re[length] == '*') return match_star(re, re + length + 1, s);
    return fits && match_here(re + length, s + 1);
}

static int match(const char *re, const char *s)
{
    do
        if (match_here(re, s))
            return 1;
    while (*s++);
    return 0;
}

static void work(struct worker *worker)
{
    enum { WORDS = 20000, ROOM = 16 };
    static char word[WORDS][ROOM];
    static const char *const patterns[] = {"a[b-e]*f", "x.*y$", "[a-c]*d[a-c]*e", "q", "m.n.*o"};
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < 6 + i % 9; j++)
            word[i][j] = (char)('a' + (xorshift(&worker->random) >> 20) % 26);
    ready(worker);
    for (int i = 0; going(worker);) {
        for (int n = 0; n < 200; n++, i = (i + 1) % WORDS)
            for (int k = 0; k < 5; k++)
                worker->check += match(patterns[k], word[i]);
        worker->work += 200;
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program_run(work);
}
