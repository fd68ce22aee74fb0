#include "engine/training/profile_data.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary_match.h"
#include "engine/training/categorical.h"
#include "engine/training/reader.h"

enum { TARGET, DRAFT, COMPANION, MODELS };

struct profile_data {
    struct profile_data_options options;
    struct reader reader[MODELS];
    float *logits[MODELS]; /* (drafts + 1, vocabulary of each): before each draft, and after the last */
    token_t *text;         /* (prompt + response + drafts + 1) */

    /* the prompt at hand */
    uint64_t random;
    uint32_t n;     /* tokens that stand; the last of them no model has read */
    uint32_t vocab; /* ids that all three have */
};

bool
profile_data_open(struct profile_data **out, const struct engine *target, const struct engine *draft,
                  const struct engine *companion, const struct profile_data_options *options, const atomic_bool *cancel,
                  struct err *err)
{
    const struct engine *engines[MODELS] = {[TARGET] = target, [DRAFT] = draft, [COMPANION] = companion};
    *out = NULL;
    struct profile_data *d = calloc(1, sizeof *d);
    if (d == NULL)
        return err_set(err, ERR_WORK, "out of memory for a profile");
    d->options = *options;
    d->vocab = UINT32_MAX;
    const uint32_t room = options->prompt + options->response + options->drafts + 1;
    bool ok =
        (d->text = malloc(room * sizeof *d->text)) != NULL || err_set(err, ERR_WORK, "out of memory for a profile");
    for (int i = 0; i < MODELS && ok; i++) {
        const struct model *m = engines[i]->model;
        ok = vocabularies_match(target->model->tokenizer, target->model->name, m->tokenizer, m->name, err) &&
             reader_open(&d->reader[i], engines[i], room, cancel, err);
        if (ok) {
            d->vocab = m->desc.vocab < d->vocab ? m->desc.vocab : d->vocab;
            d->logits[i] = malloc(((size_t)options->drafts + 1) * m->desc.vocab * sizeof *d->logits[i]);
            ok = d->logits[i] != NULL || err_set(err, ERR_WORK, "out of memory for a profile: fewer --drafts");
        }
    }
    if (!ok) {
        profile_data_close(d);
        return false;
    }
    *out = d;
    return true;
}

void
profile_data_close(struct profile_data *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < MODELS; i++) {
        reader_close(&d->reader[i]);
        free(d->logits[i]);
    }
    free(d->text);
    free(d);
}

/* ---- a round ---- */

struct reading {
    struct profile_data *data;
    int model;
};

static float *
logits_at(const struct profile_data *d, int model, uint32_t i)
{
    return d->logits[model] + (size_t)i * d->reader[model].vocab;
}

static bool
keep_logits(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct reading *to = user;
    return at + 1 < to->data->n || reader_logits(r, slot, logits_at(to->data, to->model, at + 1 - to->data->n));
}

/* Reads up to `to`; the logits after the standing text's end and behind are there then. */
static bool
read_on(struct profile_data *d, int model, uint32_t to)
{
    return reader_read(&d->reader[model], d->text, to, keep_logits, &(struct reading){d, model});
}

static struct categorical
said(const struct profile_data *d, int model, uint32_t i, float temperature)
{
    return categorical_of(logits_at(d, model, i), d->vocab, temperature);
}

/* Judges draft i; true: accepted. */
static bool
observe(struct profile_data *d, uint32_t i, struct sv_observation *o)
{
    const float t = d->options.temperature, warm = t > 0 ? t : 1;
    const token_t x = d->text[d->n + i];
    const struct categorical p = said(d, TARGET, i, t), q = said(d, DRAFT, i, t);
    const struct categorical draft = said(d, DRAFT, i, warm), companion = said(d, COMPANION, i, warm);
    const double accepted = categorical_acceptance(&p, &q, x), s = categorical_overlap(&draft, &companion);
    *o = (struct sv_observation){.s = (float)(s < 1 ? s : 1), /* rounding */
                                 .a = (float)categorical_acceptance(&companion, &draft, x),
                                 .accepted = (float)accepted};
    return splitmix64_uniform(&d->random) < accepted;
}

/* Drafts, at most `most` >= 1 of them; judges them; adds what stands to the text, the target's own word with it. */
static bool
play_round(struct profile_data *d, uint32_t most, struct sv_observation *out, size_t *n_out, uint32_t *accepted)
{
    const float t = d->options.temperature;
    for (uint32_t i = 0; i < most; i++) {
        if (!read_on(d, DRAFT, d->n + i))
            return false;
        const struct categorical q = said(d, DRAFT, i, t);
        d->text[d->n + i] = categorical_draw(&q, &d->random);
    }
    if (!read_on(d, COMPANION, d->n + most - 1) || !read_on(d, TARGET, d->n + most))
        return false;
    bool rejected = false;
    *accepted = 0;
    while (*accepted < most && !rejected) {
        rejected = !observe(d, *accepted, &out[(*n_out)++]);
        *accepted += !rejected;
    }
    const struct categorical p = said(d, TARGET, *accepted, t);
    if (rejected) {
        const struct categorical q = said(d, DRAFT, *accepted, t);
        d->text[d->n + *accepted] = categorical_residual(&p, &q, &d->random);
    } else {
        d->text[d->n + *accepted] = categorical_draw(&p, &d->random);
    }
    return true;
}

bool
profile_data_prompt(struct profile_data *d, uint64_t index, const token_t *prompt, size_t n, struct sv_observation *out,
                    size_t *n_out, struct profile_rounds *rounds, struct err *err)
{
    const struct tokenizer *tokenizer = d->reader[TARGET].engine->model->tokenizer;
    const uint32_t end = (uint32_t)n + d->options.response;
    *n_out = 0;
    d->random = splitmix64_mix(d->options.seed + index * SPLITMIX64_STEP);
    d->n = (uint32_t)n;
    memcpy(d->text, prompt, n * sizeof *prompt);
    for (int i = 0; i < MODELS; i++)
        reader_forget(&d->reader[i], 0);
    for (bool over = false; !over && d->n + 1 < end;) {
        const uint32_t left = end - d->n - 1, most = left < d->options.drafts ? left : d->options.drafts;
        uint32_t accepted;
        if (!play_round(d, most, out, n_out, &accepted)) {
            for (int i = 0; i < MODELS; i++)
                if (context_error(d->reader[i].context)->kind != ERR_NONE)
                    *err = *context_error(d->reader[i].context);
            return false;
        }
        rounds->rounds++;
        rounds->drafted += most;
        rounds->accepted += accepted;
        for (uint32_t i = 0; i <= accepted && !over; i++) {
            over = tokenizer_is_end(tokenizer, d->text[d->n++]);
            rounds->emitted++;
        }
        for (int i = 0; i < MODELS; i++)
            reader_forget(&d->reader[i], d->n - 1);
    }
    return true;
}
