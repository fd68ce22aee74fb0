/* A session that is made up, of specbound's two knobs, and a sweep that it is asked by: what a run does hangs on its
 * settings alone. It does at once what it is asked for, but tells of a run only in made_run(). */
#ifndef TESTS_RIGS_SWEEP_RIG_H
#define TESTS_RIGS_SWEEP_RIG_H

#include "tests/rigs/segment_rig.h"

#include "engine/tune/knob_sweep.h"

struct made {
    struct fixture *f;
    struct knob_sweep *sweep;
    double tau, d_max;
    char policy[16];          /* "": specbound */
    char run[16], prompt[64]; /* asked for; "": nothing */
    uint32_t asked, rounds;   /* runs and how many rounds each has */
    const char *refuse;       /* a knob that can't be turned */
    bool alike;               /* knobs change nothing */
    double slow;              /* factor of all times */
    bool silent;              /* changes are not recorded yet */
    char end[16];
};

void made_session(struct made *, struct fixture *); /* with a run that goes; its sweep is to be closed */
struct run_host made_host_of(struct made *);
void made_baseline(struct made *, bool with); /* whether the model has plain decoding; at first it has not */
bool made_ask_knob(struct made *, const char *name, const char *text, struct err *);
void made_ask_run(struct made *, const char *prompt);
void made_emit_control(struct made *, const char *name, const char *before, const char *after);
void made_emit_round(struct made *, uint32_t sequences);
bool made_run(struct made *, uint32_t rounds); /* the one asked for, up to so many rounds of it; true: to its end */
struct settings made_settings(const struct made *); /* requested */
void made_sweep(struct made *, const char *grid, char *const *prompts, size_t n);
void made_next(struct made *);              /* what is asked for is asked for */
void made_go_on(struct made *, uint32_t n); /* n further runs, or all */

#endif
