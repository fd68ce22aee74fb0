/* Drafting from the target's hidden states (docs/policies/eagle.md): a chain of K tokens by an
 * EAGLE-3 head or by the target's own layer for multi-token prediction; or EAGLE-2's dynamic tree (Li et al. 2024,
 * arXiv:2406.16858). Each of K steps expands the topk nodes of the latest level that have the largest path probability,
 * the product of the drafter's probabilities along the path. The `nodes` best of all nodes are proposed.
 *
 * The nodes of a tree are chosen without drawing, also when sampling: dropping a drawn one for its probability would
 * favour other tokens. */
#include <math.h>

#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/draft_tree.h"
#include "policies/engine_commands.h"

enum { KNOB_K, KNOB_TOPK, KNOB_NODES };

static bool
eagle_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 32, 1, 4, "tokens drafted a round; of a tree: its depth") &&
           policy_number(p, "topk", "topk", 1, PREDICTION_TOP, 1, 1,
                         "1: a chain; else a tree, which expands so many nodes a step") &&
           policy_number(p, "nodes", "nodes", 1, VERIFY_NODES - 1, 1, 16,
                         "nodes of a tree that are verified, the best of all");
}

static bool
mtp_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 32, 1, 4, "tokens drafted a round");
}

/* ---- a tree ---- */

struct tree {
    struct draft_tree all;
    slot_t row[VERIFY_NODES]; /* (n_rows) rows of expanded nodes; the first is the pending token's */
    uint32_t n_rows;
};

/* Expands the best nodes of the latest level, in one forward pass. A token that the target lacks is not expanded. */
static bool
expand(struct round *d, struct tree *t, uint32_t topk)
{
    struct context_probe probes[PREDICTION_TOP];
    struct prediction g[PREDICTION_TOP];
    int32_t expanded[PREDICTION_TOP];
    const uint32_t first = t->n_rows, level = t->all.level;
    uint32_t n = 0;
    draft_tree_keep(&t->all, level, topk);
    t->all.level = t->all.n;
    for (uint32_t i = level; i < t->all.level; i++) {
        const struct draft_node *node = &t->all.node[i];
        if (!node->kept)
            continue;
        slot_t *row = &t->row[t->n_rows];
        if ((*row = context_append(d->ctx, d->seq, *node->row, node->token)) == SLOT_NONE)
            return false;
        probes[n] = (struct context_probe){.slot = *row, .layer = d->exit_layer, .temperature = 1};
        expanded[n++] = (int32_t)i;
        t->n_rows++;
    }
    if (!context_advance(d->ctx, t->row + first, n, d->exit_layer, NULL) || !round_inspect(d, probes, n, g))
        return false;
    for (uint32_t i = 0; i < n; i++)
        draft_tree_add(&t->all, expanded[i], &t->row[first + i], &g[i], topk);
    return true;
}

static bool
draft_tree(struct policy *p, struct round *r)
{
    const uint32_t topk = (uint32_t)p->value[KNOB_TOPK], k = (uint32_t)p->value[KNOB_K];
    struct tree *t = p->state;
    struct round *d;
    struct prediction g;
    if (!rounds_model(&r, 1, AUX_EAGLE, &d))
        return false;
    t->all.n = t->all.level = 0;
    t->n_rows = 1;
    if (!round_full(d)) {
        t->row[0] = round_slot(d, 0);
        if (t->row[0] == SLOT_NONE || !rounds_predict(&d, t->row, 1, d->exit_layer, &g))
            return false;
        draft_tree_add(&t->all, -1, &t->row[0], &g, topk);
    }
    uint32_t depth = t->all.n > 0;
    for (; depth < k && depth < d->budget && depth > 0 && t->n_rows + topk <= VERIFY_NODES; depth++)
        if (!expand(d, t, topk))
            return false;
    if (!draft_tree_propose(d, &t->all, (uint32_t)p->value[KNOB_NODES]))
        return false;
    round_summary(d, depth >= k ? "k" : depth < d->budget ? "rows" : "budget", (int)d->exit_layer, NAN, -1, (int)k);
    return true;
}

static bool
eagle_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return p[0]->value[KNOB_TOPK] > 1 ? rounds_each(p, r, n, draft_tree)
                                      : chain_draft_aux(r, n, AUX_EAGLE, (uint32_t)p[0]->value[KNOB_K]);
}

static bool
mtp_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return chain_draft_aux(r, n, AUX_MTP, (uint32_t)p[0]->value[KNOB_K]);
}

/* ---- what-if ---- */

/* A tree needs more predictions than those of one chain. */
static bool
eagle_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return !(value[KNOB_TOPK] > 1) && chain_what_if_aux(record, AUX_EAGLE, (uint32_t)value[KNOB_K], out);
}

static bool
mtp_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return chain_what_if_aux(record, AUX_MTP, (uint32_t)value[KNOB_K], out);
}

/* A draft is computed from the outputs of the drafts before it, and so depends on where its round began. */
static const char no_what_if[] = "its drafts depend on where a round began";

const struct policy_ops policy_eagle = {
    .name = "eagle",
    .title = "EAGLE-3: drafts from hidden states",
    .paper = "Li et al. 2025, arXiv:2503.01840",
    .needs = NEEDS(AUX_EAGLE),
    .state_size = sizeof(struct tree),
    .open = eagle_open,
    .draft = eagle_draft,
    .length = "k",
    .breadth = "topk",
    .what_if = eagle_what_if,
    .no_what_if = no_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA " --spec-type draft-eagle3 --spec-draft-model <draft> --spec-draft-n-max <k> "
                                       "--spec-draft-n-min 0 --spec-draft-p-min 0<rates:k><sampling>",
    .command[ENGINE_VLLM] = VLLM " --speculative-config '{\"method\": \"eagle3\", \"model\": <draft:json>, "
                                 "\"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
    .command[ENGINE_SGLANG] =
        SGLANG " --speculative-algorithm EAGLE3 --speculative-draft-model-path <draft> --speculative-num-steps <k> "
               "--speculative-eagle-topk <topk> --speculative-num-draft-tokens <nodes+1>" SGLANG_SAMPLES,
    .no_command = "it cannot draft with an EAGLE-3 head",
};
const struct policy_ops policy_mtp = {
    .name = "mtp",
    .title = "multi-token prediction layer",
    .paper = "DeepSeek-AI 2024, arXiv:2412.19437",
    .needs = NEEDS(AUX_MTP),
    .open = mtp_open,
    .draft_vocab = KNOB_K + 1,
    .draft = mtp_draft,
    .length = "k",
    .what_if = mtp_what_if,
    .no_what_if = no_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA
    " --spec-type draft-mtp --spec-draft-n-max <k> --spec-draft-n-min 0 --spec-draft-p-min 0<rates:k><sampling>",
    .command[ENGINE_VLLM] =
        VLLM " --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
    .command[ENGINE_SGLANG] = SGLANG " --speculative-algorithm EAGLE --speculative-num-steps <k> "
                                     "--speculative-eagle-topk 1 --speculative-num-draft-tokens <k+1>" SGLANG_SAMPLES,
    .command[ENGINE_TRANSFORMERS] = LOAD "model.generate(**inputs, use_mtp=True<sampling>)",
};
