#include "engine/training/head_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/training/adam.h"
#include "engine/training/blas.h"
#include "engine/training/ridge.h"
#include "kernels/cpu/isa.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

bool
lens_open(struct lens *lens, const struct model_desc *d, const token_t *ids, uint32_t n, struct err *err)
{
    struct final_norm norm;
    const uint32_t vocab = ids != NULL ? n : d->vocab;
    if (!final_norm_open(&norm, d, err))
        return false;
    const bool biased = tensor_present(&d->head_bias);
    struct blocks blocks = {0};
    float *head = blocks_take(&blocks, (size_t)vocab * d->width, sizeof *head),
          *bias = biased ? blocks_take(&blocks, d->vocab, sizeof *bias) : NULL;
    if (blocks.starved) {
        blocks_free(&blocks);
        final_norm_free(&norm);
        return err_set(err, ERR_WORK, "out of memory: the head in F32 takes %.1f GB",
                       (double)vocab * d->width * sizeof *head * 1e-9);
    }
    for (uint32_t v = 0; v < vocab; v++)
        tensor_row(&d->head, ids != NULL ? (uint32_t)ids[v] : v, head + (size_t)v * d->width);
    if (biased)
        tensor_row(&d->head_bias, 0, bias);
    *lens = (struct lens){.blocks = blocks,
                          .width = d->width,
                          .vocab = vocab,
                          .norm = norm,
                          .head = head,
                          .bias = bias,
                          .ids = ids,
                          .scale = d->form.logit_scale,
                          .cap = d->form.logit_cap};
    return true;
}

void
lens_free(struct lens *lens)
{
    final_norm_free(&lens->norm);
    blocks_free(&lens->blocks);
    *lens = (struct lens){.width = 0};
}

/* ---- losses ---- */

struct head_work {
    const struct cpu_isa *isa;
    float *shifted; /* (n, width) h + A h + b, or h */
    float *inverse; /* (n) 1 / rms */
    float *normed;  /* (n, width) what W multiplies */
    float *slope;   /* (n, width) d loss / d normed, then d shifted */
    float *z;       /* (n, vocab) logits, then d loss / d z */
    float *bend;    /* (n, vocab) d z / d (W normed), where logits are capped; else NULL */
};

struct head_work *
head_work_open(const struct lens *lens, size_t n, struct blocks *b)
{
    struct head_work *w = blocks_take(b, 1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->isa = cpu_isa_choose(NULL, NULL); /* there is always one */
    w->shifted = blocks_take(b, n * lens->width, sizeof *w->shifted);
    w->inverse = blocks_take(b, n, sizeof *w->inverse);
    w->normed = blocks_take(b, n * lens->width, sizeof *w->normed);
    w->slope = blocks_take(b, n * lens->width, sizeof *w->slope);
    w->z = blocks_take(b, n * lens->vocab, sizeof *w->z);
    w->bend = lens->cap > 0 ? blocks_take(b, n * lens->vocab, sizeof *w->bend) : NULL;
    return b->starved ? NULL : w;
}

/* C (m, n) = A B + beta C, row-major, A (m, k) or its transpose, B (k, n) or its transpose without gaps. */
static void
product(const struct lens *lens, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
        size_t lda, const float *b, float beta, float *c)
{
    struct host_product p = blas_packed(transpose_a, transpose_b, m, n, k, a, b, beta, c);
    p.stride_a = lda;
    blas_multiply(lens->blas, &p);
}

/* w->normed = shifted / rms(shifted) ∘ norm; keeps 1 / rms. */
static void
normalise(const struct lens *lens, struct head_work *w, size_t n)
{
    const size_t width = lens->width;
    for (size_t i = 0; i < n; i++)
        w->inverse[i] = final_norm_apply(&lens->norm, w->shifted + i * width, w->normed + i * width);
}

/* The token of a row of the lens. */
static token_t
token_of(const struct lens *lens, size_t row)
{
    return lens->ids != NULL ? lens->ids[row] : (token_t)row;
}

/* The model's operations on logits after the matrix: bias, scale, cap, as in kernels/cpu/head.c. */
static void
finish_logits(const struct lens *lens, struct head_work *w, float *z, size_t n)
{
    const float scale = form_factor(lens->scale);
    for (size_t i = 0; i < n * lens->vocab && (lens->bias != NULL || scale < 1 || scale > 1); i++)
        z[i] = (z[i] + (lens->bias != NULL ? lens->bias[token_of(lens, i % lens->vocab)] : 0)) * scale;
    for (size_t i = 0; i < n * lens->vocab && lens->cap > 0; i++) {
        const float turned = tanhf(z[i] / lens->cap);
        z[i] = lens->cap * turned;
        w->bend[i] = scale * (1 - turned * turned);
    }
}

/* Logits become exp(z - max) in place. */
struct softmax {
    float max, sum;
    token_t best; /* the lowest among equals */
};

static struct softmax
softmax(const struct head_work *w, float *z, size_t n)
{
    struct softmax s = {.max = w->isa->most(z, n)};
    while ((size_t)s.best < n - 1 && z[s.best] != s.max)
        s.best++;
    s.sum = w->isa->exp_sum(z, n, s.max);
    return s;
}

static void
gather(const struct lens *lens, struct head_work *w, const float *hidden, size_t stride, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(w->shifted + i * lens->width, hidden + i * stride, lens->width * sizeof *hidden);
}

/* The last layer's logits (n, vocab). */
static void
final_logits(const struct lens *lens, struct head_work *w, const float *hidden, size_t stride, size_t n, float *z)
{
    gather(lens, w, hidden, stride, n);
    normalise(lens, w, n);
    product(lens, false, true, n, lens->vocab, lens->width, w->normed, lens->width, lens->head, 0, z);
    finish_logits(lens, w, z, n);
}

void
head_targets(const struct lens *lens, struct head_work *w, const float *hidden, size_t stride, size_t n,
             struct head_target *target)
{
    final_logits(lens, w, hidden, stride, n, w->z);
    for (size_t i = 0; i < n; i++) {
        const struct softmax s = softmax(w, w->z + i * lens->vocab, lens->vocab);
        target[i] = (struct head_target){.log_sum = s.max + logf(s.sum), .choice = s.best};
    }
}

void
head_final(const struct lens *lens, struct head_work *w, const struct head_batch *batch, float *final, float *mass,
           double *inside)
{
    const size_t vocab = lens->vocab;
    final_logits(lens, w, batch->hidden, batch->stride, batch->n, final);
    for (size_t i = 0; i < batch->n; i++) {
        float *p = final + i * vocab, *z = w->z + i * vocab;
        double sum = 0, mean = 0; /* of p, of log p */
        memcpy(z, p, vocab * sizeof *p);
        w->isa->exp_sum(p, vocab, batch->target[i].log_sum);
        for (size_t v = 0; v < vocab; v++) {
            sum += (double)p[v];
            mean += (double)p[v] * (double)(z[v] - batch->target[i].log_sum);
        }
        mass[i] = (float)sum;
        inside[i] = sum > 0 ? mean - sum * log(sum) : 0;
    }
}

static void
take_mean_off(float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    for (size_t i = 0; i < n; i++)
        x[i] -= (float)(sum / (double)n);
}

/* d loss / d shifted from d loss / d normed, in w->slope. With x = shifted, r = 1/rms(x), y = r x ∘ g, s = dy ∘ g:
 * dx = r s - r³ x (x·s) / width. LayerNorm has x less its mean in place of x, and takes the mean off dx, too. */
static void
back_through_norm(const struct lens *lens, struct head_work *w, size_t n)
{
    const size_t width = lens->width;
    for (size_t i = 0; i < n; i++) {
        const float r = w->inverse[i];
        float *x = w->shifted + i * width, *s = w->slope + i * width;
        double dot = 0;
        if (lens->norm.layer_norm)
            take_mean_off(x, width);
        for (size_t j = 0; j < width; j++) {
            s[j] *= lens->norm.weight[j];
            dot += (double)x[j] * (double)s[j];
        }
        const float back = (float)(dot * (double)r * (double)r * (double)r / (double)width);
        for (size_t j = 0; j < width; j++)
            s[j] = r * s[j] - back * x[j];
        if (lens->norm.layer_norm)
            take_mean_off(s, width);
    }
}

struct head_score
head_loss(const struct lens *lens, enum head_kind kind, const struct head_weights *weights,
          const struct head_batch *batch, struct head_work *w, struct head_weights *gradient)
{
    const size_t n = batch->n, width = lens->width, vocab = lens->vocab;
    gather(lens, w, batch->hidden, batch->stride, n);
    if (kind == HEAD_AFFINE) {
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < width; j++)
                w->shifted[i * width + j] += weights->b[j];
        product(lens, false, true, n, width, width, batch->hidden, batch->stride, weights->a, 1, w->shifted);
    }
    normalise(lens, w, n);
    const float *head = kind == HEAD_FULL ? weights->weight : lens->head;
    product(lens, false, true, n, vocab, width, w->normed, width, head, 0, w->z);
    finish_logits(lens, w, w->z, n);

    struct head_score score = {0, 0};
    const float share = 1 / (float)n;
    for (size_t i = 0; i < n; i++) {
        float *q = w->z + i * vocab;
        const float *p = batch->final + i * vocab;
        const float below = w->isa->most(q, vocab);
        const float mass = batch->mass[i];
        double mean = 0; /* the loss is inside - sum p (z - max) + p(S) log sum exp(z - max) */
        for (size_t v = 0; v < vocab; v++)
            mean += (double)p[v] * (double)(q[v] - below);
        const struct softmax s = softmax(w, q, vocab);
        score.loss += (batch->inside[i] - mean + (double)mass * log((double)s.sum)) / (double)n;
        score.agreement += token_of(lens, (size_t)s.best) == batch->target[i].choice ? 1 / (double)n : 0;
        const float scale = mass / s.sum;
        const float *bend = w->bend != NULL ? w->bend + i * vocab : NULL;
        for (size_t v = 0; v < vocab && gradient != NULL; v++)
            q[v] = (q[v] * scale - p[v]) * share *
                   (bend != NULL ? bend[v] : form_factor(lens->scale)); /* d loss / d (W x) */
    }
    if (gradient == NULL)
        return score;
    if (kind == HEAD_FULL) {
        product(lens, true, false, vocab, width, n, w->z, vocab, w->normed, 0, gradient->weight);
    } else if (kind == HEAD_AFFINE) {
        product(lens, false, false, n, width, vocab, w->z, vocab, head, 0, w->slope);
        back_through_norm(lens, w, n);
        struct host_product p = blas_packed(true, false, width, width, n, w->slope, batch->hidden, 0, gradient->a);
        p.stride_b = batch->stride;
        blas_multiply(lens->blas, &p);
        memset(gradient->b, 0, width * sizeof *gradient->b);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < width; j++)
                gradient->b[j] += w->slope[i * width + j];
    }
    return score;
}

#define TARGETS 64 /* rows whose logits of all tokens are there at a time */

struct thread {
    struct head_work *work, *whole; /* of the lens, and for targets */
    struct head_weights gradient;
    float *values; /* the gradient's */
};

struct head_training {
    struct blocks blocks; /* the memory of all the following */
    struct exit_heads *heads;
    const struct lens *lens, *whole;
    struct head_training_options options;
    struct adam adam; /* as heads->values */
    float *final;     /* (batch, vocab) */
    float *mass;      /* (batch) */
    double *inside;   /* (batch) */
    struct thread *threads;
};

uint64_t
head_training_bytes(enum head_kind kind, size_t n_layers, uint32_t width, uint32_t vocab, uint32_t whole,
                    const struct head_training_options *o)
{
    const uint64_t layer = kind == HEAD_FULL ? (uint64_t)vocab * width : (uint64_t)width * width + width;
    const uint64_t threads = o->threads > 0 ? o->threads : 1,
                   work = o->batch * (3 * (uint64_t)width + vocab) + TARGETS * (3 * (uint64_t)width + whole);
    return sizeof(float) * (3 * layer * n_layers + threads * (layer + work) + o->batch * (uint64_t)vocab);
}

bool
head_training_open(struct head_training **out, struct exit_heads *heads, const struct lens *lens,
                   const struct lens *whole, const struct head_training_options *options, struct err *err)
{
    *out = NULL;
    const uint32_t threads = blas_callers(options->threads > 0 ? options->threads : 1, err);
    if (threads == 0)
        return false;
    struct head_training *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory for training heads");
    t->heads = heads;
    t->lens = lens;
    t->whole = whole;
    t->options = *options;
    t->options.threads = threads;
    struct blocks *b = &t->blocks;
    adam_open(&t->adam, heads->n_values, b);
    t->final = blocks_take(b, t->options.batch * lens->vocab, sizeof *t->final);
    t->mass = blocks_take(b, t->options.batch, sizeof *t->mass);
    t->inside = blocks_take(b, t->options.batch, sizeof *t->inside);
    t->threads = blocks_take(b, t->options.threads, sizeof *t->threads);
    for (uint32_t i = 0; i < t->options.threads && !b->starved; i++) {
        struct thread *own = &t->threads[i];
        own->work = head_work_open(lens, t->options.batch, b);
        own->whole = head_work_open(whole, TARGETS, b);
        own->values = blocks_take(b, heads->per_layer, sizeof *own->values);
        if (heads->kind == HEAD_FULL)
            own->gradient.weight = own->values;
        else if (own->values != NULL)
            own->gradient =
                (struct head_weights){.a = own->values, .b = own->values + (size_t)lens->width * lens->width};
    }
    if (b->starved) {
        err_set(err, ERR_WORK,
                "out of memory: training takes %.1f GB; use --kind affine, fewer --threads or a smaller --batch",
                (double)head_training_bytes(heads->kind, heads->n_trained, lens->width, lens->vocab, whole->vocab,
                                            &t->options) *
                    1e-9);
        head_training_close(t);
        return false;
    }
    for (size_t i = 0; i < heads->n_trained && heads->kind == HEAD_FULL; i++)
        memcpy(heads->values + i * heads->per_layer, lens->head, heads->per_layer * sizeof *lens->head);
    *out = t;
    return true;
}

void
head_training_close(struct head_training *t)
{
    if (t == NULL)
        return;
    blocks_free(&t->blocks);
    free(t);
}

static size_t
stride(const struct head_training *t)
{
    return (t->heads->n_trained + 1) * t->lens->width;
}

static struct head_rows
rows_from(const struct head_training *t, const struct head_rows *rows, size_t at)
{
    return (struct head_rows){rows->hidden + at * stride(t), rows->target + at};
}

/* What layer i of the trained ones has to learn from rows whose final distributions were found; i == n_trained: the
 * last layer itself. */
static struct head_batch
batch_of(const struct head_training *t, size_t i, const struct head_rows *rows, size_t n)
{
    return (struct head_batch){.n = n,
                               .hidden = rows->hidden + i * t->lens->width,
                               .stride = stride(t),
                               .final = t->final,
                               .mass = t->mass,
                               .inside = t->inside,
                               .target = rows->target};
}

static bool
cancelled(const struct head_training *t)
{
    return t->options.cancel != NULL && atomic_load(t->options.cancel);
}

static void
find_final(struct head_training *t, const struct head_rows *rows, size_t n)
{
    const size_t threads = t->options.threads;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < threads; i++) {
        const size_t from = n * i / threads, to = n * (i + 1) / threads;
        const struct head_rows part = rows_from(t, rows, from);
        const struct head_batch last = batch_of(t, t->heads->n_trained, &part, to - from);
        if (from < to && !cancelled(t))
            head_final(t->lens, t->threads[i].work, &last, t->final + from * t->lens->vocab, t->mass + from,
                       t->inside + from);
    }
}

void
head_training_targets(struct head_training *t, const struct head_rows *rows, size_t n)
{
    PARALLEL(omp parallel for schedule(dynamic) num_threads(t->options.threads))
    for (size_t at = 0; at < n; at += TARGETS) {
        const struct head_rows part = rows_from(t, rows, at);
        const struct head_batch last = batch_of(t, t->heads->n_trained, &part, n - at < TARGETS ? n - at : TARGETS);
        if (!cancelled(t))
            head_targets(t->whole, t->threads[openmp_thread()].whole, last.hidden, last.stride, last.n, part.target);
    }
}

bool
head_training_start(struct head_training *t, const struct head_rows *rows, size_t n, struct err *err)
{
    atomic_bool failed = false;
    PARALLEL(omp parallel for schedule(dynamic) num_threads(t->options.threads))
    for (size_t i = 0; i < t->heads->n_trained; i++) {
        const struct head_weights *w = exit_heads_of(t->heads, i);
        const float *last = rows->hidden + t->heads->n_trained * t->lens->width;
        if (!cancelled(t) && !ridge_fit(t->lens->blas, rows->hidden + i * t->lens->width, last, stride(t), n,
                                        t->lens->width, t->options.cancel, w->a, w->b))
            atomic_store(&failed, true);
    }
    return !failed || err_set(err, ERR_WORK, "out of memory for the first heads; use fewer --threads");
}

void
head_training_step(struct head_training *t, const struct head_rows *rows, size_t n, float rate,
                   struct head_score *scores)
{
    find_final(t, rows, n);
    adam_begin(&t->adam);
    PARALLEL(omp parallel for schedule(dynamic) num_threads(t->options.threads))
    for (size_t i = 0; i < t->heads->n_trained; i++) {
        struct thread *own = &t->threads[openmp_thread()];
        const struct head_batch batch = batch_of(t, i, rows, n);
        const size_t n_values = t->heads->per_layer, first = i * n_values;
        if (cancelled(t))
            continue;
        scores[i] = head_loss(t->lens, t->heads->kind, exit_heads_of(t->heads, i), &batch, own->work, &own->gradient);
        adam_move(&t->adam, first, n_values, t->heads->values + first, own->values, rate, t->options.decay,
                  t->heads->kind == HEAD_FULL ? t->lens->head : NULL);
    }
}

void
head_training_score(struct head_training *t, bool lens, const struct head_rows *rows, size_t n, struct head_score *sums)
{
    for (size_t done = 0; done < n && !cancelled(t);) {
        const size_t part = n - done < t->options.batch ? n - done : t->options.batch;
        const struct head_rows these = rows_from(t, rows, done);
        find_final(t, &these, part);
        PARALLEL(omp parallel for schedule(dynamic) num_threads(t->options.threads))
        for (size_t i = 0; i < t->heads->n_trained; i++) {
            const struct head_batch batch = batch_of(t, i, &these, part);
            if (cancelled(t))
                continue;
            const struct head_score s =
                head_loss(t->lens, lens ? HEAD_LENS : t->heads->kind, exit_heads_of(t->heads, i), &batch,
                          t->threads[openmp_thread()].work, NULL);
            sums[i].loss += s.loss * (double)part;
            sums[i].agreement += s.agreement * (double)part;
        }
        done += part;
    }
}
