/* Helper models: a context of each, whose rows follow the target's. */
#include <string.h>

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/request.h"

#define FOLLOW_TOKENS 256 /* read in a call */

/* ---- all models' contexts ---- */

static token_t
token_for_unknown(const struct tokenizer *t)
{
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_kind(t, (token_t)id) == TOKEN_UNKNOWN)
            return (token_t)id;
    return 0;
}

static bool
open_context(struct session *s, const struct model *m, struct weights *weights, enum head_kind heads,
             struct context **ctx, seq_t *seq, struct err *err)
{
    const struct engine *e = s->engine;
    const struct context_options limits = {
        .ctx = s->info.ctx,
        .dists = s->dists,
        .cancel = &s->mailbox.cancel,
        .heads = heads,
        .layer_load = model_layer_bytes(m, e->exact) / model_layer_bytes(e->model, e->exact),
        .head_load = model_head_bytes(m, e->exact) / model_head_bytes(e->model, e->exact)};
    if (!context_open(ctx, e->ops, e->backend, weights, &m->desc, &limits, err))
        return false;
    *seq = context_sequence(*ctx);
    return *seq != SEQ_NONE ||
           err_set(err, ERR_WORK, "the context of %s gave no sequence: %s", m->name, context_error(*ctx)->text);
}

bool
session_open_contexts(struct session *s, struct err *err)
{
    const struct engine *e = s->engine;
    uint32_t vocab = e->model->desc.vocab, models = 0;
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct model *m = e->helpers[role].model;
        vocab = m != NULL && m->desc.vocab > vocab ? m->desc.vocab : vocab;
        models += engine_has(e, role);
    }
    s->unknown = token_for_unknown(e->model->tokenizer);
    if (!dist_pool_open(&s->dists, e->ops, e->backend, vocab, STORE_DISTS * (models > 1 ? models : 1), err) ||
        !open_context(s, e->model, e->weights, e->heads, &s->ctx, &s->seq, err))
        return false;
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct model *m = e->helpers[role].model;
        struct helper *h = &s->helpers[role];
        if (m == NULL)
            continue;
        h->vocab = m->desc.vocab;
        h->layers = m->desc.n_layers;
        h->unknown = token_for_unknown(m->tokenizer);
        if (!open_context(s, m, e->helpers[role].weights, HEAD_LENS, &h->ctx, &h->seq, err))
            return false;
    }
    return session_open_acceptance(s, err);
}

void
session_close_contexts(struct session *s)
{
    session_close_acceptance(s);
    for (enum helper_role role = 0; role < HELPERS; role++)
        context_close(s->helpers[role].ctx);
    context_close(s->ctx);
    dist_pool_close(s->dists);
}

struct loads
session_loads(const struct session *s)
{
    struct loads sum = context_loads(s->ctx);
    sum.heads += s->acceptance.heads;
    for (enum helper_role role = 0; role < HELPERS; role++)
        if (s->helpers[role].ctx != NULL) {
            const struct loads more = context_loads(s->helpers[role].ctx);
            sum.layers += more.layers;
            sum.heads += more.heads;
        }
    return sum;
}

const struct err *
session_error(const struct session *s)
{
    const struct err *e = context_error(s->ctx);
    for (enum helper_role role = 0; role < HELPERS && e->kind == ERR_NONE; role++)
        if (s->helpers[role].ctx != NULL)
            e = context_error(s->helpers[role].ctx);
    return e;
}

/* ---- rows ---- */

void
session_helpers_forget(struct session *s)
{
    for (enum helper_role role = 0; role < HELPERS; role++)
        if (s->helpers[role].ctx != NULL)
            context_truncate(s->helpers[role].ctx, s->helpers[role].seq, 0);
}

void
session_helpers_begin(struct session *s)
{
    for (enum helper_role role = 0; role < HELPERS; role++)
        for (uint32_t node = 0; node < VERIFY_NODES; node++)
            s->helpers[role].row[node] = SLOT_NONE;
}

bool
session_helper_follow(struct session *s, struct helper *h)
{
    if (h->ctx == NULL)
        return true;
    struct prefill_watch watch = {.session = s, .since_us = clock_us()};
    const uint32_t n = s->run.n_tokens, before = context_length(h->ctx, h->seq);
    for (uint32_t at = before; at < n;) {
        token_t part[FOLLOW_TOKENS];
        const uint32_t count = n - at < FOLLOW_TOKENS ? n - at : FOLLOW_TOKENS;
        for (uint32_t i = 0; i < count; i++) {
            const token_t t = s->run.tokens[at + i];
            part[i] = (uint32_t)t < h->vocab ? t : h->unknown;
        }
        if (!context_prefill(h->ctx, h->seq, part, count, NULL, NULL))
            return false;
        at += count;
        session_tell_prefill(&watch, (double)(at - before) / (double)(n - before));
    }
    h->row[0] = context_at(h->ctx, h->seq, n - 1);
    return true;
}

slot_t
session_helper_row(struct session *s, struct helper *h, int32_t node)
{
    int32_t missing[VERIFY_NODES];
    uint32_t n = 0;
    const struct round_state *st = &s->state;
    for (int32_t at = node; at >= 0 && h->row[at] == SLOT_NONE; at = st->node[at].parent)
        missing[n++] = at;
    while (n > 0) {
        const struct verify_row *next = &st->node[missing[--n]];
        const token_t token = (uint32_t)next->token < h->vocab ? next->token : h->unknown;
        h->row[missing[n]] = context_append(h->ctx, h->seq, next->parent < 0 ? SLOT_NONE : h->row[next->parent], token);
        if (h->row[missing[n]] == SLOT_NONE) {
            session_fail(s, "helper", context_error(h->ctx)->text);
            return SLOT_NONE;
        }
    }
    return h->row[node];
}

bool
session_helpers_keep(struct session *s, const struct verdict *v, uint32_t n)
{
    bool ok = true;
    for (enum helper_role role = 0; role < HELPERS && ok; role++) {
        struct helper *h = &s->helpers[role];
        slot_t path[VERIFY_NODES];
        uint32_t kept = 0;
        if (h->ctx == NULL || h->row[0] == SLOT_NONE)
            continue;
        while (kept < n && kept < v->n_path && h->row[v->path[kept]] != SLOT_NONE &&
               context_depth(h->ctx, h->row[v->path[kept]]) == h->layers) {
            path[kept] = h->row[v->path[kept]];
            kept++;
        }
        if (kept > 0)
            ok = context_keep(h->ctx, h->seq, path, kept);
        else
            context_truncate(h->ctx, h->seq, context_length(h->ctx, h->seq));
    }
    return ok;
}
