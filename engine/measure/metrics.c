/* Sums the measures of a run over its rounds. */
#include "engine/measure/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"

void
metrics_begin(struct metrics *m, uint32_t layers, double rho)
{
    memset(m, 0, sizeof *m);
    m->layers = layers;
    m->rho = rho;
    m->d_max = -1;
}

void
tally_add(struct tally *to, const struct tally *t)
{
    to->rounds += t->rounds;
    to->drafted += t->drafted;
    to->verified += t->verified;
    to->accepted += t->accepted;
    to->emitted += t->emitted;
    to->cut += t->cut;
    to->shared += t->shared;
    to->rejected_rounds += t->rejected_rounds;
    to->drafting_rounds += t->drafting_rounds;
    to->exit_layers += t->exit_layers;
    to->layers += t->layers;
    to->heads += t->heads;
    to->draft_us += t->draft_us;
    to->verify_us += t->verify_us;
    to->probe_us += t->probe_us;
    to->heads_us += t->heads_us;
    to->wait_us += t->wait_us;
    to->learning_us += t->learning_us;
    to->experts += t->experts;
    to->experts_rounds += t->experts_rounds;
}

double
tally_join(struct tally *round, const struct tally *line)
{
    const double before = round->shared;
    tally_add(round, line);
    round->shared = (double)round->emitted - (double)round->emitted / (double)round->rounds;
    return round->shared - before;
}

static bool
reports_experts(const struct round_event *r)
{
    return r->verify_experts > 0;
}

struct tally
tally_of(const struct round_event *r)
{
    return (struct tally){.rounds = 1,
                          .drafted = r->drafted,
                          .verified = r->verified,
                          .accepted = r->accepted,
                          .emitted = r->emitted,
                          .cut = r->cut,
                          /* a draft after the first rejected one is verified, too, but has no effect */
                          .rejected_rounds = r->accepted<r->verified, .drafting_rounds = r->drafted> 0,
                          .exit_layers = r->exit_layer > 0 ? (double)r->exit_layer * r->drafted : 0,
                          .layers = (double)r->layers_loaded,
                          .heads = (double)r->heads_loaded,
                          .draft_us = r->draft_us,
                          .verify_us = r->verify_us,
                          .probe_us = r->probe_us,
                          .heads_us = (double)r->heads_us,
                          .wait_us = (double)r->wait_us,
                          .learning_us = (double)r->learning_us,
                          .experts = reports_experts(r) ? (double)r->verify_experts : 0,
                          .experts_rounds = reports_experts(r)};
}

static void
take_round(struct metrics *m, const struct event *e)
{
    const struct tally t = tally_of(&e->round_end);
    tally_add(&m->total, &t);
    sliced_round(&m->sliced, (double)t.emitted, (t.draft_us + t.verify_us) * 1e-6);
    m->d_max = (float)e->round_end.d_max;
    if (e->seq >= m->sequences)
        m->sequences = e->seq + 1;
    if (m->n > 0 && e->round > 0 && e->round == m->round) { /* another sequence's line of the same round */
        m->total.shared += tally_join(&m->window[(m->at + METRICS_WINDOW - 1) % METRICS_WINDOW], &t);
        return;
    }
    if (m->n > 0)
        round_sums_add(&m->sums, &m->window[(m->at + METRICS_WINDOW - 1) % METRICS_WINDOW], m->rho);
    m->round = e->round;
    m->window[m->at] = t;
    m->at = (m->at + 1) % METRICS_WINDOW;
    if (m->n < METRICS_WINDOW)
        m->n++;
}

/* Parses a number above 0. Returns 0 for any other text, which a foreign trace may contain. */
static float
positive(const char *text)
{
    char *end;
    const float value = strtof(text, &end);
    return end != text && isfinite(value) && value > 0 ? value : 0;
}

static void
begin_run(struct metrics *m, const char *cause)
{
    const struct metrics before = *m;
    metrics_begin(m, m->layers, m->rho);
    m->pace = before.pace;
    if (strcmp(cause, "prompt") == 0) /* the baseline of another prompt is not measured yet */
        return;
    m->baseline = before.baseline;
    m->baseline_se = before.baseline_se;
    m->baseline_paced = before.baseline_paced;
    m->baseline_t_us = before.baseline_t_us;
    m->baseline_round = before.baseline_round;
}

static void
take_baseline(struct metrics *m, const struct event *e)
{
    const float value = positive(e->control.new_text);
    if (!(value > 0))
        return;
    m->baseline = value;
    m->baseline_se = m->next_se > 0 ? m->next_se : NAN;
    m->baseline_paced = m->pace > 0;
    m->next_se = 0;
    m->baseline_t_us = e->t_us;
    m->baseline_round = e->round;
}

static void
take_lossless(struct metrics *m, const char *text)
{
    if (strncmp(text, "nothing", 7) == 0)
        return;
    m->lossless = strncmp(text, "yes", 3) == 0   ? LOSSLESS_YES
                  : strcmp(text, "sampled") == 0 ? LOSSLESS_SAMPLED
                  : strncmp(text, "no", 2) == 0  ? LOSSLESS_NO
                                                 : LOSSLESS_UNKNOWN;
    m->compared = strcmp(text, "yes") == 0 && m->sequences > 1 ? 0 : metrics_generated(m);
}

static void
take_control(struct metrics *m, const struct event *e)
{
    const char *text = e->control.new_text;
    switch (e->control.kind) {
    case RECORDED_RUN: begin_run(m, text); break;
    case RECORDED_PACE: m->pace = positive(text); break;
    case RECORDED_BASELINE_SE: m->next_se = positive(text); break;
    case RECORDED_BASELINE: take_baseline(m, e); break;
    case RECORDED_BASELINE_SLICE: sliced_slice(&m->sliced, (double)positive(text)); break;
    case RECORDED_LOSSLESS: take_lossless(m, text); break;
    default: break;
    }
}

/* A sequence emits its prompt, reads it, and emits the first generated token. */
static void
take_token(struct metrics *m, const struct event *e)
{
    if (e->token.source == SOURCE_PROMPT)
        m->prompt_t_us = e->t_us;
    if (e->token.source != SOURCE_PREFILL || e->t_us < m->prompt_t_us)
        return;
    m->prefilled += e->token.pos;
    m->prefill_us += (double)(e->t_us - m->prompt_t_us);
}

void
metrics_event(struct metrics *m, const struct event *e)
{
    if (e->type == EVENT_TOKEN)
        take_token(m, e);
    else if (e->type == EVENT_ROUND)
        take_round(m, e);
    else if (e->type == EVENT_CONTROL)
        take_control(m, e);
}

struct tally
metrics_window(const struct metrics *m)
{
    struct tally t = {0};
    for (uint32_t i = 0; i < m->n; i++)
        tally_add(&t, &m->window[i]);
    return t;
}

struct estimate
metrics_baseline(const struct metrics *m)
{
    const bool same = m->baseline > 0 && m->baseline_paced == (m->pace > 0);
    return same ? (struct estimate){.value = (double)m->baseline, .se = (double)m->baseline_se, .n = UINT64_MAX}
                : (struct estimate){.value = NAN, .se = NAN};
}

double
metrics_verify_experts(const struct metrics *m)
{
    return m->total.experts_rounds > 0 ? m->total.experts / (double)m->total.experts_rounds : NAN;
}

uint64_t
metrics_generated(const struct metrics *m)
{
    return m->total.emitted + m->sequences; /* the prefill generated the first token of each sequence */
}

const char *
metrics_prefill_text(const struct metrics *m, char *out, size_t n)
{
    const double seconds = m->prefill_us * 1e-6;
    const int used = snprintf(out, n, "prompt %llu token%s in %.*f s, ", (unsigned long long)m->prefilled,
                              plural(m->prefilled), seconds < 10 ? 2 : 0, seconds);
    snprintf(out + used, n - (size_t)used, seconds > 0 ? "%.0f/s" : "–/s", (double)m->prefilled / seconds);
    return out;
}

void
round_sums_add(struct round_sums *s, const struct tally *t, double rho)
{
    ratio_add(&s->speed, (double)t->emitted, (t->draft_us + t->verify_us) * 1e-6);
    ratio_add(&s->length, (double)t->emitted, (double)t->rounds);
    ratio_add(&s->acceptance, (double)t->accepted, (double)t->verified);
    ratio_add(&s->loads, (double)t->emitted - t->shared, t->layers + rho * t->heads);
    ratio_add(&s->per_token, (double)t->accepted, (double)(t->accepted + t->rejected_rounds));
    ratio_add(&s->layers, (double)t->emitted, t->layers);
    ratio_add(&s->discard, (double)t->drafted - (double)t->accepted, (double)t->emitted);
    ratio_add(&s->lines, (double)t->rounds, (double)t->emitted);
}

struct estimates
round_sums_estimates(const struct round_sums *s, uint32_t layers, double rho)
{
    return (struct estimates){.tokens_per_s = ratio_estimate(&s->speed),
                              .tokens_per_round = ratio_estimate(&s->length),
                              .acceptance_rate = ratio_estimate(&s->acceptance),
                              .modelled = estimate_times(ratio_estimate(&s->loads), (double)layers + rho),
                              .per_token_acceptance = ratio_estimate(&s->per_token),
                              .etpl = ratio_estimate(&s->layers),
                              .discard_rate = ratio_estimate(&s->discard),
                              .verification_rate = ratio_estimate(&s->lines)};
}

struct estimates
metrics_estimates(const struct metrics *m)
{
    struct round_sums s = {0};
    for (uint32_t i = 0; i < m->n; i++)
        round_sums_add(&s, &m->window[i], m->rho);
    return round_sums_estimates(&s, m->layers, m->rho);
}

struct estimates
metrics_run_estimates(const struct metrics *m)
{
    struct round_sums s = m->sums;
    if (m->n > 0)
        round_sums_add(&s, &m->window[(m->at + METRICS_WINDOW - 1) % METRICS_WINDOW], m->rho);
    return round_sums_estimates(&s, m->layers, m->rho);
}

static double
ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

/* SpecBound eq. 5. A round drafts w tokens with d_max layers each and then runs L - d_max layers for all of them at
 * once. It yields a + a^2 + … + a^w = a (1 - a^w) / (1 - a) tokens, each of which costs L layers autoregressively. */
static double
predicted_speedup(double layers, double a, double w, double d_max)
{
    if (!(d_max >= 0) || !(w > 0) || isnan(a))
        return (double)NAN;
    double tokens = a < 1 ? a * (1 - pow(a, w)) / (1 - a) : w;
    return ratio(layers * tokens, w * d_max + layers - d_max);
}

struct measures
metrics_measures(const struct metrics *m, const struct tally *t)
{
    double drafted = (double)t->drafted, accepted = (double)t->accepted, emitted = (double)t->emitted;
    double rounds = (double)t->rounds, layers = (double)m->layers;
    double work_us = t->draft_us + t->verify_us, all_us = work_us + t->probe_us;
    /* a source that tells neither work nor parts has the round's time as that of the verification */
    const bool whole = !(t->draft_us > 0) && isnan(t->layers);
    struct measures s = {
        .tokens_per_s = ratio(emitted * 1e6, work_us),
        .tokens_per_s_all_in = ratio(emitted * 1e6, work_us + t->learning_us),
        .acceptance_rate = ratio(accepted, (double)t->verified),
        .per_token_acceptance = ratio(accepted, accepted + (double)t->rejected_rounds),
        .tokens_per_round = ratio(emitted, rounds),
        .etpl = ratio(emitted, t->layers),
        .discard_rate = ratio(drafted - accepted, emitted),
        .verification_rate = ratio(rounds, emitted),
        .modelled = ratio((emitted - t->shared) * (layers + m->rho), t->layers + m->rho * t->heads),
        .draft_share = whole ? (double)NAN : ratio(t->draft_us, all_us),
        .verify_share = ratio(t->verify_us, all_us),
        .probe_share = ratio(t->probe_us, all_us),
        .heads_share = ratio(t->heads_us, all_us),
        .wait_share = ratio(t->wait_us, all_us + t->wait_us),
        .learning_share = ratio(t->learning_us, all_us + t->learning_us),
    };
    s.layers_share = s.draft_share - s.heads_share;
    s.speedup = ratio(s.tokens_per_s, metrics_baseline(m).value);
    s.speedup_all_in = ratio(s.tokens_per_s_all_in, metrics_baseline(m).value);
    s.overhead = ratio(s.speedup, s.modelled);
    s.predicted =
        predicted_speedup(layers, s.per_token_acceptance, ratio((double)t->verified, rounds), (double)m->d_max);
    return s;
}

/* Rounds up the shares that lose most by rounding down. */
void
metrics_percents(const double *share, int *percent, int n)
{
    double lost[METRICS_SHARES], sum = 0;
    int left = 100;
    for (int i = 0; i < n; i++)
        sum += share[i] > 0 ? share[i] : 0;
    for (int i = 0; i < n; i++) {
        const double exact = sum > 0 && share[i] > 0 ? share[i] / sum * 100 : 0;
        percent[i] = (int)exact;
        lost[i] = exact - percent[i];
        left -= percent[i];
    }
    for (; sum > 0 && left > 0; left--) {
        int most = 0;
        for (int i = 1; i < n; i++)
            most = lost[i] > lost[most] ? i : most;
        percent[most]++;
        lost[most] = -1;
    }
}
