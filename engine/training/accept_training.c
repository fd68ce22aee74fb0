#include "engine/training/accept_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/model/model.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/training/adam.h"
#include "engine/training/blas.h"
#include "kernels/cpu/sampling.h"
#include "kernels/openmp.h"

struct accept_response { /* a prompt at hand */
    struct accept_data *data;
    struct accept_prompt *prompt;
    uint64_t seed;
    uint32_t n_response;           /* of the response */
    bool over;                     /* it has ended */
    token_t *text;                 /* (prompt + response) what is read */
    token_t *response, *candidate; /* (response): X, Y */
    bool *mixed;                   /* (response): Z_i is X_i */
    float *label;                  /* (response): a */
    float *p;                      /* (response, vocab) the target's distribution before each X */
};

struct accept_data {
    struct blocks blocks; /* the memory of all the following */
    struct accept_data_options options;
    struct reader target, draft;
    uint32_t vocab;                    /* ids that both have */
    struct final_norm norm;            /* the draft's */
    float *z, *q;                      /* (the larger vocabulary), (vocab) */
    uint32_t *order;                   /* (vocab) scratch */
    struct accept_response *sequences; /* (options.sequences) */
};

static void
open_sequence(struct accept_data *a, struct accept_response *l)
{
    const uint32_t prompt = a->options.prompt, response = a->options.response;
    l->data = a;
    l->text = blocks_take(&a->blocks, prompt + response, sizeof *l->text);
    l->response = blocks_take(&a->blocks, response, sizeof *l->response);
    l->candidate = blocks_take(&a->blocks, response, sizeof *l->candidate);
    l->mixed = blocks_take(&a->blocks, response, sizeof *l->mixed);
    l->label = blocks_take(&a->blocks, response, sizeof *l->label);
    l->p = blocks_take(&a->blocks, (size_t)response * a->vocab, sizeof *l->p);
}

static bool
make_room(struct accept_data *a)
{
    const uint32_t more = a->target.vocab > a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->vocab = a->target.vocab < a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->z = blocks_take(&a->blocks, more, sizeof *a->z);
    a->q = blocks_take(&a->blocks, a->vocab, sizeof *a->q);
    a->order = blocks_take(&a->blocks, a->vocab, sizeof *a->order);
    a->sequences = blocks_take(&a->blocks, a->options.sequences, sizeof *a->sequences);
    for (uint32_t i = 0; i < a->options.sequences && !a->blocks.starved; i++)
        open_sequence(a, &a->sequences[i]);
    return !a->blocks.starved;
}

bool
accept_data_open(struct accept_data **out, const struct engine *engine, const struct accept_data_options *options,
                 const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct accept_data *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_set(err, ERR_WORK, "out of memory reading responses");
    const uint32_t ctx = options->prompt + options->response, sequences = options->sequences;
    a->options = *options;
    bool ok = reader_open(&a->target, engine, READS_TARGET, ctx, sequences, cancel, err) &&
              reader_open(&a->draft, engine, READS_DRAFT, ctx, sequences, cancel, err) &&
              final_norm_open(&a->norm, &a->draft.model->desc, err);
    ok = ok && (make_room(a) ||
                err_set(err, ERR_WORK, "out of memory for %u responses of %u tokens; ask for fewer or shorter ones",
                        (unsigned)sequences, (unsigned)options->response));
    if (!ok) {
        accept_data_close(a);
        return false;
    }
    *out = a;
    return true;
}

void
accept_data_close(struct accept_data *a)
{
    if (a == NULL)
        return;
    reader_close(&a->target);
    reader_close(&a->draft);
    final_norm_free(&a->norm);
    blocks_free(&a->blocks);
    free(a);
}

/* ---- prompts ---- */

static struct rng_key
key_of(const struct accept_response *l, uint32_t pos, enum rng_purpose purpose)
{
    return (struct rng_key){.seed = l->seed, .pos = pos, .purpose = purpose};
}

/* The target has read all of the text: draws the next X from its distribution. */
static bool
respond(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct accept_response *l = user;
    struct accept_data *a = l->data;
    const uint32_t n = (uint32_t)l->prompt->n + l->n_response;
    if (at + 1 < n)
        return true;
    float *p = l->p + (size_t)l->n_response * a->vocab;
    const struct rng_key key = key_of(l, n, RNG_BONUS);
    if (!reader_logits(r, slot, a->z))
        return false;
    sampling_dist(a->z, a->vocab, &a->options.sampling, p, a->order);
    l->response[l->n_response++] = l->text[n] = sampling_draw(p, a->vocab, &key, NULL, 0);
    l->over = l->n_response == a->options.response || tokenizer_is_end(r->model->tokenizer, l->text[n]);
    return true;
}

/* The draft model has read text[at], the prompt's last or X_i: the next candidate, and its label. */
static bool
propose(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct accept_response *l = user;
    struct accept_data *a = l->data;
    if (at + 1 < l->prompt->n)
        return true;
    const uint32_t i = at + 1 - (uint32_t)l->prompt->n;
    const struct rng_key key = key_of(l, at + 1, RNG_DRAFT);
    if (!reader_logits(r, slot, a->z))
        return false;
    sampling_dist(a->z, a->vocab, &a->options.sampling, a->q, a->order);
    const token_t y = sampling_draw(a->q, a->vocab, &key, NULL, 0);
    const float ratio = l->p[(size_t)i * a->vocab + (size_t)y] / a->q[y];
    l->candidate[i] = y;
    l->label[i] = ratio < 1 ? ratio : 1;
    return true;
}

/* It has read text[at] = Z_i: where that is a candidate, norm(h) and the label go out. */
static bool
take(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct accept_response *l = user;
    struct accept_prompt *to = l->prompt;
    const uint32_t i = at - (uint32_t)to->n;
    float *x = to->x + to->rows * r->width;
    if (l->mixed[i])
        return true;
    if (!context_read_hidden(r->context, slot, r->layers, x))
        return false;
    final_norm_apply(&l->data->norm, x, x);
    to->label[to->rows++] = l->label[i];
    return true;
}

/* Fills texts with the text of each sequence except its last `less` tokens, and returns their number. With `alive`,
 * sequences whose response has ended are left out. */
static size_t
texts_of(struct accept_data *a, size_t n, uint32_t less, bool alive, struct reader_text *texts)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct accept_response *l = &a->sequences[i];
        if (!alive || !l->over)
            texts[count++] = (struct reader_text){
                .sequence = i, .tokens = l->text, .to = (uint32_t)l->prompt->n + l->n_response - less, .user = l};
    }
    return count;
}

static void
mix(struct accept_response *l)
{
    for (uint32_t i = 0; i < l->n_response; i++) {
        const uint32_t pos = (uint32_t)l->prompt->n + i;
        const struct rng_key key = key_of(l, pos, RNG_ACCEPT);
        l->mixed[i] = rng_uniform(&key) < l->data->options.mixing;
        l->text[pos] = l->mixed[i] ? l->response[i] : l->candidate[i];
    }
}

bool
accept_data_prompts(struct accept_data *a, struct accept_prompt *prompts, size_t n, struct err *err)
{
    struct reader_text texts[READER_SEQUENCES];
    for (uint32_t i = 0; i < n; i++) {
        struct accept_response *l = &a->sequences[i];
        l->prompt = &prompts[i];
        l->prompt->rows = 0;
        l->seed = splitmix64_mix(a->options.seed + prompts[i].index * SPLITMIX64_STEP);
        l->n_response = 0;
        l->over = false;
        memcpy(l->text, prompts[i].tokens, prompts[i].n * sizeof *l->text);
        reader_forget(&a->target, i, 0);
        reader_forget(&a->draft, i, 0);
    }
    for (size_t left; (left = texts_of(a, n, 0, true, texts)) > 0;)
        if (!reader_read(&a->target, texts, left, respond))
            return err_copy(err, context_error(a->target.context));
    bool ok = reader_read(&a->draft, texts, texts_of(a, n, 1, false, texts), propose);
    for (uint32_t i = 0; i < n && ok; i++) {
        mix(&a->sequences[i]);
        reader_forget(&a->draft, i, (uint32_t)prompts[i].n); /* Z begins like X: with the prompt */
    }
    ok = ok && reader_read(&a->draft, texts, texts_of(a, n, 0, false, texts), take);
    return ok || err_copy(err, context_error(a->draft.context));
}

struct accept_work {
    struct blas *blas; /* borrowed; NULL: the BLAS here */
    float *x;          /* (n_blocks + 1, n, width) what each block reads, and what the last one gives */
    float *z;          /* (n_blocks, n, width) W x + b */
    float *slope;      /* (n, width) d loss / d x, then of the block before */
    float *inner;      /* (n, width) d loss / d z */
};

struct accept_work *
accept_work_open(const struct accept_head *h, size_t n, struct blocks *b)
{
    struct accept_work *w = blocks_take(b, 1, sizeof *w);
    if (w == NULL)
        return NULL;
    const size_t rows = n * h->width;
    w->x = blocks_take(b, (h->n_blocks + 1) * rows, sizeof *w->x);
    w->z = blocks_take(b, h->n_blocks * rows, sizeof *w->z);
    w->slope = blocks_take(b, rows, sizeof *w->slope);
    w->inner = blocks_take(b, rows, sizeof *w->inner);
    return b->starved ? NULL : w;
}

static void
multiply(const struct accept_work *w, struct host_product p)
{
    blas_multiply(w->blas, &p);
}

/* Every block on n rows, from w->x's first ones. */
static void
forward(const struct accept_head *h, struct accept_work *w, size_t n)
{
    const size_t rows = n * h->width;
    for (uint32_t d = 0; d < h->n_blocks; d++) {
        const float *x = w->x + d * rows;
        float *z = w->z + d * rows, *next = w->x + (d + 1) * rows;
        for (size_t i = 0; i < n; i++)
            memcpy(z + i * h->width, h->block[d].b, h->width * sizeof *z);
        multiply(w, blas_packed(false, true, n, h->width, h->width, x, h->block[d].w, 1, z));
        for (size_t i = 0; i < rows; i++)
            next[i] = x[i] + z[i] / (1 + expf(-z[i]));
    }
}

/* d loss / d (z_accept - z_reject) of one row, whose score is added. */
static double
score_row(double difference, double a, double w_reject, struct accept_score *score)
{
    const double log_accept = difference > 0 ? -log1p(exp(-difference)) : difference - log1p(exp(difference));
    const double log_reject = log_accept - difference, p = exp(log_accept);
    score->loss -= a * log_accept + w_reject * (1 - a) * log_reject;
    score->weight += a + w_reject * (1 - a);
    score->kl += (a > 0 ? a * (log(a) - log_accept) : 0) + (a < 1 ? (1 - a) * (log1p(-a) - log_reject) : 0);
    score->n++;
    return w_reject * (1 - a) * p - a * (1 - p);
}

static size_t
offset(const struct accept_head *h, const float *at)
{
    return (size_t)(at - h->values);
}

/* From w->slope, d loss / d x after the last block, back through all of them. */
static void
backward(const struct accept_head *h, struct accept_work *w, size_t n, float *gradient)
{
    const size_t rows = n * h->width;
    for (uint32_t d = h->n_blocks; d-- > 0;) {
        const float *x = w->x + d * rows, *z = w->z + d * rows;
        float *slope_w = gradient + offset(h, h->block[d].w), *slope_b = gradient + offset(h, h->block[d].b);
        for (size_t i = 0; i < rows; i++) {
            const float s = 1 / (1 + expf(-z[i]));
            w->inner[i] = w->slope[i] * s * (1 + z[i] * (1 - s));
            slope_b[i % h->width] += w->inner[i];
        }
        multiply(w, blas_packed(true, false, h->width, h->width, n, w->inner, x, 1, slope_w));
        multiply(w, blas_packed(false, false, n, h->width, h->width, w->inner, h->block[d].w, 1, w->slope));
    }
}

void
accept_loss(const struct accept_head *h, const struct accept_batch *batch, double w_reject, struct accept_work *w,
            float *p, float *gradient, struct accept_score *score)
{
    const size_t n = batch->n, width = h->width;
    memcpy(w->x, batch->x, n * width * sizeof *w->x);
    forward(h, w, n);
    const float *last = w->x + h->n_blocks * n * width, *reject = h->v, *accept = h->v + width;
    for (size_t i = 0; i < n; i++) {
        const float *x = last + i * width;
        double difference = (double)h->c[1] - (double)h->c[0];
        for (size_t k = 0; k < width; k++)
            difference += (double)(accept[k] - reject[k]) * (double)x[k];
        const float slope = (float)score_row(difference, (double)batch->label[i], w_reject, score);
        if (p != NULL)
            p[i] = (float)(1 / (1 + exp(-difference)));
        if (gradient == NULL)
            continue;
        float *slope_v = gradient + offset(h, h->v), *slope_c = gradient + offset(h, h->c);
        for (size_t k = 0; k < width; k++) {
            slope_v[k] -= slope * x[k];
            slope_v[width + k] += slope * x[k];
            w->slope[i * width + k] = slope * (accept[k] - reject[k]);
        }
        slope_c[0] -= slope;
        slope_c[1] += slope;
    }
    if (gradient != NULL)
        backward(h, w, n, gradient);
}

/* ---- training ---- */

struct own { /* a thread's */
    struct accept_work *work;
    float *gradient;
    struct accept_score score;
};

struct accept_training {
    struct blocks blocks; /* the memory of all the following */
    struct accept_head *head;
    struct accept_training_options options;
    struct adam adam;
    struct own *own; /* (threads) */
    float *gradient; /* of all threads */
};

bool
accept_training_open(struct accept_training **out, struct accept_head *head, uint64_t seed,
                     const struct accept_training_options *options, struct err *err)
{
    *out = NULL;
    const uint32_t threads = blas_callers(options->threads > 0 ? options->threads : 1, err);
    if (threads == 0)
        return false;
    struct accept_training *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory for training an acceptance head");
    t->head = head;
    t->options = *options;
    t->options.threads = threads;
    struct blocks *b = &t->blocks;
    adam_open(&t->adam, head->n_values, b);
    t->own = blocks_take(b, t->options.threads, sizeof *t->own);
    t->gradient = blocks_take(b, head->n_values, sizeof *t->gradient);
    for (uint32_t i = 0; i < t->options.threads && !b->starved; i++) {
        t->own[i].gradient = blocks_take(b, head->n_values, sizeof *t->own[i].gradient);
        t->own[i].work = accept_work_open(head, options->batch / t->options.threads + 1, b);
        if (t->own[i].work != NULL)
            t->own[i].work->blas = options->blas;
    }
    if (b->starved) {
        accept_training_close(t);
        return err_set(err, ERR_WORK,
                       "out of memory for training an acceptance head; use fewer --threads or a smaller --batch");
    }
    const double within = 1 / sqrt((double)head->width);
    for (size_t i = 0; i < head->n_values; i++)
        head->values[i] = (float)(((double)(splitmix64(&seed) >> 11) * 0x1p-52 - 1) * within);
    *out = t;
    return true;
}

void
accept_training_close(struct accept_training *t)
{
    if (t == NULL)
        return;
    blocks_free(&t->blocks);
    free(t);
}

static void
add_score(struct accept_score *to, const struct accept_score *s)
{
    to->n += s->n;
    to->loss += s->loss;
    to->weight += s->weight;
    to->kl += s->kl;
}

/* At most `batch` rows, cut among the threads; added up in the threads' order. */
static struct accept_score
run(struct accept_training *t, const struct accept_batch *batch, bool gradient)
{
    const size_t threads = t->options.threads, width = t->head->width;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < threads; i++) {
        struct own *own = &t->own[i];
        const size_t from = batch->n * i / threads, to = batch->n * (i + 1) / threads;
        const struct accept_batch part = {.n = to - from, .x = batch->x + from * width, .label = batch->label + from};
        own->score = (struct accept_score){0};
        if (gradient)
            memset(own->gradient, 0, t->head->n_values * sizeof *own->gradient);
        if (part.n > 0)
            accept_loss(t->head, &part, t->options.w_reject, own->work, NULL, gradient ? own->gradient : NULL,
                        &own->score);
    }
    struct accept_score sum = {0};
    for (size_t i = 0; i < threads; i++)
        add_score(&sum, &t->own[i].score);
    return sum;
}

struct accept_score
accept_training_step(struct accept_training *t, const struct accept_batch *batch, double rate)
{
    const struct accept_score score = run(t, batch, true);
    const float each = (float)(1 / score.weight);
    for (size_t k = 0; k < t->head->n_values; k++) {
        float sum = 0;
        for (uint32_t i = 0; i < t->options.threads; i++)
            sum += t->own[i].gradient[k];
        t->gradient[k] = sum * each;
    }
    adam_begin(&t->adam);
    adam_move(&t->adam, 0, t->head->n_values, t->head->values, t->gradient, (float)rate, 0, NULL);
    return score;
}

struct accept_score
accept_training_score(struct accept_training *t, const struct accept_batch *batch)
{
    struct accept_score sum = {0};
    for (size_t at = 0; at < batch->n; at += t->options.batch) {
        const size_t left = batch->n - at;
        const struct accept_batch part = {.n = left < t->options.batch ? left : t->options.batch,
                                          .x = batch->x + at * t->head->width,
                                          .label = batch->label + at};
        const struct accept_score s = run(t, &part, false);
        add_score(&sum, &s);
    }
    return sum;
}
