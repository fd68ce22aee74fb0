#include "engine/session/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/memory.h"
#include "engine/model/token_rank.h"
#include "engine/session/engine_internal.h"
#include "kernels/plugin.h"

/* ---- which backend ---- */

/* Opens the CUDA backend. On failure *serious is set if the plug-in is broken or the machine has a GPU. */
static bool
open_cuda(struct engine *e, const struct backend_options *options, bool *serious, struct err *err)
{
    const enum plugin_state state = plugin_load(&e->ops, err);
    const bool ok = state == PLUGIN_LOADED && e->ops->open(&e->backend, options, err);
    *serious = state == PLUGIN_BROKEN || plugin_gpu_in_sight();
    return ok;
}

static bool
open_cpu(struct engine *e, const struct backend_options *options, struct err *err)
{
    e->ops = &cpu_backend;
    return e->ops->open(&e->backend, options, err);
}

/* Notes why the CPU computes, without the error's advice to take the CPU. */
static void
note_fallback(struct engine *e, const struct err *why)
{
    static const char intro[] = "backend cuda: ";
    const char *text = why->text;
    if (strncmp(text, intro, sizeof intro - 1) == 0)
        text += sizeof intro - 1;
    const char *advice = strstr(text, "; ");
    snprintf(e->note, sizeof e->note, "on the CPU: %.*s", advice != NULL ? (int)(advice - text) : (int)strlen(text),
             text);
}

static bool
open_backend(struct engine *e, const struct engine_options *o, const struct backend_options *options, struct err *err)
{
    const char *name = o->backend != NULL ? o->backend : "auto";
    bool serious;
    if (o->ops != NULL) {
        e->ops = o->ops;
        return e->ops->open(&e->backend, options, err);
    }
    if (strcmp(name, "cuda") == 0)
        return open_cuda(e, options, &serious, err);
    if (strcmp(name, "auto") == 0) {
        struct err why = {.kind = ERR_NONE};
        if (open_cuda(e, options, &serious, &why))
            return true;
        if (serious || o->backend != NULL || options->gpu >= 0)
            note_fallback(e, &why);
        return open_cpu(e, options, err);
    }
    if (strcmp(name, "cpu") == 0)
        return open_cpu(e, options, err);
    return err_set(err, ERR_USAGE, "backend '%.32s' is not known; there are auto, cpu and cuda", name);
}

/* ---- the engine ---- */

static bool
is_cuda(const struct engine *e)
{
    return strcmp(e->ops->name, "cuda") == 0;
}

static void
unload(struct engine *e)
{
    if (e->weights != NULL)
        e->ops->unload(e->weights);
    e->weights = NULL;
    engine_aux_unload(e);
}

void
engine_repack(struct engine *e, const atomic_bool *cancel)
{
    if (e->ops->repack == NULL)
        return;
    e->ops->repack(e->weights, cancel);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (e->aux[role].weights != NULL)
            e->ops->repack(e->aux[role].weights, cancel);
}

static bool
load_all(struct engine *e, uint32_t ctx, progress_fn progress, void *user, struct err *err)
{
    struct model_desc desc = e->model->desc;
    desc.ctx = ctx;
    return e->ops->load(e->backend, &desc, progress, user, &e->weights, err) &&
           engine_aux_load(e, ctx, progress, user, err);
}

/* Loads the weights; a model that the GPU refuses goes to the CPU unless CUDA was asked for by name. */
static bool
load(struct engine *e, const struct engine_options *o, const struct backend_options *options, progress_fn progress,
     void *user, struct err *err)
{
    struct err why = {.kind = ERR_NONE};
    const uint32_t ctx = e->positions = model_positions(e->model, o->ctx, o->sequences);
    if (o->notice != NULL && e->ops->note != NULL && e->ops->note(e->backend)[0] != '\0')
        o->notice(user, e->ops->note(e->backend));
    if (load_all(e, ctx, progress, user, &why))
        return true;
    const bool asked = o->backend != NULL && strcmp(o->backend, "auto") != 0;
    if (!is_cuda(e) || asked || why.kind == ERR_CANCELLED)
        return err_copy(err, &why);
    unload(e);
    e->ops->close(e->backend);
    e->backend = NULL;
    note_fallback(e, &why);
    const uint64_t available = memory_available();
    const uint64_t head = engine_accept_bytes(e);
    return memory_fits(e->model, ctx, e->exact, o->quantize, available, head, err) &&
           engine_aux_fit(e, ctx, o->quantize, available, head, err) && open_cpu(e, options, err) &&
           load_all(e, ctx, progress, user, err);
}

/* ---- trained heads ---- */

static bool
take_heads(struct engine *e, const char *path, struct err *err)
{
    struct exit_heads *h;
    if (e->ops->heads == NULL)
        return err_set(err, ERR_USAGE, "backend %s has no trained heads; choose --backend cpu, or leave %.200s out",
                       e->ops->name, path);
    if (!exit_heads_read(&h, path, e->model, err))
        return false;
    struct exit_head *by_layer = calloc(h->n_layers + 1u, sizeof *by_layer);
    bool ok = by_layer != NULL || err_set(err, ERR_WORK, "out of memory for %.200s", path);
    for (uint32_t l = 1; ok && l < h->n_layers; l++) {
        const struct head_weights *w = &h->layers[l];
        by_layer[l] =
            (struct exit_head){.a = {.data = w->a, .type = WEIGHT_F32, .rows = h->width, .cols = h->width},
                               .b = {.data = w->b, .type = WEIGHT_F32, .rows = 1, .cols = h->width},
                               .weight = {.data = w->weight, .type = WEIGHT_F32, .rows = h->vocab, .cols = h->width}};
    }
    ok = ok && e->ops->heads(e->weights, by_layer, err);
    if (ok) {
        e->heads = h->kind;
        e->heads_hash = h->hash;
        snprintf(e->heads_path, sizeof e->heads_path, "%s", path);
    }
    free(by_layer);
    exit_heads_free(h);
    return ok;
}

static bool
find_heads(struct engine *e, const struct engine_options *o, struct err *err)
{
    if (o->heads != NULL)
        return strcmp(o->heads, "none") == 0 || take_heads(e, o->heads, err);
    char path[PATH_MAX];
    struct err why = {.kind = ERR_NONE};
    return o->synth || !engine_beside(e->model, ".heads.safetensors", path) || take_heads(e, path, &why) ||
           engine_leave_out(e, "trained heads", &why, err);
}

/* Adapters must fit into the trace, because a run is repeated from its trace. */
static bool
keep_asked(struct engine *e, const struct engine_options *o, struct err *err)
{
    size_t n = 0;
    const struct backend_options *b = &o->backend_options;
    snprintf(e->asked.isa, sizeof e->asked.isa, "%s", b->isa != NULL ? b->isa : "");
    e->asked.gpu = b->gpu;
    e->asked.threads = b->threads;
    e->asked.quantize = o->quantize;
    for (size_t i = 0; i < o->n_lora; i++) {
        n += strlen(o->lora[i]) + (i > 0);
        if (n < sizeof e->asked.lora)
            snprintf(e->asked.lora + strlen(e->asked.lora), n + 1, "%s%s", i > 0 ? "\n" : "", o->lora[i]);
    }
    e->asked.no_heads = o->heads != NULL && strcmp(o->heads, "none") == 0;
    return n < sizeof e->asked.lora || err_set(err, ERR_USAGE,
                                               "--lora: names of %zu adapters, %zu bytes in all, are more than the %zu "
                                               "that are kept; give them shorter paths",
                                               o->n_lora, n, sizeof e->asked.lora - 1);
}

/* Orders the target's vocabulary. */
static bool
rank_tokens(struct engine *e, const char *path, struct err *err)
{
    const uint32_t vocab = e->model->desc.vocab;
    uint64_t *counts = path != NULL ? calloc(vocab, sizeof *counts) : NULL;
    token_t *ids = calloc(vocab, sizeof *ids);
    bool ok = (ids != NULL && (path == NULL || counts != NULL)) ||
              err_set(err, ERR_WORK, "out of memory ordering the vocabulary");
    ok = ok && (path == NULL || token_counts_read(path, counts, vocab, err)) &&
         token_rank(e->model->tokenizer, vocab, counts, ids, err) && draft_rank_open(&e->rank, ids, vocab, err);
    if (ok && path != NULL) {
        snprintf(e->counts.path, sizeof e->counts.path, "%s", path);
        e->counts.hash = hash_bytes(HASH_START, counts, vocab * sizeof *counts);
    }
    free(counts);
    free(ids);
    return ok;
}

/* If there is no note, writes one about merged adapters, else the backend's remark. */
static void
add_note(struct engine *e)
{
    const struct model *m = e->model;
    if (e->note[0] == '\0' && m->merged_otherwise > 0)
        snprintf(e->note, sizeof e->note,
                 m->merged_otherwise == 1 ? "%u matrix that an adapter was merged into is held in %s"
                                          : "%u matrices that an adapter was merged into are held in %s",
                 (unsigned)m->merged_otherwise, e->exact ? "F32" : "F16");
    if (e->note[0] == '\0' && e->ops->note != NULL)
        snprintf(e->note, sizeof e->note, "%s", e->ops->note(e->backend));
}

/* Returns the bytes of the machine's memory that the models do not use; models on a GPU use none. */
static uint64_t
room_beside_models(const struct engine *e, const struct model_options *o)
{
    const uint64_t available = memory_available();
    if (is_cuda(e) || available == UINT64_MAX)
        return available;
    const uint64_t need = engine_models_need(e, o->ctx > 0 ? o->ctx : e->model->ctx_train, o->quantize);
    return available > need ? available - need : 0;
}

bool
engine_open(struct engine **out, const struct engine_options *options, progress_fn progress, void *user,
            struct err *err)
{
    *out = NULL;
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return err_set(err, ERR_WORK, "out of memory opening %s", options->model_path);
    struct backend_options backend = options->backend_options;
    e->threads = backend.threads > 0 ? backend.threads : (uint32_t)platform_usable_processors();
    e->exact = options->backend_options.exact;
    if (!keep_asked(e, options, err)) {
        engine_close(e);
        return false;
    }
    struct model_options model = {
        .quantize = options->quantize, .exact = backend.exact, .ctx = options->ctx, .sequences = options->sequences};
    model.lora = options->lora;
    model.n_lora = options->n_lora;
    bool ok = open_backend(e, options, &backend, err);
    model.available = ok ? engine_available(e) : 0;
    ok = ok && (options->synth ? model_open_synthetic : model_open_with)(&e->model, options->model_path, &model, err);
    ok = ok && engine_aux_open(e, options, &model, err) &&
         engine_accept_open(e, options->accept, room_beside_models(e, &model), err);
    if (!ok || !load(e, options, &backend, progress, user, err) || !find_heads(e, options, err) ||
        !engine_profile_find(e, options, err) || !rank_tokens(e, options->vocab_counts, err)) {
        engine_close(e);
        return false;
    }
    add_note(e);
    *out = e;
    return true;
}

void
engine_close(struct engine *e)
{
    if (e == NULL)
        return;
    unload(e);
    if (e->backend != NULL)
        e->ops->close(e->backend);
    engine_aux_close(e);
    accept_head_free(e->accept);
    draft_rank_close(&e->rank);
    model_close(e->model);
    free(e->profile);
    engine_forget(e);
    free(e);
}
