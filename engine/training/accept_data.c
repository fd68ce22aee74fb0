#include "engine/training/accept_data.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/final_norm.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/training/reader.h"
#include "kernels/cpu/sampling.h"
#include "kernels/rng.h"

struct accept_data {
    struct accept_data_options options;
    struct reader target, draft;
    uint32_t vocab;                /* ids that both have */
    struct final_norm norm;        /* the draft's */
    token_t *text;                 /* (prompt + response) what is read */
    token_t *response, *candidate; /* (response): X, Y */
    bool *mixed;                   /* (response): Z_i is X_i */
    float *label;                  /* (response): a */
    float *p;                      /* (response, vocab) what the target said before each X */
    float *z, *q;                  /* (the larger vocabulary), (vocab) */
    uint32_t *order;               /* (vocab) scratch */

    /* the prompt at hand */
    uint64_t seed;
    uint32_t n_prompt;
    float *x, *labels; /* the caller's, n_rows of them are there */
    size_t n_rows;
};

bool
accept_data_open(struct accept_data **out, const struct engine *engine, const struct accept_data_options *options,
                 const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct accept_data *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_set(err, ERR_WORK, "out of memory reading responses");
    const uint32_t ctx = options->prompt + options->response;
    a->options = *options;
    if (!reader_open(&a->target, engine, READS_TARGET, ctx, cancel, err) ||
        !reader_open(&a->draft, engine, READS_DRAFT, ctx, cancel, err) ||
        !final_norm_open(&a->norm, &a->draft.model->desc, err)) {
        accept_data_close(a);
        return false;
    }
    a->vocab = a->target.vocab < a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->text = malloc(ctx * sizeof *a->text);
    a->response = malloc(options->response * sizeof *a->response);
    a->candidate = malloc(options->response * sizeof *a->candidate);
    a->mixed = malloc(options->response * sizeof *a->mixed);
    a->label = malloc(options->response * sizeof *a->label);
    a->p = malloc((size_t)options->response * a->vocab * sizeof *a->p);
    a->z = malloc((a->target.vocab > a->draft.vocab ? a->target.vocab : a->draft.vocab) * sizeof *a->z);
    a->q = malloc(a->vocab * sizeof *a->q);
    a->order = malloc(a->vocab * sizeof *a->order);
    if (a->text == NULL || a->response == NULL || a->candidate == NULL || a->mixed == NULL || a->label == NULL ||
        a->p == NULL || a->z == NULL || a->q == NULL || a->order == NULL) {
        accept_data_close(a);
        return err_set(err, ERR_WORK, "out of memory for responses of %u tokens; ask for shorter ones",
                       (unsigned)options->response);
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
    free(a->text);
    free(a->response);
    free(a->candidate);
    free(a->mixed);
    free(a->label);
    free(a->p);
    free(a->z);
    free(a->q);
    free(a->order);
    free(a);
}

/* ---- a prompt ---- */

static struct rng_key
key_of(const struct accept_data *a, uint32_t pos, enum rng_purpose purpose)
{
    return (struct rng_key){.seed = a->seed, .pos = pos, .purpose = purpose};
}

/* The target goes on from text[0..n_prompt): X, and its distribution before each. Returns how many; 0: an error. */
static uint32_t
respond(struct accept_data *a)
{
    struct reader *r = &a->target;
    uint32_t said = 0;
    reader_forget(r, 0);
    while (said < a->options.response) {
        float *p = a->p + (size_t)said * a->vocab;
        const uint32_t n = a->n_prompt + said;
        const struct rng_key key = key_of(a, n, RNG_BONUS);
        if (!reader_read(r, a->text, n, NULL, NULL) || !reader_logits(r, context_at(r->context, r->seq, n - 1), a->z))
            return 0;
        sampling_dist(a->z, a->vocab, &a->options.sampling, p, a->order);
        a->response[said++] = a->text[n] = sampling_draw(p, a->vocab, &key, NULL, 0);
        if (tokenizer_is_end(r->model->tokenizer, a->text[n]))
            break;
    }
    return said;
}

/* The draft model has read text[at], the prompt's last or X_i: the next candidate, and its label. */
static bool
propose(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct accept_data *a = user;
    if (at + 1 < a->n_prompt)
        return true;
    const uint32_t i = at + 1 - a->n_prompt;
    const struct rng_key key = key_of(a, at + 1, RNG_DRAFT);
    if (!reader_logits(r, slot, a->z))
        return false;
    sampling_dist(a->z, a->vocab, &a->options.sampling, a->q, a->order);
    const token_t y = sampling_draw(a->q, a->vocab, &key, NULL, 0);
    const float ratio = a->p[(size_t)i * a->vocab + (size_t)y] / a->q[y];
    a->candidate[i] = y;
    a->label[i] = ratio < 1 ? ratio : 1;
    return true;
}

/* It has read text[at] = Z_i: where that is a candidate, norm(h) and the label go out. */
static bool
take(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct accept_data *a = user;
    const uint32_t i = at - a->n_prompt;
    float *x = a->x + a->n_rows * r->width;
    if (a->mixed[i])
        return true;
    if (!context_read_hidden(r->context, slot, r->layers, x))
        return false;
    final_norm_apply(&a->norm, x, x);
    a->labels[a->n_rows++] = a->label[i];
    return true;
}

bool
accept_data_prompt(struct accept_data *a, uint64_t index, const token_t *prompt, size_t n, float *x, float *label,
                   size_t *rows, struct err *err)
{
    struct reader *r = &a->draft;
    *rows = 0;
    a->seed = splitmix64_mix(a->options.seed + index * SPLITMIX64_STEP);
    a->n_prompt = (uint32_t)n;
    a->x = x;
    a->labels = label;
    a->n_rows = 0;
    memcpy(a->text, prompt, n * sizeof *prompt);
    const uint32_t said = respond(a);
    if (said == 0) {
        *err = *context_error(a->target.context);
        return false;
    }
    reader_forget(r, 0);
    bool ok = reader_read(r, a->text, a->n_prompt + said - 1, propose, a);
    for (uint32_t i = 0; i < said && ok; i++) {
        const struct rng_key key = key_of(a, a->n_prompt + i, RNG_ACCEPT);
        a->mixed[i] = rng_uniform(&key) < a->options.mixing;
        a->text[a->n_prompt + i] = a->mixed[i] ? a->response[i] : a->candidate[i];
    }
    reader_forget(r, a->n_prompt); /* Z begins like X: with the prompt */
    ok = ok && reader_read(r, a->text, a->n_prompt + said, take, a);
    *rows = a->n_rows;
    if (!ok)
        *err = *context_error(r->context);
    return ok;
}
