/* Grids of knobs and sweeps over them. An axis is KNOB=from:to:step; a grid is the product of several axes, whose
 * points are numbered with the last knob the fastest. */
#ifndef ENGINE_TUNE_KNOB_SWEEP_H
#define ENGINE_TUNE_KNOB_SWEEP_H

#include <stdio.h>

#include "engine/events/policy.h"
#include "engine/events/settings.h"
#include "engine/measure/metrics.h"
#include "engine/tune/run_host.h"

#define KNOB_GRID_MOST 1000 /* points */
#define KNOB_GRID_AXES 32

struct knob_axis {
    const char *text; /* as given; borrowed */
    char name[16];
    double from, step;
    uint32_t n; /* values */
};

/* Reads an axis. Fails with ERR_USAGE and one line that begins with `who` ("--grid"): wrong syntax, or more than
 * KNOB_GRID_MOST values. */
bool knob_axis_parse(struct knob_axis *, const char *text, const char *who, struct err *);
/* Checks that all values are on the knob's own grid, because others would be rounded to the same point. Fails with
 * ERR_USAGE as above. */
bool knob_axis_check(const struct knob_axis *, const struct knob *, const char *policy, const char *who, struct err *);
double knob_axis_value(const struct knob_axis *, const struct knob *, uint32_t i); /* as the knob rounds it */

/* Returns the number of points of the product, at most KNOB_GRID_MOST + 1. The product of no axes has one. */
uint32_t knob_grid_points(const struct knob_axis *const *, size_t n);
/* Writes the index of each axis's value at a point to at[n]. */
void knob_grid_at(const struct knob_axis *const *, size_t n, uint32_t point, uint32_t *at);

/* A sweep runs the same prompt, or a list of prompts, at every point of a grid of knobs, and stores the measures of
 * each point. It is built from events alone: sweep_event() only receives events; sweep_next() requests knobs and the
 * next run when the sweep is due. A run that was cut off is discarded and repeated. A repeated sweep makes another pass
 * over its points, in the opposite order. Speeds are compared pass by pass, as in a benchmark
 * (engine/measure/estimate.h), so one pass gives no verdict. The samples of the other measures are rounds of complete
 * runs. Autoregressive decoding of the same prompts runs between the points, once before the first of a pass and again
 * after every SWEEP_BASELINE of them, so that both run under the same conditions. */

#define SWEEP_AXES     6
#define SWEEP_BASELINE 8
#define SWEEP_PASSES   8 /* stored; later passes are added to these, one after the other */

struct sweep_point {
    struct tally total;
    struct round_sums sums;
    uint32_t passes; /* complete passes over all prompts */
    struct pass pass[SWEEP_PASSES];
};

enum sweep_state {
    SWEEP_OVER,  /* no request is due; also before the first sweep */
    SWEEP_DUE,   /* sweep_next() has a request */
    SWEEP_ASKED, /* waits for the start of a run */
    SWEEP_RUNS
};

/* Its owners read it, and change it only by the functions below. */
struct knob_sweep {
    enum sweep_state state;
    uint32_t n_axes, n_points; /* 0: no sweep */
    struct knob_axis axis[SWEEP_AXES];
    const struct knob *knob[SWEEP_AXES]; /* of each axis */
    const struct policy_info *policy;    /* whose knobs they are */
    uint32_t n_prompts;                  /* length of the list; 0: one prompt, the run's */
    uint32_t pass;                       /* number from 1 of the current pass, or of the last */

    const struct run_info *info;
    char *words;               /* owned: memory of the axes' texts */
    struct settings setting;   /* requested before the sweep */
    char *own_prompt;          /* owned; the run's prompt before the sweep */
    char **prompts;            /* (n_prompts) owned */
    struct sweep_point *point; /* (n_points) owned */

    struct sweep_point ar; /* results of the baseline */
    bool with_ar;          /* a baseline is requested */
    bool at_ar;            /* the baseline runs or is next */
    bool under_ar;         /* its policy was the last one requested */

    uint32_t at, prompt_at;
    struct sweep_point now; /* sums of the running point */
    struct tally joint;     /* its newest round, which may be incomplete */
    uint32_t joint_round;   /* number of that round */
    double runs, runs_us;   /* number of ended runs, and their total time */
    uint64_t run_us;        /* time of the current run so far */
    char failed[200];       /* message of a failed run; "": none */
};

bool sweep_open(struct knob_sweep **, const struct run_info *, struct err *); /* info is borrowed */
void sweep_close(struct knob_sweep *);

/* Begins a sweep "tau=0.3:0.9:0.1 d_max=3:8:1" over the requested settings, on the prompts or, without any, on the
 * run's prompt. The settings may differ from those in force, as changes are recorded with the next round. The same
 * sweep on the same settings resumes at the missing points; any other begins anew. `prompt`: the run's, or NULL. Fails
 * with ERR_USAGE: unknown knob, invalid values, more than KNOB_GRID_MOST points, or a sweep is running. */
bool sweep_begin(struct knob_sweep *, const char *grid, char *const *prompts, size_t n_prompts,
                 const struct settings *requested, const char *prompt, struct err *);
void sweep_event(struct knob_sweep *, const struct event *);
/* In SWEEP_DUE: sets knobs and starts a run; at the end restores the knobs (and the prompt). Returns false with a
 * message if the run or a request failed; the sweep is then over. */
bool sweep_next(struct knob_sweep *, const struct run_host *, struct err *);
/* Ends the sweep, keeps complete points, and restores knobs and prompt. Does nothing if no sweep is running. */
bool sweep_stop(struct knob_sweep *, const struct run_host *, struct err *);

static inline bool
sweep_running(const struct knob_sweep *s)
{
    return s->state != SWEEP_OVER;
}

/* Returns the running point; n_points: the baseline. */
static inline uint32_t
sweep_at(const struct knob_sweep *s)
{
    return s->at_ar ? s->n_points : s->at;
}

/* ---- results ---- */

uint32_t sweep_done(const struct knob_sweep *);     /* points that are complete in this pass */
uint32_t sweep_measured(const struct knob_sweep *); /* points that have a result */
double sweep_left_s(const struct knob_sweep *);     /* estimate from the mean of the runs so far; NAN: none has ended */
void sweep_grid(const struct knob_sweep *, char *out, size_t n); /* "tau=0.3:0.9:0.1 d_max=3:8:1" */
void sweep_place(const struct knob_sweep *, uint32_t point, uint32_t at[SWEEP_AXES]);
uint32_t sweep_point_at(const struct knob_sweep *, const uint32_t at[SWEEP_AXES]);
double sweep_value(const struct knob_sweep *, uint32_t point, uint32_t axis);
void sweep_text(const struct knob_sweep *, uint32_t point, char *out, size_t n); /* "tau=0.3 d_max=4" */
/* Returns NULL before a pass of the point is complete. */
const struct sweep_point *sweep_result(const struct knob_sweep *, uint32_t point);
struct estimates sweep_estimates(const struct knob_sweep *, uint32_t point); /* NAN if there is no result */

/* Autoregressive tokens/s of the same prompts; NAN: not measured. */
struct estimate sweep_baseline(const struct knob_sweep *);

enum sweep_measure { SWEEP_SPEED, SWEEP_TIMES, SWEEP_LENGTH, SWEEP_ACCEPTANCE, SWEEP_MODELLED, SWEEP_MEASURES };
extern const char *const sweep_measure_names[SWEEP_MEASURES]; /* "tokens/s", "× ar", … */
struct estimate sweep_estimate(const struct knob_sweep *, uint32_t point, enum sweep_measure);
/* Finds the best point by a measure, and the number of points from which it has no clear difference; of a speed in one
 * pass, these are all others. Returns false if there are fewer than two points to compare. */
bool sweep_best(const struct knob_sweep *, enum sweep_measure, uint32_t *point, uint32_t *near);
/* Writes how sure the best point is: "clearly", "no clear difference from 2 others", "no verdict after one pass". */
const char *sweep_standing(const struct knob_sweep *, enum sweep_measure, uint32_t point, uint32_t near, char *out,
                           size_t n);

/* Writes CSV as `bench --grid --csv` does, with the baseline's line first. */
void sweep_csv(const struct knob_sweep *, FILE *);

#endif
