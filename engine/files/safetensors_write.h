/* Writing a safetensors file: what this program trains goes out in the format that others read. */
#ifndef ENGINE_FILES_SAFETENSORS_WRITE_H
#define ENGINE_FILES_SAFETENSORS_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/base/err.h"

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

#endif
