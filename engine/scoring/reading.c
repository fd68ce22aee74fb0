/* Reads texts in chunks of rows: the rows of a chunk go through a model in one forward pass, and are probed before the
 * ring of hidden states loses them. */
#include "engine/scoring/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"
#include "engine/model/tokenizer/tokenizer.h"

#define CHUNK 64 /* rows */

struct reader { /* a model that reads the text; ctx NULL: none */
    struct context *ctx;
    seq_t seq;
    uint32_t layers, vocab;
    token_t unknown; /* replaces a token that the model lacks */
    /* Of a feature drafter: its row at position P has the token at P + ahead, with the target's features at P; 1, else
     * 0. feature: the first of its n_features among those that the target keeps; fed: (CHUNK, all of a row's). */
    uint32_t ahead, feature, n_features;
    float *fed;
};

struct reading_state {
    struct engine *engine;
    struct reading_options options;
    struct dist_pool *dists;
    struct reader target, drafter[READING_DRAFTS];
    uint32_t features[2 * MODEL_FEATURES], n_features;
    struct context_probe *probes;   /* (CHUNK, L) */
    struct prediction *predictions; /* (CHUNK, L) */
    struct layer_sample *samples;   /* (L) */
    struct draft_recent recent;
};

struct part { /* the arguments of reading_part() */
    const token_t *text;
    uint32_t n, from;
    uint32_t first, begin; /* positions of the record's first row and of its first round's pending token */
    bool of_prompt, compare;
};

/* ---- opening ---- */

static bool
open_reader(struct reading_state *s, struct reader *r, const struct model *m, struct weights *weights, struct err *err)
{
    const struct engine *e = s->engine;
    const bool target = m == e->model, forks = r->ahead > 0;
    const struct context_options limits = {.ctx = s->options.ctx,
                                           .spare = forks ? CHUNK * (READING_CHAIN + 2) : 0,
                                           .ring = forks ? 4 * CHUNK : 0,
                                           .seqs = forks ? CHUNK + 1 : 1,
                                           .max_rows = forks ? CHUNK : 0,
                                           .sets = target && s->options.draft_vocab > 0 ? 1 : 0,
                                           .rank = target ? e->rank.ids : NULL,
                                           .dists = s->dists,
                                           .cancel = s->options.cancel,
                                           .heads = target ? e->heads : HEAD_LENS,
                                           .features = target ? s->features : NULL,
                                           .n_features = target ? s->n_features : 0};
    r->layers = m->desc.n_layers;
    r->vocab = m->desc.vocab;
    r->unknown = m->tokenizer != NULL ? tokenizer_unknown(m->tokenizer) : 0;
    return context_open(&r->ctx, e->ops, e->backend, weights, &m->desc, &limits, err) &&
           ((r->seq = context_sequence(r->ctx)) != SEQ_NONE ||
            err_set(err, ERR_WORK, "%s", context_error(r->ctx)->text));
}

static bool
open_target(struct reading_state *s, struct err *err)
{
    return s->target.ctx != NULL || open_reader(s, &s->target, s->engine->model, s->engine->weights, err);
}

/* Adds a drafter whose model is its own, or the target's first layers, which need no reader. */
static bool
open_drafter(struct reading *r, enum aux_role role, const struct aux_model *of, int32_t draft, struct err *err)
{
    struct reading_state *s = r->state;
    struct reader *reader = &s->drafter[r->n_drafters];
    struct reading_drafter *d = &r->drafter[r->n_drafters];
    const struct model *m = of->model, *target = s->engine->model;
    const bool exact = s->engine->exact;
    *d = (struct reading_drafter){.role = role, .draft = draft, .read = {.role = role, .known = true}};
    d->read.exit_layer = of->exit_layer;
    r->n_drafters++;
    if (m == NULL) {
        snprintf(d->name, sizeof d->name, "self:%u", (unsigned)of->exit_layer);
        return true;
    }
    snprintf(d->name, sizeof d->name, "%s", m->name);
    const double layer = model_layer_bytes(target, exact), own = m->desc.n_layers * model_layer_bytes(m, exact);
    d->read.pass_load = (own + model_feed_bytes(m, true, exact)) / layer;
    d->read.next_load = (own + model_feed_bytes(m, false, exact)) / layer;
    d->read.head_load = model_head_bytes(m, exact) / model_head_bytes(target, exact);
    if (m->desc.drafter != NULL) {
        *reader = (struct reader){.ahead = 1, .feature = s->n_features, .n_features = m->n_features};
        memcpy(s->features + s->n_features, m->features, m->n_features * sizeof *m->features);
        s->n_features += m->n_features;
        reader->fed = malloc((size_t)CHUNK * m->n_features * target->desc.width * sizeof *reader->fed);
        d->read.run = calloc(r->lens.rows, sizeof *d->read.run);
    } else {
        d->read.word = calloc(r->lens.rows, sizeof *d->read.word);
    }
    if (m->desc.drafter != NULL ? reader->fed == NULL || d->read.run == NULL : d->read.word == NULL)
        return err_set(err, ERR_WORK, "out of memory for the predictions of %s", d->name);
    return open_reader(s, reader, m, of->weights, err);
}

static bool
open_drafters(struct reading *r, struct err *err)
{
    const struct reading_state *s = r->state;
    const struct engine *e = s->engine;
    bool ok = true;
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++)
        if (engine_has(e, role) && role != AUX_COMPANION && (e->aux[role].model != NULL || s->options.lens))
            ok = open_drafter(r, role, &e->aux[role], -1, err);
    for (uint32_t i = 0; i < s->options.n_drafts && ok && r->n_drafters < READING_DRAFTS; i++)
        if (s->options.drafts[i].model.model != NULL || s->options.lens)
            ok = open_drafter(r, AUX_DRAFT, &s->options.drafts[i].model, (int32_t)i, err);
    return ok;
}

/* Sets what does not depend on the text. */
static bool
open_record(struct layer_record *r, const struct reading_state *s, double trained, struct err *err)
{
    const struct model_desc *d = &s->engine->model->desc;
    if (!layer_record_open_room(r, d->n_layers, READING_ROWS + RECORD_LEAD + 1, s->options.ctx, err))
        return false;
    r->trained = trained > 0;
    r->head_load = trained < 1 ? 1 + trained : 1;
    r->layers_load = 1 + (d->n_layers - 1) * trained;
    r->probes = KV_CACHE_PROBES;
    r->cells_base = s->options.lens && trained == 0 ? s->options.draft_vocab : 0;
    return true;
}

static bool
open_parts(struct reading *r, struct err *err)
{
    struct reading_state *s = r->state;
    const struct engine *e = s->engine;
    const uint32_t layers = e->model->desc.n_layers;
    uint32_t vocab = e->model->desc.vocab;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (e->aux[role].model != NULL && e->aux[role].model->desc.vocab > vocab)
            vocab = e->aux[role].model->desc.vocab;
    s->probes = calloc((size_t)CHUNK * layers, sizeof *s->probes);
    s->predictions = calloc((size_t)CHUNK * layers, sizeof *s->predictions);
    s->samples = calloc(layers, sizeof *s->samples);
    if (s->probes == NULL || s->predictions == NULL || s->samples == NULL)
        return err_set(err, ERR_WORK, "out of memory for reading texts");
    const double trained = e->heads == HEAD_FULL ? 1 : (double)e->model->desc.width / e->model->desc.vocab;
    return dist_pool_open(&s->dists, e->ops, e->backend, vocab, 1, err) && open_record(&r->lens, s, 0, err) &&
           open_record(&r->trained, s, trained, err) && open_drafters(r, err) &&
           ((!s->options.lens && !s->options.trained && s->n_features == 0) || open_target(s, err));
}

bool
reading_open(struct reading **out, struct engine *e, const struct reading_options *o, struct err *err)
{
    *out = calloc(1, sizeof **out);
    struct reading_state *s = *out != NULL ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        free(*out);
        *out = NULL;
        return err_set(err, ERR_WORK, "out of memory for reading texts");
    }
    s->engine = e;
    s->options = *o;
    (*out)->state = s;
    if (open_parts(*out, err))
        return true;
    reading_close(*out);
    *out = NULL;
    return false;
}

void
reading_close(struct reading *r)
{
    if (r == NULL)
        return;
    struct reading_state *s = r->state;
    for (uint32_t i = 0; i < r->n_drafters; i++) {
        context_close(s->drafter[i].ctx);
        free(s->drafter[i].fed);
        free(r->drafter[i].read.word);
        free(r->drafter[i].read.run);
    }
    context_close(s->target.ctx);
    dist_pool_close(s->dists);
    layer_record_close(&r->lens);
    layer_record_close(&r->trained);
    free(s->probes);
    free(s->predictions);
    free(s->samples);
    free(s);
    free(r);
}

/* ---- rows ---- */

static token_t
as_read_by(const struct reader *r, token_t token)
{
    return (uint32_t)token < r->vocab ? token : r->unknown;
}

static bool
failed(const struct reader *r, struct err *err)
{
    *err = *context_error(r->ctx);
    return false;
}

/* Returns the number of rows that the model has read of this text. */
static uint32_t
rows_shared(const struct reader *r, const struct part *p)
{
    const uint32_t read = context_length(r->ctx, r->seq);
    uint32_t n = 0;
    while (n < read && n + 1 < p->n &&
           context_token(r->ctx, context_at(r->ctx, r->seq, n)) == as_read_by(r, p->text[n + r->ahead]))
        n++;
    return n;
}

/* Appends the rows at positions at, at + 1, … */
static bool
append_rows(const struct reader *r, const struct part *p, uint32_t at, uint32_t n, slot_t *rows)
{
    for (uint32_t i = 0; i < n; i++) {
        rows[i] =
            context_append(r->ctx, r->seq, i > 0 ? rows[i - 1] : SLOT_NONE, as_read_by(r, p->text[at + i + r->ahead]));
        if (rows[i] == SLOT_NONE)
            return false;
    }
    return true;
}

static bool
read_rows(const struct reader *r, const struct part *p, uint32_t at, uint32_t n, slot_t *rows)
{
    return append_rows(r, p, at, n, rows) && context_advance(r->ctx, rows, n, r->layers, NULL) &&
           context_keep(r->ctx, r->seq, rows, n);
}

/* Reads rows that are not probed, in passes as long as the backend takes. */
static bool
read_before(const struct reader *r, const struct part *p, uint32_t from, uint32_t to)
{
    token_t tokens[8 * CHUNK];
    for (uint32_t at = from, n; at < to; at += n) {
        n = to - at < 8 * CHUNK ? to - at : 8 * CHUNK;
        for (uint32_t i = 0; i < n; i++)
            tokens[i] = as_read_by(r, p->text[at + i]);
        if (!context_prefill(r->ctx, r->seq, tokens, n, NULL, NULL))
            return false;
    }
    return true;
}

/* ---- draft models ---- */

static bool
read_draft_model(struct reading *r, const struct reader *m, struct record_drafter *out, const struct part *p,
                 uint32_t *most)
{
    struct reading_state *s = r->state;
    const uint32_t shared = rows_shared(m, p), start = shared < p->begin ? shared : p->begin;
    slot_t rows[CHUNK];
    *most = p->n - 1 - start > *most ? p->n - 1 - start : *most;
    context_truncate(m->ctx, m->seq, start);
    if (!read_before(m, p, start, p->begin))
        return false;
    for (uint32_t at = p->begin, n; at + 1 < p->n; at += n) {
        n = p->n - 1 - at < CHUNK ? p->n - 1 - at : CHUNK;
        if (!read_rows(m, p, at, n, rows))
            return false;
        for (uint32_t i = 0; i < n; i++)
            s->probes[i] = (struct context_probe){.slot = rows[i], .layer = m->layers, .temperature = 1};
        if (!context_predict(m->ctx, s->probes, n, s->predictions))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            struct draft_word *w = &out->word[at + i - p->first];
            *w = (struct draft_word){.target = p->text[at + i + 1], .acceptance = NAN};
            w->agrees = s->predictions[i].token == w->target;
            memcpy(w->top, s->predictions[i].top, sizeof w->top);
        }
    }
    return true;
}

/* ---- the target ---- */

/* The last layer's predictions of a chunk's rows: final[i] is the text's next token, or, in the prompt, the target's
 * choice, from which policies learn there. */
static bool
look_at_last(struct reading *r, const struct part *p, uint32_t at, uint32_t n, const slot_t *rows, token_t *final)
{
    struct reading_state *s = r->state;
    uint32_t probed[CHUNK], k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool prompt = at + i + 1 < p->from;
        final[i] = p->text[at + i + 1];
        if (prompt ? p->of_prompt && (s->options.lens || s->options.trained) : p->compare) {
            s->probes[k] = (struct context_probe){.slot = rows[i], .layer = s->target.layers, .temperature = 1};
            probed[k++] = i;
        }
    }
    if (!context_predict(s->target.ctx, s->probes, k, s->predictions))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t row = probed[i];
        if (at + row + 1 < p->from) {
            final[row] = s->predictions[i].token;
            continue;
        }
        r->compared++;
        r->own += s->predictions[i].token == final[row];
    }
    return true;
}

/* Adds rows to a record. Layers that are not probed agree and are certain. */
static bool
add_rows(struct reading *r, struct layer_record *out, enum head_choice head, bool probe, const slot_t *rows, uint32_t n,
         const token_t *final)
{
    struct reading_state *s = r->state;
    const uint32_t layers = out->layers, below = probe ? layers - 1 : 0, set = out->cells_base > 0;
    const uint32_t vocab = set ? out->cells_base + draft_recent_count(&s->recent) : s->engine->model->desc.vocab;
    for (uint32_t i = 0; i < n * below; i++)
        s->probes[i] = (struct context_probe){
            .slot = rows[i / below], .layer = i % below + 1, .head = head, .temperature = 1, .set = set};
    if (below > 0 && !context_predict(s->target.ctx, s->probes, (size_t)n * below, s->predictions))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t l = 0; l < layers; l++)
            s->samples[l] =
                l < below ? layer_sample_of(&s->predictions[i * below + l], final[i])
                          : (struct layer_sample){.agrees = true, .confidence = 1, .top_p = {1}, .top = {final[i]}};
        layer_record_add(out, s->samples, vocab);
    }
    return true;
}

static bool
add_to_records(struct reading *r, const struct part *p, uint32_t at, uint32_t n, const slot_t *rows)
{
    token_t final[CHUNK];
    const struct reading_options *o = &r->state->options;
    return look_at_last(r, p, at, n, rows, final) && add_rows(r, &r->lens, USE_LENS, o->lens, rows, n, final) &&
           add_rows(r, &r->trained, USE_TRAINED, o->trained, rows, n, final);
}

/* ---- feature drafters ---- */

/* Gives n rows of a feature drafter, from position `at` on, the target's features there. */
static bool
feed(const struct reading_state *s, const struct reader *d, uint32_t at, uint32_t n, const slot_t *rows)
{
    const size_t width = s->engine->model->desc.width, each = d->n_features * width;
    for (uint32_t i = 0; i < n; i++)
        memcpy(d->fed + i * each,
               context_features(s->target.ctx, context_at(s->target.ctx, s->target.seq, at + i)) + d->feature * width,
               each * sizeof *d->fed);
    return context_feed(d->ctx, rows, n, d->fed);
}

struct chain {    /* drafts that equal the text so far */
    uint32_t row; /* of the record: the pending token's */
    seq_t fork;   /* of the rows before it; SEQ_NONE: none yet */
    slot_t last;  /* the drafter's row that predicts the next draft */
};

/* Drafts one token more for each chain, and appends it to those whose draft equals the text. Returns the number of
 * chains that continue; their new rows have not run. UINT32_MAX: failed. */
static uint32_t
draft_next(struct reading_state *s, const struct reader *d, const struct part *p, uint8_t *run, struct chain *chains,
           uint32_t n)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++)
        s->probes[i] = (struct context_probe){.slot = chains[i].last, .layer = d->layers, .temperature = 1};
    if (!context_predict(d->ctx, s->probes, n, s->predictions))
        return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        struct chain c = chains[i];
        const uint32_t pending = p->first + c.row, next = pending + run[c.row] + 1;
        const bool right = s->predictions[i].token == p->text[next];
        run[c.row] += right;
        if (!right || run[c.row] == READING_CHAIN || next + 1 == p->n) {
            if (c.fork != SEQ_NONE)
                context_drop(d->ctx, c.fork);
            continue;
        }
        c.fork = c.fork != SEQ_NONE ? c.fork : context_fork(d->ctx, d->seq, pending);
        c.last = context_append(d->ctx, c.fork, SLOT_NONE, as_read_by(d, p->text[next]));
        if (c.last == SLOT_NONE)
            return UINT32_MAX;
        chains[left++] = c;
    }
    return left;
}

/* Drafts chains from rows of the drafter, the first of which is at position `at`. */
static bool
draft_chains(struct reading_state *s, const struct reader *d, const struct part *p, uint8_t *run, uint32_t at,
             uint32_t n, const slot_t *rows)
{
    struct chain chains[CHUNK];
    slot_t last[CHUNK];
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) /* the pending token is the one after the row */
        if (at + i + 1 >= p->begin && at + i + 2 < p->n) {
            chains[left] = (struct chain){.row = at + i + 1 - p->first, .fork = SEQ_NONE, .last = rows[i]};
            run[chains[left++].row] = 0;
        }
    while (left > 0 && (left = draft_next(s, d, p, run, chains, left)) > 0) {
        if (left == UINT32_MAX)
            return false;
        for (uint32_t i = 0; i < left; i++)
            last[i] = chains[i].last;
        if (!context_advance(d->ctx, last, left, d->layers, NULL))
            return false;
        for (uint32_t i = 0; i < left; i++) /* so that the ring has room for the next rows */
            if (!context_keep(d->ctx, chains[i].fork, &last[i], 1))
                return false;
    }
    return true;
}

/* A feature drafter reads the rows that the target has just read. */
static bool
follow(struct reading_state *s, const struct reader *d, const struct part *p, uint8_t *run, uint32_t at, uint32_t n)
{
    slot_t rows[CHUNK];
    return append_rows(d, p, at, n, rows) && feed(s, d, at, n, rows) &&
           context_advance(d->ctx, rows, n, d->layers, NULL) && context_keep(d->ctx, d->seq, rows, n) &&
           draft_chains(s, d, p, run, at, n, rows);
}

/* After a failure a drafter's forks are left over. */
static bool
drop_forks(const struct reader *d)
{
    for (seq_t i = 0; i < CHUNK + 1; i++)
        if (i != d->seq)
            context_drop(d->ctx, i);
    return false;
}

/* ---- a part ---- */

/* Returns the first row that the target and the feature drafters read again. */
static uint32_t
first_unread(const struct reading *r, const struct part *p)
{
    const struct reading_state *s = r->state;
    uint32_t start = rows_shared(&s->target, p);
    for (uint32_t i = 0; i < r->n_drafters; i++)
        if (s->drafter[i].ahead > 0 && rows_shared(&s->drafter[i], p) < start)
            start = rows_shared(&s->drafter[i], p);
    return start < p->first ? start : p->first;
}

/* The target and the feature drafters read the part. */
static bool
read_target(struct reading *r, const struct part *p, uint32_t *most, struct err *err)
{
    struct reading_state *s = r->state;
    const struct reader *t = &s->target;
    const uint32_t start = first_unread(r, p);
    slot_t rows[CHUNK];
    *most = p->n - 1 - start;
    context_truncate(t->ctx, t->seq, start);
    context_features_need(t->ctx, t->seq, start);
    for (uint32_t i = 0; i < r->n_drafters; i++)
        if (s->drafter[i].ahead > 0)
            context_truncate(s->drafter[i].ctx, s->drafter[i].seq, start);
    uint32_t at = start;
    if (s->n_features == 0 && !read_before(t, p, start, at = p->first))
        return failed(t, err);
    for (uint32_t n; at + 1 < p->n; at += n) {
        const uint32_t to = at < p->first ? p->first : p->n - 1;
        n = to - at < CHUNK ? to - at : CHUNK;
        if (!read_rows(t, p, at, n, rows) || (at >= p->first && !add_to_records(r, p, at, n, rows)))
            return failed(t, err);
        for (uint32_t i = 0; i < r->n_drafters; i++)
            if (s->drafter[i].ahead > 0 && !follow(s, &s->drafter[i], p, r->drafter[i].read.run, at, n)) {
                failed(&s->drafter[i], err);
                return drop_forks(&s->drafter[i]);
            }
        context_features_need(t->ctx, t->seq, at + n);
    }
    return true;
}

/* Without a target all layers of the records agree and are certain. */
static bool
read_models(struct reading *r, const struct part *p, uint32_t *most, struct err *err)
{
    struct reading_state *s = r->state;
    if (p->compare && !open_target(s, err))
        return false;
    if (s->target.ctx != NULL && !read_target(r, p, most, err))
        return false;
    for (uint32_t at = p->first; s->target.ctx == NULL && at + 1 < p->n; at++)
        if (!add_rows(r, &r->lens, USE_LENS, false, NULL, 1, p->text + at + 1) ||
            !add_rows(r, &r->trained, USE_TRAINED, false, NULL, 1, p->text + at + 1))
            return false;
    for (uint32_t i = 0; i < r->n_drafters; i++) {
        const struct reader *m = &s->drafter[i];
        if (m->ctx != NULL && m->ahead == 0 && !read_draft_model(r, m, &r->drafter[i].read, p, most))
            return failed(m, err);
    }
    return true;
}

static void
begin_record(struct layer_record *out, const struct part *p)
{
    out->n = 0;
    out->first = p->first;
    out->begin = p->begin - p->first;
    out->from_prompt = p->of_prompt;
    out->n_text = p->n;
    memcpy(out->text, p->text, p->n * sizeof *out->text);
}

static void
end_record(struct layer_record *out, const struct draft_rank *rank)
{
    const struct wrong_paths none = {.n_words = 0};
    layer_record_order(out, rank->vocab > 0 ? rank : NULL);
    wrong_paths_estimate(&none, out);
}

/* Makes the set of tokens of the lens' probes. */
static bool
set_draft_vocab(struct reading_state *s, const struct part *p, struct err *err)
{
    const uint32_t base = s->options.draft_vocab;
    s->recent = (struct draft_recent){.base = base};
    if (base == 0 || !s->options.lens)
        return true;
    draft_recent_read(&s->recent, &s->engine->rank, base, p->text, p->n);
    return context_draft_set(s->target.ctx, 1, base, s->recent.token, draft_recent_count(&s->recent)) ||
           failed(&s->target, err);
}

bool
reading_part(struct reading *r, const token_t *text, uint32_t n, uint32_t from, bool first, bool compare,
             struct err *err)
{
    struct reading_state *s = r->state;
    if (from == 0 || from >= n || n - from > READING_ROWS || n > s->options.ctx)
        return err_set(err, ERR_USAGE, "a part of a text from token %u to %u of %u cannot be read", (unsigned)from,
                       (unsigned)n, (unsigned)s->options.ctx);
    const uint32_t begin = first ? from : from - 1, most = s->options.lens || s->options.trained ? RECORD_LEAD : 1;
    const struct part p = {.text = text,
                           .n = n,
                           .from = from,
                           .first = begin > most ? begin - most : 0,
                           .begin = begin,
                           .of_prompt = first,
                           .compare = compare};
    uint32_t read = 0;
    begin_record(&r->lens, &p);
    begin_record(&r->trained, &p);
    if (!set_draft_vocab(s, &p, err) || !read_models(r, &p, &read, err))
        return false;
    end_record(&r->lens, &s->engine->rank);
    end_record(&r->trained, &s->engine->rank);
    r->read += read;
    return true;
}
