/* Rounds, as a policy sees them. A policy drafts for one or more sequences at once: it gets an instance of itself and a
 * round for each. All its work goes through these functions. They append events, keep the accounts, and are where
 * stepping, pausing and cancelling happen. If one returns false (SLOT_NONE, -1), the policy returns false at once, and
 * the session knows why.
 *
 * round_* functions are about one sequence; rounds_* are about n sequences, and row, prediction or rule number i is of
 * round[i]. The rounds of a call are of one model, the target or what rounds_model() returned for one role. Rows of
 * several sequences go through layers in one forward pass: context_advance(round[0]->ctx, rows, n, to, NULL).
 *
 * Nodes are the candidates of the round's tree: node 0 is the pending token, whose row exists at depth 0 when draft()
 * is called; round_propose() adds nodes. After draft() the session runs every node's row to depth L in one forward
 * pass, verifies, commits the accepted path and emits.
 *
 * Of the context (r->ctx) a policy may call these and no others (tests/structure/test_policies.sh reads the list):
 *   context_advance                     rows of the round's tree or of a fork, to a depth
 *   context_length, context_at          the trunk r->seq
 *   context_hidden_kept                 whether a row still has its hidden states
 *   context_fork, context_drop          a sequence of its own, gone by the end of the call
 *   context_append                      to such a fork, and to the rows of a feature drafter, which are dropped after
 *                                       the round; the round's tree grows by round_propose() */
#pragma once

#include "engine/context/context.h"
#include "engine/events/policy.h"

struct aux_sequence;

#define ROUNDS_MOST VERIFY_NODES /* sequences that draft together */

struct round {
    uint32_t number; /* from 1; in prefilled(): 0, or the round to come when switched to in mid-run */
    struct context *ctx;
    seq_t seq;
    uint32_t prompt_len;   /* tokens of the prompt, at the start of the trunk */
    const token_t *tokens; /* (n_tokens) the prompt and all emitted tokens; the last is the pending one */
    uint32_t n_tokens;
    uint32_t budget; /* drafts at most, by -n and the context; may be 0 */
    struct sampling sampling;
    uint64_t seed;
    uint32_t layers; /* L */

    /* In a round of rounds_model(): the layer that predicts the auxiliary model's tokens. */
    uint32_t exit_layer;
    struct aux_sequence *aux; /* the model of these rows; NULL: the target */

    /* for observe(): the result of verification */
    const struct verdict *verdict;
    uint32_t drafted, accepted, emitted; /* as in struct round_event */
    bool cut;                            /* ended by EOS, -n or the context, so its length does not count */

    struct round_state *state; /* the session's */
};

/* ---- several sequences ---- */
/* Drafts for one sequence after the other; the time and loads of each count as its own. */
bool rounds_each(struct policy *const *, struct round *const *, uint32_t n,
                 bool (*draft)(struct policy *, struct round *));

/* ---- other models ---- */
/* While drafting: the same rounds on the rows of an auxiliary model that the policy declared to need. Their ctx and seq
 * are the auxiliary model's, round_slot() gives its rows of the nodes, round_propose() adds to the round's one tree,
 * and predictions are recorded as that model's. It has read all tokens up to the pending one, whose row has run all of
 * its layers already (unless nothing more can be drafted); a block drafter has read the tokens before the pending one.
 * For self:E, ctx and seq are the target's. */
bool rounds_model(struct round *const *, uint32_t n, enum aux_role, struct round **out);

/* ---- work ---- */
/* Which head looks at a layer, the lens or a trained one, is the session's setting: it applies to all of these.
 * Predictions of probed layers become LAYER events, except those of round_inspect(). */

/* The rows of a sequence, of which the last decides when to exit; the others go as deep as it. */
struct exit_rows {
    const slot_t *rows; /* (n) each after its parent */
    uint32_t n;
};
/* Runs the rows of each sequence to its exit, layer `to` at most. With several sequences each layer is read once for
 * all. */
bool rounds_until(struct round *const *, const struct exit_rows *, uint32_t n, uint32_t to, const struct exit_rule *,
                  struct exit_result *out);
/* Confidence at temperature 1. */
bool rounds_predict(struct round *const *, const slot_t *rows, uint32_t n, uint32_t layer, struct prediction *out);
bool round_predict(struct round *, const struct context_probe *, size_t n, struct prediction *out);
/* Without events: predictions of a reduced model are of no layer. */
bool round_inspect(struct round *, const struct context_probe *, size_t n, struct prediction *out);

/* The next token of each sequence as layer `layer` predicts it after the row: its argmax when greedy (*q = DIST_NONE),
 * else drawn from its distribution under the user's sampling settings (*q is that distribution). The predictions save a
 * second head call in the greedy case. */
bool rounds_choose(struct round *const *, const slot_t *rows, uint32_t n, uint32_t layer, const struct prediction *,
                   token_t *, dist_t *q);

/* Blocks, in rounds of rounds_model() of a block drafter (docs/design-engine.md: Block drafters). */

/* Runs a block of each of the first rounds whose blocks fit into one forward pass. rows[i * k + j] and out[i * k + j]
 * are the row of round i's block that predicts draft j + 1 of k, at most model_info.block, and its prediction, without
 * the Markov head. The other functions work on these rows until the next call. Returns the number of rounds; 0: stop
 * now. */
uint32_t rounds_block(struct round *const *, uint32_t n, uint32_t k, slot_t *rows, struct prediction *out);
/* For n rows of blocks, at most VERIFY_NODES, each after the token before[i]: with `markov`, which the policy declared
 * to need, replaces the predictions g by those with the Markov head's bias. Writes the confidence head's forecasts that
 * the target accepts the drafts; NAN: there is no such head. Of neighbours of equal row the first becomes events. */
bool rounds_follow(struct round *const *, const slot_t *rows, const token_t *before, uint32_t n, bool markov,
                   struct prediction *g, float *confidence);
/* As rounds_choose(), with the bias for before[i]; TOKEN_NONE: without. */
bool rounds_block_choose(struct round *const *, const slot_t *rows, const token_t *before, uint32_t n,
                         const struct prediction *, token_t *, dist_t *q);

/* A companion model's agreement with all drafts of chains, from the distributions that were drawn from and its own
 * under the user's sampling settings; greedy: both at temperature 1. `draft` is of rounds_model(), before drafting
 * began. The companion reads the drafts together with what it had not read before them, in as few forward passes as
 * possible; it is not to be asked for anything else in the round. out[i] has room for round_drafted(draft[i]). */
bool rounds_overlap(struct round *const *draft, uint32_t n, enum aux_role companion, struct overlap *const *out);

/* In a round of rounds_model(): p̂ of the acceptance head, which the policy declared to need, that the target accepts
 * the token of a row that has run through the draft model. */
bool round_acceptance(struct round *, slot_t row, double *p);

/* k different candidates for the token after `slot` by layer `layer`: the k likeliest when greedy (*q = DIST_NONE),
 * else drawn without replacement from its distribution *q, in the order drawn. `g` is the layer's prediction there.
 * Returns their number, which is smaller if no more tokens have a probability; 0: stop now. The slot may be of a fork:
 * `pos` is the token's position. */
uint32_t round_candidates(struct round *, slot_t slot, uint32_t layer, uint32_t pos, uint32_t k,
                          const struct prediction *g, token_t *out, dist_t *q);

/* A learning pass begins and ends: its time and loads do not count as drafting. */
void round_learning_begin(struct round *);
void round_learning_end(struct round *);
double round_learning_ms(const struct round *); /* of the round's learning passes so far */
double round_verify_ms(const struct round *);   /* in observe(): of the verification, for all sequences */
double
round_draft_ms(const struct round *); /* of drafting so far, for all sequences, without learning passes and waiting */

/* ---- proposals ---- */
/* The exit layer of a draft that no layer predicted, such as one copied from earlier text. In events and traces it is
 * -1 and empty, as that of a draft model's token: no layer of the target predicted it. */
#define NO_LAYER 0

struct proposal {
    int32_t parent; /* the node before it */
    token_t token;
    uint32_t exit_layer; /* the layer that predicted it, 1..r->layers of this round's model; or NO_LAYER */
    const struct prediction *prediction; /* the layer's; NULL: the draft has no confidence */
    /* The distribution that the token was drawn from; a token that was drawn must have one, or sampling is not
     * lossless. DIST_NONE: the policy chose the token without drawing, from what was known before. When sampling, that
     * is a q of 1 at the token: it is accepted with its probability under the target, and after a rejection the next
     * token is drawn from the others. */
    dist_t q;
    bool no_row; /* without a row: if it is accepted, the round has no bonus */
};
/* Returns the new node's number; -1 to stop, also if the round is full. A draft model's token that the target lacks
 * gets no row, will be rejected, and makes the round full. */
int32_t round_propose(struct round *, const struct proposal *);
bool round_full(const struct round *);
/* Why it is full: "budget" (the length, the context or a forward pass), "vocabulary" (the target lacks the last draft);
 * NULL: it is not. */
const char *round_full_reason(const struct round *);
uint32_t round_drafted(const struct round *); /* nodes so far, without the pending one */
/* After drafting: verifies only the first n drafts of a chain. Draft n + 1 is tested, too, but without a row: the
 * choice of n may depend on it, and it must not be dropped for its own value. */
void round_verify_first(struct round *, uint32_t n);
slot_t round_slot(struct round *, int32_t node); /* its row; SLOT_NONE for no_row, or to stop */

/* ---- reports ---- */
/* Ends the run with the policy's own error; returns false. */
bool round_fail(struct round *, const char *why);
void round_report(struct round *, const char *key, int index, double value); /* a SERIES event */
/* Sets the reason for stopping and the policy's state in the ROUND event; -1 / NAN: does not apply. exit_layer may be
 * NO_LAYER. */
void round_summary(struct round *, const char *stop_reason, int exit_layer, double threshold, int d_max, int w_max);
