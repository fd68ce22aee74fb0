#include "tests/rigs/biased_policies.h"

#include "engine/session/session_internal.h"
#include "policies/registry.h"

static const struct sampling hotter = {.temperature = 3, .top_k = 12, .top_p = 1};
static const struct sampling flat = {.temperature = 1000, .top_p = 1};

/* Drafts three tokens from layer 1. `picky` drops a token whose id is odd after it was drawn. `other` draws at another
 * temperature, which is fair if the distribution is declared (`declares`). */
static bool
draft_from_layer_one(struct round *r, bool picky, const struct sampling *other, bool declares)
{
    int32_t node = 0;
    for (uint32_t i = 0; i < 3 && !round_full(r); i++) {
        slot_t row = round_slot(r, node);
        struct proposal draft = {.parent = node, .exit_layer = 1};
        struct prediction g;
        const struct context_probe probe = {.slot = row, .layer = 1, .temperature = 1};
        if (!context_advance(r->ctx, &row, 1, 1, NULL) || !round_predict(r, &probe, 1, &g) ||
            !rounds_choose(&r, &row, 1, 1, &g, &draft.token, &draft.q))
            return false;
        if (other != NULL) {
            const struct rng_key key = {.seed = r->seed, .pos = context_position(r->ctx, row) + 1};
            const dist_t q = context_dist(r->ctx, row, 1, 0, other);
            if (q == DIST_NONE || (draft.token = context_draw(r->ctx, q, &key, NULL, 0)) == TOKEN_NONE)
                return false;
            draft.q = declares ? q : draft.q;
        }
        if (picky && draft.token % 2 == 1)
            return true;
        if ((node = round_propose(r, &draft)) < 0)
            return false;
    }
    return true;
}

static bool
fair_one(struct policy *p, struct round *r)
{
    (void)p;
    return draft_from_layer_one(r, false, NULL, false);
}

static bool
fair_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, fair_one);
}

static bool
picky_one(struct policy *p, struct round *r)
{
    (void)p;
    return draft_from_layer_one(r, true, NULL, false);
}

static bool
picky_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, picky_one);
}

static bool
hot_one(struct policy *p, struct round *r)
{
    (void)p;
    return draft_from_layer_one(r, false, &hotter, false);
}

static bool
hot_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, hot_one);
}

/* A policy of which nearly all drafts are rejected. */
static bool
flat_one(struct policy *p, struct round *r)
{
    (void)p;
    return draft_from_layer_one(r, false, &flat, true);
}

static bool
flat_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, flat_one);
}

extern const struct policy_ops policy_sv;

/* Speculative Verification with a cost of rows, so that it verifies fewer drafts than it makes. */
static bool
costly_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    const bool ok = policy_sv.open(p, model, sampling, err);
    p->info.knobs[policy_knob_index(&p->info, "row_cost")].def = 0.4;
    return ok;
}

/* The same, but it also drops the draft after the verified ones, a decision that depends on that draft itself. Its
 * position is then drawn from p. */
static bool
dropping_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct round_state *st = r[0]->state;
    const bool ok = policy_sv.draft(p, r, n);
    if (st->n > 1 && st->node[st->n - 1].slot == SLOT_NONE)
        st->n--, st->unverified++;
    return ok;
}

void
biased_policies(struct biased_policies *b)
{
    static const struct policy_ops fair = {.name = "fair", .title = "", .paper = "", .draft = fair_draft},
                                   picky = {.name = "drops by value", .title = "", .paper = "", .draft = picky_draft},
                                   hot = {.name = "another q", .title = "", .paper = "", .draft = hot_draft},
                                   poor = {.name = "fair, poor", .title = "", .paper = "", .draft = flat_draft};
    struct policy_ops costly = policy_sv, dropping = policy_sv;
    costly.name = "sv, rows cost";
    dropping.name = "sv, drops one";
    costly.open = dropping.open = costly_open;
    dropping.draft = dropping_draft;
    *b = (struct biased_policies){.ops = {fair, picky, hot, costly, dropping, poor},
                                  .fair = {true, false, false, true, false, true}};
    for (int i = 0; i < BIASED_POLICIES; i++)
        b->list[i] = &b->ops[i];
}
