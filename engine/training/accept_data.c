#include "engine/training/accept_data.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/final_norm.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary_match.h"
#include "engine/training/categorical.h"
#include "engine/training/reader.h"

struct accept_data {
    struct accept_data_options options;
    struct reader target, draft;
    uint32_t vocab;                /* ids that both have */
    struct final_norm norm;        /* the draft's */
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
    if (!reader_open(&a->target, target, ctx, cancel, err) || !reader_open(&a->draft, draft, ctx, cancel, err) ||
        !final_norm_open(&a->norm, &draft->model->desc, err)) {
        accept_data_close(a);
        return false;
    }
    a->vocab = a->target.vocab < a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->text = malloc(ctx * sizeof *a->text);
    a->response = malloc(options->response * sizeof *a->response);
    a->candidate = malloc(options->response * sizeof *a->candidate);
    a->mixed = malloc(options->response * sizeof *a->mixed);
    a->label = malloc(options->response * sizeof *a->label);
    a->target_logits = malloc((size_t)options->response * a->target.vocab * sizeof *a->target_logits);
    a->logits = malloc(a->draft.vocab * sizeof *a->logits);
    if (a->text == NULL || a->response == NULL || a->candidate == NULL || a->mixed == NULL || a->label == NULL ||
        a->target_logits == NULL || a->logits == NULL) {
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
    free(a->target_logits);
    free(a->logits);
    free(a);
}

/* ---- a prompt ---- */

/* The target goes on from text[0..n_prompt): X, and its logits before each. Returns how many; 0: an error. */
static uint32_t
respond(struct accept_data *a)
{
    struct reader *r = &a->target;
    uint32_t said = 0;
    reader_forget(r, 0);
    while (said < a->options.response) {
        float *z = a->target_logits + (size_t)said * r->vocab;
        const uint32_t n = a->n_prompt + said;
        if (!reader_read(r, a->text, n, NULL, NULL) || !reader_logits(r, context_at(r->context, r->seq, n - 1), z))
            return 0;
        const struct categorical p = categorical_of(z, a->vocab, a->options.temperature);
        a->response[said++] = a->text[n] = categorical_draw(&p, &a->random);
        if (tokenizer_is_end(r->engine->model->tokenizer, a->text[n]))
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
    if (!reader_logits(r, slot, a->logits))
        return false;
    const float *z = a->target_logits + (size_t)i * a->target.vocab;
    const struct categorical p = categorical_of(z, a->vocab, a->options.temperature);
    const struct categorical q = categorical_of(a->logits, a->vocab, a->options.temperature);
    a->candidate[i] = categorical_draw(&q, &a->random);
    a->label[i] = (float)categorical_acceptance(&p, &q, a->candidate[i]);
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
    a->random = splitmix64_mix(a->options.seed + index * SPLITMIX64_STEP);
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
        a->mixed[i] = splitmix64_uniform(&a->random) < a->options.mixing;
        a->text[a->n_prompt + i] = a->mixed[i] ? a->response[i] : a->candidate[i];
    }
    reader_forget(r, a->n_prompt); /* Z begins like X: with the prompt */
    ok = ok && reader_read(r, a->text, a->n_prompt + said, take, a);
    *rows = a->n_rows;
    if (!ok)
        *err = *context_error(r->context);
    return ok;
}
