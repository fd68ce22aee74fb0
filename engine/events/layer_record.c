#include "engine/events/layer_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
layer_record_open(struct layer_record *r, uint32_t layers, struct err *err)
{
    *r = (struct layer_record){.layers = layers, .lost = RECORD_LOST, .lost_se = RECORD_LOST_SE};
    r->cells = calloc((size_t)RECORD_ROWS * layers, sizeof *r->cells);
    r->text = calloc(RECORD_TEXT, sizeof *r->text);
    return (r->cells != NULL && r->text != NULL) ||
           err_set(err, ERR_WORK, "out of memory for a record of what layers say");
}

void
layer_record_close(struct layer_record *r)
{
    free(r->cells);
    free(r->text);
    r->cells = NULL;
    r->text = NULL;
}

void
layer_record_copy(struct layer_record *to, const struct layer_record *from)
{
    struct layer_word *cells = to->cells;
    token_t *text = to->text;
    memcpy(cells, from->cells, (size_t)from->n * from->layers * sizeof *cells);
    memcpy(text, from->text, from->n_text * sizeof *text);
    *to = *from;
    to->cells = cells;
    to->text = text;
}

void
layer_record_set_text(struct layer_record *r, const token_t *tokens, uint32_t count)
{
    r->n_text = count < RECORD_TEXT ? count : RECORD_TEXT;
    memcpy(r->text, tokens + (count - r->n_text), r->n_text * sizeof *tokens);
}

const void *
layer_record_state(const struct layer_record *r, const char *policy, size_t n)
{
    return n <= RECORD_STATE && strcmp(r->policy, policy) == 0 ? r->state : NULL;
}

/* With d_i how far the i-th likeliest token's logit lies below the highest, and x = 1/T:
 *
 *   1/p(T) − 1 = S(x) = Σ_{i≥2} exp(−d_i x)
 *
 * Of these the guess lists the first few. What the many others come to, R(x), is smooth: ln R is a cubic in x through what it is at
 * the three temperatures and its slope at T = 1, which follows from the entropy H = ln(1 + S) − S'/(1 + S). Where R has no
 * digits left, because p is near 1 and nearly all listed, it hardly matters, and its slope is left out. */
static const double warm_x = 1 / (double)RECORD_WARM, hot_x = 1 / (double)RECORD_HOT;

static double
listed(const struct layer_word *c, double x)
{
    double sum = 0;
    for (int i = 0; i < RECORD_LISTED; i++)
        sum += exp(-(double)c->gap[i] * x);
    return sum;
}

static double
others(const struct layer_word *c, double p, double x)
{
    const double digits = 1e-7 / (p * p); /* that S has, p being a float */
    return fmax((1 - p) / p - listed(c, x), digits);
}

/* R' there: S' from the entropy, without those that are listed. */
static double
slope_at_1(const struct layer_word *c, double p, double entropy)
{
    double of_all = (-log(p) - entropy) / p;
    for (int i = 0; i < RECORD_LISTED; i++)
        of_all += isinf(c->gap[i]) ? 0 : (double)c->gap[i] * exp(-(double)c->gap[i]);
    return of_all;
}

static void
fit(struct layer_word *c, const struct guess *warm, const struct guess *hot)
{
    const double p = (double)warm->confidence, r = others(c, p, 1), at_1 = log(r),
                 at_warm = log(others(c, (double)warm->annealed, warm_x)),
                 at_hot = log(others(c, (double)hot->annealed, hot_x));
    const double to_warm = (at_warm - at_1) / (warm_x - 1), to_hot = (at_hot - at_warm) / (hot_x - warm_x);
    double bend = (to_hot - to_warm) / (hot_x - 1), slope = to_warm + (1 - warm_x) * bend, twist = 0;
    if (r > 1e-5) {
        slope = slope_at_1(c, p, (double)warm->entropy) / r;
        const double bend_warm = (to_warm - slope) / (warm_x - 1);
        twist = (bend - bend_warm) / (hot_x - 1);
        bend = bend_warm;
    }
    c->fit[0] = (float)at_1;
    c->fit[1] = (float)slope;
    c->fit[2] = (float)bend;
    c->fit[3] = (float)twist;
}

#define BEND_AT_1 0.5 /* of what it is at x = 0: logits have a long upper tail. Measured on the bundled model */

/* Without the two other temperatures: through ln R(1), its slope there, and R(0), which is all tokens that are not listed; what
 * it bends by falls from x = 0 to 1. */
static void
fit_told(struct layer_word *c, const struct layer_told *told, uint32_t vocab)
{
    const double p = (double)told->confidence, r = others(c, p, 1), at_1 = log(r),
                 at_0 = log(vocab > 1 + RECORD_LISTED ? vocab - 1 - RECORD_LISTED : 1);
    double slope = at_1 - at_0, bend = 0;
    if (r > 1e-5) {
        slope = slope_at_1(c, p, (double)told->entropy) / r;
        bend = fmax(at_0 - at_1 + slope, 0); /* it is convex */
    }
    c->fit[0] = (float)at_1;
    c->fit[1] = (float)slope;
    const double twist = bend * (BEND_AT_1 - 1);
    c->fit[2] = (float)(bend + warm_x * twist);
    c->fit[3] = (float)twist;
}

/* The place of the next row's cells. */
static struct layer_word *
next_row(struct layer_record *r)
{
    if (r->n == RECORD_ROWS) {
        memmove(r->cells, r->cells + r->layers, (size_t)(RECORD_ROWS - 1) * r->layers * sizeof *r->cells);
        r->n--;
        r->first++;
    }
    return &r->cells[(size_t)r->n++ * r->layers];
}

static float
gap_of(float confidence, float p)
{
    return p > 0 ? logf(confidence / p) : INFINITY; /* also of NAN */
}

void
layer_record_add_told(struct layer_record *r, const struct layer_told *told, uint32_t vocab)
{
    struct layer_word *row = next_row(r);
    for (uint32_t l = 0; l < r->layers; l++) {
        struct layer_word *c = &row[l];
        c->agrees = told[l].agrees;
        c->confidence = told[l].confidence;
        for (int i = 0; i < RECORD_LISTED; i++)
            c->gap[i] = gap_of(c->confidence, told[l].top_p[i + 1]);
        fit_told(c, &told[l], vocab);
    }
}

void
layer_record_add(struct layer_record *r, const struct guess *warm, const struct guess *hot)
{
    struct layer_word *row = next_row(r);
    for (uint32_t l = 0; l < r->layers; l++) {
        struct layer_word *c = &row[l];
        c->agrees = warm[l].token == warm[r->layers - 1].token;
        c->confidence = warm[l].confidence;
        for (int i = 0; i < RECORD_LISTED; i++)
            c->gap[i] = gap_of(c->confidence, warm[l].top[i + 1] != TOKEN_NONE ? warm[l].top_p[i + 1] : 0);
        fit(c, &warm[l], &hot[l]);
    }
}

float
layer_record_annealed(const struct layer_word *c, float temperature)
{
    if (!(temperature > 1))
        return c->confidence;
    const double x = 1 / (double)temperature, d = x - 1;
    const double rest =
        (double)c->fit[0] + d * ((double)c->fit[1] + d * ((double)c->fit[2] + (x - warm_x) * (double)c->fit[3]));
    return (float)(1 / (1 + listed(c, x) + exp(rest)));
}
