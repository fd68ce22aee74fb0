/* Reads and writes safetensors files. A file is mapped into memory. The header's length and every offset, shape and
 * type are checked before they are used to read anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "kernels/backend.h"

#define SAFETENSOR_DIMS 8

struct safetensor {
    const char *name;      /* may be unprintable; points into `header` and is valid until the file is closed */
    const char *dtype;     /* "BF16" */
    enum weight_type type; /* WEIGHT_TYPES if no backend computes with it */
    uint32_t n_dims;
    uint64_t dims[SAFETENSOR_DIMS];
    uint64_t rows, cols; /* the last dimension is contiguous; a vector is one row; both are 0 above two dimensions */
    uint64_t bytes;      /* size of the data, which is completely in the file */
    const unsigned char *data; /* unaligned */
};

struct cJSON;

struct safetensors {
    char *path;
    uint64_t n_tensors, file_bytes, data_start;
    struct safetensor *tensors; /* (n_tensors) sorted by name */
    struct cJSON *header;
    const unsigned char *map; /* the whole file */
    bool mapped;              /* true: safetensors_open() mapped it, and safetensors_close() unmaps it */
};

bool safetensors_open(struct safetensors **, const char *path, struct err *);
/* The same, but unless bytes is NULL, the file is in memory that the caller keeps valid until safetensors_close(). */
bool safetensors_parse(struct safetensors **, const char *path, const void *bytes, size_t len, struct err *);
void safetensors_close(struct safetensors *);

/* Returns the tensor of this name; NULL if there is none. */
const struct safetensor *safetensors_find(const struct safetensors *, const char *name);
/* Returns a string of the file's metadata; NULL if the key is missing. */
const char *safetensors_metadata(const struct safetensors *, const char *key);

/* Writing: weights that this program trains are stored as safetensors, which other programs can read. */

struct safetensors_part {
    char name[64];
    uint32_t rows, cols; /* rows = 0: a vector of cols values */
    void *values;        /* (rows, cols) F32, owned by the caller; or of the type: */
    const char *dtype;   /* "I64" or "BOOL"; NULL: F32 */
};

struct safetensors_note { /* an entry of the file's metadata */
    const char *key, *value;
};

/* Writes tensors in the given order. The file is replaced atomically (base/file_replace.h). */
bool safetensors_write(const char *path, const struct safetensors_note *, size_t n_notes,
                       const struct safetensors_part *, size_t n_parts, struct err *);

/* Reads a tensor of the part's name and shape, of any type with real numbers, into its values as F32. Fails if there is
 * none, or if a value is not finite. */
bool safetensors_read_part(const struct safetensors *, const struct safetensors_part *, struct err *);

static inline size_t
safetensors_part_values(const struct safetensors_part *p)
{
    return (size_t)(p->rows > 0 ? p->rows : 1) * p->cols;
}

/* If the file is a Git LFS pointer in place of the real file, sets an error and returns true. */
static inline bool
lfs_pointer(const char *path, const void *bytes, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    if (n < sizeof begin - 1 || memcmp(bytes, begin, sizeof begin - 1) != 0)
        return false;
    err_set(err, ERR_WORK, "%s: is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder", path);
    return true;
}
