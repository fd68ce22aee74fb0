/* Rows of auxiliary models, which follow the target's rows; the acceptance head, and a block drafter's confidence
 * head. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/model/trained/accept_head.h"
#include "engine/session/session_internal.h"

#define FOLLOW_TOKENS 256 /* in a call */

void
seq_aux_begin(struct sequence *q)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        q->aux[role].n_fresh = 0;
        for (uint32_t node = 0; node < VERIFY_NODES; node++)
            q->aux[role].row[node] = SLOT_NONE;
    }
}

void
seq_aux_forget(struct sequence *q)
{
    seq_aux_begin(q);
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        if (q->aux[role].of->ctx != NULL)
            context_truncate(q->aux[role].of->ctx, q->aux[role].seq, 0);
        q->aux[role].inspected = 0;
    }
    context_features_need(q->session->ctx, q->seq, 0);
    memset(q->final, 0, sizeof q->final);
}

/* Tokens that the model reads, of those of the sequence: a feature drafter's first row has the second token, and needs
 * the target's row before it. */
static uint32_t
readable(const struct sequence *q, enum aux_role role)
{
    const uint32_t ahead = q->aux[role].of->ahead;
    const uint32_t n = q->n_tokens > ahead ? q->n_tokens - ahead : 0;
    const uint32_t fed = q->aux[role].of->drafter != NULL ? context_length(q->session->ctx, q->seq) : n;
    return fed < n ? fed : n;
}

static uint32_t
unread(const struct sequence *q, enum aux_role role)
{
    return readable(q, role) - context_length(q->aux[role].of->ctx, q->aux[role].seq);
}

/* Appends the tokens at positions first, first + 1, … of the model's trunk. */
static bool
append_rows(const struct sequence *q, enum aux_role role, uint32_t first, uint32_t n, slot_t *rows)
{
    const struct aux_sequence *h = &q->aux[role];
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = context_append(h->of->ctx, h->seq, i > 0 ? rows[i - 1] : SLOT_NONE,
                                 aux_token(h->of, q->tokens[first + i + h->of->ahead]));
        if (rows[i] == SLOT_NONE)
            return false;
    }
    return true;
}

/* Copies the target's features at n positions to rows `at`, … of the drafter's buffer; nothing for other models. */
static bool
copy_features(const struct sequence *q, enum aux_role role, uint32_t first, uint32_t n, uint32_t at)
{
    const struct aux_sequence *h = &q->aux[role];
    struct session *s = q->session;
    const uint32_t width = s->model.width;
    float *to = h->of->drafter != NULL ? h->of->fed + (size_t)at * h->of->n_features * width : NULL;
    if (to == NULL)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const float *kept = context_features(s->ctx, context_at(s->ctx, q->seq, first + i));
        if (kept == NULL)
            return session_fail(s, aux_names[role], "the target's features of a row are lost");
        for (uint32_t k = 0; k < h->of->n_features; k++, to += width)
            memcpy(to, kept + (size_t)h->of->feature[k] * width, width * sizeof *to);
    }
    return true;
}

/* Gives rows of a feature drafter the features in its buffer. */
static bool
feed(const struct aux_context *h, const slot_t *rows, uint32_t n)
{
    return h->drafter == NULL || n == 0 || context_feed(h->ctx, rows, n, h->fed);
}

/* Drops the features that all drafters have read, but for those of the last row, which may be read again. */
static void
forget_features(const struct sequence *q)
{
    const struct session *s = q->session;
    uint32_t first = UINT32_MAX;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (s->aux[role].ctx != NULL && s->aux[role].drafter != NULL) {
            const uint32_t read = context_length(s->aux[role].ctx, q->aux[role].seq);
            first = read < first ? read : first;
        }
    if (first != UINT32_MAX && first > 0 && s->features_window != UINT32_MAX)
        context_features_need(s->ctx, q->seq, first - 1);
}

/* Reads many tokens of a feature drafter. `watch`: NULL if they are not worth a message. */
static bool
read_fed(struct sequence *q, enum aux_role role, struct prefill_watch *watch)
{
    const struct aux_sequence *h = &q->aux[role];
    const uint32_t end = readable(q, role), before = end - unread(q, role);
    const uint32_t room = context_limits(h->of->ctx)->max_rows, most = room < AUX_FED ? room : AUX_FED;
    context_truncate(h->of->ctx, h->seq, before);
    for (uint32_t at = before; at < end;) {
        slot_t rows[AUX_FED];
        const uint32_t n = end - at < most ? end - at : most;
        if (!append_rows(q, role, at, n, rows) || !copy_features(q, role, at, n, 0) || !feed(h->of, rows, n) ||
            !context_advance(h->of->ctx, rows, n, h->of->layers, NULL) || !context_keep(h->of->ctx, h->seq, rows, n))
            return false;
        at += n;
        if (watch != NULL)
            session_emit_prefill(watch, (double)(at - before) / (double)(end - before));
    }
    return true;
}

bool
seq_aux_read_along(struct sequence *q)
{
    const struct session *s = q->session;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (s->aux[role].ctx != NULL && s->aux[role].drafter != NULL && unread(q, role) > s->features_window) {
            if (!read_fed(q, role, NULL))
                return false;
            if ((seq_policy(q)->ops->needs & NEEDS(role)) == 0) /* it has no panel */
                q->aux[role].inspected = context_length(s->aux[role].ctx, q->aux[role].seq);
        }
    forget_features(q);
    return true;
}

static bool
read_many(struct sequence *q, enum aux_role role)
{
    const struct aux_sequence *h = &q->aux[role];
    struct prefill_watch watch = {.session = q->session, .since_us = clock_us()};
    const uint32_t n = q->n_tokens;
    if (h->of->drafter != NULL)
        return read_fed(q, role, &watch);
    const uint32_t before = n - unread(q, role);
    for (uint32_t at = before; at < n;) {
        token_t part[FOLLOW_TOKENS];
        const uint32_t count = n - at < FOLLOW_TOKENS ? n - at : FOLLOW_TOKENS;
        for (uint32_t i = 0; i < count; i++)
            part[i] = aux_token(h->of, q->tokens[at + i]);
        if (!context_prefill(h->of->ctx, h->seq, part, count, NULL, NULL))
            return false;
        at += count;
        session_emit_prefill(&watch, (double)(at - before) / (double)(n - before));
    }
    return true;
}

/* Appends the unread tokens of a sequence to its trunk; their features are rows `at`, … of the buffer. */
static bool
append_few(const struct sequence *q, enum aux_role role, slot_t *rows, uint32_t at)
{
    const struct aux_sequence *h = &q->aux[role];
    const uint32_t n = unread(q, role), first = readable(q, role) - n;
    context_truncate(h->of->ctx, h->seq, first); /* drops rows of a call that was stopped */
    return append_rows(q, role, first, n, rows) && copy_features(q, role, first, n, at);
}

/* Reads the few tokens of as many sequences as fit into one forward pass. Returns their number; 0: stopped. */
static uint32_t
read_few(struct sequence *const *sequences, uint32_t n, enum aux_role role)
{
    const struct aux_context *h = sequences[0]->aux[role].of;
    const uint32_t room = context_limits(h->ctx)->max_rows;
    slot_t rows[VERIFY_NODES];
    uint32_t count = 0, taken = 0, at = 0;
    for (; taken < n && count + unread(sequences[taken], role) <= (room < VERIFY_NODES ? room : VERIFY_NODES);
         taken++) {
        if (!append_few(sequences[taken], role, rows + count, count))
            return 0;
        count += unread(sequences[taken], role);
    }
    bool ok = feed(h, rows, count) && context_advance(h->ctx, rows, count, h->layers, NULL);
    for (uint32_t i = 0; i < taken && ok; i++) {
        const uint32_t kept = unread(sequences[i], role);
        ok = kept == 0 || context_keep(h->ctx, sequences[i]->aux[role].seq, rows + at, kept);
        at += kept;
    }
    return ok ? taken : 0;
}

/* The last row is read again if its hidden states are lost, or may be lost while others draft (`old`). Rows of a block
 * drafter's trunk have none. */
static void
give_up_old_row(const struct sequence *q, enum aux_role role, bool old)
{
    const struct aux_sequence *h = &q->aux[role];
    const uint32_t last = readable(q, role) - 1;
    if (role != AUX_BLOCK && unread(q, role) == 0 && readable(q, role) > 0 &&
        (old || !context_hidden_kept(h->of->ctx, context_at(h->of->ctx, h->seq, last))))
        context_truncate(h->of->ctx, h->seq, last);
}

/* Sequences with many unread tokens read them, each in passes of its own. */
static bool
catch_up(struct sequence *const *sequences, uint32_t n, enum aux_role role)
{
    bool many = false;
    for (uint32_t i = 0; i < n; i++)
        if (unread(sequences[i], role) > AUX_FEW) {
            many = true;
            if (!read_many(sequences[i], role))
                return false;
        }
    for (uint32_t i = 0; i < n; i++)
        give_up_old_row(sequences[i], role, many && n > 1);
    return true;
}

bool
session_aux_follow(struct sequence *const *sequences, uint32_t n, enum aux_role role)
{
    if (n == 0 || sequences[0]->aux[role].of->ctx == NULL)
        return true;
    if (!catch_up(sequences, n, role))
        return false;
    for (uint32_t i = 0; i < n;) {
        const uint32_t taken = read_few(sequences + i, n - i, role);
        if (taken == 0)
            return false;
        i += taken;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct aux_sequence *h = &sequences[i]->aux[role];
        h->row[0] = context_at(h->of->ctx, h->seq, readable(sequences[i], role) - 1);
    }
    return true;
}

bool
session_aux_append(struct sequence *const *sequences, uint32_t n, enum aux_role role)
{
    if (n == 0 || sequences[0]->aux[role].of->ctx == NULL)
        return true;
    if (!catch_up(sequences, n, role))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct aux_sequence *h = &sequences[i]->aux[role];
        const uint32_t fresh = unread(sequences[i], role);
        if (!append_few(sequences[i], role, h->fresh, 0))
            return false;
        h->n_fresh = fresh;
        h->row[0] = fresh > 0 ? h->fresh[fresh - 1] : context_at(h->of->ctx, h->seq, sequences[i]->n_tokens - 1);
    }
    return true;
}

slot_t
seq_aux_row(struct sequence *q, struct aux_sequence *h, int32_t node)
{
    int32_t missing[VERIFY_NODES];
    uint32_t n = 0;
    const struct round_state *st = &q->state;
    for (int32_t at = node; at >= 0 && h->row[at] == SLOT_NONE; at = st->node[at].parent)
        missing[n++] = at;
    while (n > 0) {
        const struct verify_row *next = &st->node[missing[--n]];
        slot_t *row = &h->row[missing[n]];
        *row = context_append(h->of->ctx, h->seq, next->parent < 0 ? SLOT_NONE : h->row[next->parent],
                              aux_token(h->of, next->token));
        if (*row == SLOT_NONE) {
            session_fail(q->session, aux_names[h - q->aux], context_error(h->of->ctx)->text);
            return SLOT_NONE;
        }
    }
    return h->row[node];
}

slot_t
seq_aux_next(const struct sequence *q, const struct aux_sequence *h)
{
    const token_t token = q->tokens[context_length(h->of->ctx, h->seq)];
    return context_append(h->of->ctx, h->seq, SLOT_NONE, aux_token(h->of, token));
}

/* A feature drafter's rows of drafts are dropped: they did not have the target's features. */
bool
seq_aux_keep(struct sequence *q, const struct verdict *v, uint32_t n)
{
    bool ok = true;
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++) {
        struct aux_sequence *h = &q->aux[role];
        struct context *ctx = h->of->ctx;
        slot_t path[AUX_FEW + VERIFY_NODES];
        uint32_t kept = 0;
        if (ctx == NULL || h->row[0] == SLOT_NONE)
            continue;
        memcpy(path, h->fresh, h->n_fresh * sizeof *path);
        while (h->of->drafter == NULL && kept < n && kept < v->n_path && h->row[v->path[kept]] != SLOT_NONE &&
               context_depth(ctx, h->row[v->path[kept]]) == h->of->layers) {
            path[h->n_fresh + kept] = h->row[v->path[kept]];
            kept++;
        }
        if (h->n_fresh + kept > 0)
            ok = context_keep(ctx, h->seq, path, h->n_fresh + kept);
        else
            context_truncate(ctx, h->seq, context_length(ctx, h->seq));
        h->n_fresh = 0;
    }
    return ok;
}

/* ---- the draft model's acceptance head ---- */

bool
session_open_acceptance(struct session *s, struct err *err)
{
    struct acceptance *a = &s->acceptance;
    const struct engine *e = s->engine;
    if (e->accept == NULL)
        return true;
    if (!final_norm_open(&a->norm, &engine_draft_model(e)->desc, err) ||
        !accept_predictor_open(&a->predictor, e->accept, e->threads, err))
        return false;
    a->x = malloc(a->norm.width * sizeof *a->x);
    if (a->x == NULL)
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    a->load = (double)(e->accept->n_values * sizeof *e->accept->values) / model_head_bytes(e->model, e->exact);
    s->info.aux[AUX_DRAFT].accept_load = a->load;
    return true;
}

void
session_close_acceptance(struct session *s)
{
    final_norm_free(&s->acceptance.norm);
    accept_predictor_close(s->acceptance.predictor);
    free(s->acceptance.x);
    s->acceptance = (struct acceptance){.x = NULL};
}

bool
session_acceptance(struct session *s, struct context *ctx, slot_t row, uint32_t layer, double *p)
{
    struct acceptance *a = &s->acceptance;
    if (!context_read_hidden(ctx, row, layer, a->x))
        return false;
    final_norm_apply(&a->norm, a->x, a->x);
    *p = accept_predictor_ask(a->predictor, a->x);
    a->heads += a->load;
    return true;
}

/* ---- the block drafter's confidence head ---- */

bool
session_open_confidence(struct session *s, struct err *err)
{
    struct confidence *c = &s->confidence;
    const struct engine *e = s->engine;
    const struct model *m = e->aux[AUX_BLOCK].model;
    if (m == NULL || !tensor_present(&m->desc.drafter->confidence))
        return true;
    const struct drafter_desc *d = m->desc.drafter;
    if (!final_norm_open(&c->norm, &m->desc, err))
        return false;
    c->x = malloc(d->confidence.cols * sizeof *c->x);
    if (c->x == NULL)
        return err_set(err, ERR_WORK, "out of memory for the confidence head");
    c->load = (double)d->confidence.cols * sizeof *c->x / model_head_bytes(e->model, e->exact);
    s->info.aux[AUX_BLOCK].accept_load = c->load;
    return true;
}

void
session_close_confidence(struct session *s)
{
    final_norm_free(&s->confidence.norm);
    free(s->confidence.x);
    s->confidence = (struct confidence){.x = NULL};
}

bool
session_confidence(struct session *s, slot_t row, token_t before, bool again, float *out)
{
    struct confidence *c = &s->confidence;
    const struct aux_context *h = &s->aux[AUX_BLOCK];
    *out = NAN;
    if (c->x == NULL)
        return true;
    if (!again) {
        if (!context_read_hidden(h->ctx, row, h->layers, c->x))
            return false;
        final_norm_apply(&c->norm, c->x, c->x);
    }
    *out = (float)model_confidence(h->drafter, c->norm.width, c->x, before);
    c->heads += c->load;
    return true;
}
