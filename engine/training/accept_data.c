#include "engine/training/accept_data.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/final_norm.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/base/rng.h"
#include "kernels/cpu/sampling.h"

struct lane { /* a prompt at hand */
    struct accept_data *data;
    struct accept_prompt *prompt;
    uint64_t seed;
    uint32_t said;                 /* of the response */
    bool over;                     /* it has ended */
    token_t *text;                 /* (prompt + response) what is read */
    token_t *response, *candidate; /* (response): X, Y */
    bool *mixed;                   /* (response): Z_i is X_i */
    float *label;                  /* (response): a */
    float *p;                      /* (response, vocab) what the target said before each X */
};

struct accept_data {
    struct accept_data_options options;
    struct reader target, draft;
    uint32_t vocab;         /* ids that both have */
    struct final_norm norm; /* the draft's */
    float *z, *q;           /* (the larger vocabulary), (vocab) */
    uint32_t *order;        /* (vocab) scratch */
    struct lane *lanes;     /* (options.lanes) */
};

static bool
open_lane(struct accept_data *a, struct lane *l)
{
    const uint32_t prompt = a->options.prompt, response = a->options.response;
    l->data = a;
    l->text = malloc((prompt + response) * sizeof *l->text);
    l->response = malloc(response * sizeof *l->response);
    l->candidate = malloc(response * sizeof *l->candidate);
    l->mixed = malloc(response * sizeof *l->mixed);
    l->label = malloc(response * sizeof *l->label);
    l->p = malloc((size_t)response * a->vocab * sizeof *l->p);
    return l->text != NULL && l->response != NULL && l->candidate != NULL && l->mixed != NULL && l->label != NULL &&
           l->p != NULL;
}

static bool
make_room(struct accept_data *a)
{
    const uint32_t more = a->target.vocab > a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->vocab = a->target.vocab < a->draft.vocab ? a->target.vocab : a->draft.vocab;
    a->z = malloc(more * sizeof *a->z);
    a->q = malloc(a->vocab * sizeof *a->q);
    a->order = malloc(a->vocab * sizeof *a->order);
    a->lanes = calloc(a->options.lanes, sizeof *a->lanes);
    bool ok = a->z != NULL && a->q != NULL && a->order != NULL && a->lanes != NULL;
    for (uint32_t i = 0; i < a->options.lanes && ok; i++)
        ok = open_lane(a, &a->lanes[i]);
    return ok;
}

bool
accept_data_open(struct accept_data **out, const struct engine *engine, const struct accept_data_options *options,
                 const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct accept_data *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_set(err, ERR_WORK, "out of memory reading responses");
    const uint32_t ctx = options->prompt + options->response, lanes = options->lanes;
    a->options = *options;
    bool ok = reader_open(&a->target, engine, READS_TARGET, ctx, lanes, cancel, err) &&
              reader_open(&a->draft, engine, READS_DRAFT, ctx, lanes, cancel, err) &&
              final_norm_open(&a->norm, &a->draft.model->desc, err);
    ok = ok && (make_room(a) ||
                err_set(err, ERR_WORK, "out of memory for %u responses of %u tokens; ask for fewer or shorter ones",
                        (unsigned)lanes, (unsigned)options->response));
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
    for (uint32_t i = 0; i < a->options.lanes && a->lanes != NULL; i++) {
        free(a->lanes[i].text);
        free(a->lanes[i].response);
        free(a->lanes[i].candidate);
        free(a->lanes[i].mixed);
        free(a->lanes[i].label);
        free(a->lanes[i].p);
    }
    free(a->lanes);
    free(a->z);
    free(a->q);
    free(a->order);
    free(a);
}

/* ---- prompts ---- */

static struct rng_key
key_of(const struct lane *l, uint32_t pos, enum rng_purpose purpose)
{
    return (struct rng_key){.seed = l->seed, .pos = pos, .purpose = purpose};
}

/* The target has read all of the text: X goes on, from its distribution. */
static bool
respond(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct lane *l = user;
    struct accept_data *a = l->data;
    const uint32_t n = (uint32_t)l->prompt->n + l->said;
    if (at + 1 < n)
        return true;
    float *p = l->p + (size_t)l->said * a->vocab;
    const struct rng_key key = key_of(l, n, RNG_BONUS);
    if (!reader_logits(r, slot, a->z))
        return false;
    sampling_dist(a->z, a->vocab, &a->options.sampling, p, a->order);
    l->response[l->said++] = l->text[n] = sampling_draw(p, a->vocab, &key, NULL, 0);
    l->over = l->said == a->options.response || tokenizer_is_end(r->model->tokenizer, l->text[n]);
    return true;
}

/* The draft model has read text[at], the prompt's last or X_i: the next candidate, and its label. */
static bool
propose(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct lane *l = user;
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
    const struct lane *l = user;
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

/* Of each lane's text the prompt and `more` of what was said, less `less`; lanes whose response is over are left out where
 * `alive`. */
static size_t
texts_of(struct accept_data *a, size_t n, uint32_t less, bool alive, struct reader_text *texts)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct lane *l = &a->lanes[i];
        if (!alive || !l->over)
            texts[count++] = (struct reader_text){
                .lane = i, .tokens = l->text, .to = (uint32_t)l->prompt->n + l->said - less, .user = l};
    }
    return count;
}

static void
mix(struct lane *l)
{
    for (uint32_t i = 0; i < l->said; i++) {
        const uint32_t pos = (uint32_t)l->prompt->n + i;
        const struct rng_key key = key_of(l, pos, RNG_ACCEPT);
        l->mixed[i] = rng_uniform(&key) < l->data->options.mixing;
        l->text[pos] = l->mixed[i] ? l->response[i] : l->candidate[i];
    }
}

bool
accept_data_prompts(struct accept_data *a, struct accept_prompt *prompts, size_t n, struct err *err)
{
    struct reader_text texts[READER_LANES];
    for (uint32_t i = 0; i < n; i++) {
        struct lane *l = &a->lanes[i];
        l->prompt = &prompts[i];
        l->prompt->rows = 0;
        l->seed = splitmix64_mix(a->options.seed + prompts[i].index * SPLITMIX64_STEP);
        l->said = 0;
        l->over = false;
        memcpy(l->text, prompts[i].tokens, prompts[i].n * sizeof *l->text);
        reader_forget(&a->target, i, 0);
        reader_forget(&a->draft, i, 0);
    }
    for (size_t left; (left = texts_of(a, n, 0, true, texts)) > 0;)
        if (!reader_read(&a->target, texts, left, respond)) {
            *err = *context_error(a->target.context);
            return false;
        }
    bool ok = reader_read(&a->draft, texts, texts_of(a, n, 1, false, texts), propose);
    for (uint32_t i = 0; i < n && ok; i++) {
        mix(&a->lanes[i]);
        reader_forget(&a->draft, i, (uint32_t)prompts[i].n); /* Z begins like X: with the prompt */
    }
    ok = ok && reader_read(&a->draft, texts, texts_of(a, n, 0, false, texts), take);
    if (!ok)
        *err = *context_error(a->draft.context);
    return ok;
}
