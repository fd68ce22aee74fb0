/* Scores settings on finished texts: sums of their simulated rounds by conversation, category and depth. */
#include "engine/tune/score.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/measure/forecast.h"
#include "engine/measure/reason.h"
#include "engine/tune/candidates.h"

#define DEPTHS (2 + SCORE_CATEGORIES) /* parts: all texts, those of a category and of none, by depth */
#define PARTS  (DEPTHS + SCORE_DEPTHS)

enum { IN_TIME, BY_WEIGHTS, UNITS };

/* A sample is a conversation: `now` is of the present one, and is added to the sums when it ends. */
struct sums {
    uint64_t tokens;
    struct ratio_sums per_round, speedup[UNITS];
    struct {
        double tokens, rounds, plain[UNITS], work[UNITS]; /* of plain decoding, of the rounds; NAN: unknown */
    } now;
};

struct setting {
    struct preset preset;
    double value[POLICY_KNOBS];
    struct sums part[PARTS];
    struct tally total;
    struct cost_count steps;
    double positions; /* Σ of the tokens' positions */
    double change;    /* ln of the speedup by the mean of two measurements of the costs ÷ that by the first one */
    struct positions accepted;
};

struct entry {
    struct score_entry of;
    char why[112]; /* "": it is scored */
    uint32_t n;    /* settings */
    struct setting setting[CANDIDATES_MOST];
};

struct score {
    uint32_t layers, conversations, n_categories, category; /* category: of the conversation; SCORE_CATEGORIES: none */
    uint64_t answers;                                       /* their tokens */
    double rho;
    char name[SCORE_CATEGORIES][32];
    uint32_t n;
    struct entry entry[SCORE_ENTRIES];
};

static_assert(SCORE_ROWS == SCORE_ENTRIES * CANDIDATES_MOST, "each setting has a row");

struct score *
score_open(uint32_t layers, double rho)
{
    struct score *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->layers = layers;
        s->rho = rho;
    }
    return s;
}

/* ---- settings ---- */

static void
add_setting(struct entry *e, const struct preset *p)
{
    struct setting *s = &e->setting[e->n++];
    *s = (struct setting){.preset = *p};
    for (uint32_t k = 0; k < p->n_set; k++)
        knob_parse(&e->of.info->knobs[k], p->set[k].text, &s->value[k], NULL);
}

static void
choose_settings(struct entry *e, double rho)
{
    const struct policy_ops *ops = e->of.ops;
    struct candidate found[CANDIDATES_MOST];
    double ceiling = 0;
    const uint32_t n = candidates_of(e->of.info, ops, e->of.records, e->of.n_records, rho, &e->of.costs, found);
    for (uint32_t i = 0; i < n && !isnan(found[i].forecast); i++) {
        if (!(found[i].ceiling < SCORE_HOPELESS))
            add_setting(e, &found[i].preset);
        else if (e->n == 0 && found[i].ceiling > ceiling)
            e->setting[0].preset = found[i].preset;
        ceiling = fmax(ceiling, found[i].ceiling);
    }
    struct record_loads loads = {.drawn = 0};
    struct tally t;
    if (e->of.value != NULL && forecast_simulate(ops, e->of.records, e->of.value, 0, &loads, &t)) {
        const struct preset further = candidate_preset(e->of.info, e->of.value);
        e->n -= e->n == CANDIDATES_MOST;
        add_setting(e, &further);
    }
    if (e->n > 0)
        e->why[0] = '\0';
    else if (ceiling > 0)
        snprintf(e->why, sizeof e->why, "at most %.2f × plain decoding, if every draft were accepted", ceiling);
}

bool
score_enter(struct score *s, const struct score_entry *of)
{
    struct entry *e = &s->entry[s->n];
    if (s->n == SCORE_ENTRIES)
        return false;
    const char *why = of->why != NULL            ? of->why
                      : of->ops->what_if == NULL ? of->ops->no_what_if
                                                 : layer_record_lacks(of->records, of->ops->needs);
    e->of = *of;
    snprintf(e->why, sizeof e->why, "%s", why != NULL ? why : "no text is long enough");
    if (why == NULL)
        choose_settings(e, s->rho);
    s->n++;
    return true;
}

/* ---- sums ---- */

/* Ends the conversation. */
static void
end_sample(struct sums *of)
{
    if (of->now.rounds > 0) {
        ratio_add(&of->per_round, of->now.tokens, of->now.rounds);
        for (int u = 0; u < UNITS; u++)
            ratio_add(&of->speedup[u], of->now.plain[u], of->now.work[u]);
    }
    memset(&of->now, 0, sizeof of->now);
}

void
score_conversation(struct score *s, const char *category)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->entry[i].n; k++)
            for (uint32_t p = 0; p < PARTS; p++)
                end_sample(&s->entry[i].setting[k].part[p]);
    s->conversations++;
    for (s->category = 0; s->category < s->n_categories; s->category++)
        if (strcmp(s->name[s->category], category) == 0)
            return;
    if (category[0] != '\0' && s->n_categories < SCORE_CATEGORIES)
        snprintf(s->name[s->n_categories++], sizeof s->name[0], "%s", category);
    else
        s->category = category[0] != '\0' ? SCORE_CATEGORIES - 1 : SCORE_CATEGORIES;
}

/* Each conversation has one of the draws of a forecast, so what they do not know is a part of the samples' spread. */
void
score_add(struct score *s, uint32_t entry, const struct layer_record *record, uint32_t depth)
{
    struct entry *e = &s->entry[entry];
    const double middle = record->first + (record->begin + record->n) / 2.0;
    uint32_t range = SCORE_DEPTHS - 1;
    while (depth < score_depths[range])
        range--;
    s->answers += entry == 0 ? record->n - record->begin : 0;
    for (struct setting *x = e->setting; x < e->setting + e->n; x++) {
        struct record_loads loads = {.positions = &x->accepted};
        struct cost_count steps = {.rounds = 0};
        struct tally t;
        double us[COST_PHASES], plain[] = {cost_autoregressive(&e->of.costs, s->layers, middle), s->layers + s->rho},
                                work[UNITS] = {0};
        if (!forecast_simulate(e->of.ops, record, x->value, s->conversations % FORECAST_DRAWS, &loads, &t))
            continue;
        for (uint32_t i = 0; i < RECORD_BLOCKS; i++) {
            cost_add_all(&steps, &loads.steps[i], 1);
            work[BY_WEIGHTS] += loads.layers[i] + s->rho * loads.heads[i];
        }
        work[IN_TIME] = cost_price(&e->of.costs, &steps, us);
        tally_add(&x->total, &t);
        cost_add_all(&x->steps, &steps, 1);
        x->positions += middle * (double)t.emitted;
        for (uint32_t i = 0; i < 3; i++) {
            struct sums *to = &x->part[i == 0 ? 0 : i == 1 ? 1 + s->category : DEPTHS + range];
            to->tokens += t.emitted;
            to->now.tokens += (double)t.emitted;
            to->now.rounds += (double)t.rounds;
            for (int u = 0; u < UNITS; u++) {
                to->now.plain[u] += plain[u] * (double)t.emitted;
                to->now.work[u] += work[u];
            }
        }
    }
}

/* ---- the report ---- */

void
score_measured_again(struct score *s, uint32_t entry, const struct cost_model *costs)
{
    struct entry *e = &s->entry[entry];
    const struct cost_model *before = &e->of.costs;
    double us[COST_PHASES];
    for (struct setting *x = e->setting; x < e->setting + e->n; x++) {
        const double middle = x->positions / (double)x->total.emitted,
                     plain =
                         cost_autoregressive(costs, s->layers, middle) / cost_autoregressive(before, s->layers, middle),
                     rounds = cost_price(costs, &x->steps, us) / cost_price(before, &x->steps, us);
        x->change = isnan(plain / rounds) ? 0 : log(plain / rounds) / 2;
    }
}

/* A speedup in time has the error of the costs, too: that of a forecast, and half the difference of two measurements
 * of them. Of the entry's settings, the fastest is named. */
static struct score_part
part_of(const struct entry *e, const struct setting *x, uint32_t part, bool in_time)
{
    struct sums sums = x->part[part];
    end_sample(&sums);
    struct estimate speedup = ratio_estimate(&sums.speedup[in_time ? IN_TIME : BY_WEIGHTS]);
    if (in_time) {
        speedup.se = hypot(speedup.se, speedup.value * hypot(e->of.costs.error > 0 ? SCORE_COSTS_ERROR : 0, x->change));
        speedup = estimate_times(speedup, exp(x->change));
    }
    return (struct score_part){.tokens = sums.tokens,
                               .per_round = ratio_estimate(&sums.per_round),
                               .speedup = estimate_compare_of(speedup, e->n)};
}

static void
write_row(const struct score *s, const struct entry *e, const struct setting *x, bool in_time, struct score_row *row)
{
    const struct policy_ops *ops = e->of.ops;
    const struct cost_model *cost = &e->of.costs;
    const struct tally *t = &x->total;
    *row = (struct score_row){.preset = x->preset,
                              .acceptance = (float)((double)t->accepted / (double)(t->accepted + t->rejected_rounds))};
    snprintf(row->preset.policy, sizeof row->preset.policy, "%s", e->of.info->name);
    snprintf(row->drafter, sizeof row->drafter, "%s", e->of.drafter);
    char setting[sizeof row->preset.policy + sizeof row->setting];
    const char *knobs = strchr(preset_setting_text(&row->preset, e->of.info, " ", setting, sizeof setting), ' ');
    snprintf(row->setting, sizeof row->setting, "%s", knobs != NULL ? knobs + 1 : "");
    snprintf(row->why, sizeof row->why, "%s", e->why);
    row->kind =
        ops->estimates || (ops->draft_vocab > 0 && x->value[ops->draft_vocab] > 0) ? SCORE_ESTIMATED : SCORE_EXACT;
    if (e->n > 0 && t->rounds > 0 && t->drafted == 0)
        snprintf(row->why, sizeof row->why, "it drafts nothing on these texts");
    if (row->why[0] != '\0')
        row->kind = SCORE_NOT;
    row->all = part_of(e, x, 0, in_time);
    for (uint32_t i = 0; i < SCORE_CATEGORIES; i++)
        row->category[i] = part_of(e, x, 1 + i, in_time);
    for (uint32_t i = 0; i < SCORE_DEPTHS; i++)
        row->depth[i] = part_of(e, x, DEPTHS + i, in_time);
    for (uint32_t i = 0; i < SCORE_POSITIONS; i++)
        row->accepted[i] = (float)positions_conditional(&x->accepted, i).value;
    for (uint32_t i = 0; i < SCORE_SEQUENCES; i++) { /* that draft in step */
        const double middle = x->positions / (double)t->emitted;
        double us[COST_PHASES];
        struct reason_rounds at = {
            .of = *t, .plain_us = cost_autoregressive_sequences(cost, s->layers, middle, score_sequences[i])};
        at.of.draft_us = in_time ? cost_price_sequences(cost, &x->steps, score_sequences[i], us) : 0;
        const struct reason r = reason_find(&at, s->layers, s->rho, cost, NULL);
        row->speedup_at[i] = (float)r.speedup;
        row->need_at[i] = (float)r.need;
    }
}

void
score_write(const struct score *s, struct score_report *r)
{
    r->n_categories = s->n_categories;
    memcpy(r->category, s->name, sizeof r->category);
    r->answers = s->answers;
    r->n = 0;
    r->in_time = true; /* all rows have the same unit */
    for (const struct entry *e = s->entry; e < s->entry + s->n; e++)
        for (const struct setting *x = e->setting; x < e->setting + e->n; x++)
            r->in_time = r->in_time && !isnan(x->part[0].speedup[IN_TIME].x + x->part[0].now.work[IN_TIME]);
    for (const struct entry *e = s->entry; e < s->entry + s->n; e++) {
        struct score_row *first = &r->row[r->n];
        uint32_t n = 0, best = 0;
        for (uint32_t i = 0; i == 0 || i < e->n; i++) { /* an entry that is not scored has one row */
            write_row(s, e, &e->setting[i], r->in_time, &first[n]);
            if (first[n].kind == SCORE_NOT && (n > 0 || i + 1 < e->n))
                continue;
            if (first[n].all.speedup.value > first[best].all.speedup.value)
                best = n;
            n++;
        }
        const struct score_row fastest = first[best];
        first[best] = first[0];
        first[0] = fastest;
        first[0].best = first[0].kind != SCORE_NOT;
        r->n += n;
    }
}
