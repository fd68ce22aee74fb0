#include "engine/model/trained/exit_heads.h"

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

static bool
make_room(struct exit_heads *h, const struct model_desc *d, const uint32_t *layers, size_t n)
{
    h->n_trained = layers != NULL ? n : d->n_layers - 1;
    h->per_layer = h->kind == HEAD_FULL ? (size_t)d->vocab * d->width : (size_t)d->width * d->width + d->width;
    h->n_values = h->per_layer * h->n_trained;
    h->values = blocks_take(&h->blocks, h->n_values, sizeof *h->values);
    h->layers = blocks_take(&h->blocks, (size_t)d->n_layers + 1, sizeof *h->layers);
    h->trained = blocks_take(&h->blocks, h->n_trained, sizeof *h->trained);
    if (h->blocks.starved)
        return false;
    for (size_t i = 0; i < h->n_trained; i++) {
        const uint32_t l = h->trained[i] = layers != NULL ? layers[i] : (uint32_t)i + 1;
        float *values = h->values + i * h->per_layer;
        if (h->kind == HEAD_FULL)
            h->layers[l] = (struct head_weights){.weight = values};
        else
            h->layers[l] = (struct head_weights){.a = values, .b = values + (size_t)d->width * d->width};
    }
    return true;
}

bool
exit_heads_new(struct exit_heads **out, enum head_kind kind, const struct model *model, const uint32_t *layers,
               size_t n, struct err *err)
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
    if (!make_room(h, d, layers, n)) {
        err_set(err, ERR_WORK, "out of memory: %s heads of %s take %.1f GB", kinds[kind], model->name,
                (double)h->n_values * sizeof *h->values * 1e-9);
        exit_heads_free(h);
        return false;
    }
    *out = h;
    return true;
}

void
exit_heads_free(struct exit_heads *h)
{
    if (h == NULL)
        return;
    blocks_free(&h->blocks);
    free(h);
}

/* ---- the file ---- */

/* The tensors of trained layer i. Returns how many. */
static size_t
parts_of(const struct exit_heads *h, size_t i, struct safetensors_part parts[2])
{
    const bool full = h->kind == HEAD_FULL;
    float *values = h->values + i * h->per_layer;
    parts[0] = (struct safetensors_part){.rows = full ? h->vocab : h->width, .cols = h->width, .values = values};
    parts[1] = (struct safetensors_part){.cols = h->width, .values = values + (size_t)h->width * h->width};
    snprintf(parts[0].name, sizeof parts[0].name, "layers.%" PRIu32 ".%s", h->trained[i], full ? "weight" : "A");
    snprintf(parts[1].name, sizeof parts[1].name, "layers.%" PRIu32 ".b", h->trained[i]);
    return full ? 1 : 2;
}

#define DIGITS 11 /* of a layer, with the comma */

/* "4,8,12"; "" if all layers but the last have a head. */
static void
list_layers(const struct exit_heads *h, char *text, size_t room)
{
    text[0] = '\0';
    for (size_t i = 0, at = 0; i < h->n_trained && h->n_trained < h->n_layers - 1; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%" PRIu32, i > 0 ? "," : "", h->trained[i]);
}

bool
exit_heads_write(const struct exit_heads *h, const char *path, struct err *err)
{
    const size_t room = h->n_trained * DIGITS + 1;
    struct safetensors_part *parts = calloc(2 * h->n_trained, sizeof *parts);
    char *list = malloc(room);
    if (parts == NULL || list == NULL) {
        free(parts);
        free(list);
        return err_set(err, ERR_WORK, "out of memory writing heads to %s", path);
    }
    size_t n = 0;
    for (size_t i = 0; i < h->n_trained; i++)
        n += parts_of(h, i, parts + n);
    char hash[24], layers[16], draft[16], counts_hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, h->model_hash);
    snprintf(layers, sizeof layers, "%" PRIu32, h->n_layers);
    snprintf(draft, sizeof draft, "%" PRIu32, h->draft_vocab);
    snprintf(counts_hash, sizeof counts_hash, "%016" PRIx64, h->counts_hash);
    list_layers(h, list, room);
    const struct safetensors_note notes[] = {
        {"format", FORMAT},   {"kind", kinds[h->kind]}, {"model", h->model},    {"model_hash", hash},
        {"n_layers", layers}, {"layers", list},         {"draft_vocab", draft}, {"vocab_counts_hash", counts_hash}};
    const bool ok = safetensors_write(path, notes, sizeof notes / sizeof *notes, parts, n, err);
    free(parts);
    free(list);
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
read_layers(struct exit_heads *h, const struct safetensors *s, struct err *err)
{
    for (size_t k = 0; k < h->n_trained; k++) {
        struct safetensors_part parts[2];
        const size_t n = parts_of(h, k, parts);
        for (size_t i = 0; i < n; i++)
            if (!safetensors_read_part(s, &parts[i], err))
                return false;
    }
    return true;
}

/* Reads "4,8,12" into layers (n_layers - 1). *n 0: a file of heads for all layers. */
static bool
read_list(const struct safetensors *s, const char *path, uint32_t n_layers, uint32_t *layers, size_t *n,
          struct err *err)
{
    const char *at = safetensors_metadata(s, "layers");
    *n = 0;
    for (bool more = at != NULL && *at != '\0'; more; at++) {
        char *end;
        const unsigned long l = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (l == 0 || l >= n_layers || (*n > 0 && l <= layers[*n - 1]) || (*end != ',' && *end != '\0'))
            return err_set(err, ERR_WORK, "%s: its layers '%.60s' do not ascend from 1 to %" PRIu32, path,
                           safetensors_metadata(s, "layers"), n_layers - 1);
        layers[(*n)++] = (uint32_t)l;
        at = end;
        more = *end == ',';
    }
    return true;
}

/* Makes heads for the layers that the file lists. */
static bool
new_heads(struct exit_heads **h, const struct safetensors *s, const char *path, enum head_kind kind,
          const struct model *model, struct err *err)
{
    size_t n;
    uint32_t *layers = calloc(model->desc.n_layers, sizeof *layers);
    const char *draft = safetensors_metadata(s, "draft_vocab"), *hash = safetensors_metadata(s, "vocab_counts_hash");
    const bool ok = (layers != NULL || err_set(err, ERR_WORK, "out of memory for heads of %s", model->name)) &&
                    read_list(s, path, model->desc.n_layers, layers, &n, err) &&
                    exit_heads_new(h, kind, model, n > 0 ? layers : NULL, n, err);
    free(layers);
    if (ok) {
        (*h)->draft_vocab = draft != NULL ? (uint32_t)strtoul(draft, NULL, 10) : 0;
        (*h)->counts_hash = hash != NULL ? strtoull(hash, NULL, 16) : 0;
    }
    return ok;
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
        check_model(s, path, model, &kind, err) && new_heads(&h, s, path, kind, model, err) && read_layers(h, s, err);
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
