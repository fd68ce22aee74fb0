/* A model's tensors: which there are of a layer and around the layers, and none left over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/arch_take.h"
#include "engine/base/printable.h"
#include "kernels/tensor.h"

/* ---- a layer's ---- */

/* Where in a fused tensor, or its bias, a layer's tensor lies; NULL: the architecture has it apart. */
static const char *
fused_name(const struct arch *a, enum layer_naming naming, const struct model_desc *d, enum layer_tensor which,
           struct arch_slice *part)
{
    const struct arch_fused *f = naming == LAYER_NAMED_HF ? &a->hf_fused : &a->gguf_fused;
    const uint32_t q = LAYER_Q(d), kv = LAYER_KV(d);
    const int third = which == LAYER_WQ || which == LAYER_BQ   ? 0
                      : which == LAYER_WK || which == LAYER_BK ? 1
                      : which == LAYER_WV || which == LAYER_BV ? 2
                                                               : -1;
    *part = (struct arch_slice){0};
    if (f->qkv != NULL && third >= 0) {
        const uint32_t groups = f->by_group ? d->kv_heads : 1, at = (third > 0 ? q : 0) + (third > 1 ? kv : 0);
        const uint32_t n = third == 0 ? q : kv;
        *part = (struct arch_slice){.first = at / groups, .n = n, .all = q + 2 * kv, .groups = groups};
        part->each = f->by_group ? n / groups : 0;
        return f->qkv;
    }
    if (f->gate_up != NULL && (which == LAYER_GATE || which == LAYER_UP)) {
        *part = (struct arch_slice){.first = which == LAYER_GATE ? 0 : d->ffn, .n = d->ffn, .all = 2 * d->ffn};
        return f->gate_up;
    }
    return NULL;
}

size_t
arch_stems(const struct arch *a, enum layer_naming naming, const struct model_desc *d, enum layer_tensor which,
           const char *names[ARCH_STEMS], struct arch_slice parts[ARCH_STEMS])
{
    size_t n = 0;
    const struct arch_rename *r = naming == LAYER_NAMED_HF ? a->renames : a->gguf_renames;
    names[0] = fused_name(a, naming, d, which, &parts[0]);
    n += names[0] != NULL;
    const size_t before = n;
    for (; r != NULL && r->name != NULL && n < ARCH_STEMS; r++)
        if (r->which == which) {
            parts[n] = (struct arch_slice){.n = 0};
            names[n++] = r->name;
        }
    const char *usual = layer_tensors[which].names[naming];
    if (n == before && (before == 0 || strcmp(names[0], usual) != 0)) {
        parts[n] = (struct arch_slice){.n = 0};
        names[n++] = usual;
    }
    return n;
}

/* What is optional is looked for where the architecture may have it, and only there: elsewhere it is left over. */
static bool
take_of_layer(const struct arch_taking *t, uint32_t layer, enum layer_tensor i, struct tensor *out)
{
    const struct arch_source *s = t->source;
    const uint32_t bit = 1u << i;
    const bool usual = layer_tensors[i].need != LAYER_OPTIONAL && (s->arch->lacks & bit) == 0;
    const bool needed = usual || (s->arch->needs & bit) != 0 || i == LAYER_ROUTER,
               norm = layer_tensors[i].kind == LAYER_NORM;
    struct arch_tensor found;
    struct arch_slice part;
    char name[ARCH_NAME_SIZE];
    uint32_t rows, cols;
    layer_tensor_shape(&t->model->desc, i, &rows, &cols);
    if (norm && layer_tensors[i].need == LAYER_USUAL && (s->arch->traits & ARCH_NORMS_OF_ONES) != 0)
        return arch_make_ones(t, cols, out);
    const char *fused = fused_name(s->arch, s->names->naming, &t->model->desc, i, &part);
    if (fused != NULL)
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s.%s", s->names->layer, layer, fused,
                 layer_tensors[i].kind == LAYER_BIAS ? "bias" : "weight");
    if (fused == NULL || !s->tensor(s, name, &found)) { /* some files have them apart all the same */
        part.n = 0;
        fused = NULL;
        arch_layer_name(s, layer, i, name);
    }
    if (!needed &&
        ((s->arch->may & bit) == 0 || !s->tensor(s, name, &found) || (fused == NULL && t->used[found.index])))
        return true;
    if (layer_tensors[i].kind == LAYER_MATRIX) {
        part.columns = s->names->naming == LAYER_NAMED_HF && (s->arch->traits & ARCH_COLUMNS) != 0;
        return arch_take_slice(t, name, rows, cols, &part, out);
    }
    const bool less_one = norm && s->names->naming == LAYER_NAMED_HF && (s->arch->traits & ARCH_NORMS_LESS_ONE) != 0;
    return arch_take_vector(t, name, cols, &part, less_one ? 1 : 0, out);
}

static bool
take_layer(const struct arch_taking *t, uint32_t layer, struct layer_desc *out)
{
    const bool sparse = arch_is_sparse(t, layer);
    const uint32_t without = sparse ? LAYER_MLP : LAYER_ROUTING;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        if ((without >> i & 1u) == 0 && !take_of_layer(t, layer, i, &out->all[i]))
            return false;
    return !sparse || arch_take_experts(t, layer, out);
}

/* Of a layer behind the last, which guesses further tokens. */
static bool
looks_ahead(const struct arch_taking *t, const char *name, size_t len)
{
    const char *before = t->source->names->layer;
    const size_t n = strlen(before);
    if ((t->source->arch->traits & ARCH_LOOKS_AHEAD) == 0)
        return false;
    return memmem(name, len, ".mtp_", 5) != NULL ||
           (len > n && strncmp(name, before, n) == 0 && strtoul(name + n, NULL, 10) >= t->model->desc.n_layers);
}

/* Some converters leave tables that can be computed; anything else would change what the model says. */
static bool
refuse_leftovers(const struct arch_taking *t)
{
    const struct arch_source *s = t->source;
    const size_t n_computable = sizeof s->names->computable / sizeof s->names->computable[0];
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name, *table;
        size_t len;
        char shown[80];
        if (t->used[i])
            continue;
        s->tensor_name(s, i, &name, &len);
        bool computable = looks_ahead(t, name, len);
        for (size_t k = 0; k < n_computable && (table = s->names->computable[k]) != NULL; k++)
            computable = computable || memmem(name, len, table, strlen(table)) != NULL;
        if (!computable)
            return err_set(t->err, ERR_WORK,
                           "%s: tensor '%s' is no part of a plain %s; a model that needs it is not supported", s->path,
                           printable_line(shown, sizeof shown, name, len), s->arch->hf);
    }
    return true;
}

/* ---- all ---- */

/* A bias beside a tensor that ends in ".weight", where there is one. */
static bool
take_bias(const struct arch_taking *t, const char *of, uint32_t n, struct tensor *out)
{
    struct arch_tensor found;
    char name[ARCH_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(of) - strlen(".weight")), of);
    return !t->source->tensor(t->source, name, &found) || arch_take_vector(t, name, n, NULL, 0, out);
}

/* What is added to the embedding at each position, where that is learned: in F32, for as many as the context was trained with. */
static bool
take_positions(const struct arch_taking *t)
{
    struct model *m = t->model;
    struct tensor found;
    if ((t->source->arch->traits & ARCH_LEARNED) == 0)
        return true;
    if (!arch_take_tensor(t, t->source->names->positions, m->ctx_train, m->desc.width, &found))
        return false;
    float *wide = model_take(m, (size_t)found.rows * found.cols * sizeof *wide);
    if (wide == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for the embedding of positions", t->source->path);
    for (uint32_t r = 0; r < found.rows; r++)
        tensor_row(&found, r, wide + (size_t)r * found.cols);
    m->desc.positions = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = found.rows, .cols = found.cols};
    return true;
}

static bool
take_embedding_norm(const struct arch_taking *t)
{
    struct model_desc *d = &t->model->desc;
    const char *name = t->source->names->embedding_norm;
    return (t->source->arch->traits & ARCH_EMBEDDING_NORM) == 0 ||
           (arch_take_vector(t, name, d->width, NULL, 0, &d->embedding_norm) &&
            take_bias(t, name, d->width, &d->embedding_norm_bias));
}

static bool
take_final_norm(const struct arch_taking *t)
{
    const struct arch_source *s = t->source;
    struct model_desc *d = &t->model->desc;
    if ((s->arch->traits & ARCH_NORMS_OF_ONES) != 0)
        return arch_make_ones(t, d->width, &d->final_norm);
    const bool less_one = s->names->naming == LAYER_NAMED_HF && (s->arch->traits & ARCH_NORMS_LESS_ONE) != 0;
    return arch_take_vector(t, s->names->final_norm, d->width, NULL, less_one ? 1 : 0, &d->final_norm) &&
           (!d->form.centred || take_bias(t, s->names->final_norm, d->width, &d->final_norm_bias));
}

bool
arch_make_layers(struct model *m, const struct arch_source *s, struct err *err)
{
    struct model_desc *d = &m->desc;
    if (d->n_layers > s->n_tensors)
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " layers, but only %zu tensors; %s", s->path, d->n_layers,
                       s->n_tensors, s->names->remedy);
    struct layer_desc *layers = calloc(d->n_layers, sizeof *layers);
    d->layers = layers;
    if (layers == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %" PRIu32 " layers", s->path, d->n_layers);
    arch_usual_layers(m, s->arch, layers);
    return true;
}

bool
arch_read_tensors(struct model *m, const struct arch_source *s, bool tied, bool *used, struct err *err)
{
    const struct arch_taking t = {.model = m, .source = s, .used = used, .err = err};
    struct model_desc *d = &m->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* the model's own */
    struct arch_tensor head;
    if (!arch_take_tensor(&t, s->names->embedding, d->vocab, d->width, &d->embedding) || !take_positions(&t) ||
        !take_embedding_norm(&t))
        return false;
    const uint64_t before = m->parameters;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!take_layer(&t, l, &layers[l]))
            return false;
    const uint64_t active = m->parameters - before - model_idle_parameters(m);
    m->rho = (double)d->vocab * d->width / ((double)active / d->n_layers);
    if (!take_final_norm(&t))
        return false;
    m->tied = tied;
    d->head = d->embedding;
    if (!tied)
        return arch_take_tensor(&t, s->names->head, d->vocab, d->width, &d->head) &&
               take_bias(&t, s->names->head, d->vocab, &d->head_bias) && refuse_leftovers(&t);
    if (s->tensor(s, s->names->head, &head))
        used[head.index] = true; /* a copy */
    return refuse_leftovers(&t);
}
