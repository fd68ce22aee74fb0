/* Helper models: a context of each, whose rows follow the target's. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/memory.h"
#include "engine/session/session_internal.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/request.h"

#define FOLLOW_TOKENS 256 /* read in a call */
#define FEW_TOKENS    8   /* of a lane, read in one sweep with those of others */

/* ---- all models' contexts ---- */

static token_t
token_for_unknown(const struct tokenizer *t)
{
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_kind(t, (token_t)id) == TOKEN_UNKNOWN)
            return (token_t)id;
    return 0;
}

/* Room for all lanes: each has a trunk of its own, and as many uncommitted rows as a round may have. */
static struct context_options
limits_of(const struct session *s, const struct model *m, enum head_kind heads)
{
    const struct engine *e = s->engine;
    struct context_options limits = {.ctx = s->info.ctx,
                                     .dists = s->dists,
                                     .cancel = &s->mailbox.cancel,
                                     .prompt_rows = e->prompt_rows,
                                     .heads = heads,
                                     .layer_load =
                                         model_layer_bytes(m, e->exact) / model_layer_bytes(e->model, e->exact),
                                     .head_load = model_head_bytes(m, e->exact) / model_head_bytes(e->model, e->exact)};
    const struct store_desc more = store_for_sequences(s->info.ctx, s->n_lanes);
    limits.spare = more.slots - s->info.ctx;
    limits.ring = more.ring;
    limits.seqs = more.seqs;
    return limits;
}

static bool
open_context(struct session *s, const struct model *m, struct weights *weights, enum head_kind heads,
             struct context **ctx, struct err *err)
{
    const struct engine *e = s->engine;
    const struct context_options limits = limits_of(s, m, heads);
    return context_open(ctx, e->ops, e->backend, weights, &m->desc, &limits, err);
}

static bool
open_sequence(struct context *ctx, const struct model *m, seq_t *seq, struct err *err)
{
    *seq = context_sequence(ctx);
    return *seq != SEQ_NONE ||
           err_set(err, ERR_WORK, "the context of %s gave no sequence: %s", m->name, context_error(ctx)->text);
}

static bool
open_lane(struct session *s, struct lane *l, struct err *err)
{
    const struct engine *e = s->engine;
    bool ok = open_sequence(s->ctx, e->model, &l->seq, err);
    for (enum helper_role role = 0; role < HELPERS && ok; role++) {
        struct helper *h = &l->helpers[role];
        h->of = &s->helpers[role];
        ok = h->of->ctx == NULL || open_sequence(h->of->ctx, e->helpers[role].model, &h->seq, err);
    }
    return ok;
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
    bool ok = dist_pool_open(&s->dists, e->ops, e->backend, vocab, STORE_DISTS * s->n_lanes * (models > 1 ? models : 1),
                             err) &&
              open_context(s, e->model, e->weights, e->heads, &s->ctx, err);
    for (enum helper_role role = 0; role < HELPERS && ok; role++) {
        const struct model *m = e->helpers[role].model;
        struct helper_context *h = &s->helpers[role];
        if (m == NULL)
            continue;
        h->vocab = m->desc.vocab;
        h->layers = m->desc.n_layers;
        h->unknown = token_for_unknown(m->tokenizer);
        ok = open_context(s, m, e->helpers[role].weights, HEAD_LENS, &h->ctx, err);
    }
    for (uint32_t i = 0; i < s->n_lanes && ok; i++)
        ok = open_lane(s, &s->lanes[i], err);
    atomic_store(&s->ctx_lanes, s->n_lanes);
    return ok && session_open_acceptance(s, err);
}

void
session_close_contexts(struct session *s)
{
    session_close_acceptance(s);
    for (enum helper_role role = 0; role < HELPERS; role++) {
        context_close(s->helpers[role].ctx);
        s->helpers[role].ctx = NULL;
    }
    context_close(s->ctx);
    dist_pool_close(s->dists);
    s->ctx = NULL;
    s->dists = NULL;
}

/* Of keys and values, which are most of it. */
bool
session_contexts_fit(const struct session *s, uint32_t lanes, struct err *err)
{
    const struct engine *e = s->engine;
    const uint32_t have = atomic_load(&s->ctx_lanes);
    char need[24], there[24];
    uint64_t one = model_kv_bytes(e->model, s->info.ctx, e->exact);
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct model *m = e->helpers[role].model;
        if (m != NULL)
            one += model_kv_bytes(m, s->info.ctx, e->exact);
    }
    const uint64_t more = lanes > have ? one * (lanes - have) : 0, available = memory_available();
    if (more <= available || strcmp(e->ops->name, "cuda") == 0)
        return true;
    return err_set(err, ERR_USAGE, "a context for another sequence needs %s, and %s are left; lower --ctx",
                   memory_text(need, more), memory_text(there, available));
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
lane_helpers_forget(struct lane *l)
{
    for (enum helper_role role = 0; role < HELPERS; role++) {
        if (l->helpers[role].of->ctx != NULL)
            context_truncate(l->helpers[role].of->ctx, l->helpers[role].seq, 0);
        l->helpers[role].looked_at = 0;
    }
    memset(l->final, 0, sizeof l->final);
}

void
lane_helpers_begin(struct lane *l)
{
    for (enum helper_role role = 0; role < HELPERS; role++)
        for (uint32_t node = 0; node < VERIFY_NODES; node++)
            l->helpers[role].row[node] = SLOT_NONE;
}

static token_t
as_read_by(const struct helper_context *h, token_t token)
{
    return (uint32_t)token < h->vocab ? token : h->unknown;
}

static uint32_t
unread(const struct lane *l, enum helper_role role)
{
    return l->n_tokens - context_length(l->helpers[role].of->ctx, l->helpers[role].seq);
}

/* … where its rows are of a class of their own. */
static bool
lacks_prompt(const struct lane *l, enum helper_role role)
{
    return l->session->engine->prompt_rows > 0 && l->n_tokens - unread(l, role) < l->prompt_tokens;
}

/* The run's prompt, whole, so that its rows are the same whenever the helper is asked first. */
static bool
read_prompt(struct lane *l, enum helper_role role, struct prefill_watch *watch)
{
    const struct helper *h = &l->helpers[role];
    token_t *ids = malloc(l->prompt_tokens * sizeof *ids);
    for (uint32_t i = 0; i < l->prompt_tokens && ids != NULL; i++)
        ids[i] = as_read_by(h->of, l->tokens[i]);
    const bool ok =
        ids != NULL && context_prompt(h->of->ctx, h->seq, ids, l->prompt_tokens, session_tell_prefill, watch);
    if (ids == NULL)
        session_fail(l->session, "helper", "not enough memory for the prompt");
    free(ids);
    return ok;
}

static bool
read_many(struct lane *l, enum helper_role role)
{
    const struct helper *h = &l->helpers[role];
    struct prefill_watch watch = {.session = l->session, .since_us = clock_us()};
    const uint32_t n = l->n_tokens;
    if (lacks_prompt(l, role) && !read_prompt(l, role, &watch))
        return false;
    const uint32_t before = n - unread(l, role);
    for (uint32_t at = before; at < n;) {
        token_t part[FOLLOW_TOKENS];
        const uint32_t count = n - at < FOLLOW_TOKENS ? n - at : FOLLOW_TOKENS;
        for (uint32_t i = 0; i < count; i++)
            part[i] = as_read_by(h->of, l->tokens[at + i]);
        if (!context_prefill(h->of->ctx, h->seq, part, count, NULL, NULL))
            return false;
        at += count;
        session_tell_prefill(&watch, (double)(at - before) / (double)(n - before));
    }
    return true;
}

/* The unread tokens of a lane as rows behind its trunk. */
static bool
append_few(const struct lane *l, enum helper_role role, slot_t *rows)
{
    const struct helper *h = &l->helpers[role];
    const uint32_t n = unread(l, role), first = l->n_tokens - n;
    context_truncate(h->of->ctx, h->seq, first); /* what a stopped call left */
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = context_append(h->of->ctx, h->seq, i > 0 ? rows[i - 1] : SLOT_NONE,
                                 as_read_by(h->of, l->tokens[first + i]));
        if (rows[i] == SLOT_NONE)
            return false;
    }
    return true;
}

/* As many lanes as fit into one sweep, none of which has more than a few tokens to read. Returns how many; 0: stopped. */
static uint32_t
read_few(struct lane *const *lanes, uint32_t n, enum helper_role role)
{
    const struct helper_context *h = lanes[0]->helpers[role].of;
    const uint32_t room = context_limits(h->ctx)->max_rows;
    slot_t rows[VERIFY_NODES];
    uint32_t count = 0, taken = 0, at = 0;
    for (; taken < n && count + unread(lanes[taken], role) <= (room < VERIFY_NODES ? room : VERIFY_NODES); taken++) {
        if (!append_few(lanes[taken], role, rows + count))
            return 0;
        count += unread(lanes[taken], role);
    }
    bool ok = context_advance(h->ctx, rows, count, h->layers, NULL);
    for (uint32_t i = 0; i < taken && ok; i++) {
        const uint32_t kept = unread(lanes[i], role);
        ok = kept == 0 || context_keep(h->ctx, lanes[i]->helpers[role].seq, rows + at, kept);
        at += kept;
    }
    return ok ? taken : 0;
}

/* The last row is read anew where its hidden states have gone, or may go as soon as others draft: `old`. */
static void
give_up_old_row(const struct lane *l, enum helper_role role, bool old)
{
    const struct helper *h = &l->helpers[role];
    const uint32_t last = l->n_tokens - 1;
    if (unread(l, role) == 0 && (old || !context_hidden_kept(h->of->ctx, context_at(h->of->ctx, h->seq, last))))
        context_truncate(h->of->ctx, h->seq, last);
}

bool
session_helpers_follow(struct lane *const *lanes, uint32_t n, enum helper_role role)
{
    if (n == 0 || lanes[0]->helpers[role].of->ctx == NULL)
        return true;
    bool many = false;
    for (uint32_t i = 0; i < n; i++)
        if (unread(lanes[i], role) > FEW_TOKENS || lacks_prompt(lanes[i], role)) {
            many = true;
            if (!read_many(lanes[i], role))
                return false;
        }
    for (uint32_t i = 0; i < n; i++)
        give_up_old_row(lanes[i], role, many && n > 1);
    for (uint32_t i = 0; i < n;) {
        const uint32_t taken = read_few(lanes + i, n - i, role);
        if (taken == 0)
            return false;
        i += taken;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct helper *h = &lanes[i]->helpers[role];
        h->row[0] = context_at(h->of->ctx, h->seq, lanes[i]->n_tokens - 1);
    }
    return true;
}

slot_t
lane_helper_row(struct lane *l, struct helper *h, int32_t node)
{
    int32_t missing[VERIFY_NODES];
    uint32_t n = 0;
    const struct round_state *st = &l->state;
    for (int32_t at = node; at >= 0 && h->row[at] == SLOT_NONE; at = st->node[at].parent)
        missing[n++] = at;
    while (n > 0) {
        const struct verify_row *next = &st->node[missing[--n]];
        slot_t *row = &h->row[missing[n]];
        *row = context_append(h->of->ctx, h->seq, next->parent < 0 ? SLOT_NONE : h->row[next->parent],
                              as_read_by(h->of, next->token));
        if (*row == SLOT_NONE) {
            session_fail(l->session, "helper", context_error(h->of->ctx)->text);
            return SLOT_NONE;
        }
    }
    return h->row[node];
}

bool
lane_helpers_keep(struct lane *l, const struct verdict *v, uint32_t n)
{
    bool ok = true;
    for (enum helper_role role = 0; role < HELPERS && ok; role++) {
        struct helper *h = &l->helpers[role];
        struct context *ctx = h->of->ctx;
        slot_t path[VERIFY_NODES];
        uint32_t kept = 0;
        if (ctx == NULL || h->row[0] == SLOT_NONE)
            continue;
        while (kept < n && kept < v->n_path && h->row[v->path[kept]] != SLOT_NONE &&
               context_depth(ctx, h->row[v->path[kept]]) == h->of->layers) {
            path[kept] = h->row[v->path[kept]];
            kept++;
        }
        if (kept > 0)
            ok = context_keep(ctx, h->seq, path, kept);
        else
            context_truncate(ctx, h->seq, context_length(ctx, h->seq));
    }
    return ok;
}
