/* Speculative Verification (docs/methods.md: Speculative Verification): a companion model looks at a draft, a profile says
 * how likely the target accepts it then, and as many drafts are verified as promise most tokens a second.
 *
 * Lossless: γ is raised one at a time and never looks behind draft γ + 1, which is tested too, without a row of its own.
 * What this hangs on is in goodput.h; how long rounds take is known from earlier ones alone, never from the one at hand. */
#include <math.h>

#include "engine/model/sv_profile.h"
#include "policies/chain.h"
#include "policies/goodput.h"
#include "policies/policy.h"
#include "policies/sv_latency.h"

enum { KNOB_WINDOW, KNOB_CAP, KNOB_VERIFY, KNOB_ROW_COST, KNOB_DRAFT_COST };

enum { VERIFY_GOODPUT, VERIFY_ALL };

static const char *const verify_modes[] = {"goodput", "all", NULL};

struct sv {
    const struct sv_profile *profile; /* the engine's */
    struct sv_latency latency;
    bool fresh; /* no round since a prompt */
};

struct look { /* at a round's drafts */
    double p[SV_DRAFTS];
    double latency[SV_DRAFTS + 1];
    uint32_t drafted, most; /* most that may be verified */
};

static bool
sv_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling, (void)err;
    struct sv *v = p->state;
    v->profile = model->profile;
    const int rows = v->profile != NULL ? (int)v->profile->n_s : 1;
    const int cols = v->profile != NULL ? (int)v->profile->n_a : 1;
    return policy_number(p, "window", "w", 1, SV_DRAFTS, 1, 5, "tokens drafted a round") &&
           policy_number(p, "cap", "γ_max", 0, SV_DRAFTS, 1, 0, "most drafts with a row of their own; 0: all may") &&
           policy_choice(p, "verify", "", verify_modes, VERIFY_GOODPUT,
                         "what promises most tokens a second, or all: plain sd") &&
           policy_number(p, "row_cost", "c", 0, 1, 0.001, 0,
                         "of a further row in verifications of one; 0: as measured (set and unset: again)") &&
           policy_number(p, "draft_cost", "c_d", 0, 10, 0.01, 0.5,
                         "of drafting and companion in the same unit, beside a row_cost above 0") &&
           policy_series(p, "gamma", "drafts verified γ", SERIES_LINE, 1, 1) &&
           policy_series(p, "cut", "drafts not tested", SERIES_LINE, 1, 1) &&
           policy_series(p, "table", "p̂ by s and a", SERIES_GRID, rows, cols) &&
           policy_series(p, "s_edge", "s", SERIES_EDGES, rows, 1) &&
           policy_series(p, "a_edge", "a", SERIES_EDGES, 1, cols) &&
           policy_series(p, "cell", "cell of s and a", SERIES_MARKS, 1, SV_DRAFTS) &&
           policy_series(p, "p", "p̂", SERIES_DRAFTS, 1, SV_DRAFTS) &&
           policy_series(p, "s", "similarity s", SERIES_DRAFTS, 1, SV_DRAFTS) &&
           policy_series(p, "a", "acceptance a", SERIES_DRAFTS, 1, SV_DRAFTS) &&
           policy_series(p, "goodput", "goodput by γ", SERIES_CHOICE, 2, SV_DRAFTS + 1) &&
           policy_series(p, "latency", "latency by γ", SERIES_BARS, 1, 1);
}

static bool
sv_prefilled(struct policy *p, struct round *r)
{
    (void)r;
    ((struct sv *)p->state)->fresh = true;
    return true;
}

/* The profile, once a run: p̂ at the lower edges of its cells. */
static void
report_table(const struct sv *v, struct round *r)
{
    const struct sv_profile *p = v->profile;
    for (uint32_t i = 0; i < p->n_s; i++) {
        const double s = i == 0 ? 0 : (double)p->s_edge[i - 1];
        round_report(r, "s_edge", (int)i, s);
        for (uint32_t k = 0; k < p->n_a; k++) {
            const double a = k == 0 ? 0 : (double)p->a_edge[k - 1];
            if (i == 0)
                round_report(r, "a_edge", (int)k, a);
            round_report(r, "table", (int)(i * p->n_a + k), sv_profile_accepted(p, s, a));
        }
    }
}

static bool
ask(struct sv *v, struct round *r, struct round *draft, struct round *companion, struct look *look)
{
    struct overlap said[SV_DRAFTS];
    if (!round_overlap(draft, companion, look->drafted, said))
        return false;
    for (uint32_t i = 0; i < look->drafted; i++) {
        const double s = fmin((double)said[i].similarity, 1), a = (double)said[i].acceptance;
        look->p[i] = sv_profile_accepted(v->profile, s, a);
        round_report(r, "s", (int)i, s);
        round_report(r, "a", (int)i, a);
        round_report(r, "cell", (int)i, sv_profile_cell(v->profile, s, a));
        round_report(r, "p", (int)i, look->p[i]);
    }
    return true;
}

/* latency(0..most); false: it isn't known yet. */
static bool
find_latency(const struct policy *p, struct look *look)
{
    const struct sv *v = p->state;
    const double row = p->value[KNOB_ROW_COST];
    if (!(row > 0) && !sv_latency_known(&v->latency, (uint32_t)p->value[KNOB_WINDOW], look->most))
        return false;
    for (uint32_t i = 0; i <= look->most; i++)
        look->latency[i] =
            row > 0 ? p->value[KNOB_DRAFT_COST] + 1 + row * i : v->latency.draft_ms + v->latency.verify_ms[i];
    return true;
}

static uint32_t
choose(const struct policy *p, struct round *r, struct look *look, const char **reason)
{
    const uint32_t cap = (uint32_t)p->value[KNOB_CAP];
    look->most = cap > 0 && cap < look->drafted ? cap : look->drafted;
    uint32_t gamma = look->most;
    if (find_latency(p, look)) {
        gamma = goodput_choose(look->p, look->most, look->latency);
        for (uint32_t i = 0; i <= look->most; i++) {
            round_report(r, "goodput", (int)i, goodput(look->p, i, look->latency));
            round_report(r, "latency", (int)i, look->latency[i]);
        }
    } else {
        *reason = "measuring";
    }
    if (gamma < look->most)
        *reason = "goodput";
    else if (gamma < look->drafted)
        *reason = "cap";
    return gamma;
}

/* Where latencies are the engine's: measures those that this round may need. */
static bool
measure(const struct policy *p, struct round *r)
{
    struct sv *v = p->state;
    const uint32_t window = (uint32_t)p->value[KNOB_WINDOW], n = window < r->budget ? window : r->budget;
    if (p->value[KNOB_ROW_COST] > 0)
        v->latency = (struct sv_latency){0};
    if (p->value[KNOB_ROW_COST] > 0 || p->value[KNOB_VERIFY] == VERIFY_ALL || n == 0 || v->latency.rows > n)
        return true;
    const uint32_t room = r->n_tokens + r->budget; /* the context has them all */
    return sv_latency_measure(&v->latency, r, window + 1 < room ? window + 1 : room);
}

static bool
sv_draft(struct policy *p, struct round *r)
{
    struct sv *v = p->state;
    const uint32_t window = (uint32_t)p->value[KNOB_WINDOW];
    const bool selective = p->value[KNOB_VERIFY] == VERIFY_GOODPUT, fresh = v->fresh;
    if (!measure(p, r))
        return false;
    if (fresh)
        report_table(v, r);
    v->fresh = false;
    const double since = round_draft_ms(r);
    struct round *draft = round_model(r, HELPER_DRAFT);
    struct round *companion = draft != NULL && selective ? round_model(r, HELPER_COMPANION) : draft;
    const struct chain_rule rule = {.most = window, .full = "window", .threshold = NAN};
    struct chain_rule chain = rule;
    if (companion == NULL)
        return false;
    chain.exit_layer = draft->exit_layer;
    if (!chain_draft(draft, &chain))
        return false;
    struct look look = {.drafted = round_drafted(r)};
    const char *reason = look.drafted == window ? "window" : "budget";
    uint32_t gamma = look.drafted;
    if (selective && gamma > 0) {
        if (!ask(v, r, draft, companion, &look))
            return false;
        gamma = choose(p, r, &look, &reason);
        if (look.drafted == window && !fresh)
            sv_latency_drafted(&v->latency, window, round_draft_ms(r) - since);
    }
    round_verify_first(r, gamma);
    round_report(r, "gamma", 0, gamma);
    round_report(r, "goodput", SV_DRAFTS + 1 + (int)gamma, 1);
    round_report(r, "cut", 0, gamma + 1 < look.drafted ? look.drafted - gamma - 1 : 0);
    round_summary(draft, reason, (int)draft->exit_layer, NAN, -1, (int)gamma);
    return true;
}

extern const struct policy_ops policy_sv;
const struct policy_ops policy_sv = {
    .name = "sv",
    .title = "Speculative Verification",
    .paper = "PAPER",
    .needs = NEEDS(HELPER_DRAFT) | NEEDS(HELPER_COMPANION) | NEEDS_PROFILE,
    .state_size = sizeof(struct sv),
    .open = sv_open,
    .prefilled = sv_prefilled,
    .draft = sv_draft,
};
