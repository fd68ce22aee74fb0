#include "engine/training/profile_data.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer.h"
#include "engine/training/reader.h"
#include "kernels/cpu/sampling.h"
#include "kernels/rng.h"

struct profile_data {
    struct profile_data_options options;
    struct reader reader[READS];
    float *logits[READS]; /* (drafts + 1, vocabulary of each): before each draft, and after the last */
    float *q;             /* (drafts, vocab) what drafts were drawn from */
    float *scratch[3];    /* (vocab) distributions at hand */
    uint32_t *order;      /* (vocab) scratch */
    token_t *text;        /* (prompt + response + drafts + 1) */

    /* the prompt at hand */
    uint64_t seed;
    uint32_t n;     /* tokens that stand; the last of them no model has read */
    uint32_t vocab; /* ids that all three have */
};

static bool
make_room(struct profile_data *d)
{
    bool ok = (d->q = malloc((size_t)d->options.drafts * d->vocab * sizeof *d->q)) != NULL &&
              (d->order = malloc(d->vocab * sizeof *d->order)) != NULL;
    for (int i = 0; i < 3 && ok; i++)
        ok = (d->scratch[i] = malloc(d->vocab * sizeof *d->scratch[i])) != NULL;
    return ok;
}

bool
profile_data_open(struct profile_data **out, const struct engine *engine, const struct profile_data_options *options,
                  const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct profile_data *d = calloc(1, sizeof *d);
    if (d == NULL)
        return err_set(err, ERR_WORK, "out of memory for a profile");
    d->options = *options;
    d->vocab = UINT32_MAX;
    const uint32_t room = options->prompt + options->response + options->drafts + 1;
    bool ok =
        (d->text = malloc(room * sizeof *d->text)) != NULL || err_set(err, ERR_WORK, "out of memory for a profile");
    for (enum reads i = 0; i < READS && ok; i++) {
        ok = reader_open(&d->reader[i], engine, i, room, cancel, err);
        if (ok) {
            const uint32_t vocab = d->reader[i].vocab;
            d->vocab = vocab < d->vocab ? vocab : d->vocab;
            d->logits[i] = malloc(((size_t)options->drafts + 1) * vocab * sizeof *d->logits[i]);
            ok = d->logits[i] != NULL || err_set(err, ERR_WORK, "out of memory for a profile: fewer --drafts");
        }
    }
    ok = ok && (make_room(d) || err_set(err, ERR_WORK, "out of memory for a profile"));
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
    for (enum reads i = 0; i < READS; i++) {
        reader_close(&d->reader[i]);
        free(d->logits[i]);
    }
    for (int i = 0; i < 3; i++)
        free(d->scratch[i]);
    free(d->q);
    free(d->order);
    free(d->text);
    free(d);
}

/* ---- a round ---- */

struct reading {
    struct profile_data *data;
    enum reads model;
};

static float *
logits_at(const struct profile_data *d, enum reads model, uint32_t i)
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
read_on(struct profile_data *d, enum reads model, uint32_t to)
{
    return reader_read(&d->reader[model], d->text, to, keep_logits, &(struct reading){d, model});
}

/* What a model says at place i of the round, into `to`. */
static const float *
said(struct profile_data *d, enum reads model, uint32_t i, const struct sampling *how, float *to)
{
    sampling_dist(logits_at(d, model, i), d->vocab, how, to, d->order);
    return to;
}

static float *
q_at(const struct profile_data *d, uint32_t i)
{
    return d->q + (size_t)i * d->vocab;
}

static struct sv_observation
observe(struct profile_data *d, uint32_t i)
{
    const struct sampling *how = &d->options.sampling, whole = {.temperature = 1, .top_p = 1};
    const bool greedy = !(how->temperature > 0);
    const token_t x = d->text[d->n + i];
    const float *p = said(d, READS_TARGET, i, how, d->scratch[0]);
    const float *q = greedy ? said(d, READS_DRAFT, i, &whole, d->scratch[1]) : q_at(d, i);
    const float *c = said(d, READS_COMPANION, i, greedy ? &whole : how, d->scratch[2]);
    const struct overlap of = sampling_overlap(q, c, d->vocab, x);
    const float ratio = p[x] / q_at(d, i)[x];
    return (struct sv_observation){.s = of.similarity < 1 ? of.similarity : 1, /* rounding */
                                   .a = of.acceptance,
                                   .accepted = ratio < 1 ? ratio : 1};
}

static bool
draw_drafts(struct profile_data *d, uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        const struct rng_key key = {.seed = d->seed, .pos = d->n + i, .purpose = RNG_DRAFT};
        if (!read_on(d, READS_DRAFT, d->n + i))
            return false;
        said(d, READS_DRAFT, i, &d->options.sampling, q_at(d, i));
        d->text[d->n + i] = sampling_draw(q_at(d, i), d->vocab, &key, NULL, 0);
    }
    return true;
}

/* The target's verdict on a chain of so many drafts, as in generation. */
static void
verify(struct profile_data *d, uint32_t drafts, struct verdict *verdict)
{
    struct verify_node node[VERIFY_NODES];
    const float *logits[VERIFY_NODES], *q[VERIFY_NODES] = {NULL};
    for (uint32_t i = 0; i <= drafts; i++) {
        node[i] = (struct verify_node){
            .parent = (int32_t)i - 1, .token = d->text[d->n + i - 1], .pos = d->n + i - 1, .q = DIST_NONE};
        logits[i] = logits_at(d, READS_TARGET, i);
        q[i] = i > 0 ? q_at(d, i - 1) : NULL;
    }
    const struct verify_req req = {
        .nodes = node, .n = drafts + 1, .sampling = d->options.sampling, .seed = d->seed, .out = verdict};
    sampling_verify(&req, d->vocab, logits, q, d->vocab, d->scratch[0], d->order, verdict);
}

/* Drafts, at most `most` >= 1 of them; judges them; adds what stands to the text, the target's own word with it. */
static bool
play_round(struct profile_data *d, uint32_t most, struct sv_observation *out, size_t *n_out, uint32_t *accepted)
{
    struct verdict verdict;
    if (!draw_drafts(d, most) || !read_on(d, READS_COMPANION, d->n + most - 1) ||
        !read_on(d, READS_TARGET, d->n + most))
        return false;
    verify(d, most, &verdict);
    *accepted = verdict.n_path;
    for (uint32_t i = 0; i < most && i <= *accepted; i++)
        out[(*n_out)++] = observe(d, i);
    d->text[d->n + *accepted] = verdict.next;
    return true;
}

bool
profile_data_prompt(struct profile_data *d, uint64_t index, const token_t *prompt, size_t n, struct sv_observation *out,
                    size_t *n_out, struct profile_rounds *rounds, struct err *err)
{
    const struct tokenizer *tokenizer = d->reader[READS_TARGET].model->tokenizer;
    const uint32_t end = (uint32_t)n + d->options.response;
    *n_out = 0;
    d->seed = splitmix64_mix(d->options.seed + index * SPLITMIX64_STEP);
    d->n = (uint32_t)n;
    memcpy(d->text, prompt, n * sizeof *prompt);
    for (enum reads i = 0; i < READS; i++)
        reader_forget(&d->reader[i], 0);
    for (bool over = false; !over && d->n + 1 < end;) {
        const uint32_t left = end - d->n - 1, most = left < d->options.drafts ? left : d->options.drafts;
        uint32_t accepted;
        if (!play_round(d, most, out, n_out, &accepted)) {
            for (enum reads i = 0; i < READS; i++)
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
        for (enum reads i = 0; i < READS; i++)
            reader_forget(&d->reader[i], d->n - 1);
    }
    return true;
}
