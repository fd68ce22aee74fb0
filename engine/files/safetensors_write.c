#include "engine/files/safetensors_write.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file_replace.h"
#include "engine/base/little_endian.h"

static bool
add_part(cJSON *header, const struct safetensors_part *p, uint64_t start)
{
    cJSON *tensor = cJSON_AddObjectToObject(header, p->name);
    if (tensor == NULL || cJSON_AddStringToObject(tensor, "dtype", "F32") == NULL)
        return false;
    cJSON *shape = cJSON_AddArrayToObject(tensor, "shape"), *offsets = cJSON_AddArrayToObject(tensor, "data_offsets");
    const uint64_t end = start + safetensors_part_values(p) * sizeof(float);
    return shape != NULL && offsets != NULL &&
           (p->rows == 0 || cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->rows))) &&
           cJSON_AddItemToArray(shape, cJSON_CreateNumber(p->cols)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)start)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)end));
}

/* The header's JSON, padded with blanks to a multiple of eight; the caller's. NULL: no memory. */
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
        at += safetensors_part_values(&parts[i]) * sizeof(float);
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
        ok = file_replace_put(f, parts[i].values, safetensors_part_values(&parts[i]) * sizeof(float), err);
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
