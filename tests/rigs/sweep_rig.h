/* A simulated session with specbound's two knobs, and a sweep that controls it. The settings alone determine the
 * results of a run. The session accepts requests at once, but emits a run's events only in made_run(). */
#pragma once

#include "tests/rigs/segment_rig.h"

#include "engine/tune/knob_sweep.h"

struct made {
    struct fixture *f;
    struct knob_sweep *sweep;
    double tau, d_max;
    char policy[16];          /* "": specbound */
    char run[16], prompt[64]; /* requested; "": nothing */
    uint32_t asked, rounds;   /* number of requested runs; rounds of each */
    const char *refuse;       /* a knob whose changes are refused */
    bool alike;               /* knobs change nothing */
    double slow;              /* factor of all times */
    bool silent;              /* changes are not recorded yet */
    char end[16];
};

void made_session(struct made *, struct fixture *); /* with a run in progress; the caller closes its sweep */
struct run_host made_host_of(struct made *);
void made_baseline(struct made *, bool with); /* whether plain decoding is available (false) */
bool made_ask_knob(struct made *, const char *name, const char *text, struct err *);
void made_ask_run(struct made *, const char *prompt);
void made_emit_control(struct made *, const char *name, const char *before, const char *after);
void made_emit_round(struct made *, uint32_t sequences);
bool made_run(struct made *, uint32_t rounds); /* plays up to so many rounds of the requested run; true: it ended */
struct settings made_settings(const struct made *); /* requested */
void made_sweep(struct made *, const char *grid, char *const *prompts, size_t n);
void made_next(struct made *);              /* lets the sweep make its next request */
void made_go_on(struct made *, uint32_t n); /* plays n further runs, or all */
