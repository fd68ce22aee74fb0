/* Grids of knobs: KNOB=from:to:step, and the product of several, whose points are numbered with the last knob the fastest. */
#ifndef ENGINE_EVENTS_KNOB_SWEEP_H
#define ENGINE_EVENTS_KNOB_SWEEP_H

#include <stdio.h>

#include "engine/events/policy.h"
#include "engine/events/segments.h"

#define KNOB_GRID_MOST 1000 /* points */
#define KNOB_GRID_AXES 32

struct knob_axis {
    const char *text; /* as given; borrowed */
    char name[16];
    double from, step;
    uint32_t n; /* values */
};

/* ERR_USAGE, one line that begins with `who` ("--grid"): not of that form, or more than KNOB_GRID_MOST values. */
bool knob_axis_parse(struct knob_axis *, const char *text, const char *who, struct err *);
/* All its values must be on the knob's own grid, else two points would be the same one. ERR_USAGE as above. */
bool knob_axis_check(const struct knob_axis *, const struct knob *, const char *policy, const char *who, struct err *);
double knob_axis_value(const struct knob_axis *, const struct knob *, uint32_t i); /* as the knob rounds it */

/* Points of the product; beyond KNOB_GRID_MOST it says KNOB_GRID_MOST + 1. None of no axes is one. */
uint32_t knob_grid_points(const struct knob_axis *const *, size_t n);
/* Which value each axis has at a point: at[n]. */
void knob_grid_at(const struct knob_axis *const *, size_t n, uint32_t point, uint32_t *at);

/* A sweep: the same prompt, or a list of them, run at every point of a grid of knobs, and what each point measured. It is
 * made of events alone: sweep_event() is told everything that happens and never asks for anything; sweep_next() asks, where
 * it is time, for knobs and the next run. What was cut off half-way says nothing and is run again. A point's samples are
 * rounds (engine/events/estimate.h), of whole runs; a sweep that was whole goes over its points once more, and adds.
 * Autoregressive decoding of the same prompts is run among the points, once before the first of a pass and again after every
 * SWEEP_BASELINE of them, so that both see the same machine. */

#define SWEEP_AXES     6
#define SWEEP_BASELINE 8

struct sweep_point {
    struct tally total;
    struct round_sums sums;
    uint32_t passes; /* whole: over all prompts */
};

/* What it asks of whoever runs it. False with a line: it could not be done. */
struct sweep_host {
    void *user;
    bool (*knob)(void *user, const char *name, const char *text, struct err *);
    bool (*run)(void *user, const char *prompt, struct err *);  /* NULL: the same prompt again */
    bool (*policy)(void *user, const char *name, struct err *); /* NULL: no baseline is wanted */
};

enum sweep_state {
    SWEEP_OVER,  /* nothing is asked for; also before the first one */
    SWEEP_DUE,   /* sweep_next() has something to ask for */
    SWEEP_ASKED, /* a run that has not begun yet */
    SWEEP_RUNS
};

struct knob_sweep;

bool sweep_open(struct knob_sweep **, const struct run_info *, struct err *); /* info is borrowed */
void sweep_close(struct knob_sweep *);

/* "tau=0.3:0.9:0.1 d_max=3:8:1" over the settings in force (segments_now()), on the prompts or, with none, on the one that
 * runs. The same on the same settings as before goes on with the points that are missing; anything else begins anew.
 * ERR_USAGE: no knob of the policy, values that it can't have, more than KNOB_GRID_MOST points; or one is under way. */
bool sweep_begin(struct knob_sweep *, const char *grid, char *const *prompts, size_t n_prompts, const struct segments *,
                 struct err *);
void sweep_event(struct knob_sweep *, const struct event *);
/* In SWEEP_DUE: knobs and a run; at the end the knobs (and the prompt) as they were. False with a line: the run failed, or
 * what it asked for could not be done; it is over then. */
bool sweep_next(struct knob_sweep *, const struct sweep_host *, struct err *);
/* Keeps what is whole; knobs and prompt as they were. Nothing where nothing is under way. */
bool sweep_stop(struct knob_sweep *, const struct sweep_host *, struct err *);

enum sweep_state sweep_state(const struct knob_sweep *);
bool sweep_running(const struct knob_sweep *); /* not SWEEP_OVER */

/* ---- what came of it ---- */

uint32_t sweep_points(const struct knob_sweep *);   /* 0: there was none */
uint32_t sweep_done(const struct knob_sweep *);     /* points that have this pass */
uint32_t sweep_measured(const struct knob_sweep *); /* that have a result */
uint32_t sweep_pass(const struct knob_sweep *);     /* from 1: the one under way, or the last */
uint32_t sweep_at(const struct knob_sweep *);       /* the point that runs; sweep_points(): the baseline does */
double sweep_left_s(const struct knob_sweep *);     /* by the mean of the runs so far; NAN: none has ended */
uint32_t sweep_axes(const struct knob_sweep *, const struct knob_axis **); /* (n) as long as the sweep is this one */
const struct knob *sweep_knob(const struct knob_sweep *, uint32_t axis);
const struct policy_info *sweep_policy(const struct knob_sweep *);
uint32_t sweep_prompts(const struct knob_sweep *);               /* of the list; 0: one prompt, the run's */
void sweep_grid(const struct knob_sweep *, char *out, size_t n); /* "tau=0.3:0.9:0.1 d_max=3:8:1" */
void sweep_place(const struct knob_sweep *, uint32_t point, uint32_t at[SWEEP_AXES]);
uint32_t sweep_point_at(const struct knob_sweep *, const uint32_t at[SWEEP_AXES]);
double sweep_value(const struct knob_sweep *, uint32_t point, uint32_t axis);
void sweep_text(const struct knob_sweep *, uint32_t point, char *out, size_t n); /* "tau=0.3 d_max=4" */
/* NULL: it has no whole pass yet. */
const struct sweep_point *sweep_result(const struct knob_sweep *, uint32_t point);
struct estimates sweep_estimates(const struct knob_sweep *, uint32_t point); /* NAN where there is no result */

/* Autoregressive tokens/s of the same prompts; NAN: not measured. */
struct estimate sweep_baseline(const struct knob_sweep *);

enum sweep_measure { SWEEP_SPEED, SWEEP_TIMES, SWEEP_LENGTH, SWEEP_ACCEPTANCE, SWEEP_MODELLED, SWEEP_MEASURES };
extern const char *const sweep_measure_names[SWEEP_MEASURES]; /* "tokens/s", "× ar", … */
struct estimate sweep_estimate(const struct knob_sweep *, uint32_t point, enum sweep_measure);
/* The best point by a measure, and how many others are within noise of it; false: fewer than two points to compare. */
bool sweep_best(const struct knob_sweep *, enum sweep_measure, uint32_t *point, uint32_t *near);

/* As `bench --grid --csv` has it, with the baseline's line first. */
void sweep_csv(const struct knob_sweep *, FILE *);

#endif
