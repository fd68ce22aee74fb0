/* The measures of one run, from events alone (docs/methods.md, Measures). */
#ifndef ENGINE_EVENTS_METRICS_H
#define ENGINE_EVENTS_METRICS_H

#include "engine/events/estimate.h"
#include "engine/events/event.h"

#define METRICS_WINDOW 32 /* rounds behind the smoothed figures; one of several sequences is one */

struct tally {                                                              /* sums over rounds */
    uint64_t rounds, drafted, verified, accepted, emitted, rejected_rounds; /* rounds that ended in a rejection */
    /* Of `emitted`, what several sequences in one round emit without speculation: emitted − emitted / lines of the round. */
    double shared;
    double layers, heads; /* loads */
    double draft_us, verify_us, probe_us;
    double heads_us, wait_us, aside_us; /* as in struct round_event; NAN when a round's are not known */
    double experts;                     /* verify_experts, */
    uint64_t experts_rounds;            /* of so many lines that say it */
};

/* Sums over rounds for measures with a standard error. A round's sample is the tally of all its lines: with several
 * sequences there is one for each, and their shares of its time say nothing of how rounds differ. */
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
    struct round_sums sums;              /* the same, of all rounds but the newest, whose other lines may still come */
    struct tally window[METRICS_WINDOW]; /* ring of single rounds */
    uint32_t at, n, round;               /* round: the newest one's number; 0: none */
    uint32_t sequences;                  /* that had a round */
    float pace;                          /* what the run is slowed down to, tokens/s; 0: as fast as it goes */
    float baseline;                      /* autoregressive tokens/s of this prompt; 0: not measured */
    float baseline_se;                   /* its standard error; NAN: not known */
    float next_se;                       /* of one that is told next */
    bool baseline_paced;    /* it was measured of a run that was slowed down, which begins each round cold */
    uint64_t baseline_t_us; /* when */
    uint32_t baseline_round;
    enum lossless { LOSSLESS_UNKNOWN, LOSSLESS_YES, LOSSLESS_NO, LOSSLESS_SAMPLED } lossless;
    /* Of the run's generated tokens, how many that is about; the first came with the prefill. 0: in older traces of several
     * sequences those of sequences that were there at the time. */
    uint64_t compared;
    float d_max; /* last seen, -1: none */
};

struct measures {                                  /* NAN where not defined */
    double tokens_per_s;                           /* emitted / (draft + verify time) */
    double tokens_per_s_all_in;                    /* learning passes are in the time, too */
    double acceptance_rate;                        /* accepted / verified */
    double per_token_acceptance;                   /* accepted / (accepted + rounds that ended in a rejection) */
    double tokens_per_round;                       /* emitted / rounds */
    double etpl;                                   /* emitted / layers loaded */
    double discard_rate;                           /* (drafted - accepted) / emitted */
    double verification_rate;                      /* target forwards (one a round) / emitted */
    double speedup, speedup_all_in;                /* tokens/s over the baseline's */
    double predicted;                              /* SpecBound eq. 5 */
    double modelled;                               /* (emitted - shared) (L + rho) / (layer loads + rho * head loads) */
    double overhead;                               /* speedup / modelled */
    double draft_share, verify_share, probe_share; /* of the rounds' work; the draft's head calls are in draft */
    double heads_share;                            /* the draft's head calls: a part of draft_share */
    double wait_share;                             /* of the rounds' whole time, standing at gates */
    double aside_share;                            /* of the rounds' work and learning passes, the latter */
};

void metrics_begin(struct metrics *, uint32_t layers, double rho);
void metrics_event(struct metrics *,
                   const struct event *);          /* a `run` control starts over, but for the prompt's baseline */
struct tally tally_of(const struct round_event *); /* a single round's */
void tally_add(struct tally *to, const struct tally *);
/* Adds a line to the tally of its round, which has the lines of the round's other sequences, or none; returns by how much that
 * changes `shared`, which a sum over rounds adds. */
double tally_join(struct tally *round, const struct tally *line);
struct tally metrics_window(const struct metrics *);
/* The baseline, if it was measured while the machine was as it is now; else NAN. */
struct estimate metrics_baseline(const struct metrics *);
/* Experts a layer that a verification read, on average; NAN: not known. */
double metrics_verify_experts(const struct metrics *);
uint64_t metrics_generated(const struct metrics *); /* tokens of the run so far, the prefill's counted */
void round_sums_add(struct round_sums *, const struct tally *round, double rho);
struct estimates round_sums_estimates(const struct round_sums *, uint32_t layers, double rho);
struct estimates metrics_estimates(const struct metrics *);     /* of the window */
struct estimates metrics_run_estimates(const struct metrics *); /* since the run began */
struct measures metrics_measures(const struct metrics *, const struct tally *);
/* Shares of a whole as whole percents that add up to 100, as they are shown; all 0 where nothing is shared. A share of NAN
 * is none. n <= METRICS_SHARES. */
#define METRICS_SHARES 8
void metrics_percents(const double *share, int *percent, int n);

#endif
