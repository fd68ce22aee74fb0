#include "engine/events/forecast.h"

#include <math.h>

#include "engine/events/metrics.h"

/* Shares of lost words that the draws are made with: quantiles of the normal distribution. The first draw has the mean. */
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
    f->modelled = (float)m.modelled;
}

/* How far each block is from the mean, as a change of the ratio (the delta method, as in estimate.h). */
static void
spread_over_blocks(struct forecast *f, const struct record_loads *loads, double rho)
{
    double work[RECORD_BLOCKS], sum = 0;
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        sum += work[i] = loads->layers[i] + rho * loads->heads[i];
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        f->block[i] = (float)((double)f->modelled * (1.0 / RECORD_BLOCKS - work[i] / sum));
}

/* The sum of two: of blocks, whose sum the ratio is, and of draws, of which the text's own rounds are one more. */
static double
error(const float *block, const float *draw)
{
    double blocks = 0, draws = 0, mean = 0;
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        blocks += (double)(block[i] * block[i]);
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        mean += (double)draw[i] / FORECAST_DRAWS;
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        draws += ((double)draw[i] - mean) * ((double)draw[i] - mean);
    return sqrt(blocks * RECORD_BLOCKS / (RECORD_BLOCKS - 1) +
                draws / (FORECAST_DRAWS - 1) * (1 + 1.0 / FORECAST_DRAWS));
}

bool
forecast_make(const struct policy_ops *ops, const struct layer_record *record, const double *values, double rho,
              struct forecast *out)
{
    struct tally total = {0};
    struct record_loads loads = {0};
    *out = (struct forecast){NAN, NAN, NAN, NAN, NAN, .se = NAN};
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++) {
        struct layer_record drawn = *record;
        struct tally t;
        drawn.draw = i;
        drawn.lost = fmin(fmax(record->lost + quantile[i] * record->lost_se, 0), 1);
        drawn.loads = &loads;
        if (ops->what_if == NULL || !ops->what_if(&drawn, values, &t) || t.rounds == 0)
            return false;
        tally_add(&total, &t);
        measure(out, &t, record->layers, rho);
        for (uint32_t j = i; j < FORECAST_DRAWS; j++)
            out->draw[j] = out->modelled;
        if (loads.drawn == 0) /* all draws are alike */
            break;
    }
    measure(out, &total, record->layers, rho);
    spread_over_blocks(out, &loads, rho);
    out->se = (float)error(out->block, out->draw);
    out->tokens = record->n - record->begin;
    return true;
}

struct estimate
forecast_gain(const struct forecast *other, const struct forecast *now)
{
    float block[RECORD_BLOCKS], draw[FORECAST_DRAWS];
    for (uint32_t i = 0; i < RECORD_BLOCKS; i++)
        block[i] = other->block[i] - now->block[i];
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        draw[i] = other->draw[i] - now->draw[i];
    return (struct estimate){(double)(other->modelled - now->modelled), error(block, draw), RECORD_BLOCKS};
}

double
forecast_gain_least(const struct forecast *other, const struct forecast *now)
{
    const struct estimate gain = forecast_gain(other, now);
    return gain.value - estimate_reach(RECORD_BLOCKS - 1) * gain.se;
}
