/* Speculative Verification (docs/policies/sv.md): a companion model's agreement with a draft and a profile give the
 * probability that the target accepts it; the number of drafts with the highest expected speed is verified.
 *
 * Lossless: γ rises in steps of one and depends on no draft after γ + 1, which is tested, too, without a row of its own
 * (sv_goodput.h). The time of rounds is known from earlier rounds alone. */
#include <math.h>

#include "engine/events/policy.h"
#include "engine/model/trained/sv_profile.h"
#include "policies/chain.h"
#include "policies/sv_goodput.h"

enum { KNOB_WINDOW, KNOB_CAP, KNOB_VERIFY, KNOB_ROW_COST, KNOB_DRAFT_COST };

enum { VERIFY_GOODPUT, VERIFY_ALL };

static const char *const verify_modes[] = {"goodput", "all", NULL};

struct sv {
    const struct sv_profile *profile; /* the engine's */
    bool fresh;                       /* no round since a prompt */
    bool again;                       /* row_cost was set; when it is 0 again, latencies are measured again */
    uint32_t rows;                    /* of the round's verification, of all sequences; 0: its latency does not count */
};

struct look { /* at a sequence's drafts */
    double p[SV_DRAFTS];
    uint32_t drafted, most; /* most that may be verified */
};

struct batch { /* the sequences of a round */
    struct policy *const *policy;
    struct round *const *round;
    struct round *draft[ROUNDS_MOST];
    struct look look[ROUNDS_MOST];
    uint32_t gamma[ROUNDS_MOST]; /* drafts that get a row in verification */
    uint32_t n, window;
    bool known; /* the latencies: latency[k] of a round that verifies k drafts in all */
    double latency[ROUNDS_MOST * SV_DRAFTS + 1];
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
                         "the drafts that promise most tokens a second, or all: as sd") &&
           policy_number(p, "row_cost", "c", 0, 1, 0.001, 0,
                         "cost of a further row, in verifications of one row; 0: measured") &&
           policy_number(p, "draft_cost", "c_d", 0, 10, 0.01, 0.5,
                         "cost of drafting and companion in this unit, if row_cost is above 0") &&
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

/* Measures latencies that this round may need, unless knobs give them. */
static bool
measure(const struct batch *b)
{
    const double *value = b->policy[0]->value;
    struct sv_latency *l = b->policy[0]->shared;
    struct round *const r = b->round[0];
    uint32_t rows = b->n;
    bool again = false;
    for (uint32_t i = 0; i < b->n; i++) {
        struct sv *v = b->policy[i]->state;
        rows += b->window < b->round[i]->budget ? b->window : b->round[i]->budget;
        again = again || v->again;
        v->again = value[KNOB_ROW_COST] > 0;
    }
    rows = rows < SV_ROWS ? rows : SV_ROWS;
    if (value[KNOB_ROW_COST] > 0)
        return true;
    if (again)
        *l = (struct sv_latency){0};
    if (value[KNOB_VERIFY] == VERIFY_ALL || rows == b->n || l->rows >= rows)
        return true;
    const uint32_t most = b->n * (b->window + 1);
    return sv_latency_measure(l, r, most < SV_ROWS ? most : SV_ROWS, r->n_tokens + r->budget);
}

/* Drafts all windows and computes the companion's agreement with them. */
static bool
draft(struct batch *b, bool selective)
{
    struct chain_rule rules[ROUNDS_MOST];
    struct overlap overlaps[ROUNDS_MOST][SV_DRAFTS], *rows[ROUNDS_MOST];
    if (!rounds_model(b->round, b->n, AUX_DRAFT, b->draft))
        return false;
    for (uint32_t i = 0; i < b->n; i++) {
        rules[i] = (struct chain_rule){
            .exit_layer = b->draft[i]->exit_layer, .most = b->window, .full = "window", .threshold = NAN};
        rows[i] = overlaps[i];
    }
    if (!chain_draft(b->draft, b->n, rules, NULL) ||
        (selective && !rounds_overlap(b->draft, b->n, AUX_COMPANION, rows)))
        return false;
    for (uint32_t i = 0; i < b->n; i++) {
        struct look *look = &b->look[i];
        const struct sv_profile *profile = ((struct sv *)b->policy[i]->state)->profile;
        look->drafted = round_drafted(b->round[i]);
        for (uint32_t k = 0; k < look->drafted && selective; k++) {
            const double s = fmin((double)overlaps[i][k].similarity, 1), a = (double)overlaps[i][k].acceptance;
            look->p[k] = sv_profile_accepted(profile, s, a);
            round_report(b->round[i], "s", (int)k, s);
            round_report(b->round[i], "a", (int)k, a);
            round_report(b->round[i], "cell", (int)k, sv_profile_cell(profile, s, a));
            round_report(b->round[i], "p", (int)k, look->p[k]);
        }
    }
    return true;
}

/* latency(0 .. drafts in all). */
static void
find_latency(struct batch *b, uint32_t drafts)
{
    const double *value = b->policy[0]->value, row = value[KNOB_ROW_COST];
    b->known = true;
    for (uint32_t k = 0; k <= drafts && b->known; k++) {
        const uint32_t rows = b->n + k;
        b->latency[k] = row > 0 ? value[KNOB_DRAFT_COST] + 1 + row * (rows - 1)
                                : sv_latency_of(b->policy[0]->shared, b->window, b->n, rows);
        b->known = b->latency[k] > 0;
    }
}

/* Reports the goodput and latency of the round for each γ of one sequence, with the chosen γ of the other sequences. */
static void
report_goodput(const struct batch *b, uint32_t i)
{
    double others = 0;
    uint32_t drafts = 0;
    for (uint32_t k = 0; k < b->n; k++)
        if (k != i) {
            others += goodput_expected(b->look[k].p, b->gamma[k]) + 1;
            drafts += b->gamma[k];
        }
    for (uint32_t gamma = 0; gamma <= b->look[i].most; gamma++) {
        const double latency = b->latency[drafts + gamma];
        round_report(b->round[i], "goodput", (int)gamma,
                     (others + goodput_expected(b->look[i].p, gamma) + 1) / latency);
        round_report(b->round[i], "latency", (int)gamma, latency);
    }
}

/* Chooses the number of drafts of each sequence to verify. */
static void
allocate(struct batch *b)
{
    const uint32_t cap = (uint32_t)b->policy[0]->value[KNOB_CAP];
    const double *p[ROUNDS_MOST];
    uint32_t most[ROUNDS_MOST], drafts = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        struct look *look = &b->look[i];
        look->most = cap > 0 && cap < look->drafted ? cap : look->drafted;
        b->gamma[i] = most[i] = look->most;
        p[i] = look->p;
        drafts += most[i];
    }
    find_latency(b, drafts);
    if (!b->known)
        return;
    const bool greedy = !(b->round[0]->sampling.temperature > 0);
    goodput_allocate(p, most, b->n, b->latency, greedy, b->gamma);
    for (uint32_t i = 0; i < b->n; i++)
        report_goodput(b, i);
}

static void
conclude(const struct batch *b, uint32_t i, bool selective)
{
    const struct look *look = &b->look[i];
    const uint32_t gamma = b->gamma[i];
    const char *reason = look->drafted == b->window ? "window" : "budget";
    if (selective && look->drafted > 0)
        reason = gamma < look->most ? "goodput" : gamma < look->drafted ? "cap" : b->known ? reason : "measuring";
    round_verify_first(b->round[i], gamma);
    round_report(b->round[i], "gamma", 0, gamma);
    round_report(b->round[i], "goodput", SV_DRAFTS + 1 + (int)gamma, 1);
    round_report(b->round[i], "cut", 0, gamma + 1 < look->drafted ? look->drafted - gamma - 1 : 0);
    round_summary(b->draft[i], reason, (int)b->draft[i]->exit_layer, NAN, -1, (int)gamma);
}

static bool
sv_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    const bool selective = p[0]->value[KNOB_VERIFY] == VERIFY_GOODPUT;
    struct batch b = {.policy = p, .round = r, .n = n, .window = (uint32_t)p[0]->value[KNOB_WINDOW]};
    bool whole = true; /* all drafted a complete window and read no prompt in this round */
    if (!measure(&b))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct sv *v = p[i]->state;
        if (v->fresh)
            report_table(v, r[i]);
        whole = whole && !v->fresh;
        v->fresh = false;
    }
    const double since = round_draft_ms(r[0]);
    if (!draft(&b, selective))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        b.gamma[i] = b.look[i].drafted;
        whole = whole && b.look[i].drafted == b.window;
    }
    if (selective) {
        allocate(&b);
        if (whole)
            sv_latency_drafted(p[0]->shared, b.window, n, round_draft_ms(r[0]) - since);
    }
    uint32_t rows = selective && p[0]->value[KNOB_ROW_COST] <= 0 ? n : 0;
    for (uint32_t i = 0; i < n; i++) {
        conclude(&b, i, selective);
        rows += rows > 0 ? b.gamma[i] : 0;
        ((struct sv *)p[i]->state)->rows = 0;
    }
    ((struct sv *)p[0]->state)->rows = rows; /* one instance observes for all */
    return true;
}

static bool
sv_observe(struct policy *p, struct round *r)
{
    const struct sv *v = p->state;
    if (v->rows > 0)
        sv_latency_verified(p->shared, v->rows, round_verify_ms(r));
    return true;
}

const struct policy_ops policy_sv = {
    .name = "sv",
    .no_what_if = "measured times decide how many drafts are verified",
    .title = "Speculative Verification",
    .paper = "Kim et al. 2025, arXiv:2509.24328",
    .needs = NEEDS(AUX_DRAFT) | NEEDS(AUX_COMPANION) | NEEDS_PROFILE,
    .state_size = sizeof(struct sv),
    .shared_size = sizeof(struct sv_latency),
    .open = sv_open,
    .prefilled = sv_prefilled,
    .draft = sv_draft,
    .observe = sv_observe,
    .no_command = "it has no companion model",
};
