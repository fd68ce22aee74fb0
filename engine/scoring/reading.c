/* Reads texts in chunks of rows: a chunk goes through each model in one forward pass, and is probed before the ring of
 * hidden states loses its rows. */
#include "engine/scoring/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "engine/context/context.h"
#include "engine/model/tokenizer/tokenizer.h"

#define CHUNK 64 /* rows */

struct reader {          /* a model that reads the text */
    struct context *ctx; /* NULL: none, or the target's own layers */
    seq_t seq;
    uint32_t layers, vocab;
    token_t unknown; /* replaces a token that the model lacks */
    /* Of a feature drafter: its row at position P has the token at P + ahead, 0 in a block drafter, with the target's
     * features at P. feature: the first of its n_features among those that the target keeps; fed: (CHUNK, all of a
     * row's). */
    const struct drafter_desc *form; /* NULL: no feature drafter */
    uint32_t ahead, feature, n_features;
    float *fed;
    struct final_norm norm; /* of a block drafter with a confidence head, which reads x: (confidence.cols) */
    float *x;
    struct record_drafter *read; /* of the part that is read; NULL: the target. The next reader's is that with the bias
                                  * of a block drafter's Markov head */
};

struct reading_state {
    struct reading out;
    struct reading_records *to; /* of the part that is read */
    struct blocks blocks;       /* the memory of all arrays */
    struct engine *engine;
    struct reading_options options;
    struct reader reader[1 + READING_DRAFTS]; /* the target, the drafters */
    uint32_t features[3 * MODEL_FEATURES], n_features;
    bool probes_layers;
    struct context_probe *probes;   /* (CHUNK, L) */
    struct prediction *predictions; /* (CHUNK, L) */
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
open_reader(const struct reading_state *s, struct reader *r, const struct model *m, struct weights *weights,
            struct err *err)
{
    const struct engine *e = s->engine;
    const bool target = m == e->model, forks = r->form != NULL;
    const struct context_options limits = {.ctx = s->options.ctx + (forks ? r->form->block : 0),
                                           .spare = forks ? CHUNK * (READING_CHAIN + 2) : 0,
                                           .ring = forks ? 4 * CHUNK : 0,
                                           .seqs = forks ? CHUNK + 1 : 1,
                                           .max_rows = CHUNK,
                                           .sets = target && s->options.draft_vocab > 0 ? 1 : 0,
                                           .rank = e->rank.ids,
                                           .cancel = s->options.cancel,
                                           .heads = target ? e->heads : HEAD_LENS,
                                           .features = s->features,
                                           .n_features = target ? s->n_features : 0};
    r->layers = m->desc.n_layers;
    r->vocab = m->desc.vocab;
    r->unknown = m->tokenizer != NULL ? tokenizer_unknown(m->tokenizer) : 0;
    if (!context_open(&r->ctx, e->ops, e->backend, weights, &m->desc, &limits, err))
        return false;
    r->seq = context_sequence(r->ctx);
    return true;
}

/* Returns what records have of a drafter with a model of its own, without its predictions. */
static struct record_drafter
describe_drafter(const struct engine *e, enum aux_role role, const struct model *m, bool markov)
{
    const double layer = model_layer_bytes(e->model, e->exact), head = model_head_bytes(e->model, e->exact),
                 own = m->desc.n_layers * model_layer_bytes(m, e->exact), feed = model_feed_bytes(m, true, e->exact);
    struct record_drafter d = {.role = role,
                               .known = true,
                               .pass_load = (own + feed) / layer,
                               .next_load = (own + model_feed_bytes(m, false, e->exact)) / layer,
                               .head_load = model_head_bytes(m, e->exact) / head};
    if (role == AUX_BLOCK) {
        const struct drafter_desc *form = m->desc.drafter;
        d.pass_load = own / layer;
        d.next_load = feed / layer;
        d.block = form->block;
        d.drafts = form->block - !form->from_anchor;
        d.markov = markov;
        d.markov_load = markov ? model_markov_bytes(m, e->exact) / head : 0;
        d.accept_load = form->confidence.cols * sizeof(float) / head;
    }
    return d;
}

/* Opens the context of a drafter. It reads the features that the target keeps, from number s->n_features on. */
static bool
open_own_reader(struct reading_state *s, struct reader *r, const struct aux_model *of, struct err *err)
{
    const struct model *m = of->model;
    if (m->desc.drafter != NULL) {
        *r = (struct reader){.form = m->desc.drafter,
                             .ahead = m->desc.drafter->block > 0 ? 0 : 1,
                             .feature = s->n_features,
                             .n_features = m->n_features};
        r->fed = blocks_take(&s->blocks, (size_t)CHUNK * m->n_features * s->engine->model->desc.width, sizeof *r->fed);
        memcpy(s->features + s->n_features, m->features, m->n_features * sizeof *m->features);
        s->n_features += m->n_features;
    }
    r->x = r->form != NULL ? blocks_take(&s->blocks, r->form->confidence.cols, sizeof *r->x) : NULL;
    return (r->form == NULL || r->form->confidence.cols == 0 || final_norm_open(&r->norm, &m->desc, err)) &&
           open_reader(s, r, m, of->weights, err);
}

/* Adds a drafter whose model is its own, or the target's first layers, which need the lens but no reader. The one with
 * the bias of a Markov head has the reader of the drafter before it. */
static bool
open_drafter(struct reading_state *s, enum aux_role role, const struct aux_model *of, int32_t draft, bool markov,
             struct err *err)
{
    const struct model *m = of->model;
    const uint32_t number = s->out.n_drafters;
    struct reading_drafter *d = &s->out.drafter[number];
    struct record_drafter read = {.role = role, .known = true, .exit_layer = of->exit_layer};
    if ((m == NULL && !(of->exit_layer > 0 && s->options.lens)) || number == READING_DRAFTS ||
        (markov && !tensor_present(&m->desc.drafter->markov_w1)))
        return true;
    s->out.n_drafters++;
    *d = (struct reading_drafter){.role = role, .draft = draft, .markov = markov};
    snprintf(d->name, sizeof d->name, "self:%u", (unsigned)of->exit_layer);
    if (m != NULL) {
        snprintf(d->name, sizeof d->name, "%s", m->name);
        read = describe_drafter(s->engine, role, m, markov);
    }
    for (uint32_t i = 0; i < READING_PARTS; i++) {
        const size_t drafts = (size_t)READING_RECORD * read.drafts;
        read.word = m != NULL ? blocks_take(&s->blocks, READING_RECORD, sizeof *read.word) : NULL;
        read.run = m != NULL ? blocks_take(&s->blocks, READING_RECORD, sizeof *read.run) : NULL;
        read.confidence = drafts > 0 ? blocks_take(&s->blocks, drafts, sizeof *read.confidence) : NULL;
        s->out.part[i].draft[number] = read;
    }
    return m == NULL || markov || open_own_reader(s, &s->reader[1 + number], of, err);
}

static bool
open_record(struct layer_record *r, const struct reading_state *s, double trained, struct err *err)
{
    const uint32_t layers = s->engine->model->desc.n_layers;
    if (!layer_record_open_room(r, layers, READING_RECORD, s->options.ctx, err))
        return false;
    r->trained = trained > 0;
    r->head_load = trained < 1 ? 1 + trained : 1;
    r->layers_load = 1 + (layers - 1) * trained;
    r->probes = KV_CACHE_PROBES;
    r->cells_base = s->options.lens && !r->trained ? s->options.draft_vocab : 0;
    return true;
}

bool
reading_open(struct reading **out, struct engine *e, const struct reading_options *o, struct err *err)
{
    const struct model_desc *d = &e->model->desc;
    const double trained = e->heads == HEAD_FULL ? 1 : (double)d->width / d->vocab;
    struct reading_state *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory for reading texts");
    s->out.state = s;
    s->engine = e;
    s->options = *o;
    s->probes_layers = o->lens || o->trained;
    s->probes = blocks_take(&s->blocks, (size_t)CHUNK * d->n_layers, sizeof *s->probes);
    s->predictions = blocks_take(&s->blocks, (size_t)CHUNK * d->n_layers, sizeof *s->predictions);
    bool ok = true;
    for (struct reading_records *r = s->out.part; r < s->out.part + READING_PARTS && ok; r++)
        ok = open_record(&r->lens, s, 0, err) && (!o->trained || open_record(&r->trained, s, trained, err));
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++)
        ok = role == AUX_COMPANION ||
             (open_drafter(s, role, &e->aux[role], -1, false, err) &&
              (role != AUX_BLOCK || e->aux[role].model == NULL || open_drafter(s, role, &e->aux[role], -1, true, err)));
    for (uint32_t i = 0; i < o->n_drafts && ok; i++)
        ok = open_drafter(s, AUX_DRAFT, &o->drafts[i].model, (int32_t)i, false, err);
    ok = ok && open_reader(s, s->reader, e->model, e->weights, err) &&
         (!s->blocks.starved || err_set(err, ERR_WORK, "out of memory for reading texts"));
    *out = ok ? &s->out : NULL;
    if (!ok)
        reading_close(&s->out);
    return ok;
}

void
reading_close(struct reading *r)
{
    if (r == NULL)
        return;
    struct reading_state *s = r->state;
    for (uint32_t i = 0; i <= r->n_drafters; i++) {
        context_close(s->reader[i].ctx);
        final_norm_free(&s->reader[i].norm);
    }
    for (uint32_t i = 0; i < READING_PARTS; i++) {
        layer_record_close(&r->part[i].lens);
        layer_record_close(&r->part[i].trained);
    }
    blocks_free(&s->blocks);
    free(s);
}

/* ---- rows ---- */

static token_t
as_read_by(const struct reader *r, token_t token)
{
    return (uint32_t)token < r->vocab ? token : r->unknown;
}

/* Returns the number of rows that the model has read of this text, `most` at most. */
static uint32_t
rows_shared(const struct reader *r, const struct part *p, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && n < context_length(r->ctx, r->seq) &&
           context_token(r->ctx, context_at(r->ctx, r->seq, n)) == as_read_by(r, p->text[n + r->ahead]))
        n++;
    return n;
}

/* A model reads the rows at positions at, at + 1, …; a feature drafter with the features of the target's rows there. */
static bool
read_rows(const struct reading_state *s, const struct reader *r, const struct part *p, uint32_t at, uint32_t n,
          slot_t *rows)
{
    const size_t width = s->engine->model->desc.width, each = r->n_features * width;
    for (uint32_t i = 0; i < n; i++) {
        const token_t token = as_read_by(r, p->text[at + i + r->ahead]);
        if ((rows[i] = context_append(r->ctx, r->seq, i > 0 ? rows[i - 1] : SLOT_NONE, token)) == SLOT_NONE)
            return false;
        const slot_t fed = r->form != NULL ? context_at(s->reader->ctx, s->reader->seq, at + i) : SLOT_NONE;
        if (r->form != NULL)
            memcpy(r->fed + i * each, context_features(s->reader->ctx, fed) + r->feature * width,
                   each * sizeof *r->fed);
    }
    return (r->form == NULL || context_feed(r->ctx, rows, n, r->fed)) &&
           context_advance(r->ctx, rows, n, r->layers, NULL) && context_keep(r->ctx, r->seq, rows, n);
}

/* ---- predictions ---- */

/* Adds rows to a record. Layers that are not probed agree and are certain. The last one is compared with the text; in
 * the prompt, its choice is what the others have to agree with. */
static bool
add_rows(struct reading_state *s, const struct part *p, struct layer_record *out, bool probe, uint32_t at, uint32_t n,
         const slot_t *rows)
{
    const bool prompt = at + 1 < p->from, lens = out == &s->to->lens;
    const uint32_t set = out->cells_base > 0, vocab = s->engine->model->desc.vocab,
                   known = set ? out->cells_base + draft_recent_count(&s->recent) : vocab, layers = out->layers,
                   below = probe ? layers - 1 : 0, last = prompt ? p->of_prompt && probe : p->compare && lens,
                   each = below + last;
    for (uint32_t i = 0; i < n * each; i++) {
        const uint32_t l = i % each < below ? i % each + 1 : layers;
        s->probes[i] = (struct context_probe){.slot = rows[i / each],
                                              .layer = l,
                                              .head = lens ? USE_LENS : USE_TRAINED,
                                              .temperature = 1,
                                              .set = l < layers ? set : 0};
    }
    struct layer_sample samples[RUN_LAYERS_MOST];
    if (each > 0 && !context_predict(s->reader->ctx, s->probes, (size_t)n * each, s->predictions))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct prediction *of = &s->predictions[i * each];
        const token_t next = p->text[at + i + 1], final = prompt && last ? of[below].token : next;
        for (uint32_t l = 0; l < layers; l++)
            samples[l] = l < below
                             ? layer_sample_of(&of[l], final)
                             : (struct layer_sample){.agrees = true, .confidence = 1, .top_p = {1}, .top = {final}};
        layer_record_add(out, samples, known);
        s->out.compared += !prompt && last;
        s->out.own += !prompt && last && of[below].token == next;
    }
    return true;
}

static bool
add_to_records(struct reading_state *s, const struct part *p, uint32_t at, uint32_t n, const slot_t *rows)
{
    return add_rows(s, p, &s->to->lens, s->options.lens, at, n, rows) &&
           (!s->options.trained || add_rows(s, p, &s->to->trained, true, at, n, rows));
}

/* Predicts the tokens after rows of a drafter. before: of a block drafter's rows whose logits are kept, the tokens whose
 * bias increases them; NULL: of other rows. */
static bool
predict(const struct reading_state *s, const struct reader *r, const slot_t *rows, uint32_t n, const token_t *before)
{
    for (uint32_t i = 0; i < n; i++)
        s->probes[i] = (struct context_probe){.slot = rows[i],
                                              .layer = r->layers,
                                              .temperature = 1,
                                              .kept = before != NULL,
                                              .before = before != NULL ? before[i] : TOKEN_NONE};
    return context_predict(r->ctx, s->probes, n, s->predictions);
}

static bool
add_words(const struct reading_state *s, const struct part *p, const struct reader *r, uint32_t at, uint32_t n,
          const slot_t *rows)
{
    if (!predict(s, r, rows, n, NULL))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct prediction *of = &s->predictions[i];
        struct draft_word *w = &r->read->word[at + i - p->first];
        *w = (struct draft_word){.target = p->text[at + i + 1], .acceptance = NAN};
        w->agrees = of->token == w->target;
        memcpy(w->top, of->top, sizeof w->top);
    }
    return true;
}

/* Drafts chains from rows of a feature drafter, as long as they equal the text. The pending token is the one after the
 * row. Each chain has a fork of the rows before it, in which its drafts are kept, so that the ring has room for all. */
static bool
draft_chains(const struct reading_state *s, const struct part *p, const struct reader *r, uint32_t at, uint32_t n,
             const slot_t *rows)
{
    struct chain {
        uint32_t pending; /* position */
        seq_t fork;       /* SEQ_NONE: none yet */
    } chains[CHUNK];
    slot_t last[CHUNK];
    uint32_t live = 0;
    for (uint32_t i = 0; i < n; i++)
        if (at + i + 1 >= p->begin && at + i + 2 < p->n) {
            chains[live] = (struct chain){at + i + 1, SEQ_NONE};
            r->read->run[at + i + 1 - p->first] = 0;
            last[live++] = rows[i];
        }
    while (live > 0) {
        const uint32_t all = live;
        if (!predict(s, r, last, all, NULL))
            return false;
        live = 0;
        for (uint32_t i = 0; i < all; i++) {
            struct chain c = chains[i];
            uint8_t *right = &r->read->run[c.pending - p->first];
            const uint32_t next = c.pending + *right + 1;
            const bool equal = s->predictions[i].token == p->text[next];
            *right += equal;
            if (equal && *right < READING_CHAIN && next + 1 < p->n) {
                c.fork = c.fork != SEQ_NONE ? c.fork : context_fork(r->ctx, r->seq, c.pending);
                last[live] = context_append(r->ctx, c.fork, SLOT_NONE, as_read_by(r, p->text[next]));
                chains[live++] = c;
            } else if (c.fork != SEQ_NONE) {
                context_drop(r->ctx, c.fork);
            }
        }
        if (!context_advance(r->ctx, last, live, r->layers, NULL))
            return false;
        for (uint32_t i = 0; i < live; i++)
            if (!context_keep(r->ctx, chains[i].fork, &last[i], 1))
                return false;
    }
    return true;
}

struct read_blocks { /* blocks with the pending tokens at positions first, first + 1, … */
    uint32_t first, n;
    slot_t rows[CHUNK];    /* (n, block), */
    slot_t drafts[CHUNK];  /* (drafts, n): those of them that predict drafts, by draft */
    token_t before[CHUNK]; /* (n) the token before the next draft */
};

/* Returns the confidence head's value for a row's draft, after the token before it; NAN: there is none, or the row is
 * lost. */
static double
confidence(const struct reader *r, slot_t row, token_t before)
{
    if (r->form->confidence.cols == 0 || !context_read_hidden(r->ctx, row, r->layers, r->x))
        return NAN;
    final_norm_apply(&r->norm, r->x, r->x);
    return model_confidence(r->form, r->norm.width, r->x, before);
}

/* Takes draft number i of all blocks from predictions (n). */
static void
take_drafts(const struct part *p, const struct reader *r, struct record_drafter *read, struct read_blocks *b,
            uint32_t i, const struct prediction *of)
{
    for (uint32_t k = 0; k < b->n; k++) {
        const uint32_t pending = b->first + k, row = pending - p->first, at = pending + 1 + i;
        const double by_head = confidence(r, b->drafts[i * b->n + k], b->before[k]);
        if (read->run[row] == i && at < p->n && of[k].token == p->text[at])
            read->run[row]++;
        read->confidence[row * read->drafts + i] = isnan(by_head) ? of[k].confidence : (float)by_head;
        b->before[k] = as_read_by(r, of[k].token);
    }
}

/* Predicts the drafts of all blocks: in one head call, and, with the bias of the Markov head, one after the other. */
static bool
predict_blocks(const struct reading_state *s, const struct part *p, const struct reader *r, struct read_blocks *b)
{
    const bool markov = tensor_present(&r->form->markov_w1);
    bool ok = predict(s, r, b->drafts, b->n * r->read->drafts, NULL);
    for (uint32_t bias = 0; bias <= markov && ok; bias++) {
        struct record_drafter *read = r[bias].read;
        for (uint32_t i = 0; i < read->drafts && ok; i++) {
            for (uint32_t k = 0; k < b->n && i == 0; k++) {
                read->run[b->first + k - p->first] = 0;
                b->before[k] = as_read_by(r, p->text[b->first + k]);
            }
            ok = bias == 0 || predict(s, r, b->drafts + i * b->n, b->n, b->before);
            if (ok)
                take_drafts(p, r, read, b, i, s->predictions + (bias == 0 ? i * b->n : 0));
        }
    }
    return ok;
}

/* Drafts blocks from rows of a block drafter: as many in one pass as it has rows for. Each block has a fork of the rows
 * before it. */
static bool
draft_blocks(const struct reading_state *s, const struct part *p, const struct reader *r, uint32_t at, uint32_t n)
{
    const uint32_t block = r->form->block, drafts = r->read->drafts, end = at + n + 1 < p->n ? at + n + 1 : p->n - 1;
    struct read_blocks b = {.first = at + 1 > p->begin ? at + 1 : p->begin};
    bool ok = true;
    for (; b.first < end && ok; b.first += b.n) {
        seq_t fork[CHUNK];
        b.n = end - b.first < CHUNK / block ? end - b.first : CHUNK / block;
        for (uint32_t k = 0; k < b.n; k++) {
            slot_t *row = &b.rows[k * block];
            fork[k] = context_fork(r->ctx, r->seq, b.first + k);
            for (uint32_t i = 0; i < block; i++)
                row[i] = context_append(r->ctx, fork[k], i > 0 ? row[i - 1] : SLOT_NONE,
                                        i > 0 ? r->form->mask : as_read_by(r, p->text[b.first + k]));
            for (uint32_t i = 0; i < drafts; i++)
                b.drafts[i * b.n + k] = row[block - drafts + i];
        }
        ok = context_advance(r->ctx, b.rows, b.n * block, r->layers, NULL) && predict_blocks(s, p, r, &b);
        for (uint32_t k = 0; k < b.n; k++)
            context_drop(r->ctx, fork[k]);
    }
    return ok;
}

/* ---- a part ---- */

/* Sets all but the cells of a record. */
static void
complete(struct layer_record *out, const struct part *p, const struct draft_rank *rank)
{
    const struct wrong_paths none = {.n_words = 0};
    out->first = p->first;
    out->begin = p->begin - p->first;
    out->from_prompt = p->of_prompt;
    out->n_text = p->n;
    memcpy(out->text, p->text, p->n * sizeof *out->text);
    layer_record_order(out, rank->vocab > 0 ? rank : NULL);
    wrong_paths_estimate(&none, out);
}

/* The models from `first` on read a chunk. Without the target the records have rows without predictions. */
static bool
read_chunk(struct reading_state *s, const struct part *p, const struct reader *first, uint32_t at, uint32_t n)
{
    slot_t rows[CHUNK];
    const bool recorded = at >= p->first;
    if (first > s->reader && recorded && !add_to_records(s, p, at, n, NULL))
        return false;
    for (const struct reader *r = first; r <= s->reader + s->out.n_drafters; r++) {
        bool ok = r->ctx == NULL || read_rows(s, r, p, at, n, rows);
        if (ok && r->form != NULL)
            ok = r->form->block > 0 ? draft_blocks(s, p, r, at, n) : draft_chains(s, p, r, at, n, rows);
        else if (ok && r->ctx != NULL && recorded)
            ok = r == s->reader ? add_to_records(s, p, at, n, rows) : add_words(s, p, r, at, n, rows);
        if (!ok)
            return false;
    }
    if (s->n_features > 0)
        context_features_need(s->reader->ctx, s->reader->seq, at + n);
    return true;
}

/* Reads the rows that not all models have read, or that are the record's. */
static bool
read_models(struct reading_state *s, const struct part *p, struct err *err)
{
    const bool target = s->probes_layers || s->n_features > 0 || p->compare;
    const struct reader *const first = s->reader + !target, *const end = s->reader + 1 + s->out.n_drafters;
    uint32_t start = p->first;
    for (const struct reader *r = first; r < end; r++)
        start = r->ctx != NULL ? rows_shared(r, p, start) : start;
    for (const struct reader *r = first; r < end; r++)
        if (r->ctx != NULL)
            context_truncate(r->ctx, r->seq, start);
    if (s->n_features > 0)
        context_features_need(s->reader->ctx, s->reader->seq, start);
    s->to->lens.n = s->to->trained.n = 0;
    bool ok = s->to->lens.cells_base == 0 ||
              context_draft_set(s->reader->ctx, 1, s->recent.base, s->recent.token, draft_recent_count(&s->recent));
    for (uint32_t at = start, n; at + 1 < p->n && ok; at += n) {
        const uint32_t to = at < p->first ? p->first : at + 1 < p->from ? p->from - 1 : p->n - 1;
        n = to - at < CHUNK ? to - at : CHUNK;
        ok = read_chunk(s, p, first, at, n);
        s->out.read += n;
    }
    for (const struct reader *r = first; r < end && !ok; r++)
        if (r->ctx != NULL && context_error(r->ctx)->kind != ERR_NONE)
            *err = *context_error(r->ctx);
    return ok;
}

bool
reading_part(struct reading *r, uint32_t i, const token_t *text, uint32_t n, uint32_t from, bool first, bool compare,
             struct err *err)
{
    struct reading_state *s = r->state;
    const struct draft_rank *rank = &s->engine->rank;
    const uint32_t begin = first ? from : from - 1, lead = s->probes_layers ? RECORD_LEAD : 1;
    const struct part p = {text, n, from, begin > lead ? begin - lead : 0, begin, first, compare};
    if (n > s->options.ctx)
        return err_set(err, ERR_USAGE, "a text of %u tokens cannot be read: the context has %u positions", (unsigned)n,
                       (unsigned)s->options.ctx);
    s->to = &r->part[i];
    for (uint32_t k = 0; k < r->n_drafters; k++)
        s->reader[1 + k].read = &s->to->draft[k];
    s->recent = (struct draft_recent){.base = s->to->lens.cells_base};
    if (s->recent.base > 0)
        draft_recent_read(&s->recent, rank, s->recent.base, text, n);
    if (!read_models(s, &p, err))
        return false;
    complete(&s->to->lens, &p, rank);
    if (s->options.trained)
        complete(&s->to->trained, &p, rank);
    return true;
}
