#include "tests/rigs/copying_policy.h"

#include <math.h>

#include "engine/session/round.h"
#include "policies/registry.h"
#include "tests/rigs/test.h"

enum { KNOB_GAMMA, KNOB_WIDTH };

enum { FOLLOWERS = 1024, WIDTH = 2 };

struct copying { /* the last tokens that followed a token, by its id modulo FOLLOWERS; collisions do no harm */
    struct {
        token_t after[WIDTH]; /* the newest first */
        uint32_t n;
    } follower[FOLLOWERS];
    uint32_t read; /* tokens of the text */
};

static bool
copying_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "gamma", "γ", 1, 12, 1, 4, "tokens copied a round") &&
           policy_number(p, "width", "w", 1, WIDTH, 1, 2, "candidates for the first of them");
}

static bool
copying_prefilled(struct policy *p, struct round *r)
{
    (void)r;
    ((struct copying *)p->state)->read = 0;
    return true;
}

static void
read_text(struct copying *c, const struct round *r)
{
    for (uint32_t i = c->read > 0 ? c->read : 1; i < r->n_tokens; i++) {
        const uint32_t at = (uint32_t)r->tokens[i - 1] % FOLLOWERS;
        token_t *after = c->follower[at].after;
        if (c->follower[at].n > 0 && after[0] == r->tokens[i])
            continue;
        after[1] = after[0];
        after[0] = r->tokens[i];
        c->follower[at].n += c->follower[at].n < WIDTH;
    }
    c->read = r->n_tokens;
}

static bool
copying_one(struct policy *p, struct round *r)
{
    struct copying *c = p->state;
    token_t last = r->tokens[r->n_tokens - 1];
    int32_t end = 0; /* the last node of the chain, which the first candidate continues */
    read_text(c, r);
    for (uint32_t i = 0; i < (uint32_t)p->value[KNOB_GAMMA] && !round_full(r); i++) {
        const uint32_t at = (uint32_t)last % FOLLOWERS, wide = i == 0 ? (uint32_t)p->value[KNOB_WIDTH] : 1;
        const int32_t parent = end;
        if (c->follower[at].n == 0)
            break;
        for (uint32_t k = 0; k < wide && k < c->follower[at].n; k++) {
            const struct proposal draft = {
                .parent = parent, .token = c->follower[at].after[k], .exit_layer = NO_LAYER, .q = DIST_NONE};
            const int32_t node = round_propose(r, &draft);
            if (node < 0)
                return false;
            end = k == 0 ? node : end;
        }
        last = c->follower[at].after[0];
    }
    round_summary(r, "copied", NO_LAYER, (double)NAN, -1, -1);
    return true;
}

static bool
copying_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, copying_one);
}

const struct policy_ops policy_copying = {
    .name = "copying",
    .title = "copies what followed before",
    .paper = "",
    .state_size = sizeof(struct copying),
    .open = copying_open,
    .prefilled = copying_prefilled,
    .draft = copying_draft,
};

/* Suffix decoding, EAGLE heads and block drafters whose defaults draft trees, so that tests of every policy include
 * them. */

extern const struct policy_ops policy_suffix, policy_eagle, policy_dspark;

static void
set_default(struct policy *p, const char *knob, double value)
{
    const int k = policy_knob_index(&p->info, knob);
    assert_at_least(k, 0);
    p->info.knobs[k].def = p->value[k] = value;
}

static bool
suffix_tree_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    if (!policy_suffix.open(p, model, sampling, err))
        return false;
    set_default(p, "k", 4);
    set_default(p, "nodes", 12);
    set_default(p, "spec_factor", 4);
    set_default(p, "min_prob", 0);
    return true;
}

static bool
drafter_tree_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    const struct policy_ops *of = (p->ops->needs & NEEDS(AUX_BLOCK)) != 0 ? &policy_dspark : &policy_eagle;
    if (!of->open(p, model, sampling, err))
        return false;
    set_default(p, "k", 3);
    set_default(p, "topk", 3);
    set_default(p, "nodes", 8);
    return true;
}

const struct policy_ops *const *
registry_with_copying(void)
{
    static struct policy_ops suffix_tree, eagle_tree, dspark_tree;
    static const struct policy_ops *all[64];
    size_t n = 0;
    suffix_tree = policy_suffix;
    suffix_tree.name = "suffixtree";
    suffix_tree.open = suffix_tree_open;
    eagle_tree = policy_eagle;
    eagle_tree.name = "eagletree";
    eagle_tree.open = drafter_tree_open;
    dspark_tree = policy_dspark;
    dspark_tree.name = "dsparktree";
    dspark_tree.open = drafter_tree_open;
    for (; policy_registry[n] != NULL && n + 5 < sizeof all / sizeof *all; n++)
        all[n] = policy_registry[n];
    all[n] = &policy_copying;
    all[n + 1] = &suffix_tree;
    all[n + 2] = &eagle_tree;
    all[n + 3] = &dspark_tree;
    return all;
}
