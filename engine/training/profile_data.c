#include "engine/training/profile_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/rng.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "kernels/cpu/sampling.h"

struct profile_response { /* a prompt at hand */
    struct profile_data *data;
    struct profile_prompt *prompt;
    uint64_t seed;
    uint32_t n, end;      /* committed tokens, of which no model has read the last; and their limit */
    uint32_t drafts;      /* of this round; 0: the response is over */
    float *logits[READS]; /* (drafts + 1, vocabulary of each): before each draft, and after the last */
    float *q;             /* (drafts, vocab) what drafts were drawn from */
    token_t *text;        /* (prompt + response + drafts + 1) */
};

struct profile_data {
    struct blocks blocks; /* the memory of all the following */
    struct profile_data_options options;
    struct reader reader[READS];
    uint32_t vocab;                     /* ids that all three have */
    float *scratch[3];                  /* (vocab) distributions at hand */
    uint32_t *order;                    /* (vocab) scratch */
    struct profile_response *sequences; /* (options.sequences) */
};

static uint32_t
room_of(const struct profile_data_options *o)
{
    return o->prompt + o->response + o->drafts + 1;
}

static void
open_sequence(struct profile_data *d, struct profile_response *l)
{
    const size_t drafts = d->options.drafts;
    l->data = d;
    l->text = blocks_take(&d->blocks, room_of(&d->options), sizeof *l->text);
    l->q = blocks_take(&d->blocks, drafts * d->vocab, sizeof *l->q);
    for (enum reads i = 0; i < READS; i++)
        l->logits[i] = blocks_take(&d->blocks, (drafts + 1) * d->reader[i].vocab, sizeof(float));
}

static bool
make_room(struct profile_data *d)
{
    d->vocab = UINT32_MAX;
    for (enum reads i = 0; i < READS; i++)
        d->vocab = d->reader[i].vocab < d->vocab ? d->reader[i].vocab : d->vocab;
    d->order = blocks_take(&d->blocks, d->vocab, sizeof *d->order);
    d->sequences = blocks_take(&d->blocks, d->options.sequences, sizeof *d->sequences);
    for (int i = 0; i < 3; i++)
        d->scratch[i] = blocks_take(&d->blocks, d->vocab, sizeof *d->scratch[i]);
    for (uint32_t i = 0; i < d->options.sequences && !d->blocks.starved; i++)
        open_sequence(d, &d->sequences[i]);
    return !d->blocks.starved;
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
    bool ok = true;
    for (enum reads i = 0; i < READS && ok; i++)
        ok = reader_open(&d->reader[i], engine, i, room_of(options), options->sequences, cancel, err);
    ok = ok && (make_room(d) || err_set(err, ERR_WORK, "out of memory for a profile: fewer --drafts or --at-once"));
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
    for (enum reads i = 0; i < READS; i++)
        reader_close(&d->reader[i]);
    blocks_free(&d->blocks);
    free(d);
}

/* ---- a round ---- */

static float *
logits_at(const struct profile_response *l, enum reads model, uint32_t i)
{
    return l->logits[model] + (size_t)i * l->data->reader[model].vocab;
}

static bool
keep_logits(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct profile_response *l = user;
    const enum reads model = (enum reads)(r - l->data->reader);
    return at + 1 < l->n || reader_logits(r, slot, logits_at(l, model, at + 1 - l->n));
}

/* In every lane that drafts more than `least` tokens, reads up to `drafts` of them after the committed ones. Stores the
 * logits after the last committed token and after each that was read. */
static bool
read_on(struct profile_data *d, size_t n, enum reads model, uint32_t drafts, uint32_t least)
{
    struct reader_text texts[READER_SEQUENCES];
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct profile_response *l = &d->sequences[i];
        const uint32_t more = drafts < l->drafts ? drafts : l->drafts;
        if (l->drafts > least)
            texts[count++] = (struct reader_text){.sequence = i, .tokens = l->text, .to = l->n + more, .user = l};
    }
    return reader_read(&d->reader[model], texts, count, keep_logits);
}

/* Writes a model's distribution at position i of the round to `to`. */
static const float *
distribution(const struct profile_response *l, enum reads model, uint32_t i, const struct sampling *how, float *to)
{
    sampling_dist(logits_at(l, model, i), l->data->vocab, how, to, l->data->order);
    return to;
}

static float *
q_at(const struct profile_response *l, uint32_t i)
{
    return l->q + (size_t)i * l->data->vocab;
}

/* One draft in every lane that has room for it; then the next. */
static bool
draw_drafts(struct profile_data *d, size_t n)
{
    for (uint32_t i = 0; i < d->options.drafts; i++) {
        if (!read_on(d, n, READS_DRAFT, i, i))
            return false;
        for (size_t k = 0; k < n; k++) {
            struct profile_response *l = &d->sequences[k];
            const struct rng_key key = {.seed = l->seed, .pos = l->n + i, .purpose = RNG_DRAFT};
            if (i >= l->drafts)
                continue;
            distribution(l, READS_DRAFT, i, &d->options.sampling, q_at(l, i));
            l->text[l->n + i] = sampling_draw(q_at(l, i), d->vocab, &key, NULL, 0);
        }
    }
    return true;
}

/* The target's verdict on the lane's drafts, as in generation. */
static void
verify(const struct profile_response *l, struct verdict *verdict)
{
    const struct profile_data *d = l->data;
    struct verify_node node[VERIFY_NODES];
    const float *logits[VERIFY_NODES], *q[VERIFY_NODES] = {NULL};
    for (uint32_t i = 0; i <= l->drafts; i++) {
        node[i] = (struct verify_node){
            .parent = (int32_t)i - 1, .token = l->text[l->n + i - 1], .pos = l->n + i - 1, .q = DIST_NONE};
        logits[i] = logits_at(l, READS_TARGET, i);
        q[i] = i > 0 ? q_at(l, i - 1) : NULL;
    }
    const struct verify_req req = {
        .nodes = node, .n = l->drafts + 1, .sampling = d->options.sampling, .seed = l->seed, .out = verdict};
    sampling_verify(&req, d->vocab, logits, q, d->vocab, d->scratch[0], d->order, verdict);
}

static struct sv_observation
observe(const struct profile_response *l, uint32_t i)
{
    struct profile_data *d = l->data;
    const struct sampling *how = &d->options.sampling, whole = {.temperature = 1, .top_p = 1};
    const bool greedy = !(how->temperature > 0);
    const token_t x = l->text[l->n + i];
    const float *p = distribution(l, READS_TARGET, i, how, d->scratch[0]);
    const float *q = greedy ? distribution(l, READS_DRAFT, i, &whole, d->scratch[1]) : q_at(l, i);
    const float *c = distribution(l, READS_COMPANION, i, greedy ? &whole : how, d->scratch[2]);
    const struct overlap of = sampling_overlap(q, c, d->vocab, x);
    const float ratio = p[x] / q_at(l, i)[x];
    return (struct sv_observation){.s = of.similarity < 1 ? of.similarity : 1, /* rounding */
                                   .a = of.acceptance,
                                   .accepted = ratio < 1 ? ratio : 1};
}

/* How many drafts the next round has. */
static void
plan_round(struct profile_response *l, bool over)
{
    const uint32_t left = l->n + 1 < l->end ? l->end - l->n - 1 : 0, most = l->data->options.drafts;
    l->drafts = over ? 0 : left < most ? left : most;
}

/* Verifies the drafts, and adds the accepted ones and the target's next token to the text. */
static void
judge(struct profile_response *l)
{
    struct profile_data *d = l->data;
    struct profile_prompt *to = l->prompt;
    const struct tokenizer *tokenizer = d->reader[READS_TARGET].model->tokenizer;
    struct verdict verdict;
    bool over = false;
    verify(l, &verdict);
    for (uint32_t i = 0; i < l->drafts && i <= verdict.n_path; i++)
        to->seen[to->n_seen++] = observe(l, i);
    l->text[l->n + verdict.n_path] = verdict.next;
    to->rounds.rounds++;
    to->rounds.drafted += l->drafts;
    to->rounds.accepted += verdict.n_path;
    for (uint32_t i = 0; i <= verdict.n_path && !over; i++) {
        over = tokenizer_is_end(tokenizer, l->text[l->n++]);
        to->rounds.emitted++;
    }
    for (enum reads i = 0; i < READS; i++)
        reader_forget(&d->reader[i], (uint32_t)(l - d->sequences), l->n - 1);
    plan_round(l, over);
}

/* One round in every lane that is not over; *left: there was such a lane. */
static bool
play_round(struct profile_data *d, size_t n, bool *left)
{
    *left = false;
    for (size_t i = 0; i < n; i++)
        *left = *left || d->sequences[i].drafts > 0;
    if (!draw_drafts(d, n) || !read_on(d, n, READS_COMPANION, d->options.drafts - 1, 0) ||
        !read_on(d, n, READS_TARGET, d->options.drafts, 0))
        return false;
    for (size_t i = 0; i < n; i++)
        if (d->sequences[i].drafts > 0)
            judge(&d->sequences[i]);
    return true;
}

bool
profile_data_prompts(struct profile_data *d, struct profile_prompt *prompts, size_t n, struct err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        struct profile_response *l = &d->sequences[i];
        l->prompt = &prompts[i];
        l->prompt->n_seen = 0;
        l->prompt->rounds = (struct profile_rounds){0};
        l->seed = splitmix64_mix(d->options.seed + prompts[i].index * SPLITMIX64_STEP);
        l->n = (uint32_t)prompts[i].n;
        l->end = l->n + d->options.response;
        memcpy(l->text, prompts[i].tokens, prompts[i].n * sizeof *l->text);
        for (enum reads k = 0; k < READS; k++)
            reader_forget(&d->reader[k], i, 0);
        plan_round(l, false);
    }
    for (bool left = true; left;)
        if (!play_round(d, n, &left)) {
            for (enum reads i = 0; i < READS; i++)
                if (context_error(d->reader[i].context)->kind != ERR_NONE)
                    *err = *context_error(d->reader[i].context);
            return false;
        }
    return true;
}
