#include "tests/faults/draws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
read_one(struct draws *d, const char *name, const char *value)
{
    char *end;
    const uint64_t number = strtoull(value, &end, 10);
    const bool is_number = end != value && *end == '\0';
    if (d->chosen != NULL && strcmp(name, d->chosen) == 0)
        d->only = value;
    else if (is_number && strcmp(name, d->counted) == 0)
        d->most = number;
    else if (is_number && strcmp(name, "--seed") == 0)
        d->seed = number;
    else if (is_number && strcmp(name, "--seconds") == 0)
        d->until = time(NULL) + (time_t)number;
    else
        return false;
    return true;
}

bool
draws_read(struct draws *d, int argc, char **argv)
{
    bool fine = argc >= 2 && argc % 2 == 0;
    for (int i = 2; fine && i < argc; i += 2)
        fine = read_one(d, argv[i], argv[i + 1]);
    if (fine)
        printf("seed %llu\n", (unsigned long long)d->seed);
    else
        fprintf(stderr, "usage: %s BUILD [%s N] [--seed S] [--seconds S]%s%s%s\n", d->program, d->counted,
                d->chosen != NULL ? " [" : "", d->chosen != NULL ? d->chosen : "", d->chosen != NULL ? " NAME]" : "");
    return fine;
}

bool
draws_over(const struct draws *d, uint64_t done)
{
    return done >= d->most || (d->until != 0 && time(NULL) >= d->until);
}
