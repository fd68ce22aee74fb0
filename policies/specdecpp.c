/* SpecDec++ (docs/methods.md: SpecDec++): a draft model goes on until its acceptance head finds it likely that the target
 * will reject one of the candidates. */
#include <math.h>

#include "engine/session/rounds.h"
#include "policies/policy.h"

enum { KNOB_H, KNOB_MIN, KNOB_MAX };

#define MOST 32 /* drafts */

static bool
specdecpp_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "h", "h", 0, 1, 0.01, 0.7,
                         "stop when a rejection among the drafts is likelier than this") &&
           policy_number(p, "min", "min", 1, MOST, 1, 2, "least drafts a round") &&
           policy_number(p, "max", "max", 1, MOST, 1, 20, "most drafts a round") &&
           policy_series(p, "p", "p̂", SERIES_DRAFTS, 1, MOST) &&
           policy_series(p, "reject", "1 − Π p̂ against h", SERIES_DRAFTS, 2, MOST) &&
           policy_series(p, "stop", "1 − Π p̂ at the end, and h", SERIES_BAND, 1, 1);
}

struct chain { /* a sequence's candidates */
    const double *value;
    struct round *round, *draft; /* the target's, the draft model's */
    int32_t node;                /* the last one */
    double all;                  /* Π p̂ */
    uint32_t judged;
    const char *reason; /* why it stopped; NULL: it goes on */
};

/* Those that go on. */
static uint32_t
going_on(struct chain *chains, uint32_t n, struct chain **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (chains[i].reason == NULL && round_full(chains[i].round)) /* … by a token that the target lacks, too */
            chains[i].reason = "budget";
        if (chains[i].reason == NULL)
            out[count++] = &chains[i];
    }
    return count;
}

/* The rows of the chains' ends, through the draft model. */
static bool
run_rows(struct chain *const *chains, uint32_t n, slot_t *rows)
{
    for (uint32_t i = 0; i < n; i++)
        if ((rows[i] = round_slot(chains[i]->draft, chains[i]->node)) == SLOT_NONE)
            return false;
    return n == 0 || context_advance(chains[0]->draft->ctx, rows, n, chains[0]->draft->exit_layer, NULL);
}

/* The next candidate of each. */
static bool
propose(struct chain *const *chains, uint32_t n)
{
    struct round *draft[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST];
    struct guess guesses[ROUNDS_MOST];
    token_t tokens[ROUNDS_MOST];
    dist_t q[ROUNDS_MOST];
    const uint32_t to = chains[0]->draft->exit_layer;
    for (uint32_t i = 0; i < n; i++)
        draft[i] = chains[i]->draft;
    if (!run_rows(chains, n, rows) || !rounds_guess(draft, rows, n, to, guesses) ||
        !rounds_choose(draft, rows, n, to, guesses, tokens, q))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct proposal next = {
            .parent = chains[i]->node, .token = tokens[i], .exit_layer = to, .guess = &guesses[i], .q = q[i]};
        if ((chains[i]->node = round_propose(draft[i], &next)) < 0)
            return false;
    }
    return true;
}

/* p̂ of each one's last candidate. Candidates are kept whatever it says: dropping one for its own value would favour others. */
static bool
judge(struct chain *const *chains, uint32_t n)
{
    struct chain *some[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (round_slot(chains[i]->round, chains[i]->node) != SLOT_NONE) /* else the target lacks it: nothing to judge */
            some[count++] = chains[i];
    if (!run_rows(some, count, rows))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct chain *c = some[i];
        double accepted;
        if (!round_acceptance(c->draft, rows[i], &accepted))
            return false;
        c->all *= accepted;
        round_report(c->round, "p", (int)c->judged, accepted);
        round_report(c->round, "reject", (int)c->judged, 1 - c->all);
        round_report(c->round, "reject", MOST + (int)c->judged, c->value[KNOB_H]);
        c->judged++;
        if (1 - c->all > c->value[KNOB_H] && c->judged >= (uint32_t)c->value[KNOB_MIN])
            c->reason = "h";
        else if (c->judged >= (uint32_t)c->value[KNOB_MAX])
            c->reason = "max";
    }
    return true;
}

/* Every candidate's row runs, the last one's too: p̂ is read from it. */
static bool
specdecpp_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct round *draft[ROUNDS_MOST];
    struct chain all[ROUNDS_MOST], *some[ROUNDS_MOST];
    uint32_t count;
    if (!rounds_model(r, n, HELPER_DRAFT, draft))
        return false;
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct chain){.value = p[i]->value, .round = r[i], .draft = draft[i], .all = 1};
    while ((count = going_on(all, n, some)) > 0)
        if (!propose(some, count) || !judge(some, count))
            return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct chain *c = &all[i];
        round_report(r[i], "stop", 0, c->judged > 0 ? 1 - c->all : NAN);
        round_report(r[i], "stop", 1, c->value[KNOB_H]);
        round_summary(draft[i], c->reason, (int)draft[i]->exit_layer, NAN, -1, (int)c->value[KNOB_MAX]);
    }
    return true;
}

extern const struct policy_ops policy_specdecpp;
const struct policy_ops policy_specdecpp = {
    .name = "specdecpp",
    .title = "SpecDec++: drafts while acceptance is likely",
    .paper = "Huang et al. 2024, arXiv:2405.19715",
    .needs = NEEDS(HELPER_DRAFT) | NEEDS_ACCEPT_HEAD,
    .open = specdecpp_open,
    .draft_batch = specdecpp_draft,
};
