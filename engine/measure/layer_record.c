#include "engine/measure/layer_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
layer_record_open(struct layer_record *r, uint32_t layers, struct err *err)
{
    return layer_record_open_room(r, layers, RECORD_ROWS, RECORD_TEXT, err);
}

bool
layer_record_open_room(struct layer_record *r, uint32_t layers, uint32_t rows, uint32_t text_room, struct err *err)
{
    *r = (struct layer_record){
        .layers = layers, .rows = rows, .text_room = text_room, .lost = RECORD_LOST, .lost_se = RECORD_LOST_SE};
    r->cells = calloc((size_t)rows * layers, sizeof *r->cells);
    r->text = calloc(text_room, sizeof *r->text);
    r->draft.word = calloc(rows, sizeof *r->draft.word);
    return (r->cells != NULL && r->text != NULL && r->draft.word != NULL) ||
           err_set(err, ERR_WORK, "out of memory for a record of the layers' predictions");
}

void
layer_record_close(struct layer_record *r)
{
    free(r->cells);
    free(r->text);
    free(r->draft.word);
    free(r->seen);
    r->seen = NULL;
    r->rank = NULL;
    r->cells = NULL;
    r->text = NULL;
    r->draft.word = NULL;
}

const char *
layer_record_lacks(const struct layer_record *r, unsigned needs)
{
    const unsigned markov = r->draft.markov ? NEEDS_MARKOV : 0,
                   known = r->draft.known ? NEEDS(r->draft.role) | markov : 0;
    if ((needs & (NEEDS_DRAFTER | NEEDS_MARKOV) & ~known) != 0)
        return (needs & NEEDS(AUX_DRAFT)) != 0 ? "what-if needs the draft model's predictions of a few tokens"
                                               : "what-if needs the drafter's chains at each position of a text";
    if ((needs & NEEDS_ACCEPT_HEAD) != 0 && !r->draft.acceptance)
        return "what-if needs the acceptance head of a draft model of its own";
    return NULL;
}

bool
layer_record_follows(const struct layer_record *r, const char *policy, uint32_t n)
{
    bool known = strcmp(r->policy, policy) == 0;
    for (uint32_t i = 0; i < n; i++)
        known = known && !isnan(r->series[i]);
    return known;
}

/* With d_i the distance of the i-th likeliest token's logit from the highest, and x = 1/T:
 *
 *   1/p(T) − 1 = S(x) = Σ_{i≥2} exp(−d_i x)
 *
 * The next likeliest four of the d_i are known. The sum over all other tokens, R(x), is smooth. ln R is approximated
 * by a cubic in x through R(1), its slope there, which follows from the entropy H = ln(1 + S) − S'/(1 + S), and R(0),
 * the number of the other tokens. Its second derivative falls from x = 0 to 1. If R is lost in rounding, because p is
 * near 1 and nearly all of the rest is listed, the slope is left out. */
#define BEND_AT_1 0.5 /* relative to x = 0: logits have a long upper tail. Measured on the bundled model */

static double
listed(const struct layer_prediction *c, double x)
{
    double sum = 0;
    for (int i = 0; i < RECORD_LISTED; i++)
        sum += exp(-(double)c->gap[i] * x);
    return sum;
}

static double
others(const struct layer_prediction *c, double p, double x)
{
    const double digits = 1e-7 / (p * p); /* precision of S, since p is a float */
    return fmax((1 - p) / p - listed(c, x), digits);
}

/* Returns R' at x = 1: S' from the entropy, without the listed tokens. */
static double
slope_at_1(const struct layer_prediction *c, double p, double entropy)
{
    double of_all = (-log(p) - entropy) / p;
    for (int i = 0; i < RECORD_LISTED; i++)
        of_all += isinf(c->gap[i]) ? 0 : (double)c->gap[i] * exp(-(double)c->gap[i]);
    return of_all;
}

static void
fit(struct layer_prediction *c, const struct layer_sample *sample, uint32_t vocab)
{
    const double p = (double)sample->confidence, r = others(c, p, 1), at_1 = log(r),
                 at_0 = log(vocab > 1 + RECORD_LISTED ? vocab - 1 - RECORD_LISTED : 1);
    double slope = at_1 - at_0, bend = 0;
    if (r > 1e-5) {
        slope = slope_at_1(c, p, (double)sample->entropy) / r;
        bend = fmax(at_0 - at_1 + slope, 0); /* it is convex */
    }
    c->fit[0] = (float)at_1;
    c->fit[1] = (float)slope;
    c->fit[2] = (float)bend;
    c->fit[3] = (float)(bend * (BEND_AT_1 - 1));
}

/* Returns the cells of the next row. */
static struct layer_prediction *
next_row(struct layer_record *r)
{
    if (r->n == r->rows) {
        memmove(r->cells, r->cells + r->layers, (size_t)(r->rows - 1) * r->layers * sizeof *r->cells);
        memmove(r->draft.word, r->draft.word + 1, (r->rows - 1) * sizeof *r->draft.word);
        r->n--;
        r->first++;
    }
    return &r->cells[(size_t)r->n++ * r->layers];
}

static float
gap_of(float confidence, float p)
{
    return p > 0 ? logf(confidence / p) : INFINITY; /* also for NAN */
}

struct layer_sample
layer_sample_of(const struct prediction *p, token_t final)
{
    struct layer_sample out = {.agrees = p->token == final, .confidence = p->confidence, .entropy = p->entropy};
    memcpy(out.top_p, p->top_p, sizeof out.top_p);
    memcpy(out.top, p->top, sizeof out.top);
    return out;
}

void
layer_record_add(struct layer_record *r, const struct layer_sample *sample, uint32_t vocab)
{
    struct layer_prediction *row = next_row(r);
    for (uint32_t l = 0; l < r->layers; l++) {
        struct layer_prediction *c = &row[l];
        c->agrees = sample[l].agrees;
        c->confidence = sample[l].confidence;
        c->annealed = sample[l].annealed;
        c->temperature = sample[l].temperature;
        memcpy(c->top, sample[l].top, sizeof c->top);
        for (int i = 0; i < RECORD_LISTED; i++)
            c->gap[i] = gap_of(c->confidence, sample[l].top_p[i + 1]);
        fit(c, &sample[l], vocab);
    }
}

float
layer_record_annealed(const struct layer_prediction *c, float temperature)
{
    if (!(temperature > 1))
        return c->confidence;
    if (fabsf(temperature - c->temperature) < 1e-6f && !isnan(c->annealed))
        return c->annealed;
    const double x = 1 / (double)temperature, d = x - 1;
    const double rest = (double)c->fit[0] + d * ((double)c->fit[1] + d * ((double)c->fit[2] + x * (double)c->fit[3]));
    return (float)(1 / (1 + listed(c, x) + exp(rest)));
}

/* ---- draft vocabularies ---- */

void
layer_record_order(struct layer_record *r, const struct draft_rank *rank)
{
    if (rank != NULL && (r->seen == NULL || r->n_seen != rank->vocab)) {
        free(r->seen);
        r->n_seen = rank->vocab;
        r->seen = malloc(rank->vocab * sizeof *r->seen);
    }
    r->rank = r->seen != NULL ? rank : NULL;
    if (r->rank == NULL)
        return;
    memset(r->seen, 0xff, rank->vocab * sizeof *r->seen);
    for (uint32_t i = 0, at = r->first + r->n + 1 - r->n_text; i < r->n_text; i++, at++)
        if ((uint32_t)r->text[i] < rank->vocab && r->seen[r->text[i]] == UINT32_MAX)
            r->seen[r->text[i]] = at;
}

static bool
in_draft_vocab(const struct layer_record *r, token_t token, uint32_t at)
{
    return (uint32_t)token < r->rank->vocab && (r->rank->place[token] < r->base || r->seen[token] <= r->first + at);
}

uint32_t
layer_record_recent(const struct layer_record *r, uint32_t from, uint32_t to)
{
    const uint32_t begin = r->first + r->n + 1 - r->n_text;
    uint32_t recent = 0;
    for (uint32_t pos = from > begin ? from : begin; pos < to; pos++) {
        const token_t token = layer_record_token(r, pos);
        recent += (uint32_t)token < r->rank->vocab && r->seen[token] == pos && r->rank->place[token] >= r->base;
    }
    return recent;
}

bool
layer_record_draft_agrees(const struct layer_record *r, uint32_t i, uint32_t at)
{
    if (r->draft.role != AUX_DRAFT)
        return i < r->draft.run[at] &&
               (r->base == 0 || in_draft_vocab(r, layer_record_token(r, r->first + at + i + 1), at));
    const struct draft_word *w = &r->draft.word[at + i];
    for (int top = 0; top < PREDICTION_TOP && r->base > 0; top++)
        if (in_draft_vocab(r, w->top[top], at))
            return w->top[top] == w->target;
    return r->base == 0 && w->agrees;
}

/* Of the probability of tokens that are not listed, the draft vocabulary has about its share of that of the last listed
 * ones. Measured over all cells on SmolLM2 with 4,096 and 16,384 tokens and on the bundled model with 512: 0.93 of
 * 0.94, 0.98 of 0.98, 0.36 of 0.53. */
void
layer_record_restrict(struct layer_record *r, uint32_t base)
{
    double all = 0, inside = 0;
    r->base = base;
    for (uint32_t row = 0; row < r->n && base > 0 && base != r->cells_base; row++)
        for (uint32_t l = 1; l < r->layers; l++) {
            const struct layer_prediction *c = layer_prediction(r, row, l);
            const double p = (double)c->confidence * exp(-(double)c->gap[RECORD_LISTED - 1]);
            all += p;
            inside += in_draft_vocab(r, c->top[PREDICTION_TOP - 1], row) ? p : 0;
        }
    r->unlisted = all > 0 ? inside / all : 1;
}

/* With the listed tokens outside the set left out, the first one inside takes the place of the likeliest. Its logit is
 * `lower` below that one's, so all distances are smaller by as much. */
struct layer_prediction
layer_record_drafts(const struct layer_record *r, uint32_t row, uint32_t layer, uint32_t at)
{
    const struct layer_prediction *all = layer_prediction(r, row, layer);
    if (r->base == 0 || layer == r->layers)
        return *all;
    struct layer_prediction c = *all;
    double lower = 0;
    token_t first = TOKEN_NONE;
    for (int i = 0, n = 0; i < PREDICTION_TOP; i++) {
        const double gap = i == 0 ? 0 : (double)all->gap[i - 1];
        const bool inside = !isinf(gap) && in_draft_vocab(r, all->top[i], at);
        if (inside && first == TOKEN_NONE) {
            first = all->top[i];
            lower = gap;
        } else if (inside) {
            c.gap[n++] = (float)(gap - lower);
        }
        if (i == PREDICTION_TOP - 1)
            while (n < RECORD_LISTED)
                c.gap[n++] = INFINITY;
    }
    c.annealed = NAN;
    c.agrees = first != TOKEN_NONE && first == layer_prediction(r, row, r->layers)->top[0];
    if (first == TOKEN_NONE)
        return c; /* a token that is not listed; the confidence is at most this */
    c.fit[0] += (float)(lower + log(fmax(r->unlisted, 1e-6)));
    c.fit[1] += (float)lower;
    c.confidence = (float)(1 / (1 + listed(&c, 1) + exp((double)c.fit[0])));
    return c;
}

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
        l->draft_vocab == 0 && l->confidence >= 0 && l->confidence <= 1 && p->n_round < WRONG_PATH_ROUND)
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
        const struct layer_prediction *w = layer_prediction(r, i, layer);
        all += (double)w->confidence;
        disagreeing += w->agrees ? 0 : (double)w->confidence;
        n += !w->agrees;
    }
    return (struct means){r->n > 0 ? all / r->n : 0, n > 0 ? disagreeing / n : 0};
}

/* of a confidence: the largest possible, since predictions of one round are correlated */
#define WORD_VARIANCE 0.25
#define LAYERS_DIFFER (0.1 * 0.1) /* variance of `lost` between layers */

/* The mean of the confidences at a layer is (1 − λ)·all + λ·disagreeing: a regression for λ, with the prior as one
 * more observation. */
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
