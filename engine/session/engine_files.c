/* Loads the files of an engine besides its model: auxiliary models, the draft model's acceptance head, and the
 * verification profile. A file that was not given is searched for by its name in the model's folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "engine/model/memory.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/model/trained/sv_profile.h"
#include "engine/session/engine_internal.h"

uint64_t
engine_available(const struct engine *e)
{
    return strcmp(e->ops->name, "cuda") == 0 ? UINT64_MAX : memory_available();
}

bool
engine_leave_out(struct engine *e, const char *what, const struct err *why, struct err *err)
{
    if (err_is_memory(why) || why->kind == ERR_CANCELLED)
        return err_set(err, why->kind, "%s", why->text);
    if (e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "without %s: %s", what, why->text);
    return true;
}

/* ---- auxiliary models ---- */

bool
engine_sibling(const char *path, enum aux_role role, char out[PATH_MAX])
{
    static const char ending[] = ".gguf";
    const size_t len = strlen(path);
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (len < sizeof ending || strcmp(path + len - (sizeof ending - 1), ending) != 0)
        return false;
    const char *dash = strrchr(name, '-');
    const int before = (int)(dash != NULL ? (size_t)(dash - path) : len - (sizeof ending - 1));
    return snprintf(out, PATH_MAX, "%.*s-%s%s", before, path, aux_names[role], path + before) < PATH_MAX &&
           file_exists(out);
}

bool
engine_beside(const struct model *m, const char *ending, char out[PATH_MAX])
{
    static const char suffix[] = ".gguf";
    size_t n = strlen(m->path);
    if (n >= sizeof suffix && strcmp(m->path + n - (sizeof suffix - 1), suffix) == 0)
        n -= sizeof suffix - 1;
    while (n > 1 && m->path[n - 1] == '/')
        n--;
    return snprintf(out, PATH_MAX, "%.*s%s", (int)n, m->path, ending) < PATH_MAX && file_exists(out);
}

/* "self:3" */
static bool
take_layers(struct engine *e, enum aux_role role, const char *text, struct err *err)
{
    char *end;
    const unsigned long layer = strtoul(text, &end, 10);
    const uint32_t layers = e->model->desc.n_layers;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || layer < 1 || layer >= layers)
        return layers < 2 ? err_set(err, ERR_USAGE, "--%s self:%.20s: a model of one layer has none to spare",
                                    aux_names[role], text)
                          : err_set(err, ERR_USAGE, "--%s self:%.20s: a layer from 1 to %" PRIu32 " is wanted",
                                    aux_names[role], text, layers - 1);
    e->aux[role].exit_layer = (uint32_t)layer;
    return true;
}

static bool
take_model(struct engine *e, enum aux_role role, const char *path, const struct model_options *options, struct err *err)
{
    struct model *m;
    struct model_options one = *options;
    one.target = e->model;
    if (!model_open_with(&m, path, &one, err))
        return false;
    if (m->desc.drafter != NULL) { /* --draft names a feature drafter */
        e->aux[m->desc.drafter->block > 0 ? AUX_BLOCK : AUX_EAGLE].model = m;
        return true;
    }
    if (role >= AUX_EAGLE) {
        model_close(m);
        return err_set(err, ERR_USAGE, "%s: is no EAGLE-3 head and no block drafter", path);
    }
    if (!vocabularies_match(e->model->tokenizer, e->model->name, m->tokenizer, m->name, err)) {
        model_close(m);
        return false;
    }
    e->aux[role].model = m;
    return true;
}

/* Returns the bytes of an auxiliary model: weights and a context; only the context for self:E with its own KV cache. */
static uint64_t
need_of(const struct engine *e, enum aux_role role, uint32_t ctx, bool quantize)
{
    const struct aux_model *h = &e->aux[role];
    if (h->model != NULL)
        return memory_need(h->model, ctx, e->exact, quantize) + model_features_bytes(h->model, e->model, ctx);
    return h->apart ? model_kv_bytes(e->model, ctx, e->exact) / e->model->desc.n_layers * h->exit_layer : 0;
}

/* Whether the context of self:E with its own KV cache fits into memory. */
static bool
context_fits(const struct engine *e, enum aux_role role, uint32_t ctx, uint64_t available, uint64_t taken,
             struct err *err)
{
    char need[24], there[24], others[24];
    const uint64_t bytes = need_of(e, role, ctx, false);
    return bytes <= (available > taken ? available - taken : 0) ||
           err_set(err, ERR_WORK,
                   "--%s self:%" PRIu32 " needs %s for a context of %" PRIu32
                   ", but %s of memory are available, of which others take %s; lower --at-once",
                   aux_names[role], e->aux[role].exit_layer, memory_text(need, bytes), ctx,
                   memory_text(there, available), memory_text(others, taken));
}

/* engine_leave_out() for a model. */
static bool
pass_over(struct engine *e, enum aux_role role, const struct err *why, struct err *err)
{
    char what[64] = "its layer for multi-token prediction";
    if (role == AUX_MTP)
        snprintf(e->model->ahead_refused, sizeof e->model->ahead_refused, "%s", why->text);
    else
        snprintf(what, sizeof what, "the %s model beside it", aux_names[role]);
    return engine_leave_out(e, what, why, err);
}

/* The target's own layer for multi-token prediction, if a policy may need it. */
static bool
find_ahead(struct engine *e, const struct engine_options *o, const struct model_options *options, struct err *err)
{
    struct aux_model *h = &e->aux[AUX_MTP];
    struct err why = {.kind = ERR_NONE};
    if (e->model->ahead == NULL || (o->wanted & NEEDS(AUX_MTP)) == 0)
        return true;
    h->found = model_open_ahead(&h->model, e->model, options, &why);
    if (!h->found)
        h->model = NULL;
    return h->found || pass_over(e, AUX_MTP, &why, err);
}

static bool
find(struct engine *e, enum aux_role role, const struct engine_options *o, const struct model_options *options,
     struct err *err)
{
    static const char self[] = "self:";
    const char *given = role <= AUX_COMPANION ? o->aux[role] : NULL, *draft = o->aux[AUX_DRAFT];
    if (role == AUX_MTP)
        return find_ahead(e, o, options, err);
    if (e->aux[role].model != NULL) /* --draft may have named a feature drafter */
        return true;
    if (role >= AUX_EAGLE && draft != NULL && strcmp(draft, "none") == 0)
        return true;
    if (given != NULL && strcmp(given, "none") == 0)
        return true;
    if (given != NULL)
        return strncmp(given, self, sizeof self - 1) == 0 ? take_layers(e, role, given + sizeof self - 1, err)
                                                          : take_model(e, role, given, options, err);
    char path[PATH_MAX];
    struct err why = {.kind = ERR_NONE};
    if ((o->wanted & NEEDS(role)) == 0 || o->synth || !engine_sibling(e->model->path, role, path))
        return true;
    e->aux[role].found = take_model(e, role, path, options, &why);
    return e->aux[role].found || pass_over(e, role, &why, err);
}

bool
engine_aux_open(struct engine *e, const struct engine_options *o, const struct model_options *options, struct err *err)
{
    struct model_options one = *options;
    one.n_lora = 0; /* adapters are the target's */
    one.ctx = options->ctx > 0 ? options->ctx : e->model->ctx_train;
    const uint32_t positions = model_positions(e->model, one.ctx, one.sequences);
    one.taken = memory_need(e->model, positions, one.exact, one.quantize);
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        if (!find(e, role, o, &one, err))
            return false;
        struct aux_model *h = &e->aux[role];
        h->apart = o->reads_apart && h->exit_layer > 0;
        if (h->apart && one.available != 0 && !context_fits(e, role, positions, one.available, one.taken, err))
            return false;
        one.taken += need_of(e, role, positions, one.quantize);
    }
    return true;
}

uint64_t
engine_models_need(const struct engine *e, uint32_t ctx, bool quantize)
{
    uint64_t need = memory_need(e->model, ctx, e->exact, quantize);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        need += need_of(e, role, ctx, quantize);
    return need;
}

bool
engine_aux_fit(const struct engine *e, uint32_t ctx, bool quantize, uint64_t available, uint64_t others,
               struct err *err)
{
    uint64_t taken = memory_need(e->model, ctx, e->exact, quantize) + others;
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        const struct model *m = e->aux[role].model;
        if (m != NULL ? !memory_fits(m, ctx, e->exact, quantize, available, taken, err)
                      : !context_fits(e, role, ctx, available, taken, err))
            return false;
        taken += need_of(e, role, ctx, quantize);
    }
    return true;
}

/* ---- weights ---- */

static bool
load_model(const struct engine *e, struct aux_model *h, uint32_t ctx, progress_fn progress, void *user, struct err *err)
{
    struct model_desc desc = h->model->desc;
    desc.ctx = ctx;
    if (desc.drafter != NULL && e->ops->feed == NULL)
        return err_set(err, ERR_USAGE, "backend %s: has no feature drafters (EAGLE-3, MTP) yet; use --backend cpu",
                       e->ops->name);
    if (e->ops->load(e->backend, &desc, progress, user, &h->weights, err))
        return true;
    h->weights = NULL;
    return false;
}

bool
engine_aux_load(struct engine *e, uint32_t ctx, progress_fn progress, void *user, struct err *err)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        struct aux_model *h = &e->aux[role];
        struct err why = {.kind = ERR_NONE};
        if (h->model == NULL || load_model(e, h, ctx, progress, user, &why))
            continue;
        if (!h->found)
            return err_set(err, why.kind, "%s", why.text);
        if (!pass_over(e, role, &why, err))
            return false;
        model_close(h->model);
        *h = (struct aux_model){0};
        if (role == AUX_DRAFT) { /* its acceptance head is dropped, too */
            accept_head_free(e->accept);
            e->accept = NULL;
        }
    }
    return true;
}

void
engine_aux_unload(struct engine *e)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        if (e->aux[role].weights != NULL)
            e->ops->unload(e->aux[role].weights);
        e->aux[role].weights = NULL;
    }
}

void
engine_aux_close(struct engine *e)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        model_close(e->aux[role].model);
}

bool
engine_has(const struct engine *e, enum aux_role role)
{
    return e->aux[role].model != NULL || e->aux[role].exit_layer > 0;
}

unsigned
engine_missing(const struct engine *e, unsigned needs)
{
    unsigned here = (e->profile != NULL ? NEEDS_PROFILE : 0) | (e->accept != NULL ? NEEDS_ACCEPT_HEAD : 0);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        here |= engine_has(e, role) ? NEEDS(role) : 0;
    const struct model *block = e->aux[AUX_BLOCK].model;
    here |= block != NULL && tensor_present(&block->desc.drafter->markov_w1) ? NEEDS_MARKOV : 0;
    return needs & ~here;
}

struct model_info
engine_model_info(const struct engine *e)
{
    const struct model_desc *d = &e->model->desc;
    const struct model *block = e->aux[AUX_BLOCK].model;
    const struct drafter_desc *drafter = block != NULL ? block->desc.drafter : NULL;
    return (struct model_info){.layers = d->n_layers,
                               .width = d->width,
                               .vocab = d->vocab,
                               .block = drafter != NULL ? drafter->block - (drafter->from_anchor ? 0 : 1) : 0,
                               .rho = e->model->rho,
                               .profile = e->profile};
}

const char *
engine_aux_name(const struct engine *e, enum aux_role role, char *out, size_t n)
{
    const struct aux_model *h = &e->aux[role];
    if (h->exit_layer > 0)
        snprintf(out, n, "self:%" PRIu32, h->exit_layer);
    else
        snprintf(out, n, "%s", h->model != NULL ? h->model->name : "");
    return out;
}

uint64_t
engine_aux_hash(const struct engine *e, enum aux_role role)
{
    const struct aux_model *h = &e->aux[role];
    return h->model != NULL ? h->model->hash : e->model->hash;
}

/* ---- the acceptance head ---- */

const struct model *
engine_draft_model(const struct engine *e)
{
    const struct aux_model *h = &e->aux[AUX_DRAFT];
    return h->model != NULL ? h->model : h->exit_layer > 0 ? e->model : NULL;
}

static bool
take_accept_head(struct engine *e, const char *path, uint64_t room, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    uint32_t n_blocks;
    uint64_t bytes;
    char need[24], there[24];
    if (!accept_head_measure(path, draft, &n_blocks, &bytes, err))
        return false;
    if (bytes > room)
        return err_set(err, ERR_WORK,
                       "%s: needs %s, but of the memory that is available models leave %s; take a smaller "
                       "acceptance head",
                       path, memory_text(need, bytes), memory_text(there, room));
    const struct accept_whose whose = {draft, e->aux[AUX_DRAFT].exit_layer};
    return accept_head_read(&e->accept, path, &whose, err);
}

uint64_t
engine_accept_bytes(const struct engine *e)
{
    const struct accept_head *h = e->accept;
    return h != NULL ? accept_head_bytes(h->width, h->n_blocks, h->shared) : 0;
}

bool
engine_accept_open(struct engine *e, const char *given, uint64_t room, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    if (draft == NULL || (given != NULL && strcmp(given, "none") == 0))
        return true;
    char found[PATH_MAX];
    const bool is_there = given == NULL && draft != e->model && engine_beside(draft, ".accept.safetensors", found);
    const char *path = given != NULL ? given : is_there ? found : NULL;
    struct err why = {.kind = ERR_NONE};
    if (path != NULL && !take_accept_head(e, path, room, &why) &&
        (given != NULL ? !err_set(err, why.kind, "%s", why.text)
                       : !engine_leave_out(e, "the acceptance head beside the draft model", &why, err)))
        return false;
    const struct accept_head *h = e->accept;
    if (h != NULL && h->target_hash != 0 && h->target_hash != e->model->hash && e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "the acceptance head learned what another target accepts: %s", h->target);
    return true;
}

/* ---- draft models in reserve ---- */

void
engine_draft_swap(struct engine *e, struct engine_draft *d)
{
    const struct engine_draft own = {e->aux[AUX_DRAFT], e->accept, e->costs};
    e->aux[AUX_DRAFT] = d->model;
    e->accept = d->accept;
    e->costs = d->costs;
    *d = own;
}

bool
engine_draft_open(struct engine *e, const char *path, uint64_t reserved, struct engine_draft *out, struct err *err)
{
    struct model_options o = {.quantize = e->asked.quantize, .exact = e->exact, .ctx = e->positions};
    o.available = engine_available(e);
    o.taken = engine_models_need(e, e->positions, o.quantize) + reserved;
    *out = (struct engine_draft){.accept = NULL};
    engine_draft_swap(e, out);
    bool ok = take_model(e, AUX_DRAFT, path, &o, err);
    struct aux_model *h = &e->aux[AUX_DRAFT];
    if (ok) {
        const uint64_t need = o.taken + memory_need(h->model, e->positions, e->exact, o.quantize);
        ok = load_model(e, h, e->positions, NULL, NULL, err) &&
             engine_accept_open(e, NULL, o.available > need ? o.available - need : 0, err);
    }
    engine_draft_swap(e, out);
    if (!ok)
        engine_draft_close(e, out);
    return ok;
}

void
engine_draft_close(struct engine *e, struct engine_draft *d)
{
    if (d->model.weights != NULL)
        e->ops->unload(d->model.weights);
    model_close(d->model.model);
    accept_head_free(d->accept);
    *d = (struct engine_draft){.accept = NULL};
}

/* ---- the profile ---- */

/* Compares the models named in the file with the target, draft and companion that the engine has. */
static bool
is_of(const struct engine *e, const struct sv_whose *whose, const char *path, struct err *err)
{
    char other[MODEL_NOT];
    if (whose->hash[0] != e->model->hash)
        return err_set(err, ERR_USAGE, "%.150s is the profile of %s", path,
                       model_not(e->model, whose->name[0], other, sizeof other));
    for (enum aux_role role = 0; role <= AUX_COMPANION; role++) {
        const struct aux_model *h = &e->aux[role];
        if (engine_has(e, role) &&
            (whose->hash[1 + role] != engine_aux_hash(e, role) || whose->layers[1 + role] != h->exit_layer))
            return err_set(err, ERR_USAGE, "%.150s is the profile of another %s model, %.60s", path, aux_names[role],
                           whose->name[1 + role]);
    }
    return true;
}

static bool
take_profile(struct engine *e, const char *path, struct err *err)
{
    e->profile = malloc(sizeof *e->profile);
    if (e->profile == NULL)
        return err_set(err, ERR_WORK, "out of memory for %.200s", path);
    if (sv_profile_read(e->profile, path, err) && is_of(e, &e->profile->whose, path, err))
        return true;
    free(e->profile);
    e->profile = NULL;
    return false;
}

bool
engine_profile_find(struct engine *e, const struct engine_options *o, struct err *err)
{
    if (o->profile != NULL)
        return strcmp(o->profile, "none") == 0 || take_profile(e, o->profile, err);
    char path[PATH_MAX];
    struct err why = {.kind = ERR_NONE};
    if ((o->wanted & NEEDS_PROFILE) == 0 || o->synth || !engine_beside(e->model, ".profile.json", path) ||
        take_profile(e, path, &why))
        return true;
    snprintf(e->profile_refused, sizeof e->profile_refused, "%s", why.text);
    return engine_leave_out(e, "the profile beside the model", &why, err);
}

/* ---- state that policies share ---- */

struct engine_kept {
    struct engine_kept *next;
    char policy[16];
    uint32_t sequences;
    size_t size;
    unsigned char shared[]; /* (size) */
};

static struct engine_kept *
find_kept(const struct engine *e, const struct policy *p, uint32_t sequences)
{
    struct engine_kept *k = e->kept;
    while (k != NULL &&
           (strcmp(k->policy, p->info.name) != 0 || k->sequences != sequences || k->size != p->ops->shared_size))
        k = k->next;
    return k;
}

void
engine_recall(const struct engine *e, struct policy *first, uint32_t sequences)
{
    const struct engine_kept *k = find_kept(e, first, sequences);
    if (k != NULL)
        memcpy(first->shared, k->shared, k->size);
}

void
engine_keep(struct engine *e, const struct policy *first, uint32_t sequences)
{
    const size_t size = first->shared != NULL ? first->ops->shared_size : 0;
    struct engine_kept *k = size > 0 ? find_kept(e, first, sequences) : NULL;
    if (size > 0 && k == NULL && (k = malloc(sizeof *k + size)) != NULL) {
        *k = (struct engine_kept){.next = e->kept, .sequences = sequences, .size = size};
        memcpy(k->policy, first->info.name, sizeof k->policy);
        e->kept = k;
    }
    if (k != NULL)
        memcpy(k->shared, first->shared, size);
}

void
engine_forget(struct engine *e)
{
    for (struct engine_kept *k = e->kept, *next; k != NULL; k = next) {
        next = k->next;
        free(k);
    }
    e->kept = NULL;
}
