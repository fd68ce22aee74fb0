/* What the files of a sweep share: knob_sweep.c (what is run, and when), knob_sweep_results.c (what came of it). Nobody else includes
 * it. */
#ifndef ENGINE_EVENTS_KNOB_SWEEP_INTERNAL_H
#define ENGINE_EVENTS_KNOB_SWEEP_INTERNAL_H

#include "engine/events/knob_sweep.h"

struct knob_sweep {
    const struct run_info *info;
    char *words; /* owned: what the axes' texts are part of */
    struct knob_axis axis[SWEEP_AXES];
    uint32_t n_axes, knob[SWEEP_AXES]; /* … and the knob of the policy that each is of */
    double before[SWEEP_AXES];         /* their values as they were */
    struct segment setting;            /* all else, as it was */
    char *own_prompt;                  /* owned; text that ran as it began */
    char **prompts;                    /* (n_prompts) owned */
    uint32_t n_prompts;
    struct sweep_point *point; /* (n_points) owned */
    uint32_t n_points;

    struct sweep_point ar; /* the baseline */
    bool with_ar;          /* it is wanted, */
    bool at_ar;            /* under way or asked for next, */
    bool under_ar;         /* its policy is the one that was asked for last, */
    bool returning;        /* and the sweep's was asked for again at the end, and not told yet */

    enum sweep_state state;
    uint32_t at, prompt_at, pass;
    bool first;             /* the first run is asked for: turns of before may still be told */
    struct sweep_point now; /* the point under way, */
    struct tally joint;     /* its newest round, whose other lines may still come, */
    uint32_t joint_round;   /* and that round's number */
    double runs, runs_us;   /* that ended, and how long they took */
    uint64_t run_us;        /* how long the one under way has taken */
    char failed[200];       /* what a run that failed said; "": none did */
};

uint32_t sweep_baselines_left(const struct knob_sweep *); /* runs of it over all prompts */

#endif
