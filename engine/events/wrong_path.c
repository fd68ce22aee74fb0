#include "engine/events/wrong_path.h"

#include <math.h>

void
wrong_paths_reset(struct wrong_paths *p)
{
    p->n_words = p->oldest = p->n_round = p->correction = 0;
}

void
wrong_paths_event(struct wrong_paths *p, const struct event *e)
{
    const struct layer_event *l = &e->layer;
    if (e->type == EVENT_LAYER && l->model == MODEL_TARGET && l->probed_by == PROBED_POLICY && l->layer > 0 &&
        l->confidence >= 0 && l->confidence <= 1 && p->n_round < WRONG_PATH_ROUND)
        p->round[p->n_round++] = (struct wrong_path_word){l->pos, (uint32_t)l->layer, l->confidence};
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_CORRECTION)
        p->correction = e->token.pos;
    if (e->type != EVENT_ROUND)
        return;
    for (uint32_t i = 0; i < p->n_round && p->correction > 0; i++) {
        if (p->round[i].pos <= p->correction)
            continue;
        p->words[p->oldest] = p->round[i];
        p->oldest = (p->oldest + 1) % WRONG_PATH_WORDS;
        p->n_words += p->n_words < WRONG_PATH_WORDS;
    }
    p->n_round = p->correction = 0;
}

/* Mean confidences of a layer over the record: of all rows, and of those where it does not agree with the target. */
struct means {
    double all, disagreeing;
};

static struct means
means_of(const struct layer_record *r, uint32_t layer)
{
    double all = 0, disagreeing = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct layer_word *w = layer_word(r, i, layer);
        all += (double)w->confidence;
        disagreeing += w->agrees ? 0 : (double)w->confidence;
        n += !w->agrees;
    }
    return (struct means){r->n > 0 ? all / r->n : 0, n > 0 ? disagreeing / n : 0};
}

#define WORD_VARIANCE 0.25        /* of a confidence: the largest that there is, since words of one round are alike */
#define LAYERS_DIFFER (0.1 * 0.1) /* variance of the share between layers */

/* The words' mean at a layer is (1 − λ)·all + λ·disagreeing: a regression for λ, with the prior as one more observation. */
void
wrong_paths_estimate(const struct wrong_paths *p, struct layer_record *r)
{
    double precision = 1 / (RECORD_LOST_SE * RECORD_LOST_SE), sum = RECORD_LOST * precision;
    for (uint32_t layer = 1; layer < r->layers; layer++) {
        double shift = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_words; i++)
            if (p->words[i].layer == layer) {
                shift -= (double)p->words[i].confidence;
                n++;
            }
        if (n == 0)
            continue;
        const struct means m = means_of(r, layer);
        const double range = m.all - m.disagreeing;
        shift += n * m.all;
        sum += range * shift / WORD_VARIANCE;
        precision += n * range * range / WORD_VARIANCE;
    }
    r->lost = fmin(fmax(sum / precision, 0), 1);
    r->lost_se = fmin(sqrt(1 / precision + LAYERS_DIFFER), RECORD_LOST_SE);
}
