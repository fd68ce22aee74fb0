#include "engine/measure/forecast.h"

#include <math.h>
#include <string.h>

#include "engine/measure/metrics.h"

/* Quantiles of the normal distribution, for the value of `lost` in each draw. The first draw has the mean. */
static const double quantile[FORECAST_DRAWS] = {0, -1.28, -0.52, 0.52, 1.28};

static void
measure(struct forecast *f, const struct tally *t, uint32_t layers, double rho)
{
    const struct metrics model = {.layers = layers, .rho = rho};
    const struct measures m = metrics_measures(&model, t);
    f->tokens_per_round = (float)m.tokens_per_round;
    f->acceptance = (float)m.acceptance_rate;
    f->layers = (float)(t->layers / (double)t->emitted);
    f->heads = (float)(t->heads / (double)t->emitted);
    f->drafted = (float)((double)t->drafted / (double)t->emitted);
    f->drafting = (float)((double)t->drafting_rounds / (double)t->emitted);
    f->accepted = (float)((double)t->accepted / (double)t->emitted);
    f->rejected = (float)((double)t->rejected_rounds / (double)t->emitted);
    f->exit_layers = (float)(t->exit_layers / (double)t->emitted);
    f->modelled = (float)m.modelled;
}

/* Prices the steps of all blocks: work[] is the time of each block. Sets the speedup, or leaves the modelled one if
 * there is no price. */
static void
measure_time(struct forecast *f, const struct record_loads *loads, double tokens, const struct layer_record *record,
             const struct cost_model *cost, double rho, double work[RECORD_BLOCKS])
{
    double us[COST_PHASES] = {0}, sum = 0;
    f->speedup = f->modelled;
    f->in_time = cost != NULL && cost_known(cost);
    for (uint32_t i = 0; i < RECORD_BLOCKS && f->in_time; i++) {
        double of_block[COST_PHASES];
        sum += work[i] = cost_price(cost, &loads->steps[i], of_block);
        f->in_time = !isnan(work[i]);
        for (uint32_t p = 0; p < COST_PHASES; p++)
            us[p] += of_block[p];
    }
    for (uint32_t i = 0; i < RECORD_BLOCKS && !f->in_time; i++)
        work[i] = loads->layers[i] + rho * loads->heads[i];
    if (!f->in_time)
        return;
    const double middle = record->first + (record->begin + record->n) / 2.0;
    for (uint32_t p = 0; p < COST_PHASES; p++)
        f->us[p] = (float)(us[p] / tokens);
    f->autoregressive = (float)cost_autoregressive(cost, record->layers, middle);
    f->speedup = (float)((double)f->autoregressive * tokens / sum);
}

/* Computes the distance of each block from the mean, as a change of the ratio (the delta method, as in estimate.h). */
static void
spread_over_blocks(struct forecast *f, const double work[RECORD_BLOCKS])
{
    double sum = 0;
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        sum += work[i];
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        f->block[i] = (float)((double)f->speedup * (1.0 / RECORD_BLOCKS - work[i] / sum));
}

static void
add_loads(struct record_loads *to, const struct record_loads *from)
{
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++) {
        to->layers[i] += from->layers[i];
        to->heads[i] += from->heads[i];
        cost_add_all(&to->steps[i], &from->steps[i], 1);
    }
}

/* Neighbouring tokens are of the same round and of the same passage. So blocks of a text count as independent samples
 * only if they are as long as this (docs/forecasts.md: What-if). */
#define BLOCK_TOKENS 16
#define BLOCKS_LEAST 4

/* Returns the number of blocks of a text: a power of two. */
static uint32_t
blocks_of(uint32_t tokens)
{
    uint32_t n = RECORD_BLOCKS;
    while (n > BLOCKS_LEAST && tokens < n * BLOCK_TOKENS)
        n /= 2;
    return n;
}

/* Returns the variance of the ratio, of which part[] is the influence of each part, with n blocks as samples. */
static double
variance_of(const float *part, uint32_t n)
{
    const uint32_t parts = RECORD_BLOCKS / n;
    double squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < parts; k++)
            sum += (double)part[i * parts + k];
        squares += sum * sum;
    }
    return squares * n / (n - 1);
}

/* Returns the standard error from two variances: of the text, and of the draws, where the rounds of the text count as
 * one more. Short blocks are not independent, and a few long ones may be equal by chance, so the largest variance of
 * all lengths counts. */
static double
error(const float *part, const float *draw)
{
    double text = 0, draws = 0, mean = 0;
    for (uint32_t n = BLOCKS_LEAST; n <= RECORD_BLOCKS; n *= 2)
        text = fmax(text, variance_of(part, n));
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        mean += (double)draw[i] / FORECAST_DRAWS;
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        draws += ((double)draw[i] - mean) * ((double)draw[i] - mean);
    return sqrt(text + draws / (FORECAST_DRAWS - 1) * (1 + 1.0 / FORECAST_DRAWS));
}

const struct forecast forecast_none = {.speedup = NAN,
                                       .modelled = NAN,
                                       .tokens_per_round = NAN,
                                       .acceptance = NAN,
                                       .layers = NAN,
                                       .heads = NAN,
                                       .se = NAN};

uint32_t
forecast_base(const struct policy_ops *ops, const struct layer_record *r)
{
    return ops->draft_vocab > 0 && (ops->needs == 0 || r->draft.exit_layer > 0) ? r->cells_base : 0;
}

/* Restricts a record to the draft vocabulary of the knobs, if it is not. Returns false if its cells do not have it. */
static bool
restrict_record(struct layer_record *r, const struct policy_ops *ops, const double *values)
{
    const uint32_t vocab = r->rank != NULL ? r->rank->vocab : UINT32_MAX,
                   base = ops->draft_vocab > 0 ? draft_vocab_base(values[ops->draft_vocab], vocab) : 0;
    if ((base > 0 && r->rank == NULL) || (forecast_base(ops, r) > 0 && base != forecast_base(ops, r)))
        return false;
    if (base != r->base)
        layer_record_restrict(r, base);
    return true;
}

bool
forecast_simulate(const struct policy_ops *ops, const struct layer_record *record, const double *values, uint32_t draw,
                  struct record_loads *loads, struct tally *out)
{
    struct layer_record drawn = *record;
    drawn.draw = draw;
    drawn.lost = fmin(fmax(record->lost + quantile[draw] * record->lost_se, 0), 1);
    drawn.loads = loads;
    return restrict_record(&drawn, ops, values) && ops->what_if != NULL && ops->what_if(&drawn, values, out) &&
           out->rounds > 0;
}

bool
forecast_make(const struct policy_ops *ops, const struct layer_record *record, const double *values, double rho,
              const struct cost_model *cost, struct forecast *out)
{
    struct tally total = {0};
    struct record_loads all = {.drawn = 0};
    double work[RECORD_BLOCKS];
    struct layer_record restricted = *record;
    *out = forecast_none;
    if (!restrict_record(&restricted, ops, values))
        return false;
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++) {
        struct record_loads loads = {.drawn = 0};
        struct tally t;
        if (!forecast_simulate(ops, &restricted, values, i, &loads, &t))
            return false;
        tally_add(&total, &t);
        add_loads(&all, &loads);
        measure(out, &t, record->layers, rho);
        measure_time(out, &loads, (double)t.emitted, record, cost, rho, work);
        for (uint32_t j = i; j < FORECAST_DRAWS; j++)
            out->draw[j] = out->speedup;
        if (loads.drawn == 0) /* all draws are equal */
            break;
    }
    measure(out, &total, record->layers, rho);
    measure_time(out, &all, (double)total.emitted, record, cost, rho, work);
    spread_over_blocks(out, work);
    out->tokens = record->n - record->begin;
    out->se = (float)hypot(error(out->block, out->draw), out->in_time ? (double)out->speedup * cost->error : 0);
    return true;
}

double
forecast_ceiling(const struct policy_ops *ops, const struct layer_record *record, const double *values, double rho,
                 const struct cost_model *cost)
{
    struct layer_record accepted = *record;
    struct forecast f;
    accepted.accepts = true;
    const bool all = forecast_make(ops, &accepted, values, rho, cost, &f) && f.in_time && f.acceptance >= 1;
    return all ? (double)f.speedup : (double)NAN;
}

struct estimate
forecast_gain(const struct forecast *other, const struct forecast *now)
{
    float block[RECORD_BLOCKS], draw[FORECAST_DRAWS];
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        block[i] = other->block[i] - now->block[i];
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        draw[i] = other->draw[i] - now->draw[i];
    return (struct estimate){(double)(other->speedup - now->speedup), error(block, draw), blocks_of(now->tokens)};
}

bool
forecast_better(const struct forecast *other, const struct forecast *now)
{
    const struct estimate gain = forecast_gain(other, now);
    return gain.value >= FORECAST_LEAST_GAIN * (double)now->speedup &&
           gain.value > estimate_reach((double)gain.n - 1) * gain.se;
}

bool
effects_part(const struct layer_record *r, uint32_t from, uint32_t to, struct layer_record *part)
{
    const uint32_t end = r->first + r->n + 1; /* the last row predicts the token after it */
    *part = *r;
    if (r->n <= r->begin)
        return false;
    const uint32_t least = r->first + r->begin + 1;
    from = from < least ? least : from;
    to = to > end ? end : to;
    if (to < from + EFFECT_TOKENS)
        return false;
    part->begin = from - 1 - r->first;
    part->n = to - 1 - r->first;
    part->from_prompt = r->from_prompt && part->begin == r->begin;
    part->n_text -= part->n_text < end - to ? part->n_text : end - to;
    if (to < end)
        part->policy[0] = '\0'; /* the recorded state is of a later round */
    return true;
}

static const struct segment *
numbered(const struct segments *all, uint32_t number)
{
    const struct segment *newest = segments_at(all, 0);
    return newest != NULL && number <= newest->number ? segments_at(all, newest->number - number) : NULL;
}

/* Returns the index of the setting among those of the text; n: not found. */
static uint32_t
place_of(const struct effect_text *text, const struct segments *all, const struct run_info *info,
         const struct segment *s)
{
    uint32_t i = 0;
    for (; i < text->n; i++) {
        const struct segment *known = numbered(all, text->setting[i].number);
        if (known != NULL && segment_same_setting(known, s, info))
            break;
    }
    return i;
}

bool
effects_forecast(struct effect_text *text, const struct segments *all, const struct segment *of,
                 const struct run_info *info, effects_ops ops_of, const struct layer_record *part)
{
    const struct segment *s;
    text->number = of->number;
    text->tokens = part->n - part->begin;
    while (text->n < EFFECT_SETTINGS && text->looked <= of->number &&
           (s = numbered(all, of->number - text->looked)) != NULL && s->prompt == of->prompt) {
        text->looked++;
        const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
        const struct policy_ops *ops = p != NULL ? ops_of(p, info) : NULL;
        /* A record has the predictions of one head only, and sampled text has no forecasts. */
        if (ops == NULL || strcmp(s->head, of->head) != 0 || s->sampling.temperature > 0 ||
            place_of(text, all, info, s) < text->n)
            continue;
        struct forecast *f = &text->setting[text->n].of;
        if (!forecast_make(ops, part, s->value, info->rho, NULL, f))
            continue;
        text->setting[text->n++].number = s->number;
        return true;
    }
    return false;
}

static struct difference
difference_on(const struct effect_text *text, uint32_t a, uint32_t b)
{
    const struct forecast *fa = &text->setting[a].of, *fb = &text->setting[b].of;
    const struct estimate gain = a != b ? forecast_gain(fa, fb) : (struct estimate){0, 0, blocks_of(text->tokens)};
    struct difference d = {.value = gain.value * 100 / (double)fb->speedup,
                           .se = gain.se * 100 / (double)fb->speedup,
                           .verdict = DIFFERENCE_NOISE};
    if (fabs(d.value) > estimate_reach((double)gain.n - 1) * d.se)
        d.verdict = d.value > 0 ? DIFFERENCE_MORE : DIFFERENCE_LESS;
    return d;
}

/* Did both segments generate the same tokens? For example, greedy runs of one prompt from its start. */
static bool
same_tokens(const struct segment *a, const struct segment *b)
{
    return !(a->sampling.temperature > 0) && !(b->sampling.temperature > 0) && a->before == b->before &&
           a->total.emitted == b->total.emitted;
}

static struct difference
difference_read(const struct run_info *info, const struct segment *a, const struct segment *b)
{
    const struct estimate ra = segment_estimates(a, info).modelled, rb = segment_estimates(b, info).modelled;
    struct difference d = estimate_difference(ra, rb);
    d.value *= 100 / rb.value;
    d.se *= 100 / rb.value;
    return d;
}

struct difference
effects_difference(const struct effects *e, const struct segments *all, const struct run_info *info,
                   const struct segment *a, const struct segment *b)
{
    const struct segment *order[2] = {a->number > b->number ? a : b, a->number > b->number ? b : a};
    for (int i = 0; i < 2 && e != NULL && a->prompt == b->prompt; i++) {
        const struct effect_text *text = &e->text[order[i]->number % SEGMENTS];
        if (text->number != order[i]->number)
            continue;
        const uint32_t at = place_of(text, all, info, a), bt = place_of(text, all, info, b);
        if (at < text->n && bt < text->n)
            return difference_on(text, at, bt);
    }
    if (a->prompt == b->prompt && same_tokens(a, b))
        return difference_read(info, a, b);
    return (struct difference){.value = NAN, .se = NAN, .verdict = DIFFERENCE_UNKNOWN};
}
