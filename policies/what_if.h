/* A round over a record in place of a model (docs/methods.md: What-if): what the policies' what_if() share. It has the
 * words of engine/session/round.h, and counts what they would load. Greedy decoding.
 *
 * A draft is right while the layer that said it agrees with the target. The record has no words of layers after a wrong draft, because
 * the target's text continues otherwise: those drafts are wrong, and the layers' confidences are drawn from the record, as
 * record->lost says. */
#ifndef POLICIES_WHAT_IF_H
#define POLICIES_WHAT_IF_H

#include "engine/events/layer_record.h"
#include "engine/events/metrics.h"

struct what_if {
    const struct layer_record *record;
    struct tally *out;
    uint32_t at;     /* the pending token's row */
    uint32_t budget; /* drafts: the record's end is the text's */

    /* of the round */
    uint32_t drafted, accepted, emitted;
    bool wrong;     /* a draft was */
    bool cut;       /* it ended because the text does, and teaches nothing about length */
    bool no_row;    /* the last draft got none */
    uint32_t depth; /* of the last row */
    double layers, heads;
};

void what_if_begin(struct what_if *, const struct layer_record *, struct tally *out); /* before the first round */
bool what_if_round(struct what_if *); /* the next round begins; false: the text has ended */

bool what_if_full(const struct what_if *); /* round_full() */
/* The last row runs to a layer and its head looks: the layer's word. */
const struct layer_word *what_if_look(struct what_if *, uint32_t layer);
/* As round_until(): the layer where the last row exits, 0: nowhere up to `to`. */
uint32_t what_if_until(struct what_if *, uint32_t to, const struct exit_rule *);
void what_if_propose(struct what_if *, uint32_t layer, bool no_row); /* what that layer says */
/* A draft that no layer predicted, so many tokens after the pending one; right: it is on the text's path. */
void what_if_propose_token(struct what_if *, uint32_t depth, bool right);

void what_if_verify(struct what_if *);  /* drafted, accepted, emitted and cut are known, and counted in `out` */
void what_if_ask_all(struct what_if *); /* … then: the head looks at all layers of the rows that are kept,
                                           * at, …, at + emitted − 1 */

#endif
