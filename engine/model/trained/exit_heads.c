#include "engine/model/trained/exit_heads.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "engine/model/files/safetensors.h"
#include "engine/model/model.h"

#define FORMAT "specscope exit heads 1"

const struct file_kind exit_heads_file = {
    .what = "trained exit heads of specscope", .skipped = 8, .begins = "{\"__metadata__\":{\"format\":\"" FORMAT "\""};

static const char *const kinds[] = {[HEAD_LENS] = "lens", [HEAD_AFFINE] = "affine", [HEAD_FULL] = "full"};

const char *
head_kind_name(enum head_kind kind)
{
    return kinds[kind];
}

bool
head_kind_from(const char *name, enum head_kind *kind)
{
    for (int k = HEAD_AFFINE; k <= HEAD_FULL; k++)
        if (strcmp(name, kinds[k]) == 0) {
            *kind = (enum head_kind)k;
            return true;
        }
    return false;
}

bool
exit_heads_new(struct exit_heads **out, enum head_kind kind, const struct model *model, struct err *err)
{
    const struct model_desc *d = &model->desc;
    *out = NULL;
    if (d->n_layers < 2)
        return err_set(err, ERR_WORK, "%s has one layer: there is no earlier one to train a head for", model->name);
    struct exit_heads *h = calloc(1, sizeof *h);
    if (h == NULL)
        return err_set(err, ERR_WORK, "out of memory for heads of %s", model->name);
    h->kind = kind;
    h->n_layers = d->n_layers;
    h->width = d->width;
    h->vocab = d->vocab;
    h->model_hash = model->hash;
    snprintf(h->model, sizeof h->model, "%s", model->name);
    h->per_layer = kind == HEAD_FULL ? (size_t)d->vocab * d->width : (size_t)d->width * d->width + d->width;
    h->n_values = h->per_layer * (d->n_layers - 1);
    h->values = calloc(h->n_values, sizeof *h->values);
    h->layers = calloc((size_t)d->n_layers + 1, sizeof *h->layers);
    if (h->values == NULL || h->layers == NULL) {
        err_set(err, ERR_WORK, "out of memory: %s heads of %s take %.1f GB", kinds[kind], model->name,
                (double)h->n_values * sizeof *h->values * 1e-9);
        exit_heads_free(h);
        return false;
    }
    for (uint32_t l = 1; l < d->n_layers; l++) {
        float *values = h->values + (l - 1) * h->per_layer;
        if (kind == HEAD_FULL)
            h->layers[l] = (struct head_weights){.weight = values};
        else
            h->layers[l] = (struct head_weights){.a = values, .b = values + (size_t)d->width * d->width};
    }
    *out = h;
    return true;
}

void
exit_heads_free(struct exit_heads *h)
{
    if (h == NULL)
        return;
    free(h->layers);
    free(h->values);
    free(h);
}

/* ---- the file ---- */

/* A layer's tensors. Returns how many. */
static size_t
parts_of(const struct exit_heads *h, uint32_t l, struct safetensors_part parts[2])
{
    const bool full = h->kind == HEAD_FULL;
    float *values = h->values + (l - 1) * h->per_layer;
    parts[0] = (struct safetensors_part){.rows = full ? h->vocab : h->width, .cols = h->width, .values = values};
    parts[1] = (struct safetensors_part){.cols = h->width, .values = values + (size_t)h->width * h->width};
    snprintf(parts[0].name, sizeof parts[0].name, "layers.%" PRIu32 ".%s", l, full ? "weight" : "A");
    snprintf(parts[1].name, sizeof parts[1].name, "layers.%" PRIu32 ".b", l);
    return full ? 1 : 2;
}

bool
exit_heads_write(const struct exit_heads *h, const char *path, struct err *err)
{
    struct safetensors_part *parts = calloc(2 * (size_t)h->n_layers, sizeof *parts);
    if (parts == NULL)
        return err_set(err, ERR_WORK, "out of memory writing heads to %s", path);
    size_t n = 0;
    for (uint32_t l = 1; l < h->n_layers; l++)
        n += parts_of(h, l, parts + n);
    char hash[24], layers[16];
    snprintf(hash, sizeof hash, "%016" PRIx64, h->model_hash);
    snprintf(layers, sizeof layers, "%" PRIu32, h->n_layers);
    const struct safetensors_note notes[] = {
        {"format", FORMAT}, {"kind", kinds[h->kind]}, {"model", h->model}, {"model_hash", hash}, {"n_layers", layers}};
    const bool ok = safetensors_write(path, notes, sizeof notes / sizeof *notes, parts, n, err);
    free(parts);
    return ok;
}

/* ---- reading ---- */

static bool
check_model(const struct safetensors *s, const char *path, const struct model *model, enum head_kind *kind,
            struct err *err)
{
    const char *format = safetensors_metadata(s, "format"), *name = safetensors_metadata(s, "kind"),
               *whose = safetensors_metadata(s, "model"), *hash = safetensors_metadata(s, "model_hash");
    if (format == NULL || strcmp(format, FORMAT) != 0 || name == NULL || hash == NULL)
        return err_set(err, ERR_WORK, "%s: not a file of trained heads (its metadata lacks '%s')", path, FORMAT);
    if (!head_kind_from(name, kind))
        return err_set(err, ERR_WORK, "%s: heads of kind '%.32s' are not known; there are affine and full", path, name);
    char expected[24], other[MODEL_NOT];
    snprintf(expected, sizeof expected, "%016" PRIx64, model->hash);
    if (strcmp(hash, expected) != 0)
        return err_set(err, ERR_WORK, "%s: these heads were trained for %s; train some with `%s train heads`", path,
                       model_not(model, whose != NULL ? whose : "unnamed", other, sizeof other), program_name());
    return true;
}

static bool
read_layers(struct exit_heads *h, const struct safetensors *s, const char *path, struct err *err)
{
    for (uint32_t l = 1; l < h->n_layers; l++) {
        struct safetensors_part parts[2];
        const size_t n = parts_of(h, l, parts);
        for (size_t i = 0; i < n; i++) {
            const struct safetensor *t = safetensors_find(s, parts[i].name);
            const uint32_t rows = parts[i].rows > 0 ? parts[i].rows : 1;
            if (t == NULL)
                return err_set(err, ERR_WORK, "%s: %s is missing", path, parts[i].name);
            if (t->type != WEIGHT_F32 || t->rows != rows || t->cols != parts[i].cols)
                return err_set(err, ERR_WORK,
                               "%s: %s is %s (%" PRIu64 ", %" PRIu64 "), expected F32 (%" PRIu32 ", %" PRIu32 ")", path,
                               parts[i].name, t->dtype, t->rows, t->cols, rows, parts[i].cols);
            memcpy(parts[i].values, t->data, safetensors_part_values(&parts[i]) * sizeof(float));
        }
    }
    return true;
}

bool
exit_heads_read(struct exit_heads **out, const char *path, const struct model *model, struct err *err)
{
    *out = NULL;
    struct safetensors *s;
    if (!safetensors_open(&s, path, err))
        return false;
    enum head_kind kind = HEAD_AFFINE;
    struct exit_heads *h = NULL;
    const bool ok =
        check_model(s, path, model, &kind, err) && exit_heads_new(&h, kind, model, err) && read_layers(h, s, path, err);
    if (ok)
        h->hash = hash_map(HASH_START, s->map, s->file_bytes, s->data_start);
    safetensors_close(s);
    if (!ok) {
        exit_heads_free(h);
        return false;
    }
    *out = h;
    return true;
}
