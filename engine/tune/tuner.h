/* Finds the fastest setting for a model, a machine and a list of prompts (docs/forecasts.md: Racing). As a sweep
 * (knob_sweep.h) it is built from events alone: tuner_event() receives them, and tuner_next() requests settings and
 * runs from its owner. `specscope tune` and `:tune` are its owners.
 *
 *   1. The first run is autoregressive and measures the speed. It and two more record the predictions of all layers, the
 *      latter under a policy with a draft model, if there is one; so does one run with each further draft model. The
 *      costs of steps are measured (cost_model.h), with each draft model.
 *   2. Candidates are chosen (candidates.h), as many as fit into the time (tune_plan()). Given ones need no records.
 *   3. They race over two thirds of the prompts (race.h).
 *   4. Winner, runner-up and autoregressive decoding are measured on the other prompts.
 *
 * A run ends at the plan's number of tokens, also if the session would generate more. Time is that of the events.
 *
 * On a launched server (engine/remote/remote.h) a change of the setting starts a server. Layers are not recorded there,
 * so candidates have no forecasts, and heats run in blocks (race.h). The time of a start is part of the run after it. */
#ifndef ENGINE_TUNE_TUNER_H
#define ENGINE_TUNE_TUNER_H

#include "engine/measure/layer_record.h"
#include "engine/measure/positions.h"
#include "engine/tune/candidates.h"
#include "engine/tune/engine_flags.h"
#include "engine/tune/knob_sweep.h"
#include "engine/tune/preset.h"
#include "engine/tune/race.h"

#define TUNE_TIME   300 /* default, in seconds */
#define TUNE_TOKENS 128 /* default, for each prompt */

#define TUNE_TOKENS_FEW   16 /* of a run, at least */
#define TUNE_FINALISTS    3
#define TUNE_RECORDS_MOST 3 /* runs with the run's own draft model whose texts are used for the forecasts */
#define TUNE_HELD_LEAST   3 /* prompts, at least: fewer have no interval */

/* ---- what fits into the time ---- */

struct tune_speed {
    double run_s;   /* of a run besides its tokens: the prompt */
    double token_s; /* of autoregressive decoding */
    double start_s; /* of a server; 0: a change of the setting starts none */
};

struct tune_plan {
    uint32_t candidates;       /* with autoregressive decoding */
    uint32_t tokens;           /* of a run */
    uint32_t held_out, passes; /* prompts, and runs of each finalist on each of them */
    uint32_t block;            /* heats of a block (race.h) */
    uint32_t hopeless;         /* settings that do not race because their ceiling (forecast_ceiling()) is below 1 */
    /* of three heats, or two blocks of several, and the held-out runs, if every run is as fast as autoregressive
     * decoding */
    double needs_s;
};

/* Reduces *plan, which contains all that is wanted, to what fits into time_s (0: no limit): first the tokens of a run,
 * to 64; then candidates, down to `least`; then tokens, to 16; and held-out runs to a quarter of the time, but six
 * prompts; then candidates down to two, and held-out runs to three prompts. Where a server is started, a block takes as
 * long as a start, but has at most plan->block heats, and as few as `least` candidates need, and all passes are kept;
 * else it has one heat. Returns false if the smallest plan does not fit. */
bool tune_plan(struct tune_plan *plan, uint32_t least, const struct tune_speed *, double time_s);
/* Reduces the held-out part to time_s, if a run takes run_s, but not below six prompts, once each; in blocks, not below
 * three prompts. */
void tune_plan_held_out(struct tune_plan *, double run_s, double time_s);
/* Fails with ERR_USAGE: "cannot race in 5s: …"; run_s of the speed may be 0, for unknown, and start_s. */
bool tune_too_short(double time_s, const struct tune_speed *, double needs_s, struct err *);
/* Reads "90s", "5m", "1h" or seconds; returns NAN for anything else. Writes "45s", "5m". */
double tune_time_parse(const char *text);
const char *tune_time_text(double seconds, char *out, size_t n);

/* ---- the tuner ---- */

#define TUNE_DRAFTS 16

/* A draft model that the run does not have. Its owner has a session for it (run_host.draft). */
struct tune_draft {
    const char *name; /* for --draft; borrowed until the tuner is closed */
    unsigned meets;   /* needs of policies that it meets */
};

struct tune_request {
    const struct policy_ops *const *registry; /* NULL-terminated; constant */
    const char *const *policies;              /* (n_policies) names; none: all whose needs are met. Borrowed */
    size_t n_policies;
    const struct race_prompt *prompts; /* (n_prompts) borrowed */
    uint32_t n_prompts;
    const struct tune_draft *drafts; /* (n_drafts) at most TUNE_DRAFTS; borrowed */
    uint32_t n_drafts;
    double time_s;   /* 0: no limit */
    double token_s;  /* known time of a token, for a refusal before the first run; 0: unknown */
    uint32_t tokens; /* of a run, at most */
    uint64_t seed;
    /* (n_given) settings that race besides plain decoding, at most CANDIDATES_MOST, the most promising first; borrowed
     * until the tuner is closed. None: they are found by forecasts on the first runs */
    const struct candidate *given;
    uint32_t n_given;
    double start_s;           /* that the start of a launched server took, which has no layer record; 0: it is none */
    struct sampling sampling; /* of the runs. If it is greedy, their texts must be equal, and what-if has forecasts */
};

enum tune_phase {
    TUNE_NOTHING, /* none has begun */
    TUNE_RECORDS,
    TUNE_HEATS,
    TUNE_HELD_OUT,
    TUNE_OVER,
    TUNE_STOPPED /* the result is that of the runs so far */
};

struct tune_text {   /* of the first run on a prompt */
    token_t *tokens; /* (n) owned */
    uint32_t n;
};

struct tune_source { /* what forecasts are made from */
    struct layer_record records[TUNE_RECORDS_MOST];
    uint32_t n;
    struct cost_model costs; /* all 0: unknown */
};

/* Its owners read it, and change it only by the functions below. */
struct tuner {
    enum tune_phase phase;
    uint32_t n_candidates;                    /* 0: no heats yet */
    struct preset candidate[RACE_CANDIDATES]; /* (n_candidates), then up to `found` those that do not race */
    uint32_t found; /* candidates before tune_plan(), the best by forecast of each policy first */
    struct tune_plan plan;
    struct race *race;  /* owned; without heats before there are candidates */
    uint32_t differing; /* runs with another greedy text than the first run on the prompt */

    const struct run_info *info;

    const struct policy_ops *const *registry;
    bool wanted[POLICIES_MOST]; /* by policy of the run */
    struct tune_draft drafts[TUNE_DRAFTS];
    uint32_t n_drafts;
    const struct candidate *given; /* (n_given) of the request */
    uint32_t n_given;
    char **prompts, **categories; /* (n_prompts) owned */
    struct tune_text *text;       /* (n_prompts) */
    uint32_t n_prompts;
    double time_s;
    struct sampling sampling;
    bool greedy, named; /* named: the policies */

    struct tune_source recorded[1 + TUNE_DRAFTS]; /* with the run's own draft model, then with those of `drafts` */
    uint32_t records_run, recording;              /* recording: with which draft model */
    bool record_due;
    struct tune_speed speed;

    uint32_t draft[RACE_CANDIDATES]; /* of the candidate, from 1 on in `drafts`; 0: the run's own */
    struct positions positions[RACE_CANDIDATES];
    struct tally total[RACE_CANDIDATES]; /* of the candidate's runs */

    enum {
        TUNE_RUN_NONE,
        TUNE_RUN_DUE,
        TUNE_RUN_ASKED,
        TUNE_RUN_GOING
    } run;               /* due: tuner_next() has a request, or the race has ended */
    uint32_t at, prompt; /* of the run */
    struct tally tally;
    struct positions tested;
    struct committed committed;
    struct tune_text now;
    size_t now_room;
    uint64_t run_us;

    double spent_s;                    /* of complete runs */
    double raced_s;                    /* of these, in heats and on held-out prompts, with starts of servers, */
    uint32_t raced, heat_judged;       /* and their number; the last heat before which the time was checked */
    char failed[240];                  /* why a race stopped; "": it did not fail */
    char unable[RACE_CANDIDATES][240]; /* why a candidate does not run; "": it runs */
};

bool tuner_open(struct tuner **, const struct run_info *, struct err *); /* info is borrowed */
void tuner_close(struct tuner *);                                        /* NULL does nothing */

/* Begins; results of an earlier race are dropped. Fails with ERR_USAGE: too few prompts, an unknown policy, a policy
 * whose needs are not met, too little time for any race, or a race is running. */
bool tuner_begin(struct tuner *, const struct tune_request *, struct err *);
void tuner_event(struct tuner *, const struct event *);
/* Sets knobs and starts the next run. It changes settings without restoring them. Returns false with a message if a run
 * or a request failed or the time is too short; the race is then stopped. */
bool tuner_next(struct tuner *, const struct run_host *, struct err *);
void tuner_stop(struct tuner *);
bool tuner_running(const struct tuner *);

double tuner_elapsed_s(const struct tuner *);
double tuner_left_s(const struct tuner *); /* at most, by the mean of the runs so far; NAN: unknown */
double tuner_done(const struct tuner *);   /* share of the work, in [0, 1] */
/* What happens now or what has happened, in a few words: "heat 6 · 14 of 23 left · 41 s". */
const char *tuner_progress(const struct tuner *, char *out, size_t n);

/* ---- results ---- */

/* Writes which settings did not race: "5 settings did not fit into the time, all of del among them"; "": all did.
 * Returns out. */
const char *tuner_left_out(const struct tuner *, char *out, size_t n);
uint32_t tuner_at(const struct tuner *);                                 /* candidate of the run; n_candidates: none */
double tuner_tokens_per_round(const struct tuner *, uint32_t candidate); /* in its runs so far; NAN: none */
/* The fastest one on held-out prompts of those whose interval there lies above 1, or else of all measured there, which
 * may be plain decoding; before two runs there, the leader of the heats. */
uint32_t tuner_winner(const struct tuner *);
/* Returns whether the winner's interval on held-out prompts lies above 1. */
bool tuner_clear(const struct tuner *);
/* Returns the speed on held-out prompts; without a result there (*held_out: false), that of the heats. */
struct comparison tuner_speed(const struct tuner *, uint32_t candidate, bool *held_out);
/* Writes why no setting is clearly faster: the tokens of the fastest one's rounds, and the time of a round. Returns
 * out. */
const char *tuner_reason(const struct tuner *, char *out, size_t n);
/* Writes the policy and the knobs that differ from its defaults, each after `before`. Returns out. */
const char *tuner_name(const struct tuner *, uint32_t candidate, const char *before, char *out, size_t n);
/* Returns the name of the candidate's draft model, if it is one of the request's; NULL: it is the run's own, or
 * none. */
const char *tuner_draft(const struct tuner *, uint32_t candidate);
/* Returns the i-th category of prompts, in the order of the list; NULL: there are no more. */
const char *tuner_category(const struct tuner *, uint32_t i);
/* Writes the categories in which the candidate is fastest and slowest, by its heats on at least two prompts of each:
 * "summaries 2.10, chat 0.90"; "" if there are no two. Returns out. */
const char *tuner_extremes(const struct tuner *, uint32_t candidate, char *out, size_t n);
/* "faster than plain decoding", … */
const char *tune_verdict(struct comparison);
/* Writes "1.46 to 1.58", or "too few heats" for fewer than three prompts; of: "heats", "prompts". Returns out. */
const char *tune_interval(struct comparison, const char *of, char *out, size_t n);
/* The setting as another engine's command (engine_flags.h); rated: with the acceptance rates measured here in place of
 * its drafter, "" if no draft was tested. Returns out. */
const char *tuner_engine_command(const struct tuner *, enum other_engine, uint32_t candidate, bool rated, char *out,
                                 size_t n);
#endif
