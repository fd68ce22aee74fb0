/* Measures of a run, computed from events alone (docs/methods.md, Measures). */
#pragma once

#include "engine/events/event.h"
#include "engine/measure/estimate.h"

#define METRICS_WINDOW 32 /* rounds in the smoothed figures; a round of several sequences counts as one */

struct tally { /* sums over rounds */
    /* rejected_rounds: rounds that ended in a rejection */
    uint64_t rounds, drafted, verified, accepted, emitted, cut, rejected_rounds;
    uint64_t drafting_rounds; /* rounds that drafted something */
    double exit_layers;       /* sum over drafts of the target's layer that they came from; 0 for other drafts */
    /* The part of `emitted` that several sequences in one round emit without speculation: emitted − emitted / lines of
     * the round. */
    double shared;
    double layers, heads; /* loads */
    double draft_us, verify_us, probe_us;
    double heads_us, wait_us, learning_us; /* as in struct round_event; NAN if unknown for a round */
    double experts;                        /* sum of verify_experts */
    uint64_t experts_rounds;               /* number of lines that have verify_experts */
};

/* Sums over rounds for measures with a standard error. A round's sample is the tally of all its lines. With several
 * sequences there is one line for each, and their shares of the round's time do not show how rounds differ. */
struct round_sums {
    struct ratio_sums speed, length, acceptance,
        loads; /* emitted / s, / lines; accepted / verified; emitted − shared / loads */
    struct ratio_sums per_token, layers, discard,
        lines; /* accepted / (… and rejections); emitted / layers; discarded, */
               /* lines / emitted */
};

struct estimates {
    struct estimate tokens_per_s, tokens_per_round, acceptance_rate, modelled; /* as in struct measures */
    struct estimate per_token_acceptance, etpl, discard_rate, verification_rate;
};

struct metrics {
    uint32_t layers; /* L */
    double rho;
    struct tally total;                  /* since the run began */
    struct round_sums sums;              /* the same, without the newest round, which may be incomplete */
    struct tally window[METRICS_WINDOW]; /* ring of single rounds */
    uint32_t at, n, round;               /* round: number of the newest one; 0: none */
    uint32_t sequences;                  /* number of sequences that had a round */
    float pace;                          /* speed limit of the run, tokens/s; 0: none */
    float baseline;                      /* autoregressive tokens/s of this prompt; 0: not measured */
    float baseline_se;                   /* its standard error; NAN: unknown */
    float next_se;                       /* standard error of the next baseline event */
    bool baseline_paced;    /* it was measured in a run with a speed limit, in which each round begins cold */
    struct sliced sliced;   /* slices of it between the run's rounds */
    uint64_t baseline_t_us; /* time of the baseline's measurement */
    uint32_t baseline_round;
    enum lossless { LOSSLESS_UNKNOWN, LOSSLESS_YES, LOSSLESS_NO, LOSSLESS_SAMPLED } lossless;
    /* The number of generated tokens of the run that `lossless` is about; the first came with the prefill. 0: in older
     * traces of several sequences, the tokens of the sequences that were present at the time. */
    uint64_t compared;
    float d_max;          /* last value seen, -1: none */
    uint64_t prompt_t_us; /* time of the last token of a prompt: its prefill begins */
    uint64_t prefilled;   /* tokens of prompts that were read, */
    double prefill_us;    /* and the time until their first generated tokens */
};

struct measures {                                  /* NAN where not defined */
    double tokens_per_s;                           /* emitted / (draft + verify time) */
    double tokens_per_s_all_in;                    /* the same with learning passes in the time */
    double acceptance_rate;                        /* accepted / verified */
    double per_token_acceptance;                   /* accepted / (accepted + rounds that ended in a rejection) */
    double tokens_per_round;                       /* emitted / rounds */
    double etpl;                                   /* emitted / layers loaded */
    double discard_rate;                           /* (drafted - accepted) / emitted */
    double verification_rate;                      /* target forwards (one a round) / emitted */
    double speedup, speedup_all_in;                /* tokens/s over the baseline's */
    double predicted;                              /* prediction of SpecBound, eq. 5 */
    double modelled;                               /* (emitted - shared) (L + rho) / (layer loads + rho * head loads) */
    double overhead;                               /* speedup / modelled */
    double draft_share, verify_share, probe_share; /* of the rounds' work; the draft's head calls are in draft */
    double heads_share, layers_share;              /* the draft's head calls, a part of draft_share, and its rest */
    double wait_share;                             /* time at control points, as a share of the rounds' whole time */
    double learning_share; /* learning passes, as a share of the rounds' work and learning passes */
};

void metrics_begin(struct metrics *, uint32_t layers, double rho);
void metrics_event(struct metrics *, const struct event *); /* a `run` control resets all but the prompt's baseline */
struct tally tally_of(const struct round_event *);          /* of a single round */
void tally_add(struct tally *to, const struct tally *);
/* Adds a line to the tally of its round, which contains the lines of the round's other sequences, or none. Returns the
 * change of `shared`, to be added to a sum over rounds. */
double tally_join(struct tally *round, const struct tally *line);
struct tally metrics_window(const struct metrics *);
/* The baseline, if it was measured under the present conditions of the machine; else NAN. */
struct estimate metrics_baseline(const struct metrics *);
/* Returns the average number of experts of a layer that a verification read; NAN: unknown. */
double metrics_verify_experts(const struct metrics *);
uint64_t metrics_generated(const struct metrics *); /* tokens of the run so far, including that of the prefill */
/* Writes "prompt 6215 tokens in 207.3 s, 30/s". Returns out. */
const char *metrics_prefill_text(const struct metrics *, char *out, size_t n);
void round_sums_add(struct round_sums *, const struct tally *round, double rho);
struct estimates round_sums_estimates(const struct round_sums *, uint32_t layers, double rho);
struct estimates metrics_estimates(const struct metrics *);     /* of the window */
struct estimates metrics_run_estimates(const struct metrics *); /* since the run began */
struct measures metrics_measures(const struct metrics *, const struct tally *);
/* Rounds shares of a whole to whole percents that add up to 100; all 0 if the shares are 0. A share of NAN counts as
 * 0. n <= METRICS_SHARES. */
#define METRICS_SHARES 8
void metrics_percents(const double *share, int *percent, int n);
