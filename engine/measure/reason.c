#include "engine/measure/reason.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BISECTIONS   40
#define ROW_COST     0.2 /* a further row of a verification costs at most this share of one row, where it is cheap */
#define HALF         0.5 /* of the drafts accepted: verification may be what limits the gain */
#define NOISE_ERRORS 2   /* standard errors */

/* Returns the tokens of the rounds if each tested draft were accepted with probability a. */
static double
tokens_at(const struct tally *t, double a)
{
    const double drafting = (double)t->drafting_rounds, length = drafting > 0 ? (double)t->drafted / drafting : 0;
    double sum = 0, power = 1, i = 1;
    for (; i <= length; i++)
        sum += power *= a;
    sum += power * a * (length - (i - 1)); /* a mean length is no whole number */
    return (double)t->rounds + drafting * sum;
}

/* Returns the acceptance at which the rounds' tokens take the time of plain decoding; 1 if there is none. `scale`
 * corrects for rounds of different lengths. */
static double
needed(const struct tally *t, double plain_tokens, double scale)
{
    double low = 0, high = 1;
    for (int i = 0; i < BISECTIONS; i++) {
        const double middle = (low + high) / 2;
        *(scale * tokens_at(t, middle) < plain_tokens ? &low : &high) = middle;
    }
    return high;
}

static struct estimate
acceptance(const struct tally *t)
{
    const double tested = (double)(t->accepted + t->rejected_rounds), a = (double)t->accepted,
                 p = (a + 1) / (tested + 2); /* so that none of few is no certainty */
    return (struct estimate){a / tested, sqrt(p * (1 - p) / tested), t->accepted + t->rejected_rounds};
}

static double
agreement_of(const struct layer_record *r, uint32_t layer)
{
    uint32_t agreed = 0;
    if (r == NULL || layer == 0 || layer > r->layers || r->n <= r->begin)
        return (double)NAN;
    for (uint32_t row = r->begin; row < r->n; row++)
        agreed += layer_prediction(r, row, layer)->agrees;
    return (double)agreed / (r->n - r->begin);
}

/* Returns the time of a verification of some rows ÷ that of one row. */
static double
rows_cost(const struct cost_model *cost, uint32_t layers, uint32_t rows)
{
    double us[2], phases[COST_PHASES];
    if (cost == NULL || !cost_known(cost))
        return (double)NAN;
    for (int i = 0; i < 2; i++) {
        struct cost_count count = {.rounds = 1};
        cost_add(&count, COST_LAYER, i == 0 ? 1 : rows, layers, cost->context);
        cost_add(&count, COST_HEAD, i == 0 ? 1 : rows, 1, cost->context);
        us[i] = cost_price(cost, &count, phases);
    }
    return us[1] / us[0];
}

static enum reason_kind
kind_of(const struct reason *r, const struct tally *t)
{
    if (isnan(r->speedup) || r->speedup >= REASON_GAINS)
        return REASON_NONE;
    if (t->drafted == 0)
        return REASON_NO_DRAFTS;
    if (r->ceiling < 1)
        return REASON_COSTS;
    if (r->have.value + estimate_reach((double)r->have.n - 1) * r->have.se < r->need)
        return REASON_DRAFTS;
    if (r->rows_cost > 1 + ROW_COST * (r->rows - 1) && r->have.value >= HALF)
        return REASON_VERIFICATION;
    if (isnan(r->speedup_se) ? r->speedup < 1 : fabs(r->speedup - 1) <= NOISE_ERRORS * r->speedup_se)
        return REASON_NOISE;
    return r->speedup < 1 ? REASON_DRAFTS : REASON_SMALL;
}

struct reason
reason_find(const struct reason_rounds *rounds, uint32_t layers, double rho, const struct cost_model *cost,
            const struct layer_record *record)
{
    const struct tally *t = &rounds->of;
    const double us = t->draft_us + t->verify_us, plain = us / rounds->plain_us; /* tokens of plain decoding */
    const double heads = isnan(t->heads_us) ? 0 : t->heads_us, rest = t->draft_us - heads;
    struct reason r = {.kind = REASON_NONE,
                       .speedup = (double)NAN,
                       .speedup_se = rounds->speedup_se,
                       .ceiling = (double)NAN,
                       .need = (double)NAN,
                       .have = acceptance(t),
                       .probe_layers = (double)NAN,
                       .agreement = (double)NAN,
                       .rows_cost = (double)NAN};
    if (t->rounds == 0 || !(us > 0) || !(rounds->plain_us > 0))
        return r;
    r.speedup = (double)t->emitted / plain;
    r.part = heads > rest ? REASON_HEADS : rounds->model ? REASON_MODEL : REASON_LAYERS;
    r.share = fmax(heads, rest) / us;
    if (t->drafted > 0) {
        r.ceiling = fmax(tokens_at(t, 1) / plain, r.speedup);
        r.need = needed(t, plain, (double)t->emitted / tokens_at(t, r.have.value));
        r.layer = (uint32_t)lround(t->exit_layers / (double)t->drafted);
        r.rows = 1 + (uint32_t)lround((double)t->verified / (double)t->drafting_rounds);
        r.rows_cost = rows_cost(cost, layers, r.rows);
    }
    const bool known = cost != NULL && cost_known(cost),
               set = rounds->draft_vocab && known && cost->us[COST_OF_SET_PROBE][0] > 0;
    r.draft_vocab = set;
    r.probe_layers = known ? cost->us[set ? COST_OF_SET_PROBE : COST_OF_PROBE][0] / cost->us[COST_OF_LAYER][0] : rho;
    r.agreement = agreement_of(record, r.layer);
    r.kind = kind_of(&r, t);
    return r;
}

struct reason_rounds
reason_simulated(const struct forecast *f, const struct policy_info *policy, uint32_t layers, double rho)
{
    const double tokens = f->tokens, rounds = tokens / (double)f->tokens_per_round, plain = layers + rho;
    struct reason_rounds r = {.plain_us = f->in_time ? (double)f->autoregressive : plain,
                              .model = (policy->needs & NEEDS_DRAFTER) != 0,
                              .speedup_se = (double)f->se};
    struct tally *t = &r.of;
    if (f->tokens == 0)
        return r;
    t->rounds = (uint64_t)llround(rounds);
    t->emitted = f->tokens;
    t->drafted = t->verified = (uint64_t)llround((double)f->drafted * tokens);
    t->drafting_rounds = (uint64_t)llround((double)f->drafting * tokens);
    t->accepted = (uint64_t)llround((double)f->accepted * tokens);
    t->rejected_rounds = (uint64_t)llround((double)f->rejected * tokens);
    t->exit_layers = (double)f->exit_layers * tokens;
    if (!f->in_time) { /* a verification loads what a step of plain decoding loads */
        t->verify_us = rounds * plain;
        t->heads_us = fmax(((double)f->heads * tokens - rounds) * rho, 0);
        t->draft_us = fmax(((double)f->layers + rho * (double)f->heads) * tokens - t->verify_us, t->heads_us);
        return r;
    }
    t->heads_us = (double)(f->us[COST_HEADS] + f->us[COST_EXIT_HEADS]) * tokens;
    t->verify_us = (double)f->us[COST_VERIFICATION] * tokens;
    for (int p = 0; p < COST_PHASES; p++)
        t->draft_us += p != COST_VERIFICATION ? (double)f->us[p] * tokens : 0;
    return r;
}

/* ---- remedies ---- */

static void
add(struct remedies *all, const struct remedy *r)
{
    uint32_t at = all->n;
    if (isnan(r->forecast))
        return;
    while (at > 0 && all->at[at - 1].forecast < r->forecast)
        at--;
    if (at == REMEDIES)
        return;
    const uint32_t kept = all->n < REMEDIES ? all->n : REMEDIES - 1;
    memmove(&all->at[at + 1], &all->at[at], (kept - at) * sizeof *all->at);
    all->at[at] = *r;
    all->n = kept + 1;
}

void
remedies_add_knob(struct remedies *all, const struct knob *k, double value, double forecast)
{
    struct remedy r = {.forecast = forecast};
    char text[24];
    knob_format(k, value, text, sizeof text);
    snprintf(r.text, sizeof r.text, "%s %s", k->name, text);
    snprintf(r.command, sizeof r.command, "set %s %s", k->name, text);
    add(all, &r);
}

void
remedies_add_policy(struct remedies *all, const char *policy, double forecast)
{
    struct remedy r = {.forecast = forecast};
    snprintf(r.text, sizeof r.text, "P %.15s", policy);
    snprintf(r.command, sizeof r.command, "policy %.15s", policy);
    add(all, &r);
}

/* ---- text ---- */

const char *
reason_verdict(const struct reason *r)
{
    switch (r->kind) {
    case REASON_NONE: return "";
    case REASON_COSTS: return "no gain: costly drafts";
    case REASON_DRAFTS: return "no gain: wrong drafts";
    case REASON_VERIFICATION: return "no gain: costly verification";
    case REASON_NO_DRAFTS: return "no gain: no drafts";
    case REASON_SMALL: return "small gain";
    case REASON_NOISE: return "no clear gain";
    }
    return "";
}

__attribute__((format(printf, 2, 3))) static void
put(struct reason_line *line, const char *format, ...)
{
    va_list args;
    if (line->n == REASON_PARTS)
        return;
    va_start(args, format);
    vsnprintf(line->part[line->n].text, sizeof line->part[0].text, format, args);
    va_end(args);
    line->part[line->n++].command[0] = '\0';
}

/* "drafting with layers", the part of a round that costs most */
static void
put_costs(struct reason_line *line, const char *before, const struct reason *r)
{
    static const char *const parts[] = {"probes take", "drafting in layers takes", "the drafter takes"};
    if (r->part == REASON_HEADS && r->probe_layers >= 1)
        put(line, "%sno gain: a probe of %s costs %.*f layers here", before,
            r->draft_vocab ? "the draft vocabulary" : "all tokens", r->probe_layers < 9.95, r->probe_layers);
    else
        put(line, "%sno gain: %s %.0f%% of a round", before, parts[r->part], r->share * 100);
    put(line, "at most %.2f× if every draft were accepted", r->ceiling);
}

static void
put_agreement(struct reason_line *line, const struct reason *r)
{
    if (r->layer > 0 && !isnan(r->agreement))
        put(line, "layer %u has the target's token in %.0f%%", (unsigned)r->layer, r->agreement * 100);
}

/* The share of accepted drafts is that of tested ones, as `need` is. */
static void
put_reason(struct reason_line *line, const char *before, const struct reason *r)
{
    switch (r->kind) {
    case REASON_NONE: break;
    case REASON_COSTS:
        put_costs(line, before, r);
        put_agreement(line, r);
        break;
    case REASON_DRAFTS:
        put(line, "%sno gain: %.0f%% of tested drafts accepted, %.0f%% needed", before, r->have.value * 100,
            r->need * 100);
        put_agreement(line, r);
        break;
    case REASON_VERIFICATION:
        put(line, "%sno gain: %u rows cost %.1f× one here", before, (unsigned)r->rows, r->rows_cost);
        put(line, "%.0f%% of tested drafts accepted", r->have.value * 100);
        break;
    case REASON_NO_DRAFTS: put(line, "%sno gain: nothing was drafted", before); break;
    case REASON_SMALL: put(line, "%sthe gain is small: %.2f×", before, r->speedup); break;
    case REASON_NOISE:
        if (isnan(r->speedup_se))
            put(line, "%sno clear difference from plain decoding: %.2f×", before, r->speedup);
        else
            put(line, "%sno clear difference from plain decoding: %.2f× ±%.2f", before, r->speedup, r->speedup_se);
        break;
    }
}

void
reason_print(const struct reason *r, const struct remedies *remedies, const char *policy, struct reason_line *line)
{
    char before[24] = "";
    *line = (struct reason_line){.n = 0};
    if (policy != NULL)
        snprintf(before, sizeof before, "%.15s: ", policy);
    if (r != NULL)
        put_reason(line, before, r);
    else
        put(line, "plain decoding");
    for (uint32_t i = 0; line->n > 0 && remedies != NULL && i < remedies->n && line->n < REASON_PARTS; i++) {
        const struct remedy *m = &remedies->at[i];
        put(line, "%s%s %.2f×", i == 0 ? "next: " : "", m->text, m->forecast);
        memcpy(line->part[line->n - 1].command, m->command, sizeof m->command);
    }
}

const char *
reason_text(const struct reason_line *line, char *out, size_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < line->n && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%s", i > 0 ? "; " : "", line->part[i].text);
    return out;
}
