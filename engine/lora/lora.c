#include "engine/lora/lora.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/printable.h"
#include "engine/lora/lora_internal.h"
#include "engine/model/model_hash.h"

#define STEM_SIZE 128

/* ---- which matrices ---- */

static bool
merge_of_layer(struct merging *g, uint32_t layer, enum layer_tensor which)
{
    struct model_desc *d = &g->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* the model's own */
    const char *names[ARCH_STEMS], *prefix = g->file.naming == LAYER_NAMED_GGUF ? "blk." : arch_hf_names(g->arch).layer;
    struct arch_slice parts[ARCH_STEMS];
    const bool otherwise = g->arch->gguf_rope != g->arch->hf_rope && /* of converters that permute rows */
                           (g->model->file != NULL) != (g->file.naming == LAYER_NAMED_GGUF) && g->arch->gguf != NULL;
    struct merge_target t = {.tensor = &layers[layer].all[which]};
    if (!tensor_present(t.tensor) || layer_tensors[which].kind != LAYER_MATRIX)
        return true;
    t.turned = otherwise && (which == LAYER_WQ || which == LAYER_WK) ? d->head_dim : 0;
    const size_t n = arch_stems(g->arch, g->file.naming, d, which, names, parts);
    for (size_t i = 0; i < n; i++) {
        char stem[STEM_SIZE];
        struct lora_pair pair;
        bool there;
        snprintf(stem, sizeof stem, "%s%" PRIu32 ".%s", prefix, layer, names[i]);
        t.part = &parts[i];
        if (!lora_file_pair(&g->file, stem, &pair, &there, g->err) || (there && !lora_merge_pair(g, &t, &pair, stem)))
            return false;
    }
    return true;
}

static bool
merge_head(struct merging *g)
{
    struct model_desc *d = &g->model->desc;
    const char *name = arch_hf_names(g->arch).head;
    char stem[STEM_SIZE] = "output";
    if (g->file.naming == LAYER_NAMED_HF)
        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen(".weight")), name);
    const struct arch_slice whole = {.n = 0};
    const struct merge_target t = {.tensor = &d->head, .part = &whole};
    struct lora_pair pair;
    bool there;
    if (!lora_file_pair(&g->file, stem, &pair, &there, g->err))
        return false;
    if (there && g->model->tied)
        return err_set(g->err, ERR_WORK, "%s: adds to the head, which is the embedding here; merge it with PEFT",
                       g->file.path);
    return !there || lora_merge_pair(g, &t, &pair, stem);
}

static bool
merge_all(struct merging *g)
{
    char shown[96];
    for (uint32_t l = 0; l < g->model->desc.n_layers; l++) {
        for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
            if (!merge_of_layer(g, l, i))
                return false;
        if (!lora_merge_experts(g, l))
            return false;
    }
    if (!merge_head(g))
        return false;
    const char *left = lora_file_leftover(&g->file, shown, sizeof shown);
    if (left != NULL && strstr(left, ".base_layer.") != NULL)
        return err_set(
            g->err, ERR_WORK,
            "%s: '%s' is a layer of the model itself, saved whole beside what adds to it, as PEFT does for a resized "
            "vocabulary; that is not supported: merge it with PEFT",
            g->file.path, left);
    if (left != NULL)
        return err_set(g->err, ERR_WORK,
                       "%s: '%s' adds to nothing in this %s: it belongs to another model, or is more than LoRA",
                       g->file.path, left, g->arch->hf);
    return g->n > 0 || err_set(g->err, ERR_WORK, "%s: is an adapter without any weights", g->file.path);
}

/* ---- what was asked for ---- */

/* Splits "FILE:SCALE" unless there is a file of that whole name. */
static bool
read_asked(const char *asked, char path[512], double *scale, struct err *err)
{
    const char *colon = strrchr(asked, ':');
    char *end;
    *scale = 1;
    size_t n = strlen(asked);
    if (colon != NULL && access(asked, F_OK) != 0) {
        *scale = strtod(colon + 1, &end);
        n = (size_t)(colon - asked);
        if (end == colon + 1 || *end != '\0' || !(*scale >= -100 && *scale <= 100))
            return err_set(err, ERR_USAGE, "--lora %s: '%s' is no scale from -100 to 100", asked, colon + 1);
    }
    if (n == 0 || n >= 512)
        return err_set(err, ERR_USAGE, "--lora %s: a file, or a file and its scale: FILE:0.5", asked);
    snprintf(path, 512, "%.*s", (int)n, asked);
    return true;
}

bool
lora_merge(struct model *m, const char *asked, bool exact, struct err *err)
{
    struct merging g = {.model = m, .exact = exact, .err = err};
    char path[512], shown[160];
    if (m->file == NULL && m->folder == NULL)
        return err_set(err, ERR_USAGE, "--lora %s: weights that are made up (--synth) take no adapter", asked);
    if (!read_asked(asked, path, &g.scale, err))
        return false;
    g.arch = m->file != NULL ? arch_of_gguf(m->path, slice_of(m->arch), err) : arch_of_hf(m->path, m->arch, err);
    if (g.arch == NULL || !lora_file_open(&g.file, path, g.arch, err))
        return false;
    bool ok = merge_all(&g);
    m->hash = hash_bytes(hash_bytes(m->hash, &g.file.hash, sizeof g.file.hash), &g.scale, sizeof g.scale);
    if (ok) {
        const size_t used = strlen(m->merged);
        snprintf(m->merged + used, sizeof m->merged - used, "%s%s x %g: %" PRIu32 " matri%s", used > 0 ? "; " : "",
                 printable_line(shown, sizeof shown, path, strlen(path)), g.scale, g.n, g.n == 1 ? "x" : "ces");
        m->merged_otherwise += g.changed;
    }
    lora_file_close(&g.file);
    return ok;
}
