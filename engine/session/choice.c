/* Chooses the policy of a session that was opened with POLICY_AUTO (docs/forecasts.md: The first policy). Models that
 * come with trained heads or auxiliary models begin with a policy that uses them. Other runs begin with plain decoding;
 * after some tokens the costs of steps are measured, the layers are probed at these tokens, and the policy with the
 * best forecast takes over if it is clearly faster. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/measure/reason.h"
#include "engine/session/session_internal.h"

#define TOKENS     64       /* before the first choice of a run; the number doubles for each later one */
#define ROWS       64       /* that are probed at most, */
#define ROWS_LEAST 16       /* and at least: fewer show nothing */
#define LEAD       5        /* a part of 1/5 of the rows is only used for learning */
#define ROWS_CALL  4        /* rows of a call */
#define PROBES_US  300000.0 /* that the probes may take, */
#define SHARE      0.02     /* or this share of the run's time */

/* ---- at the beginning ---- */

static bool
runs(const struct session *s, const struct policy_ops *ops)
{
    return engine_missing(s->engine, ops->needs) == 0 && s->engine->model->desc.n_layers >= ops->least_layers;
}

/* Returns the first policy whose auxiliary models the user gave; else the first one whose paper trains heads, if the
 * model has some; else the first one that uses the target's own layer for multi-token prediction; else plain
 * decoding. */
const char *
session_first_policy(const struct session *s, const struct policy_ops *const *registry)
{
    const struct engine *e = s->engine;
    unsigned given = 0;
    for (enum aux_role role = 0; role < AUX_MTP; role++)
        given |= engine_has(e, role) && !e->aux[role].found ? NEEDS(role) : 0;
    for (size_t i = 0; registry[i] != NULL && given != 0; i++)
        if ((registry[i]->needs & given) != 0 && runs(s, registry[i]))
            return registry[i]->name;
    for (size_t i = 0; registry[i] != NULL && e->heads != HEAD_LENS; i++)
        if (registry[i]->trained_heads && runs(s, registry[i]))
            return registry[i]->name;
    for (size_t i = 0; registry[i] != NULL; i++)
        if ((registry[i]->needs & NEEDS(AUX_MTP)) != 0 && runs(s, registry[i]))
            return registry[i]->name;
    return POLICY_BASELINE;
}

/* ---- the record of the newest rows ---- */

/* Probes all layers of the newest rows, as long as there is time. predictions: (ROWS, L), the newest row
 * first. Returns the number of rows; 0 if there are too few. */
static uint32_t
probe_rows(struct session *s, struct sequence *q, struct prediction *predictions)
{
    const uint32_t layers = s->model.layers, length = context_length(s->ctx, q->seq);
    const double start = clock_fine_us(), run_us = (double)(clock_us() - s->run.start_us);
    uint32_t n = 0;
    while (n < ROWS && clock_fine_us() - start < fmax(PROBES_US, SHARE * run_us)) {
        uint32_t more = 0;
        for (slot_t row; more < ROWS_CALL && n + more + 1 < length; more++) {
            row = context_at(s->ctx, q->seq, length - 1 - n - more);
            if (!context_hidden_kept(s->ctx, row))
                break;
            for (uint32_t l = 1; l <= layers; l++)
                s->probing.probes[more * layers + l - 1] =
                    (struct context_probe){.slot = row, .layer = l, .head = USE_LENS, .temperature = 1};
        }
        if (more == 0)
            break;
        if (!context_predict(s->ctx, s->probing.probes, (size_t)more * layers, &predictions[(size_t)n * layers]))
            return 0;
        n += more;
    }
    return n >= ROWS_LEAST ? n : 0;
}

/* Fills a record with the last n rows. predictions NULL: no layer agrees with the target, or all do if the record
 * `accepts` everything. */
static void
fill(const struct session *s, const struct sequence *q, const struct prediction *predictions, uint32_t n,
     struct layer_record *out)
{
    const struct wrong_paths none = {.n_words = 0};
    const uint32_t layers = s->model.layers, text = q->n_tokens < RECORD_TEXT ? q->n_tokens : RECORD_TEXT;
    out->n = 0;
    for (uint32_t row = n; row-- > 0;) {
        struct layer_sample samples[RUN_LAYERS_MOST];
        const struct prediction *p = predictions != NULL ? &predictions[(size_t)row * layers] : NULL;
        for (uint32_t l = 0; l < layers; l++)
            if (p != NULL)
                samples[l] = layer_sample_of(&p[l], p[layers - 1].token);
            else
                samples[l] = (struct layer_sample){.agrees = out->accepts, .confidence = 1, .top_p = {1}};
        layer_record_add(out, samples, s->model.vocab);
    }
    out->first = q->n_tokens - 1 - n;
    out->begin = n / LEAD;
    out->head_load = out->layers_load = 1;
    out->probes = KV_CACHE_PROBES;
    out->n_text = text;
    memcpy(out->text, q->tokens + q->n_tokens - text, text * sizeof *out->text);
    layer_record_order(out, s->engine->rank.vocab > 0 ? &s->engine->rank : NULL);
    wrong_paths_estimate(&none, out);
}

/* ---- the choice ---- */

struct best {
    const struct policy_info *policy; /* NULL: none has a forecast */
    double draft_vocab;               /* the value of this knob; NAN: as it is */
    struct forecast of;
};

/* Is it a policy that a forecast from a record without auxiliary models describes? */
static const struct policy_ops *
candidate(const struct session *s, uint32_t policy)
{
    const struct policy *p = &s->sequences[0].policies[policy];
    return p->ops->what_if != NULL && p->ops->needs == 0 && !policy_is_baseline(p->info.name) ? p->ops : NULL;
}

static bool
forecast(const struct session *s, uint32_t policy, const struct layer_record *r, double draft_vocab,
         struct forecast *out)
{
    const struct policy_ops *ops = s->sequences[0].policies[policy].ops;
    const struct cost_model *costs = cost_known(&s->engine->costs) ? &s->engine->costs : NULL;
    double values[POLICY_KNOBS];
    memcpy(values, s->sequences[0].current.value[policy], sizeof values);
    if (!isnan(draft_vocab))
        values[ops->draft_vocab] = draft_vocab;
    return forecast_make(ops, r, values, s->model.rho, costs, out);
}

/* Forecasts a policy with its present knobs and with a draft vocabulary, if it has that knob and the backend can
 * compute one, and keeps the better one in *text or *layers if it is the best so far. */
static void
consider(const struct session *s, uint32_t policy, const struct layer_record *r, struct best *text, struct best *layers)
{
    const struct policy_ops *ops = candidate(s, policy);
    const struct policy_info *info = &s->info.policies[policy];
    double set = NAN;
    if (ops != NULL && ops->draft_vocab > 0 && r->rank != NULL && s->engine->ops->draft_set != NULL &&
        !knob_check(&info->knobs[ops->draft_vocab], cost_set_tokens(s->model.vocab), &set, NULL))
        set = NAN;
    for (int i = 0; ops != NULL && i < (isnan(set) ? 1 : 2); i++) {
        const double draft_vocab = i == 0 ? (double)NAN : set;
        struct forecast f;
        if (!forecast(s, policy, r, draft_vocab, &f) || !(f.drafted > 0))
            continue;
        struct best *best = f.exit_layers > 0 ? layers : text;
        if (best->policy == NULL || f.speedup > best->of.speedup)
            *best = (struct best){info, draft_vocab, f};
    }
}

/* Finds the policy that drafts with layers and is the fastest if the target accepts everything. Returns whether it is
 * faster than plain decoding then. Otherwise no layer is probed. */
static bool
may_gain(const struct session *s, const struct sequence *q, struct layer_record *r, struct best *most)
{
    struct best text = {.policy = NULL};
    r->accepts = true;
    fill(s, q, NULL, ROWS, r);
    for (uint32_t i = 0; i < s->info.n_policies; i++)
        consider(s, i, r, &text, most);
    r->accepts = false;
    return most->policy != NULL && most->of.speedup >= (float)REASON_GAINS;
}

/* Writes "; suffix: no gain: 12% of drafts accepted, 31% needed". */
static size_t
print_reason(const struct session *s, const struct best *of, const struct layer_record *r, char *out, size_t n)
{
    struct reason_line line;
    char text[300];
    if (of->policy == NULL)
        return 0;
    struct reason_rounds rounds = reason_simulated(&of->of, of->policy, s->model.layers, s->model.rho);
    rounds.draft_vocab = !isnan(of->draft_vocab);
    const struct reason why = reason_find(&rounds, s->model.layers, s->model.rho, &s->engine->costs, r);
    reason_print(&why, NULL, of->policy->name, &line);
    if (line.n == 0)
        return (size_t)snprintf(out, n, "; %s: %.2f×, which is not certain", of->policy->name, (double)of->of.speedup);
    return (size_t)snprintf(out, n, "; %s", reason_text(&line, text, sizeof text));
}

static bool
post(struct session *s, const struct best *best)
{
    char value[16];
    struct control knob = {.kind = CONTROL_KNOB, .name = DRAFT_VOCAB, .text = value};
    struct err unused;
    snprintf(value, sizeof value, "%.0f", best->draft_vocab);
    return session_post(s, &(struct control){.kind = CONTROL_POLICY, .text = best->policy->name}, &unused) &&
           (isnan(best->draft_vocab) || session_post(s, &knob, &unused));
}

static bool
choose(struct session *s, struct sequence *q, struct layer_record *r, struct prediction *predictions)
{
    struct best text = {.policy = NULL}, layers = {.policy = NULL}, most = {.policy = NULL};
    struct forecast plain;
    char why[700];
    const uint32_t rows = seq_emitted(q) < RECORD_TOKENS ? seq_emitted(q) : RECORD_TOKENS,
                   probed = s->choice_layers && may_gain(s, q, r, &most) ? probe_rows(s, q, predictions) : 0;
    fill(s, q, probed > 0 ? predictions : NULL, probed > 0 ? probed : rows, r);
    for (uint32_t i = 0; i < s->info.n_policies; i++)
        consider(s, i, r, &text, &layers);
    if (probed == 0)
        layers = most;
    const bool from_layers =
        probed > 0 && layers.policy != NULL && (text.policy == NULL || layers.of.speedup > text.of.speedup);
    const struct best *best = from_layers ? &layers : &text;
    const bool better = best->policy != NULL && forecast(s, q->current.policy, r, (double)NAN, &plain) &&
                        forecast_better(&best->of, &plain);
    if (better) {
        char knob[40] = "";
        if (!isnan(best->draft_vocab))
            snprintf(knob, sizeof knob, " " DRAFT_VOCAB "=%.0f", best->draft_vocab);
        snprintf(why, sizeof why, "%s%s: %.2f× plain decoding by forecast, the fastest policy on the last %u tokens",
                 best->policy->name, knob, (double)best->of.speedup, (unsigned)best->of.tokens);
    } else {
        size_t n = (size_t)snprintf(why, sizeof why, "plain decoding: no policy is clearly faster by forecast");
        if (probed == 0 && layers.policy != NULL && layers.of.speedup >= (float)REASON_GAINS)
            n += (size_t)snprintf(why + n, sizeof why - n, "; probing the layers would take too long");
        else
            n += print_reason(s, &layers, probed > 0 ? r : NULL, why + n, sizeof why - n);
        print_reason(s, &text, NULL, why + n, sizeof why - n);
    }
    if (better || s->choice_at == TOKENS)
        session_emit_control(s, 0, RECORDED_CHOICE, why);
    s->choice_at = better ? 0 : s->choice_at * 2;
    s->choice_layers = probed > 0 && layers.policy != NULL && layers.of.speedup + 2 * layers.of.se > 1;
    return !better || post(s, best);
}

void
session_choice_begin(struct session *s)
{
    s->choice_at = s->chooses && !s->batch && !session_alternates(s) ? TOKENS : 0;
    s->choice_layers = true;
}

bool
session_choose(struct session *s)
{
    struct sequence *q = &s->sequences[0];
    if (s->choice_at == 0 || s->run.sampled || seq_emitted(q) < s->choice_at)
        return true;
    struct prediction *predictions = calloc((size_t)ROWS * s->model.layers, sizeof *predictions);
    struct layer_record record = {.n = 0};
    if (!cost_known(&s->engine->costs))
        session_costs(s);
    const bool opened = predictions != NULL && layer_record_open(&record, s->model.layers, NULL);
    if (opened)
        choose(s, q, &record, predictions);
    else
        s->choice_at = 0; /* without memory, plain decoding stays */
    layer_record_close(&record);
    free(predictions);
    return !atomic_load(&s->mailbox.cancel);
}
