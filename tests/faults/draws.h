/* Options of programs that draw at random: how many cases, which seed, how long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct draws {
    const char *program, *counted; /* "kills", "--kills": for the usage */
    const char *chosen;            /* an option with a name, "--life"; NULL: there is none */
    uint64_t most;                 /* number of cases; the caller stores the default */
    uint64_t seed;
    time_t until;     /* time of the end; 0: no limit */
    const char *only; /* the value of `chosen`; NULL: all */
};

/* Reads PROGRAM BUILD [--counted N] [--seed S] [--seconds S] [--chosen NAME] and prints the seed. False: it printed the
 * usage. */
bool draws_read(struct draws *, int argc, char **argv);
/* Returns true if enough cases are done or the time is over. */
bool draws_over(const struct draws *, uint64_t done);
