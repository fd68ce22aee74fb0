#include "engine/model/exit_heads.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file_replace.h"
#include "engine/base/little_endian.h"
#include "engine/model/model.h"
#include "engine/model/safetensors.h"

#define FORMAT "specscope exit heads 1"

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

/* A layer's tensors: their names after "layers.{l}.", shapes and values. Returns how many. */
struct part {
    const char *name;
    uint32_t rows, cols; /* rows 0: a vector */
    float *values;
};

static size_t
parts_of(const struct exit_heads *h, uint32_t l, struct part parts[2])
{
    const struct head_weights *w = &h->layers[l];
    if (h->kind == HEAD_FULL) {
        parts[0] = (struct part){"weight", h->vocab, h->width, w->weight};
        return 1;
    }
    parts[0] = (struct part){"A", h->width, h->width, w->a};
    parts[1] = (struct part){"b", 0, h->width, w->b};
    return 2;
}

static size_t
part_values(const struct part *p)
{
    return (size_t)(p->rows > 0 ? p->rows : 1) * p->cols;
}

static bool
add_tensor(cJSON *header, uint32_t l, const struct part *p, uint64_t start)
{
    char name[48];
    snprintf(name, sizeof name, "layers.%" PRIu32 ".%s", l, p->name);
    cJSON *tensor = cJSON_AddObjectToObject(header, name);
    if (tensor == NULL || cJSON_AddStringToObject(tensor, "dtype", "F32") == NULL)
        return false;
    cJSON *shape = cJSON_AddArrayToObject(tensor, "shape"), *offsets = cJSON_AddArrayToObject(tensor, "data_offsets");
    if (shape == NULL || offsets == NULL)
        return false;
    return (p->rows == 0 || cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->rows))) &&
           cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->cols)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)start)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)(start + part_values(p) * sizeof(float))));
}

/* The header's JSON, padded with blanks to a multiple of eight; the caller's. NULL: no memory. */
static char *
header_of(const struct exit_heads *h)
{
    char hash[24], number[16];
    snprintf(hash, sizeof hash, "%016" PRIx64, h->model_hash);
    snprintf(number, sizeof number, "%" PRIu32, h->n_layers);
    cJSON *header = cJSON_CreateObject();
    cJSON *meta = header == NULL ? NULL : cJSON_AddObjectToObject(header, "__metadata__");
    bool ok = meta != NULL && cJSON_AddStringToObject(meta, "format", FORMAT) != NULL &&
              cJSON_AddStringToObject(meta, "kind", kinds[h->kind]) != NULL &&
              cJSON_AddStringToObject(meta, "model", h->model) != NULL &&
              cJSON_AddStringToObject(meta, "model_hash", hash) != NULL &&
              cJSON_AddStringToObject(meta, "n_layers", number) != NULL;
    uint64_t at = 0;
    for (uint32_t l = 1; l < h->n_layers && ok; l++) {
        struct part parts[2];
        const size_t n = parts_of(h, l, parts);
        for (size_t i = 0; i < n && ok; i++) {
            ok = add_tensor(header, l, &parts[i], at);
            at += part_values(&parts[i]) * sizeof(float);
        }
    }
    char *json = ok ? cJSON_PrintUnformatted(header) : NULL, *padded = NULL;
    if (json != NULL) {
        const size_t n = strlen(json), whole = (n + 7) / 8 * 8;
        padded = malloc(whole + 1);
        if (padded != NULL) {
            memset(padded, ' ', whole);
            memcpy(padded, json, n);
            padded[whole] = '\0';
        }
    }
    cJSON_free(json);
    cJSON_Delete(header);
    return padded;
}

static bool
exit_heads_put(const struct exit_heads *h, const char *header, struct file_replace *f, struct err *err)
{
    const size_t n = strlen(header);
    unsigned char length[8];
    put_little_endian(length, sizeof length, n);
    return file_replace_put(f, length, sizeof length, err) && file_replace_put(f, header, n, err) &&
           file_replace_put(f, h->values, h->n_values * sizeof *h->values, err);
}

bool
exit_heads_write(const struct exit_heads *h, const char *path, struct err *err)
{
    struct file_replace f;
    char *header = header_of(h);
    if (header == NULL)
        return err_set(err, ERR_WORK, "out of memory writing heads to %s", path);
    const bool ok = file_replace_begin(&f, AT_FDCWD, path, 0666, err) &&
                    file_replace_end(&f, exit_heads_put(h, header, &f, err), err);
    free(header);
    return ok;
}

/* ---- reading ---- */

static const char *
metadata(const struct safetensors *s, const char *key)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(s->header, "__metadata__"), key));
}

static const struct safetensor *
find(const struct safetensors *s, const char *name)
{
    for (uint64_t i = 0; i < s->n_tensors; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

static bool
check_model(const struct safetensors *s, const char *path, const struct model *model, enum head_kind *kind,
            struct err *err)
{
    const char *format = metadata(s, "format"), *name = metadata(s, "kind"), *whose = metadata(s, "model"),
               *hash = metadata(s, "model_hash");
    if (format == NULL || strcmp(format, FORMAT) != 0 || name == NULL || hash == NULL)
        return err_set(err, ERR_WORK, "%s: not a file of trained heads (its metadata does not say '%s')", path, FORMAT);
    if (!head_kind_from(name, kind))
        return err_set(err, ERR_WORK, "%s: heads of kind '%.32s' are not known; there are affine and full", path, name);
    char expected[24];
    snprintf(expected, sizeof expected, "%016" PRIx64, model->hash);
    if (strcmp(hash, expected) != 0)
        return err_set(err, ERR_WORK,
                       "%s: these heads were trained for another model (%.48s, %.16s; this is %s, %s); train some "
                       "with `specscope train heads`",
                       path, whose != NULL ? whose : "unnamed", hash, model->name, expected);
    return true;
}

static bool
read_layers(struct exit_heads *h, const struct safetensors *s, const char *path, struct err *err)
{
    for (uint32_t l = 1; l < h->n_layers; l++) {
        struct part parts[2];
        const size_t n = parts_of(h, l, parts);
        for (size_t i = 0; i < n; i++) {
            char name[48];
            snprintf(name, sizeof name, "layers.%" PRIu32 ".%s", l, parts[i].name);
            const struct safetensor *t = find(s, name);
            if (t == NULL)
                return err_set(err, ERR_WORK, "%s: %s is missing", path, name);
            if (t->type != WEIGHT_F32 || t->rows != (parts[i].rows > 0 ? parts[i].rows : 1) || t->cols != parts[i].cols)
                return err_set(err, ERR_WORK,
                               "%s: %s is %s (%" PRIu64 ", %" PRIu64 "), expected F32 (%" PRIu32 ", %" PRIu32 ")", path,
                               name, t->dtype, t->rows, t->cols, parts[i].rows > 0 ? parts[i].rows : 1, parts[i].cols);
            memcpy(parts[i].values, t->data, part_values(&parts[i]) * sizeof(float));
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
    safetensors_close(s);
    if (!ok) {
        exit_heads_free(h);
        return false;
    }
    *out = h;
    return true;
}
