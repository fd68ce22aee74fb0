#include "engine/training/eagle_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/training/blas.h"
#include "engine/training/eagle_internal.h"
#include "kernels/half.h"
#include "kernels/openmp.h"

/* ---- memory ---- */

static void
take_pass(struct blocks *b, const struct eagle_head *h, uint32_t rows, struct eagle_pass *p)
{
    const size_t n = rows, w = h->width, q = (size_t)h->heads * h->head_dim, kv = (size_t)h->kv_heads * h->head_dim;
    p->first = blocks_take(b, n + 1, sizeof *p->first);
    p->base = blocks_take(b, n, sizeof *p->base);
    p->parent = blocks_take(b, n, sizeof *p->parent);
    p->g = blocks_take(b, n * w, sizeof(float));
    p->pair = blocks_take(b, n * 2 * w, sizeof(float));
    p->q = blocks_take(b, n * q, sizeof(float));
    p->attention = blocks_take(b, n * q, sizeof(float));
    p->kv = blocks_take(b, n * 2 * kv, sizeof(float));
    p->x = blocks_take(b, n * w, sizeof(float));
    p->gate_up = blocks_take(b, n * 2 * h->ffn, sizeof(float));
    p->h = blocks_take(b, n * w, sizeof(float));
    p->inverse_g = blocks_take(b, n, sizeof(float));
    p->inverse_x = blocks_take(b, n, sizeof(float));
    p->inverse_h = blocks_take(b, n, sizeof(float));
    p->slope_h = blocks_take(b, n * w, sizeof(float));
    p->slope_kv = blocks_take(b, n * 2 * kv, sizeof(float));
}

static void
take_all(struct blocks *b, struct eagle_training *t, const struct eagle_head *h, const struct eagle_options *o)
{
    const size_t n = o->rows, w = h->width, q = (size_t)h->heads * h->head_dim;
    for (uint32_t s = 0; s < EAGLE_STEPS; s++)
        take_pass(b, h, o->rows, &t->batch.pass[s]);
    t->batch.start = blocks_take(b, n + 1, sizeof *t->batch.start);
    adam_open(&t->adam, h->n_values, b);
    t->gradient = blocks_take(b, h->n_values, sizeof(float));
    t->output = blocks_take(b, h->target_vocab, sizeof *t->output);
    t->rotation = blocks_take(b, ((size_t)o->window + EAGLE_STEPS) * h->head_dim, sizeof(float));
    t->features = blocks_take(b, n * h->features, sizeof(float));
    t->pairs = blocks_take(b, n * 2 * w, sizeof(float));
    t->normed = blocks_take(b, n * w, sizeof(float));
    t->active = blocks_take(b, n * h->ffn, sizeof(float));
    t->z = blocks_take(b, n * (h->vocab > h->ffn ? h->vocab : h->ffn), sizeof(float));
    t->final = blocks_take(b, n * w, sizeof(float));
    t->wanted = blocks_take(b, n * h->vocab, sizeof(float));
    t->entropy = blocks_take(b, n, sizeof *t->entropy);
    t->wanted_at = blocks_take(b, n, sizeof *t->wanted_at);
    t->right = blocks_take(b, n * EAGLE_STEPS, sizeof *t->right);
    t->slope_x = blocks_take(b, n * w, sizeof(float));
    t->slope_q = blocks_take(b, n * q, sizeof(float));
    t->slope_attention = blocks_take(b, n * q, sizeof(float));
    t->slope_pair = blocks_take(b, n * 2 * w, sizeof(float));
    t->slope_gate_up = blocks_take(b, n * 2 * h->ffn, sizeof(float));
    t->slope_g = blocks_take(b, n * w, sizeof(float));
}

uint64_t
eagle_training_bytes(const struct eagle_head *h, const struct eagle_options *o)
{
    struct eagle_training none = {0};
    struct blocks counted = {.counting = true};
    const uint64_t threads = o->threads > 0 ? o->threads : 1;
    take_all(&counted, &none, h, o);
    return counted.bytes + threads * 2 * o->window * o->window * sizeof(float);
}

static void
set_rotation(struct eagle_training *t)
{
    const uint32_t dim = t->head->head_dim, half = dim / 2;
    for (uint32_t p = 0; p < t->options.window + EAGLE_STEPS; p++)
        for (uint32_t i = 0; i < half; i++) {
            const double angle = p * pow((double)t->head->rope_base, -2.0 * i / dim);
            t->rotation[(size_t)p * dim + i] = (float)cos(angle);
            t->rotation[(size_t)p * dim + half + i] = (float)sin(angle);
        }
}

bool
eagle_training_open(struct eagle_training **out, struct eagle_head *head, const struct model_desc *target,
                    const struct lens *lens, const struct eagle_options *options, struct err *err)
{
    *out = NULL;
    const uint32_t threads = blas_callers(options->threads > 0 ? options->threads : 1, err);
    if (threads == 0)
        return false;
    struct eagle_training *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory for training an EAGLE-3 head");
    t->head = head;
    t->target = target;
    t->lens = lens;
    t->options = *options;
    t->options.threads = threads;
    t->isa = cpu_isa_choose(NULL, NULL); /* there is always one */
    take_all(&t->blocks, t, head, &t->options);
    t->attention = eagle_attention_open(head, t->options.window, threads, &t->blocks);
    if (t->blocks.starved) {
        err_set(err, ERR_WORK, "out of memory: training takes %.1f GB; use a smaller --batch or --draft-vocab",
                (double)eagle_training_bytes(head, &t->options) * 1e-9);
        eagle_training_close(t);
        return false;
    }
    for (uint32_t v = 0; v < head->target_vocab; v++)
        t->output[v] = -1;
    for (uint32_t i = 0; i < head->vocab; i++)
        t->output[head->tokens[i]] = (int32_t)i;
    set_rotation(t);
    *out = t;
    return true;
}

void
eagle_training_close(struct eagle_training *t)
{
    if (t == NULL)
        return;
    blocks_free(&t->blocks);
    free(t);
}

/* ---- rows of a step ---- */

/* Lists the rows of a step, and counts the bases that reach it. */
static void
list_rows(struct eagle_training *t, uint32_t step, struct eagle_score *score)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const bool *right = step > 0 ? t->right + (size_t)(step - 1) * t->options.rows : NULL;
    p->n = 0;
    for (uint32_t w = 0; w < b->n; w++) {
        const struct eagle_window *of = &b->windows[w];
        const uint32_t from = step > 0 ? p[-1].first[w] : b->start[w],
                       to = step > 0 ? p[-1].first[w + 1] : b->start[w + 1];
        p->first[w] = p->n;
        for (uint32_t i = from; i < to; i++) {
            const uint32_t base = step > 0 ? p[-1].base[i] : i, predicted = base - b->start[w] + 2 + step;
            if (predicted >= of->n || predicted < of->first)
                continue;
            score->reached[step] += step == 0 || right[i];
            if (t->output[of->tokens[predicted]] < 0)
                continue;
            p->base[p->n] = base;
            p->parent[p->n++] = i;
        }
    }
    p->first[b->n] = p->n;
}

/* Turns a row of the lens' products into a distribution; returns its entropy in nats. The operations on logits are
 * those of kernels/cpu/head.c. */
static double
finish_wanted(const struct eagle_training *t, float *p)
{
    const struct lens *lens = t->lens;
    const uint32_t n = lens->vocab;
    const float scale = form_factor(lens->scale);
    for (uint32_t v = 0; v < n; v++)
        p[v] = (p[v] + (lens->bias != NULL ? lens->bias[v] : 0)) * scale;
    for (uint32_t v = 0; v < n && lens->cap > 0; v++)
        p[v] = lens->cap * tanhf(p[v] / lens->cap);
    const float most = t->isa->most(p, n), sum = t->isa->exp_sum(p, n, most);
    double entropy = 0;
    for (uint32_t v = 0; v < n; v++) {
        p[v] /= sum;
        entropy -= p[v] > 0 ? (double)p[v] * (double)logf(p[v]) : 0;
    }
    return entropy;
}

/* The target's distributions over S for all tokens that the first step's rows, or later ones, are compared with: those
 * before a predicted token of S. */
static void
find_wanted(struct eagle_training *t)
{
    const struct eagle_batch *b = &t->batch;
    const struct eagle_head *h = t->head;
    size_t n = 0;
    for (uint32_t w = 0; w < b->n; w++) {
        const struct eagle_window *of = &b->windows[w];
        for (uint32_t i = of->first > 1 ? of->first - 1 : 1; i + 1 < of->n; i++) {
            if (t->output[of->tokens[i + 1]] < 0)
                continue;
            const uint16_t *state = of->states + ((size_t)i * (h->n_features + 1) + h->n_features) * h->width;
            float *to = t->final + n * h->width;
            for (uint32_t k = 0; k < h->width; k++)
                to[k] = bf16_to_f32(state[k]);
            final_norm_apply(&t->lens->norm, to, to);
            t->wanted_at[b->start[w] + i] = (uint32_t)n++;
        }
    }
    eagle_apply(t, n, h->vocab, h->width, t->final, t->lens->head, t->wanted);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < n; i++)
        t->entropy[i] = finish_wanted(t, t->wanted + i * h->vocab);
}

/* Compares the rows' predictions with the target's distributions. t->z becomes the loss's gradient by the logits. */
static void
compare(struct eagle_training *t, uint32_t step, float weight, token_t *drafts, struct eagle_score *score)
{
    const struct eagle_batch *b = &t->batch;
    const struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    bool *right = t->right + (size_t)step * t->options.rows;
    double loss = 0, accepted = 0;
    const float share = weight / (float)(p->n > 0 ? p->n : 1);
    PARALLEL(omp parallel for num_threads(t->options.threads) reduction(+ : loss, accepted))
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t w = eagle_window_of(p, (uint32_t)i), at = p->base[i] - b->start[w];
        const size_t row = t->wanted_at[p->base[i] + 1 + step];
        float *q = t->z + i * h->vocab;
        const float *target = t->wanted + row * h->vocab, most = t->isa->most(q, h->vocab);
        double mean = 0; /* KL = sum p log p - sum p (z - max) + log sum exp(z - max) */
        uint32_t best = h->vocab;
        for (uint32_t v = 0; v < h->vocab; v++) {
            mean += (double)target[v] * (double)(q[v] - most);
            best = best == h->vocab && !(q[v] < most) ? v : best;
        }
        const float sum = t->isa->exp_sum(q, h->vocab, most);
        loss += log((double)sum) - mean - t->entropy[row];
        for (uint32_t v = 0; v < h->vocab; v++)
            q[v] = (q[v] / sum - target[v]) * share;
        right[i] = (step == 0 || right[p->parent[i] - (size_t)t->options.rows]) && best < h->vocab &&
                   h->tokens[best] == b->windows[w].tokens[at + 2 + step];
        accepted += right[i];
        if (drafts != NULL && best < h->vocab)
            drafts[(size_t)p->base[i] * EAGLE_STEPS + step] = h->tokens[best];
    }
    score->bases[step] += p->n;
    score->loss[step] += loss;
    score->accepted[step] += accepted;
}

void
eagle_loss(struct eagle_training *t, const struct eagle_window *windows, size_t n, uint32_t steps, float *gradient,
           token_t *drafts, struct eagle_score *score)
{
    struct eagle_batch *b = &t->batch;
    const struct eagle_head *h = t->head;
    b->n = n;
    b->windows = windows;
    b->tokens = 0;
    for (size_t w = 0; w < n; w++) {
        b->start[w] = b->tokens;
        b->tokens += windows[w].n;
    }
    b->start[n] = b->tokens;
    for (size_t i = 0; drafts != NULL && i < (size_t)b->tokens * EAGLE_STEPS; i++)
        drafts[i] = TOKEN_NONE;
    if (gradient != NULL)
        memset(gradient, 0, h->n_values * sizeof *gradient);
    find_wanted(t);
    eagle_begin_batch(t);
    float weight = 1;
    for (uint32_t s = 0; s < steps && !eagle_cancelled(t); s++, weight *= EAGLE_FADE) {
        list_rows(t, s, score);
        eagle_run_step(t, s);
        if (eagle_cancelled(t))
            return;
        compare(t, s, weight, drafts, score);
        if (gradient != NULL)
            eagle_head_back(t, s, gradient);
    }
    if (gradient != NULL)
        eagle_back(t, steps, gradient);
}

void
eagle_training_step(struct eagle_training *t, const struct eagle_window *windows, size_t n, uint32_t steps, float rate,
                    struct eagle_score *score)
{
    const struct eagle_head *h = t->head;
    const size_t threads = t->options.threads;
    eagle_loss(t, windows, n, steps, t->gradient, NULL, score);
    if (eagle_cancelled(t) || t->batch.pass[0].n == 0)
        return;
    double squares = 0;
    for (size_t i = 0; i < h->n_values; i++)
        squares += (double)t->gradient[i] * (double)t->gradient[i];
    const float scale = squares > 1 ? (float)(1 / sqrt(squares)) : 1;
    for (size_t i = 0; i < h->n_values && scale < 1; i++)
        t->gradient[i] *= scale;
    adam_begin(&t->adam);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < threads; i++) {
        const size_t from = h->n_values * i / threads, to = h->n_values * (i + 1) / threads;
        adam_move(&t->adam, from, to - from, h->values + from, t->gradient + from, rate, 0, NULL);
    }
}
