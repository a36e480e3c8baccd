/* A recursive-descent JSON parser over generated records. */
#include "program.h"
#include <ctype.h>

static const char *p;
static double total;

static void blanks(void) { while (isspace((unsigned char)*p)) p++; }
static void value(void);

static void string(void)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\')
            p++;
    p++;
}

static void members(char close, bool named)
{
    p++;
    blanks();
    while (*p && *p != close) {
        if (named) {
            string();
            blanks();
            p++; /* the colon */
        }
        value();
        blanks();
        if (*p == ',')
            p++;
        blanks();
    }
    p++;
}

static void value(void)
{
    blanks();
    if (*p == '{') members('}', true);
    else if (*p == '[') members(']', false);
    else if (*p == '"') string();
    else if (*p == '-' || isdigit((unsigned char)*p)) {
        long whole = 0, sign = 1;
        if (*p == '-') sign = -1, p++;
        while (isdigit((unsigned char)*p)) whole = whole * 10 + *p++ - '0';
        double fraction = 0, scale = 0.1;
        if (*p == '.')
            for (p++; isdigit((unsigned char)*p); p++, scale /= 10) fraction += (*p - '0') * scale;
        total += (double)sign * ((double)whole + fraction);
    } else while (isalpha((unsigned char)*p)) p++;
}

static void work(struct worker *worker)
{
    size_t room = 1 << 20, used = 0;
    char *text_of = malloc(room + 512);
    used += (size_t)sprintf(text_of, "[");
    while (used < room) {
        uint64_t r = xorshift(&worker->random);
        used += (size_t)sprintf(text_of + used, "{\"id\": %u, \"name\": \"user%u\", \"ok\": %s, \"score\": -%u.%03u, \"tags\": [\"a\", \"b\\\"c\", null]},\n",
                                (unsigned)r & 0xffff, (unsigned)(r >> 16) & 0xff, r & 1 ? "true" : "false",
                                (unsigned)(r >> 24) & 0xff, (unsigned)(r >> 32) % 1000);
    }
    strcpy(text_of + used - 2, "]");
    ready(worker);
    while (going(worker)) {
        p = text_of;
        value();
        worker->work += (double)(p - text_of);
        worker->check += (double)strlen(text_of);
    }
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    program_run(work);
}
