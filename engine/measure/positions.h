/* Acceptance by position in the draft (docs/methods.md: Measures). Draft i of a round is tested if the drafts before
 * it were accepted:
 *
 *     conditional rate     a_i = rounds that accepted draft i / rounds that tested it
 *     unconditional rate   u_i = rounds that accepted draft i / all rounds
 *
 * u never rises. llama.cpp and vLLM accept these rates in place of a drafter, to measure the speed of a setting.
 *
 * The rank of the target's token in the drafter's list at the first rejection shows whether a wider draft (a tree) or a
 * longer one would accept more: with rank 2 a second candidate at that position would have been accepted. */
#pragma once

#include "engine/events/event.h"
#include "engine/measure/estimate.h"

#define POSITIONS       (VERIFY_NODES - 1) /* as many as a round can have drafts in a row */
#define POSITIONS_SHOWN 6                  /* in a line of text */
#define POSITION_RANKS  10                 /* counted one by one */

struct positions { /* zeroed: no rounds */
    uint64_t rounds, emitted;
    double squares; /* sum of the squares of emitted tokens over rounds */
    uint64_t tested[POSITIONS], accepted[POSITIONS];
    uint64_t ranks[POSITION_RANKS + 1];           /* rejections by rank; [0]: all later ranks */
    struct ratio_sums prompts[POSITIONS], tokens; /* over rounds; a sample is a prompt added by positions_add() */
};

void positions_round(struct positions *, const struct round_event *);
void positions_add(struct positions *, const struct positions *of_a_prompt);
uint32_t positions_count(const struct positions *); /* the last position that was tested; 0: none */
/* Rates of position i, from 0. Standard errors are binomial; u_i of several prompts has that of the ratio over
 * prompts. */
struct estimate positions_conditional(const struct positions *, uint32_t i);
struct estimate positions_unconditional(const struct positions *, uint32_t i);
/* Emitted tokens per round: 1 + Σ u_i where every round ends in a correction or bonus. Samples are rounds, or several
 * prompts. */
struct estimate positions_tokens(const struct positions *);
/* Rejections with a known rank. */
uint64_t positions_ranked(const struct positions *);
/* The share of them with a rank, 1 to POSITION_RANKS, or (0) a later one. */
struct estimate positions_rank(const struct positions *, uint32_t rank);
/* Writes "2nd 41%, 3rd 18%, later 41%": the shares of the ranks that occurred; "" if none is known. Returns out. */
const char *positions_ranks_text(const struct positions *, char *out, size_t n);
