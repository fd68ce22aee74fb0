/* Drafting with a block drafter: one forward pass over a block of masks predicts all drafts of a round
 * (docs/policies/dflash.md). DFlash takes these predictions as they are. DSpark's Markov head adds a bias for the token
 * before each position, and so follows the chain, or each path of the tree. `topk` above 1 drafts DDTree's tree (Ringel
 * & Romano 2026, arXiv:2604.12989): the `nodes` most probable paths by the product of the positions' probabilities. */
#include <math.h>

#include "engine/events/policy.h"
#include "engine/session/round.h"
#include "policies/draft_tree.h"
#include "policies/engine_commands.h"
#include "policies/what_if.h"

enum { KNOB_K, KNOB_CONF_MIN, KNOB_TOPK, KNOB_NODES };

#define UNKNOWN_BLOCK 15 /* drafts of a block that is not known */

static bool
block_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    const uint32_t most = model->block > 0 ? model->block : UNKNOWN_BLOCK;
    (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, most, 1, most, "tokens drafted a round, of a block; of a tree: its depth") &&
           policy_number(p, "conf_min", "c", 0, 1, 0.05, 0,
                         "a position of a smaller confidence ends the block; 0: none does") &&
           policy_number(p, "topk", "topk", 1, PREDICTION_TOP, 1, 1,
                         "1: a chain; else a tree with so many tokens after a node") &&
           policy_number(p, "nodes", "nodes", 1, VERIFY_NODES - 1, 1, 16,
                         "nodes of a tree that are verified, the best of all");
}

static bool
has_markov(const struct policy *p)
{
    return (p->ops->needs & NEEDS_MARKOV) != 0;
}

/* Is a position below conf_min? Without a confidence head its confidence is the probability of its first choice, and
 * not of the draft: a drawn token must not be dropped for its value. */
static bool
is_unsure(const struct policy *p, const struct prediction *g, float confidence)
{
    return (double)(isnan(confidence) ? g->confidence : confidence) < p->value[KNOB_CONF_MIN];
}

static void
summarise(const struct policy *p, struct round *d, const char *reason)
{
    const double conf_min = p->value[KNOB_CONF_MIN];
    round_summary(d, reason, (int)d->exit_layer, conf_min > 0 ? conf_min : (double)NAN, -1, (int)p->value[KNOB_K]);
}

/* ---- chains ---- */

struct chain {
    struct round *round;
    const slot_t *row;          /* (k) */
    const struct prediction *g; /* (k) without the Markov head */
    int32_t node;               /* its end, */
    token_t last;               /* and the token there */
    const char *reason;         /* why it ended, a constant; NULL: it continues */
};

/* The chains that continue at position i, in step. */
struct step {
    struct chain *chain[ROUNDS_MOST];
    struct round *round[ROUNDS_MOST];
    slot_t row[ROUNDS_MOST];
    token_t before[ROUNDS_MOST];
    struct prediction g[ROUNDS_MOST];
    uint32_t n;
};

static void
continue_at(struct step *s, struct chain *c, slot_t row, token_t before, const struct prediction *g)
{
    s->chain[s->n] = c;
    s->round[s->n] = c->round;
    s->row[s->n] = row;
    s->before[s->n] = before;
    s->g[s->n++] = *g;
}

/* Lists the chains that continue at position i, and why the others do not. */
static void
open_chains(const struct policy *p, struct chain *all, uint32_t n, uint32_t i, struct step *s)
{
    s->n = 0;
    for (uint32_t c = 0; c < n; c++) {
        if (all[c].reason == NULL)
            all[c].reason = i >= (uint32_t)p->value[KNOB_K] ? "k" : round_full_reason(all[c].round);
        if (all[c].reason == NULL)
            continue_at(s, &all[c], all[c].row[i], all[c].last, &all[c].g[i]);
    }
}

/* Looks at the position, and drops chains that end before it. */
static bool
look(const struct policy *p, struct step *s)
{
    float confidence[ROUNDS_MOST];
    const uint32_t n = s->n;
    if (n == 0)
        return true;
    if (!rounds_follow(s->round, s->row, s->before, n, has_markov(p), s->g, confidence))
        return false;
    s->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_unsure(p, &s->g[i], confidence[i]))
            s->chain[i]->reason = "confidence";
        else
            continue_at(s, s->chain[i], s->row[i], has_markov(p) ? s->before[i] : TOKEN_NONE, &s->g[i]);
    return true;
}

static bool
propose(const struct step *s)
{
    token_t token[ROUNDS_MOST];
    dist_t q[ROUNDS_MOST];
    if (s->n > 0 && !rounds_block_choose(s->round, s->row, s->before, s->n, s->g, token, q))
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        struct chain *c = s->chain[i];
        const struct proposal draft = {.parent = c->node,
                                       .token = token[i],
                                       .exit_layer = c->round->exit_layer,
                                       .prediction = &s->g[i],
                                       .q = q[i]};
        if ((c->node = round_propose(c->round, &draft)) < 0)
            return false;
        c->last = token[i];
    }
    return true;
}

/* Drafts for as many rounds as fit into one forward pass. Returns their number; 0: stop now. */
static uint32_t
draft_some(const struct policy *p, struct round *const *d, uint32_t n, uint32_t k)
{
    slot_t rows[VERIFY_NODES];
    struct prediction predictions[VERIFY_NODES];
    struct chain chains[ROUNDS_MOST];
    struct step step;
    const uint32_t taken = rounds_block(d, n, k, rows, predictions);
    for (uint32_t i = 0; i < taken; i++)
        chains[i] = (struct chain){
            .round = d[i], .row = rows + i * k, .g = predictions + i * k, .last = d[i]->tokens[d[i]->n_tokens - 1]};
    for (uint32_t i = 0; i <= k && taken > 0; i++) {
        open_chains(p, chains, taken, i, &step);
        if (!look(p, &step) || !propose(&step))
            return 0;
    }
    for (uint32_t i = 0; i < taken; i++)
        summarise(p, d[i], chains[i].reason);
    return taken;
}

static bool
draft_chains(const struct policy *p, struct round *const *r, uint32_t n)
{
    struct round *all[ROUNDS_MOST], *live[ROUNDS_MOST];
    uint32_t n_live = 0, longest = 0;
    if (!rounds_model(r, n, AUX_BLOCK, all))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!round_full(all[i]))
            live[n_live++] = all[i];
        else
            summarise(p, all[i], round_full_reason(all[i]));
        longest = all[i]->budget > longest ? all[i]->budget : longest;
    }
    const uint32_t k = (uint32_t)fmin(p->value[KNOB_K], longest);
    for (uint32_t at = 0, taken; at < n_live; at += taken)
        if ((taken = draft_some(p, live + at, n_live - at, k)) == 0)
            return false;
    return true;
}

/* ---- a tree ---- */

/* Adds the next level: tokens after the nodes of the latest one, or after the pending token, at position i of the block.
 * Only nodes that are among the best of the tree so far are left. */
static bool
expand(const struct policy *p, struct round *d, struct draft_tree *t, slot_t row, const struct prediction *plain)
{
    struct round *rounds[VERIFY_NODES];
    slot_t rows[VERIFY_NODES];
    token_t before[VERIFY_NODES];
    struct prediction g[VERIFY_NODES];
    float confidence[VERIFY_NODES];
    const uint32_t level = t->level, n = t->n > 0 ? t->n - level : 1;
    const bool first = t->n == 0;
    for (uint32_t i = 0; i < n; i++) {
        rounds[i] = d;
        rows[i] = row;
        before[i] = first ? d->tokens[d->n_tokens - 1] : t->node[level + i].token;
        g[i] = *plain;
    }
    if (!rounds_follow(rounds, rows, before, n, has_markov(p), g, confidence))
        return false;
    t->level = t->n;
    for (uint32_t i = 0; i < n; i++)
        if (!is_unsure(p, &g[i], confidence[i]))
            draft_tree_add(t, first ? -1 : (int32_t)(level + i), NULL, &g[i], (uint32_t)p->value[KNOB_TOPK]);
    return true;
}

static bool
draft_tree(struct policy *p, struct round *r)
{
    struct draft_tree *t = p->state;
    struct round *d;
    slot_t rows[VERIFY_NODES];
    struct prediction plain[VERIFY_NODES];
    const uint32_t k = (uint32_t)fmin(p->value[KNOB_K], r->budget), nodes = (uint32_t)p->value[KNOB_NODES];
    const char *reason = p->value[KNOB_K] <= r->budget ? "k" : "budget";
    t->n = t->level = 0;
    if (!rounds_model(&r, 1, AUX_BLOCK, &d) || (k > 0 && rounds_block(&d, 1, k, rows, plain) == 0))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        if (!expand(p, d, t, rows[i], &plain[i]))
            return false;
        const bool added = t->level < t->n;
        draft_tree_prune(t, nodes);
        if (t->level == t->n) {
            reason = added ? "nodes" : "confidence";
            break;
        }
    }
    if (!draft_tree_propose(d, t, nodes))
        return false;
    summarise(p, d, reason);
    return true;
}

static bool
block_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return p[0]->value[KNOB_TOPK] > 1 ? rounds_each(p, r, n, draft_tree) : draft_chains(p[0], r, n);
}

/* ---- what-if ---- */

/* Of chains, whose drafts do not depend on k or conf_min. A record has the drafts with the Markov head, or those
 * without. */
static bool
what_if(const struct layer_record *record, const double *value, bool markov, struct tally *out)
{
    struct what_if w;
    if (value[KNOB_TOPK] > 1 || (value[KNOB_CONF_MIN] > 0 && record->draft.confidence == NULL))
        return false;
    what_if_begin(&w, record, out);
    while (record->draft.known && record->draft.role == AUX_BLOCK && record->draft.markov == markov &&
           what_if_round(&w)) {
        const uint32_t k = (uint32_t)fmin(value[KNOB_K], w.budget);
        if (k > 0)
            what_if_block(&w, k);
        while (w.drafted < k && !(what_if_follow(&w) < value[KNOB_CONF_MIN]))
            what_if_propose_block(&w);
        what_if_verify(&w);
    }
    return true;
}

static bool
dflash_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return what_if(record, value, false, out);
}

static bool
dspark_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return what_if(record, value, true, out);
}

/* A run's record has blocks only where its rounds began. */
static const char no_what_if[] = "its blocks begin where its rounds began";

#define LLAMA_BLOCK(type)                                                                                              \
    LLAMA " --spec-type " type " --spec-draft-model <draft> --spec-draft-n-max <k> --spec-draft-n-min 0 "              \
          "--spec-draft-p-min <conf_min><rates:k><sampling>"
#define VLLM_BLOCK(method)                                                                                             \
    VLLM " --speculative-config '{\"method\": \"" method                                                               \
         "\", \"model\": <draft:json>, \"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'"
static const char no_command[] = "it has block drafters of its own architectures only";

const struct policy_ops policy_dflash = {
    .name = "dflash",
    .title = "DFlash: a block of drafts at once",
    .paper = "Chen et al. 2026, arXiv:2602.06036",
    .needs = NEEDS(AUX_BLOCK),
    .state_size = sizeof(struct draft_tree),
    .open = block_open,
    .draft = block_draft,
    .length = "k",
    .breadth = "topk",
    .confidence = "conf_min",
    .what_if = dflash_what_if,
    .no_what_if = no_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA_BLOCK("draft-dflash"),
    .command[ENGINE_VLLM] = VLLM_BLOCK("dflash"),
    .command[ENGINE_SGLANG] = SGLANG " --speculative-algorithm DFLASH --speculative-draft-model-path <draft> "
                                     "--speculative-num-draft-tokens <k+1>",
    .no_command = no_command,
};
const struct policy_ops policy_dspark = {
    .name = "dspark",
    .title = "DSpark: a block, with a Markov head",
    .paper = "Cheng et al. 2026, arXiv:2607.05147",
    .needs = NEEDS(AUX_BLOCK) | NEEDS_MARKOV,
    .state_size = sizeof(struct draft_tree),
    .open = block_open,
    .draft = block_draft,
    .length = "k",
    .breadth = "topk",
    .confidence = "conf_min",
    .what_if = dspark_what_if,
    .no_what_if = no_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA_BLOCK("draft-dspark"),
    .command[ENGINE_VLLM] = VLLM_BLOCK("dspark"),
    .command[ENGINE_SGLANG] = SGLANG " --speculative-algorithm DSPARK --speculative-draft-model-path <draft> "
                                     "--speculative-dspark-block-size <k>",
    .no_command = no_command,
};
