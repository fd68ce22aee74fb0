/* A safetensors file, mapped and never trusted: the header's length, every offset, shape and type is checked before
 * anything is read through it. */
#ifndef ENGINE_FILES_SAFETENSORS_H
#define ENGINE_FILES_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/base/err.h"

#define SAFETENSOR_DIMS 8

struct safetensor {
    const char *name;      /* printable or not; in the file's JSON, which lives as long as the file */
    const char *dtype;     /* "BF16" */
    enum weight_type type; /* WEIGHT_TYPES: one that no backend computes with */
    uint32_t n_dims;
    uint64_t dims[SAFETENSOR_DIMS];
    uint64_t rows, cols; /* the last dimension is contiguous; a vector is one row; both 0: more than two dimensions */
    uint64_t bytes;      /* all of them in the file */
    const unsigned char *data; /* aligned to nothing */
};

struct cJSON;

struct safetensors {
    char *path;
    uint64_t n_tensors, file_bytes, data_start;
    struct safetensor *tensors; /* (n_tensors) sorted by name; no two have the same, no two lie on each other */
    struct cJSON *header;
    const unsigned char *map; /* the whole file */
    bool mapped;              /* by safetensors_open(); safetensors_close() unmaps it */
};

bool safetensors_open(struct safetensors **, const char *path, struct err *);
/* The same on bytes that the caller keeps alive (fuzzing, tests). */
bool safetensors_parse(struct safetensors **, const char *name, const void *bytes, size_t len, struct err *);
void safetensors_close(struct safetensors *);

/* NULL: there is none of that name. */
const struct safetensor *safetensors_find(const struct safetensors *, const char *name);
/* A text of the file's metadata; NULL: it says nothing of the kind. */
const char *safetensors_metadata(const struct safetensors *, const char *key);

/* Writing a safetensors file: what this program trains goes out in the format that others read. */

struct safetensors_part {
    char name[64];
    uint32_t rows, cols; /* rows 0: a vector of cols */
    float *values;       /* (rows, cols), the caller's */
};

struct safetensors_note { /* of the file's metadata */
    const char *key, *value;
};

/* F32 tensors in the order given, whole or not at all (engine/base/file_replace.h). */
bool safetensors_write(const char *path, const struct safetensors_note *, size_t n_notes,
                       const struct safetensors_part *, size_t n_parts, struct err *);

static inline size_t
safetensors_part_values(const struct safetensors_part *p)
{
    return (size_t)(p->rows > 0 ? p->rows : 1) * p->cols;
}

/* A file that Git LFS left in a file's place. */

/* Says what it is, if it is one: then true. */
static inline bool
lfs_pointer(const char *path, const void *bytes, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    if (n < sizeof begin - 1 || memcmp(bytes, begin, sizeof begin - 1) != 0)
        return false;
    err_set(err, ERR_WORK, "%s: is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder", path);
    return true;
}

#endif
