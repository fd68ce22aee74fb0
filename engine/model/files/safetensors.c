/* The format of a safetensors file is
 *
 *   u64 n, little-endian; n bytes of JSON; data
 *   {"NAME": {"dtype": "BF16", "shape": [rows, cols], "data_offsets": [begin, end]}, …, "__metadata__": {…}}
 *
 * with offsets into the data, which starts right after the header. The reference reader limits n to 100 MB. This
 * reader does the same before it calls cJSON. cJSON stores numbers as doubles, in which integers up to 2^53 are exact.
 * No file has that many bytes, so larger numbers are refused. */
#include "engine/model/files/safetensors.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/file_replace.h"
#include "base/json_read.h"
#include "base/little_endian.h"
#include "base/utf8.h"
#include "kernels/tensor.h"

#define LONGEST_HEADER (100u * 1000u * 1000u)
#define NAME_SHOWN     80

#define DAMAGED "; the file is damaged or was cut short, fetch it again"

static const struct dtype {
    const char *name;
    uint8_t bytes;
    enum weight_type type;
} dtypes[] = {
    {"F32", 4, WEIGHT_F32},       {"F16", 2, WEIGHT_F16},       {"BF16", 2, WEIGHT_BF16},  {"F64", 8, WEIGHT_TYPES},
    {"I64", 8, WEIGHT_TYPES},     {"U64", 8, WEIGHT_TYPES},     {"I32", 4, WEIGHT_TYPES},  {"U32", 4, WEIGHT_TYPES},
    {"I16", 2, WEIGHT_TYPES},     {"U16", 2, WEIGHT_TYPES},     {"I8", 1, WEIGHT_TYPES},   {"U8", 1, WEIGHT_TYPES},
    {"F8_E4M3", 1, WEIGHT_TYPES}, {"F8_E5M2", 1, WEIGHT_TYPES}, {"BOOL", 1, WEIGHT_TYPES},
};

struct reading {
    struct safetensors *file;
    uint64_t room; /* bytes of data */
    struct err *err;
};

static bool
whole(const cJSON *v, uint64_t *out)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 0x1p53) ||
        floor(v->valuedouble) < v->valuedouble)
        return false;
    *out = (uint64_t)v->valuedouble;
    return true;
}

static bool
read_shape(const struct reading *r, const cJSON *shape, struct safetensor *t, uint64_t *elements)
{
    char name[NAME_SHOWN];
    *elements = 1;
    if (!cJSON_IsArray(shape))
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' has no shape" DAMAGED, r->file->path,
                       printable_line(name, sizeof name, t->name, strlen(t->name)));
    const cJSON *v;
    cJSON_ArrayForEach(v, shape)
    {
        uint64_t n;
        if (t->n_dims == SAFETENSOR_DIMS || !whole(v, &n) || (n != 0 && *elements > ((uint64_t)1 << 53) / n))
            return err_set(r->err, ERR_WORK, "%s: tensor '%s' has an impossible shape" DAMAGED, r->file->path,
                           printable_line(name, sizeof name, t->name, strlen(t->name)));
        t->dims[t->n_dims++] = n;
        *elements *= n;
    }
    if (t->n_dims <= 2) {
        t->cols = t->n_dims == 0 ? 1 : t->dims[t->n_dims - 1];
        t->rows = t->n_dims < 2 ? 1 : t->dims[0];
    }
    return true;
}

static bool
read_tensor(const struct reading *r, const cJSON *entry, struct safetensor *t)
{
    char name[NAME_SHOWN], text[24];
    uint64_t elements, begin, end;
    const struct dtype *known = NULL;
    t->name = entry->string;
    t->type = WEIGHT_TYPES;
    printable_line(name, sizeof name, t->name, strlen(t->name));
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    if (!cJSON_IsString(dtype) || cJSON_GetArraySize(offsets) != 2 || !cJSON_IsArray(offsets) ||
        !whole(cJSON_GetArrayItem(offsets, 0), &begin) || !whole(cJSON_GetArrayItem(offsets, 1), &end))
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' lacks its dtype or its data_offsets" DAMAGED, r->file->path,
                       name);
    if (!read_shape(r, cJSON_GetObjectItemCaseSensitive(entry, "shape"), t, &elements))
        return false;
    t->dtype = dtype->valuestring;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, t->dtype) == 0)
            known = &dtypes[i];
    if (begin > end || end > r->room)
        return err_set(r->err, ERR_WORK,
                       "%s: tensor '%s' wants bytes %" PRIu64 " to %" PRIu64 ", but the file has %" PRIu64
                       " bytes of data" DAMAGED,
                       r->file->path, name, begin, end, r->room);
    t->bytes = end - begin;
    t->data = r->file->map + r->file->data_start + begin;
    if (known != NULL) /* an unknown dtype is an error only if the tensor is used */
        t->type = known->type;
    if (known != NULL && elements * known->bytes != t->bytes)
        return err_set(
            r->err, ERR_WORK, "%s: tensor '%s' has %" PRIu64 " elements of %s, which are not %" PRIu64 " bytes" DAMAGED,
            r->file->path, name, elements, printable_line(text, sizeof text, t->dtype, strlen(t->dtype)), t->bytes);
    return true;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

static bool
parse(struct safetensors *f, struct err *err)
{
    if (f->file_bytes < 8)
        return err_set(err, ERR_WORK, "%s: is no safetensors file (it has only %" PRIu64 " bytes)", f->path,
                       f->file_bytes);
    if (lfs_pointer(f->path, f->map, (size_t)f->file_bytes, err))
        return false;
    const uint64_t n = little_endian(f->map, 8);
    if (n > LONGEST_HEADER || n > f->file_bytes - 8)
        return err_set(err, ERR_WORK,
                       "%s: claims a header of %" PRIu64 " bytes, but has %" PRIu64
                       "; it is no safetensors file, or was cut short",
                       f->path, n, f->file_bytes - 8);
    f->data_start = 8 + n;
    if (!json_read(&f->header, (const char *)f->map + 8, (size_t)n))
        return err_set(err, ERR_WORK, "%s: out of memory for its header", f->path);
    if (!cJSON_IsObject(f->header))
        return err_set(err, ERR_WORK, "%s: its header is no JSON object" DAMAGED, f->path);
    const struct reading r = {.file = f, .room = f->file_bytes - f->data_start, .err = err};
    const size_t most = (size_t)cJSON_GetArraySize(f->header);
    f->tensors = calloc(most + 1, sizeof *f->tensors);
    if (f->tensors == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %zu tensors", f->path, most);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, f->header)
    {
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        if (!read_tensor(&r, entry, &f->tensors[f->n_tensors]))
            return false;
        f->n_tensors++;
    }
    qsort(f->tensors, (size_t)f->n_tensors, sizeof *f->tensors, by_name);
    return true;
}

bool
safetensors_parse(struct safetensors **out, const char *path, const void *bytes, size_t len, struct err *err)
{
    *out = NULL;
    char *copy;
    struct safetensors *f = file_struct(sizeof *f, path, &copy, err);
    if (f == NULL)
        return false;
    f->path = copy;
    f->map = bytes;
    f->file_bytes = len;
    f->mapped = bytes == NULL && file_map(path, "a safetensors file should be there", &f->map, &f->file_bytes, err);
    if ((bytes == NULL && !f->mapped) || !parse(f, err)) {
        safetensors_close(f);
        return false;
    }
    *out = f;
    return true;
}

bool
safetensors_open(struct safetensors **out, const char *path, struct err *err)
{
    return safetensors_parse(out, path, NULL, 0, err);
}

void
safetensors_close(struct safetensors *f)
{
    if (f == NULL)
        return;
    if (f->mapped)
        file_unmap(f->map, f->file_bytes);
    cJSON_Delete(f->header);
    free(f->tensors);
    free(f->path);
    free(f);
}

const struct safetensor *
safetensors_find(const struct safetensors *f, const char *name)
{
    const struct safetensor wanted = {.name = name};
    return bsearch(&wanted, f->tensors, (size_t)f->n_tensors, sizeof *f->tensors, by_name);
}

const char *
safetensors_metadata(const struct safetensors *f, const char *key)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(f->header, "__metadata__"), key));
}

bool
safetensors_read_part(const struct safetensors *s, const struct safetensors_part *p, struct err *err)
{
    const struct safetensor *t = safetensors_find(s, p->name);
    const uint32_t rows = p->rows > 0 ? p->rows : 1;
    if (t == NULL)
        return err_set(err, ERR_WORK, "%s: %s is missing", s->path, p->name);
    if (t->type == WEIGHT_TYPES || t->rows != rows || t->cols != p->cols)
        return err_set(err, ERR_WORK,
                       "%s: %s is %s (%" PRIu64 ", %" PRIu64 "), expected numbers (%" PRIu32 ", %" PRIu32 ")", s->path,
                       p->name, t->dtype, t->rows, t->cols, rows, p->cols);
    float *values = p->values;
    tensor_blocks(t->type, t->data, safetensors_part_values(p), values);
    for (size_t i = 0; i < safetensors_part_values(p); i++)
        if (!isfinite(values[i]))
            return err_set(err, ERR_WORK, "%s: %s has a value that is not finite; fetch or train it again", s->path,
                           p->name);
    return true;
}

static uint64_t
part_bytes(const struct safetensors_part *p)
{
    const size_t size = p->dtype == NULL ? sizeof(float) : strcmp(p->dtype, "I64") == 0 ? sizeof(int64_t) : 1;
    return safetensors_part_values(p) * size;
}

static bool
add_part(cJSON *header, const struct safetensors_part *p, uint64_t start)
{
    cJSON *tensor = cJSON_AddObjectToObject(header, p->name);
    if (tensor == NULL || cJSON_AddStringToObject(tensor, "dtype", p->dtype != NULL ? p->dtype : "F32") == NULL)
        return false;
    cJSON *shape = cJSON_AddArrayToObject(tensor, "shape"), *offsets = cJSON_AddArrayToObject(tensor, "data_offsets");
    const uint64_t end = start + part_bytes(p);
    return shape != NULL && offsets != NULL &&
           (p->rows == 0 || cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->rows))) &&
           cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->cols)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)start)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)end));
}

/* Returns the header's JSON, padded with blanks to a multiple of eight bytes. The caller frees it. NULL if out of
 * memory. */
static char *
header_of(const struct safetensors_note *notes, size_t n_notes, const struct safetensors_part *parts, size_t n_parts)
{
    cJSON *header = cJSON_CreateObject();
    cJSON *metadata = header == NULL ? NULL : cJSON_AddObjectToObject(header, "__metadata__");
    bool ok = metadata != NULL;
    for (size_t i = 0; i < n_notes && ok; i++)
        ok = cJSON_AddStringToObject(metadata, notes[i].key, notes[i].value) != NULL;
    uint64_t at = 0;
    for (size_t i = 0; i < n_parts && ok; i++) {
        ok = add_part(header, &parts[i], at);
        at += part_bytes(&parts[i]);
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
put(struct file_replace *f, const char *header, const struct safetensors_part *parts, size_t n_parts, struct err *err)
{
    const size_t n = strlen(header);
    unsigned char length[8];
    put_little_endian(length, sizeof length, n);
    bool ok = file_replace_put(f, length, sizeof length, err) && file_replace_put(f, header, n, err);
    for (size_t i = 0; i < n_parts && ok; i++)
        ok = file_replace_put(f, parts[i].values, part_bytes(&parts[i]), err);
    return ok;
}

bool
safetensors_write(const char *path, const struct safetensors_note *notes, size_t n_notes,
                  const struct safetensors_part *parts, size_t n_parts, struct err *err)
{
    struct file_replace f;
    char *header = header_of(notes, n_notes, parts, n_parts);
    if (header == NULL)
        return err_set(err, ERR_WORK, "out of memory writing %s", path);
    const bool ok = file_replace_begin(&f, AT_FDCWD, path, 0666, err) &&
                    file_replace_end(&f, put(&f, header, parts, n_parts, err), err);
    free(header);
    return ok;
}
