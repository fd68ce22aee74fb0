#include "engine/training/accept_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary_match.h"
#include "kernels/rng.h"
#include "kernels/tensor.h"

#define CHUNK 64 /* rows between two readings: the ring keeps twice as many */

struct reader { /* a model and where it is in a text */
    const struct engine *engine;
    struct context *context;
    seq_t seq;
    uint32_t vocab, layers, width;
};

struct accept_data {
    struct accept_data_options options;
    struct reader target, draft;
    float *norm;                   /* (width of the draft) its final norm's weights */
    token_t *text;                 /* (prompt + response) what is read */
    token_t *response, *candidate; /* (response): X, Y */
    bool *mixed;                   /* (response): Z_i is X_i */
    float *label, *target_logits;  /* (response): a; (response, target's vocabulary) */
    float *logits;                 /* (draft's vocabulary) */

    /* the prompt at hand */
    uint64_t random;
    uint32_t n_prompt;
    float *x, *labels; /* the caller's, n_rows of them are there */
    size_t n_rows;
};

static bool
reader_open(struct reader *r, const struct engine *engine, uint32_t ctx, const atomic_bool *cancel, struct err *err)
{
    const struct model_desc *d = &engine->model->desc;
    const struct context_options options = {
        .ctx = ctx, .ring = 2 * CHUNK, .max_rows = CHUNK, .seqs = 1, .cancel = cancel};
    *r = (struct reader){.engine = engine, .vocab = d->vocab, .layers = d->n_layers, .width = d->width};
    if (!context_open(&r->context, engine->ops, engine->weights, d, &options, err))
        return false;
    r->seq = context_sequence(r->context);
    return true;
}

/* Told of the row that reads text[at]. */
typedef bool (*row_fn)(struct accept_data *, struct reader *, uint32_t at, slot_t);

/* Reads text[from..to) behind what was read before, and tells of each row. */
static bool
read_text(struct accept_data *a, struct reader *r, uint32_t from, uint32_t to, row_fn told)
{
    while (from < to) {
        const uint32_t n = to - from < CHUNK ? to - from : CHUNK;
        if (!context_prefill(r->context, r->seq, a->text + from, n, NULL, NULL))
            return false;
        for (uint32_t i = from; i < from + n && told != NULL; i++)
            if (!told(a, r, i, context_at(r->context, r->seq, i)))
                return false;
        from += n;
    }
    return true;
}

bool
accept_data_open(struct accept_data **out, const struct engine *target, const struct engine *draft,
                 const struct accept_data_options *options, const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    if (!vocabularies_match(target->model->tokenizer, target->model->name, draft->model->tokenizer, draft->model->name,
                            err))
        return false;
    struct accept_data *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_set(err, ERR_WORK, "out of memory reading responses");
    const uint32_t ctx = options->prompt + options->response;
    a->options = *options;
    if (!reader_open(&a->target, target, ctx, cancel, err) || !reader_open(&a->draft, draft, ctx, cancel, err)) {
        accept_data_close(a);
        return false;
    }
    a->norm = malloc(a->draft.width * sizeof *a->norm);
    a->text = malloc(ctx * sizeof *a->text);
    a->response = malloc(options->response * sizeof *a->response);
    a->candidate = malloc(options->response * sizeof *a->candidate);
    a->mixed = malloc(options->response * sizeof *a->mixed);
    a->label = malloc(options->response * sizeof *a->label);
    a->target_logits = malloc((size_t)options->response * a->target.vocab * sizeof *a->target_logits);
    a->logits = malloc(a->draft.vocab * sizeof *a->logits);
    if (a->norm == NULL || a->text == NULL || a->response == NULL || a->candidate == NULL || a->mixed == NULL ||
        a->label == NULL || a->target_logits == NULL || a->logits == NULL) {
        accept_data_close(a);
        return err_set(err, ERR_WORK, "out of memory for responses of %u tokens; ask for shorter ones",
                       (unsigned)options->response);
    }
    tensor_row(&draft->model->desc.final_norm, 0, a->norm);
    *out = a;
    return true;
}

void
accept_data_close(struct accept_data *a)
{
    if (a == NULL)
        return;
    context_close(a->target.context);
    context_close(a->draft.context);
    free(a->norm);
    free(a->text);
    free(a->response);
    free(a->candidate);
    free(a->mixed);
    free(a->label);
    free(a->target_logits);
    free(a->logits);
    free(a);
}

/* ---- distributions on the host ---- */

static double
uniform(struct accept_data *a)
{
    return (double)(splitmix64(&a->random) >> 11) * 0x1p-53;
}

static token_t
first_choice(const float *z, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (z[i] > z[best])
            best = i;
    return (token_t)best;
}

/* max z and Σ exp((z - max) / T): what softmax(z / T) needs. */
struct partition {
    double max, sum;
};

static struct partition
partition_of(const float *z, uint32_t n, float temperature)
{
    struct partition p = {.max = (double)z[first_choice(z, n)]};
    for (uint32_t i = 0; i < n; i++)
        p.sum += exp(((double)z[i] - p.max) / (double)temperature);
    return p;
}

static double
probability(const float *z, struct partition p, float temperature, token_t token)
{
    return exp(((double)z[token] - p.max) / (double)temperature) / p.sum;
}

/* From softmax(z / T) over the first n tokens; the likeliest at T = 0. */
static token_t
draw(struct accept_data *a, const float *z, uint32_t n)
{
    const float temperature = a->options.temperature;
    if (!(temperature > 0))
        return first_choice(z, n);
    const struct partition p = partition_of(z, n, temperature);
    double left = uniform(a) * p.sum;
    for (uint32_t i = 0; i + 1 < n; i++) {
        left -= exp(((double)z[i] - p.max) / (double)temperature);
        if (left < 0)
            return (token_t)i;
    }
    return (token_t)(n - 1);
}

/* a = min(1, p(y) / q(y)) from both models' logits. */
static float
acceptance(const struct accept_data *a, const float *p, const float *q, token_t y)
{
    const float t = a->options.temperature;
    if ((uint32_t)y >= a->target.vocab)
        return 0; /* the target has no such token */
    if (!(t > 0))
        return y == first_choice(p, a->target.vocab);
    const double ratio = probability(p, partition_of(p, a->target.vocab, t), t, y) /
                         probability(q, partition_of(q, a->draft.vocab, t), t, y);
    return (float)fmin(1, ratio);
}

/* ---- a prompt ---- */

/* The target goes on from text[0..n); X, and its logits before each. Returns how many; 0: *err says why, or it had nothing to
 * say. */
static uint32_t
respond(struct accept_data *a, uint32_t n)
{
    struct reader *r = &a->target;
    const struct tokenizer *tokenizer = r->engine->model->tokenizer;
    context_truncate(r->context, r->seq, 0);
    if (!read_text(a, r, 0, n, NULL))
        return 0;
    uint32_t said = 0;
    const uint32_t both = r->vocab < a->draft.vocab ? r->vocab : a->draft.vocab; /* the draft can read these */
    while (said < a->options.response) {
        float *z = a->target_logits + (size_t)said * r->vocab;
        if (!context_read_logits(r->context, context_at(r->context, r->seq, n + said - 1), r->layers, z))
            return 0;
        const token_t token = draw(a, z, both);
        a->response[said] = a->text[n + said] = token;
        said++;
        if (tokenizer_is_end(tokenizer, token))
            break;
        if (said < a->options.response && !read_text(a, r, n + said - 1, n + said, NULL))
            return 0;
    }
    return said;
}

/* The draft model has read text[at], the prompt's last or X_i: the next candidate, and its label. */
static bool
propose(struct accept_data *a, struct reader *r, uint32_t at, slot_t slot)
{
    const uint32_t i = at + 1 - a->n_prompt;
    if (!context_read_logits(r->context, slot, r->layers, a->logits))
        return false;
    a->candidate[i] = draw(a, a->logits, r->vocab);
    a->label[i] = acceptance(a, a->target_logits + (size_t)i * a->target.vocab, a->logits, a->candidate[i]);
    return true;
}

/* It has read text[at] = Z_i: where that is a candidate, norm(h) and the label go out. */
static bool
take(struct accept_data *a, struct reader *r, uint32_t at, slot_t slot)
{
    const uint32_t i = at - a->n_prompt;
    float *x = a->x + a->n_rows * r->width;
    if (a->mixed[i])
        return true;
    if (!context_read_hidden(r->context, slot, r->layers, x))
        return false;
    double squares = 0;
    for (uint32_t k = 0; k < r->width; k++)
        squares += (double)x[k] * (double)x[k];
    const float scale = (float)(1 / sqrt(squares / r->width + (double)r->engine->model->desc.rms_eps));
    for (uint32_t k = 0; k < r->width; k++)
        x[k] *= scale * a->norm[k];
    a->labels[a->n_rows++] = a->label[i];
    return true;
}

bool
accept_data_prompt(struct accept_data *a, uint64_t index, const token_t *prompt, size_t n, float *x, float *label,
                   size_t *rows, struct err *err)
{
    struct reader *r = &a->draft;
    *rows = 0;
    a->random = splitmix64_mix(a->options.seed + index * SPLITMIX64_STEP);
    a->n_prompt = (uint32_t)n;
    a->x = x;
    a->labels = label;
    a->n_rows = 0;
    memcpy(a->text, prompt, n * sizeof *prompt);
    const uint32_t said = respond(a, a->n_prompt);
    if (said == 0) {
        *err = *context_error(a->target.context);
        return false;
    }
    context_truncate(r->context, r->seq, 0);
    bool ok =
        read_text(a, r, 0, a->n_prompt - 1, NULL) && read_text(a, r, a->n_prompt - 1, a->n_prompt + said - 1, propose);
    for (uint32_t i = 0; i < said && ok; i++) {
        a->mixed[i] = uniform(a) < a->options.mixing;
        a->text[a->n_prompt + i] = a->mixed[i] ? a->response[i] : a->candidate[i];
    }
    if (ok) {
        context_truncate(r->context, r->seq, a->n_prompt); /* its last row was read to propose the first */
        ok = read_text(a, r, a->n_prompt, a->n_prompt + said, take);
    }
    *rows = a->n_rows;
    if (!ok)
        *err = *context_error(r->context);
    return ok;
}
