/* Acceptance by position in the draft (docs/methods.md: Measures). Draft i of a round is tested if the drafts before
 * it were accepted:
 *
 *     conditional rate     a_i = rounds that accepted draft i / rounds that tested it
 *     unconditional rate   u_i = rounds that accepted draft i / all rounds,   tokens a round = 1 + Σ u_i
 *
 * u never rises. llama.cpp and vLLM accept these rates in place of a drafter, to measure the speed of a setting. */
#ifndef ENGINE_EVENTS_POSITIONS_H
#define ENGINE_EVENTS_POSITIONS_H

#include "engine/events/estimate.h"
#include "engine/events/event.h"

#define POSITIONS       32 /* later ones are not counted */
#define POSITIONS_SHOWN 6  /* in a line of text */

struct positions { /* zeroed: no rounds */
    uint64_t rounds;
    uint64_t tested[POSITIONS], accepted[POSITIONS];
    struct ratio_sums prompts[POSITIONS]; /* accepted over rounds; a sample is a prompt added by positions_add() */
};

void positions_round(struct positions *, const struct round_event *);
void positions_add(struct positions *, const struct positions *of_a_prompt);
uint32_t positions_count(const struct positions *); /* the last position that was tested; 0: none */
/* Rates of position i, from 0. Standard errors are binomial; u_i of several prompts has that of the ratio over
 * prompts. */
struct estimate positions_conditional(const struct positions *, uint32_t i);
struct estimate positions_unconditional(const struct positions *, uint32_t i);

#endif
