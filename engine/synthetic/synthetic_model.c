/* A synthetic model opened as if from a file, without one: the vocabulary is parsed from the header that the file would
 * have, and the matrices stay formulas, which backends make as they load. */
#include <stdlib.h>
#include <string.h>

#include "engine/files/gguf.h"
#include "engine/model/memory.h"
#include "engine/model/model_hash.h"
#include "engine/synthetic/model_open.h"
#include "engine/synthetic/synthetic_gguf.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

static void
count_tensors(struct model *m, const struct synthetic_weights *w)
{
    const struct model_desc *d = &w->desc;
    const uint64_t head = (uint64_t)d->vocab * d->width;
    for (size_t i = 0; i < w->n; i++) {
        const struct tensor *t = &w->all[i].tensor;
        const uint64_t values = (uint64_t)t->rows * t->cols * w->all[i].planes;
        m->parameters += values;
        m->parameters_of[t->type] += values;
        m->tensors_of[t->type] += w->all[i].planes;
    }
    m->tied = w->spec.shape->tied;
    const uint64_t active = m->parameters - model_idle_parameters(m) - d->width - head * (m->tied ? 1 : 2);
    m->rho = (double)head / ((double)active / d->n_layers);
}

/* The header, as the file would begin, and every formula. */
static bool
hash_synthetic(struct model *m, const struct synthetic_weights *w, struct err *err)
{
    size_t len;
    unsigned char *header = synthetic_gguf_header(w, true, &len);
    if (header == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    m->hash = hash_bytes(HASH_START, header, len);
    m->file_bytes = len;
    free(header);
    for (size_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; w->all[i].tensor.synthetic != NULL && k < w->all[i].planes; k++) {
            const struct synthetic *p = synthetic_plane(&w->all[i], k).synthetic;
            m->hash = hash_bytes(m->hash, &p->key, sizeof p->key);
            m->hash = hash_bytes(m->hash, &p->scale, sizeof p->scale);
        }
    return true;
}

static bool
open_vocabulary(struct model *m, const struct synthetic_weights *w, struct err *err)
{
    size_t len;
    unsigned char *header = synthetic_gguf_header(w, false, &len), *copy = header == NULL ? NULL : model_take(m, len);
    if (copy != NULL)
        memcpy(copy, header, len);
    free(header);
    if (copy == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for its vocabulary", m->path);
    return gguf_parse(&m->file, m->path, copy, len, err) && tokenizer_open(&m->tokenizer, m->file, err);
}

static bool
describe(struct model *m, const struct synthetic_weights *w, struct err *err)
{
    struct layer_desc *layers = calloc(w->desc.n_layers, sizeof *layers);
    if (layers == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    memcpy(layers, w->layers, w->desc.n_layers * sizeof *layers);
    m->desc = w->desc;
    m->desc.layers = layers;
    m->ctx_train = w->spec.shape->ctx;
    snprintf(m->arch, sizeof m->arch, "llama");
    snprintf(m->name, sizeof m->name, "%s synthetic %u, %g", w->spec.shape->name, w->spec.exit, w->spec.acceptance);
    snprintf(m->types, sizeof m->types, "%s%s", tensor_type_name(w->spec.type),
             w->spec.type == WEIGHT_F32 ? "" : ", F32");
    count_tensors(m, w);
    return true;
}

bool
model_open_synthetic(struct model **out, const char *text, const struct model_options *options, struct err *err)
{
    struct synthetic_spec spec;
    *out = NULL;
    if (!synthetic_read_spec(text, &spec, err))
        return false;
    if (options->quantize)
        return err_set(err, ERR_USAGE, "%s: synthetic weights are made in the type that is asked for: say %s:q8_0",
                       text, spec.shape->name);
    struct model *m = calloc(1, sizeof *m);
    bool ok = m != NULL && (m->path = strdup(text)) != NULL;
    if (!ok)
        err_set(err, ERR_WORK, "%s: out of memory", text);
    ok = ok && synthetic_weights_make(&m->synthetic, &spec, err) && describe(m, m->synthetic, err);
    const uint32_t ctx = ok ? model_positions(m, options->ctx, options->sequences) : 0;
    ok = ok &&
         (options->available == 0 ||
          memory_fits(m, ctx, options->exact, false, options->available, options->taken, err)) &&
         hash_synthetic(m, m->synthetic, err) && open_vocabulary(m, m->synthetic, err);
    if (!ok) {
        model_close(m);
        return false;
    }
    *out = m;
    return true;
}
