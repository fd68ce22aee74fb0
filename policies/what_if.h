/* Simulates rounds over a record in place of a model (docs/forecasts.md: What-if), for the policies' what_if(). The
 * functions correspond to those of engine/session/round.h and count the same loads. Greedy decoding.
 *
 * A draft is right if its layer agrees with the target. After a wrong draft the record has no predictions, because the
 * target's text continues differently: later drafts are wrong, too, and the layers' confidences are drawn from the
 * record (record->lost). */
#pragma once

#include "engine/measure/layer_record.h"
#include "engine/measure/metrics.h"

struct what_if {
    const struct layer_record *record;
    struct tally *out;
    uint32_t at;     /* the pending token's row */
    uint32_t budget; /* drafts, up to the end of the record */

    /* of the round */
    uint32_t drafted, accepted, emitted;
    bool wrong;                          /* a draft was wrong */
    bool cut;                            /* it ended with the text, so its length does not count */
    bool no_row;                         /* the last draft has none */
    uint32_t depth;                      /* of the last row */
    uint32_t recent;                     /* recent tokens of the draft vocabulary, if there is one */
    struct layer_prediction drafts_cell; /* what_if_inspect() returned it */
    double layers, heads;
    struct cost_count steps;
    bool drafts;     /* the draft model took part */
    uint32_t unread; /* of all rounds: tokens, up to the last draft, that the draft model has not read */
    uint32_t n_rows, row_depth[VERIFY_NODES]; /* (n_rows) the pending token's and the drafts'; a row is as deep as its
                                               * predecessor, at most */
};

void what_if_begin(struct what_if *, const struct layer_record *, struct tally *out); /* before the first round */
bool what_if_round(struct what_if *); /* begins the next round; false: the text has ended */

bool what_if_full(const struct what_if *); /* round_full() */
/* Runs the last row to a layer, with earlier rows that are not as deep; returns the layer's prediction. */
const struct layer_prediction *what_if_inspect(struct what_if *, uint32_t layer);
/* As rounds_until(): the layer where the last row exits, 0: none up to `to`. */
uint32_t what_if_until(struct what_if *, uint32_t to, const struct exit_rule *);
void what_if_propose(struct what_if *, uint32_t layer, bool no_row); /* that layer's prediction */
/* Proposes the token that the draft model predicts after the last one, which it reads first. */
void what_if_draft(struct what_if *);
/* Returns the probability by the acceptance head of the last draft, which the draft model reads first. After a wrong
 * draft it is an estimate. */
double what_if_acceptance(struct what_if *);
/* Runs the block of the record's block drafter, which first reads the tokens that it has not read; its head predicts
 * the first `drafts` drafts. */
void what_if_block(struct what_if *, uint32_t drafts);
/* Computes the block's next draft, by the Markov head if the record's drafts have its bias; returns its confidence, right
 * or wrong. NAN: unknown. */
double what_if_follow(struct what_if *);
void what_if_propose_block(struct what_if *); /* proposes that draft */
/* Proposes a draft that no layer predicted, `depth` tokens after the pending one; right: it is on the text's path. */
void what_if_propose_token(struct what_if *, uint32_t depth, bool right);

void what_if_verify(struct what_if *);  /* computes drafted, accepted, emitted and cut, and adds them to `out` */
void what_if_ask_all(struct what_if *); /* after that: looks at all layers of the rows that are kept,
                                           * at, …, at + emitted − 1 */
