/* The contexts of all models, which share one pool of distributions. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/memory.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/session/session_internal.h"
#include "kernels/request.h"

/* Each sequence needs a trunk, and the uncommitted rows of a round. */
static struct context_options
limits_of(const struct session *s, const struct model *m, enum head_kind heads, const token_t *rank)
{
    const struct engine *e = s->engine;
    const uint32_t block = m->desc.drafter != NULL ? m->desc.drafter->block : 0; /* may end after the context */
    struct context_options limits = {.ctx = s->info.ctx + block,
                                     .dists = s->dists,
                                     .cancel = &s->mailbox.cancel,
                                     .heads = heads,
                                     .layer_load =
                                         model_layer_bytes(m, e->exact) / model_layer_bytes(e->model, e->exact),
                                     .head_load = model_head_bytes(m, e->exact) / model_head_bytes(e->model, e->exact)};
    const struct kv_cache_desc more = kv_cache_for_sequences(limits.ctx, s->n_sequences);
    limits.spare = more.slots - limits.ctx;
    limits.ring = more.ring;
    limits.seqs = more.seqs;
    limits.sets = e->ops->draft_set != NULL && rank != NULL ? s->n_sequences : 0;
    limits.rank = rank;
    if (m == e->model) {
        limits.features = s->features;
        limits.n_features = s->n_features;
    }
    limits.feed_load = model_feed_bytes(m, true, e->exact) / model_layer_bytes(m, e->exact);
    limits.refeed_load = model_feed_bytes(m, false, e->exact) / model_layer_bytes(m, e->exact);
    return limits;
}

static bool
open_context(struct session *s, const struct model *m, struct weights *weights, enum head_kind heads,
             const token_t *rank, struct context **ctx, struct err *err)
{
    const struct engine *e = s->engine;
    const struct context_options limits = limits_of(s, m, heads, rank);
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
open_sequences(struct session *s, struct sequence *q, struct err *err)
{
    const struct engine *e = s->engine;
    bool ok = open_sequence(s->ctx, e->model, &q->seq, err);
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++) {
        struct aux_sequence *h = &q->aux[role];
        h->of = &s->aux[role];
        ok = h->of->ctx == NULL || open_sequence(h->of->ctx, e->aux[role].model, &h->seq, err);
    }
    return ok;
}

/* Lists the features that drafters read; each layer is kept once. */
static bool
choose_features(struct session *s, struct err *err)
{
    s->n_features = 0;
    uint32_t window = UINT32_MAX;
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        const struct model *m = s->engine->aux[role].model;
        struct aux_context *h = &s->aux[role];
        h->drafter = m != NULL ? m->desc.drafter : NULL;
        h->ahead = h->drafter != NULL && role != AUX_BLOCK;
        h->predicts = role == AUX_BLOCK && h->drafter != NULL ? h->drafter->from_anchor : 1 + h->ahead;
        h->n_features = h->drafter != NULL ? m->n_features : 0;
        if (h->n_features > 0 && model_features_window(m, s->engine->model) < window)
            window = model_features_window(m, s->engine->model);
        for (uint32_t i = 0; i < h->n_features; i++) {
            uint32_t at = 0;
            while (at < s->n_features && s->features[at] != m->features[i])
                at++;
            s->features[at] = m->features[i];
            s->n_features += at == s->n_features;
            h->feature[i] = at;
        }
        const size_t bytes = (size_t)AUX_FED * h->n_features * s->model.width * sizeof *h->fed;
        if (bytes > 0 && (h->fed = malloc(bytes)) == NULL)
            return err_set(err, ERR_WORK, "out of memory for the features of a drafter");
    }
    window /= s->n_sequences;
    s->features_window = window > AUX_FED ? window : AUX_FED;
    return true;
}

/* Orders the vocabulary of an auxiliary model as the target's; NULL for a drafter with a vocabulary of its own, and for
 * a block drafter. */
static bool
rank_for(const struct session *s, const struct model *m, struct aux_context *h, struct err *err)
{
    const struct draft_rank *rank = &s->engine->rank;
    uint32_t n = 0;
    if (m->desc.drafter != NULL && (m->desc.drafter->tokens != NULL || m->desc.drafter->block > 0))
        return true;
    h->rank = calloc(h->vocab, sizeof *h->rank);
    if (h->rank == NULL)
        return err_set(err, ERR_WORK, "out of memory for an order of %u tokens", (unsigned)h->vocab);
    for (uint32_t i = 0; i < rank->vocab; i++)
        if ((uint32_t)rank->ids[i] < h->vocab)
            h->rank[n++] = rank->ids[i];
    while (n < h->vocab) {
        h->rank[n] = (token_t)n;
        n++;
    }
    return true;
}

bool
session_open_contexts(struct session *s, struct err *err)
{
    const struct engine *e = s->engine;
    uint32_t vocab = e->model->desc.vocab, models = 0;
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        const struct model *m = e->aux[role].model;
        vocab = m != NULL && m->desc.vocab > vocab ? m->desc.vocab : vocab;
        models += engine_has(e, role);
    }
    s->unknown = tokenizer_unknown(e->model->tokenizer);
    bool ok = choose_features(s, err) &&
              dist_pool_open(&s->dists, e->ops, e->backend, vocab,
                             KV_CACHE_DISTS * s->n_sequences * (models > 1 ? models : 1), err) &&
              open_context(s, e->model, e->weights, e->heads, e->rank.ids, &s->ctx, err);
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++) {
        const struct model *m = e->aux[role].model;
        struct aux_context *h = &s->aux[role];
        if (m == NULL)
            continue;
        h->vocab = m->desc.vocab;
        h->layers = m->desc.n_layers;
        h->unknown = m->tokenizer != NULL ? tokenizer_unknown(m->tokenizer) : 0;
        ok = rank_for(s, m, h, err) && open_context(s, m, e->aux[role].weights, HEAD_LENS, h->rank, &h->ctx, err);
    }
    for (uint32_t i = 0; i < s->n_sequences && ok; i++)
        ok = open_sequences(s, &s->sequences[i], err);
    atomic_store(&s->ctx_sequences, s->n_sequences);
    return ok && session_open_acceptance(s, err) && session_open_confidence(s, err);
}

void
session_close_contexts(struct session *s)
{
    session_close_acceptance(s);
    session_close_confidence(s);
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        context_close(s->aux[role].ctx);
        s->aux[role].ctx = NULL;
        free(s->aux[role].fed);
        free(s->aux[role].rank);
        s->aux[role].fed = NULL;
        s->aux[role].rank = NULL;
    }
    context_close(s->ctx);
    dist_pool_close(s->dists);
    s->ctx = NULL;
    s->dists = NULL;
}

/* Compares the sizes of the KV caches, which are most of a context. */
bool
session_contexts_fit(const struct session *s, uint32_t sequences, struct err *err)
{
    const struct engine *e = s->engine;
    const uint32_t have = atomic_load(&s->ctx_sequences);
    char need[24], there[24];
    uint64_t one = model_kv_bytes(e->model, s->info.ctx, e->exact);
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        const struct model *m = e->aux[role].model;
        if (m != NULL)
            one += model_kv_bytes(m, s->info.ctx, e->exact) + model_features_bytes(m, e->model, s->info.ctx);
    }
    const uint64_t more = sequences > have ? one * (sequences - have) : 0, available = memory_available();
    if (more <= available || strcmp(e->ops->name, "cuda") == 0)
        return true;
    return err_set(err, ERR_USAGE, "a context for another sequence needs %s, and %s are left; lower --ctx",
                   memory_text(need, more), memory_text(there, available));
}

struct loads
session_loads(const struct session *s)
{
    struct loads sum = context_loads(s->ctx);
    sum.heads += s->acceptance.heads + s->confidence.heads;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (s->aux[role].ctx != NULL) {
            const struct loads more = context_loads(s->aux[role].ctx);
            sum.layers += more.layers;
            sum.heads += more.heads;
        }
    return sum;
}

const struct err *
session_error(const struct session *s)
{
    const struct err *e = context_error(s->ctx);
    for (enum aux_role role = 0; role < AUX_MODELS && e->kind == ERR_NONE; role++)
        if (s->aux[role].ctx != NULL)
            e = context_error(s->aux[role].ctx);
    return e;
}
