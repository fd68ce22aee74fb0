#include "policies/chain.h"

#include <math.h>

bool
chain_exit_knob(struct policy *p, const struct model_info *model)
{
    return policy_number(p, "exit_layer", "E", 1, model->layers - 1, 1, fmax(1, floor(model->layers / 4.0)),
                         "draft with layers 1..E, then the head");
}

/* ---- the rule ---- */

/* Why a chain of this length ends; NULL: it continues. full: why the round takes no more drafts, or NULL. */
static const char *
long_enough(const struct chain_rule *rule, uint32_t drafted, const char *full)
{
    return drafted >= rule->most ? rule->full : full;
}

/* Does a prediction of this confidence end the chain? */
static bool
unsure(const struct chain_rule *rule, double confidence)
{
    return rule->below != CHAIN_CONTINUES && confidence < rule->threshold;
}

/* ---- on rounds ---- */

/* The chains that continue. */
static uint32_t
open_chains(struct chain_end *chains, uint32_t n, const struct chain_rule *rules, struct chain_end **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct chain_end *c = &chains[i];
        if (c->reason == NULL)
            c->reason = long_enough(&rules[i], round_drafted(c->round), round_full_reason(c->round));
        if (c->reason == NULL)
            out[count++] = c;
    }
    return count;
}

bool
chain_run(struct chain_end *const *chains, uint32_t n, uint32_t to, slot_t *rows)
{
    for (uint32_t i = 0; i < n; i++)
        if ((rows[i] = round_slot(chains[i]->round, chains[i]->node)) == SLOT_NONE)
            return false;
    return n == 0 || context_advance(chains[0]->round->ctx, rows, n, to, NULL);
}

/* Runs the chains' last rows to the exit layer; drops chains that end before the predicted token. */
static bool
look(struct chain_end **chains, uint32_t *n, const struct chain_rule *rules, slot_t *rows,
     struct prediction *predictions)
{
    struct round *rounds[ROUNDS_MOST];
    const uint32_t to = rules[0].exit_layer;
    for (uint32_t i = 0; i < *n; i++)
        rounds[i] = chains[i]->round;
    if (!chain_run(chains, *n, to, rows) || !rounds_predict(rounds, rows, *n, to, predictions))
        return false;
    uint32_t left = 0;
    for (uint32_t i = 0; i < *n; i++) {
        struct chain_end *c = chains[i];
        const struct chain_rule *rule = &rules[c->chain];
        const bool stops = unsure(rule, (double)predictions[i].confidence);
        if (stops)
            c->reason = "threshold";
        if (stops && rule->below == CHAIN_STOPS_BEFORE)
            continue;
        chains[left] = c;
        rows[left] = rows[i];
        predictions[left++] = predictions[i];
    }
    *n = left;
    return true;
}

static bool
propose(struct chain_end *const *chains, uint32_t n, uint32_t exit_layer, const slot_t *rows,
        const struct prediction *predictions)
{
    struct round *rounds[ROUNDS_MOST];
    token_t tokens[ROUNDS_MOST];
    dist_t q[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++)
        rounds[i] = chains[i]->round;
    if (n > 0 && !rounds_choose(rounds, rows, n, exit_layer, predictions, tokens, q))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct chain_end *c = chains[i];
        const struct proposal draft = {
            .parent = c->node, .token = tokens[i], .exit_layer = exit_layer, .prediction = &predictions[i], .q = q[i]};
        if ((c->node = round_propose(c->round, &draft)) < 0)
            return false;
    }
    return true;
}

bool
chain_draft(struct round *const *rounds, uint32_t n, const struct chain_rule *rules, const struct chain_hook *hook)
{
    struct chain_end all[ROUNDS_MOST], *some[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST];
    struct prediction predictions[ROUNDS_MOST];
    uint32_t count;
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct chain_end){.round = rounds[i], .chain = i};
    while ((count = open_chains(all, n, rules, some)) > 0)
        if (!look(some, &count, rules, rows, predictions) ||
            !propose(some, count, rules[0].exit_layer, rows, predictions) ||
            (hook != NULL && !hook->proposed(hook->user, some, count)))
            return false;
    for (uint32_t i = 0; i < n; i++)
        round_summary(rounds[i], all[i].reason, (int)rules[i].exit_layer, rules[i].threshold, -1, (int)rules[i].most);
    return true;
}

bool
chain_draft_aux(struct round *const *rounds, uint32_t n, enum aux_role role, uint32_t most)
{
    struct round *draft[ROUNDS_MOST];
    struct chain_rule rules[ROUNDS_MOST];
    if (!rounds_model(rounds, n, role, draft))
        return false;
    for (uint32_t i = 0; i < n; i++)
        rules[i] = (struct chain_rule){.exit_layer = draft[i]->exit_layer, .most = most, .full = "k", .threshold = NAN};
    return chain_draft(draft, n, rules, NULL);
}

bool
chain_rerun(struct round *r, uint32_t from, const token_t *tokens, uint32_t n, uint32_t layers, const struct plan *plan,
            struct prediction *predictions)
{
    slot_t rows[VERIFY_NODES];
    struct context_probe probes[VERIFY_NODES];
    const seq_t fork = context_fork(r->ctx, r->seq, from);
    bool ok = fork != SEQ_NONE;
    for (uint32_t i = 0; i < n && ok; i++) {
        rows[i] = context_append(r->ctx, fork, i == 0 ? SLOT_NONE : rows[i - 1], tokens[i]);
        ok = rows[i] != SLOT_NONE;
        probes[i] = (struct context_probe){.slot = rows[i], .layer = layers, .temperature = 1};
    }
    ok = ok && context_advance(r->ctx, rows, n, layers, plan) && round_inspect(r, probes, n, predictions);
    if (fork != SEQ_NONE)
        context_drop(r->ctx, fork);
    return ok;
}

/* ---- on a record ---- */

void
chain_what_if(struct what_if *w, const struct chain_rule *rule)
{
    bool stops = false;
    while (!stops && long_enough(rule, w->drafted, what_if_full(w) ? "budget" : NULL) == NULL) {
        stops = unsure(rule, (double)what_if_inspect(w, rule->exit_layer)->confidence);
        if (stops && rule->below == CHAIN_STOPS_BEFORE)
            return;
        what_if_propose(w, rule->exit_layer, false);
    }
}

void
chain_what_if_drafted(struct what_if *w, uint32_t most)
{
    const uint32_t exit_layer = w->record->draft.exit_layer;
    const struct chain_rule own_layers = {.exit_layer = exit_layer, .most = most, .full = "k", .threshold = NAN};
    if (exit_layer > 0)
        chain_what_if(w, &own_layers);
    while (exit_layer == 0 && w->drafted < most && !what_if_full(w))
        what_if_draft(w);
}

bool
chain_what_if_aux(const struct layer_record *record, enum aux_role role, uint32_t most, struct tally *out)
{
    struct what_if w;
    what_if_begin(&w, record, out);
    while (record->draft.known && record->draft.role == role && what_if_round(&w)) {
        chain_what_if_drafted(&w, most);
        what_if_verify(&w);
    }
    return true;
}
