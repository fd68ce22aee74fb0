/* The rounds of several sequences at once, in step: what a policy's draft_batch() works with. The rounds of a call are of
 * one model: the target's, or what rounds_model() gave of one role. A row or guess numbered i is of round[i]; a sequence
 * may be left out of a call, none may be in it twice. Rows of all of them go through layers in one sweep:
 *
 *   context_advance(round[0]->ctx, rows, n, to, NULL)
 *
 * What round.h says of a function with the same name holds here. */
#ifndef ENGINE_SESSION_ROUNDS_H
#define ENGINE_SESSION_ROUNDS_H

#include "engine/session/round.h"

#define ROUNDS_MOST VERIFY_NODES /* sequences at a time */

bool rounds_model(struct round *const *, uint32_t n, enum helper_role, struct round **out);
/* Confidence at temperature 1, with LAYER events as round_guess() has them. */
bool rounds_guess(struct round *const *, const slot_t *rows, uint32_t n, uint32_t layer, struct guess *out);
bool rounds_choose(struct round *const *, const slot_t *rows, uint32_t n, uint32_t layer, const struct guess *,
                   token_t *, dist_t *q);
/* What a companion model says of all drafts of chains, from the distributions that were drawn from and its own under the
 * user's sampling settings; greedy: both at temperature 1. `draft` is of rounds_model(), before drafting began. The companion
 * reads the drafts together with what it had not read before them, in as few sweeps as that fits in: it is not to be asked
 * for anything else in the round. out[i] has room for round_drafted(draft[i]). */
bool rounds_overlap(struct round *const *draft, uint32_t n, enum helper_role companion, struct overlap *const *out);

#endif
