/* Reads GGUF files, versions 2 and 3. The file is mapped into memory. Every length, offset, alignment, count and type
 * is checked before it is used to read anything, so a damaged or malicious file causes an error and no other harm. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "kernels/backend.h"

/* Metadata value types, numbered as in the file. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

struct gguf_value {
    struct slice key; /* points into the file, as all slices here do */
    enum gguf_type type;
    enum gguf_type element;  /* arrays only: type of an element */
    uint64_t count;          /* arrays only: number of elements */
    const unsigned char *at; /* first byte of the value, or of an array's first element, in the file */
};

struct gguf_tensor {
    struct slice name;
    uint32_t type; /* as in the file: 0 F32, 1 F16, 8 Q8_0, 30 BF16, and so on */
    uint32_t n_dims;
    uint64_t dims[4];          /* dims[0] is contiguous; 1 from n_dims on */
    uint64_t bytes;            /* 0 if the type's size is unknown to this reader */
    const unsigned char *data; /* at a multiple of `alignment` from the file's start; all `bytes` are in the file */
};

struct gguf {
    char *path;
    uint32_t version;
    uint64_t n_values, n_tensors, alignment, file_bytes;
    uint64_t data_start;         /* offset of the tensors' data; at most file_bytes */
    struct gguf_value *values;   /* (n_values) */
    struct gguf_tensor *tensors; /* (n_tensors) */
    const unsigned char *map;    /* the whole file */
    bool mapped;                 /* true: gguf_open() mapped it, and gguf_close() unmaps it */
    struct gguf **parts;         /* (n_parts) the other files of a split model; `tensors` includes their tensors */
    uint32_t n_parts;
};

/* Opens a GGUF file. An error names the file, the fault, its position and the remedy. Nothing is copied: values and
 * tensors point into the mapped file. If the model is split over several files, `path` may be the path of any part. The
 * metadata then come from the first part and the tensors from all parts. */
bool gguf_open(struct gguf **, const char *path, struct err *);
/* Opens one file, which may be a part of a split model, from memory that the caller keeps valid until gguf_close(). If
 * bytes is NULL, the file is read from the disk. */
bool gguf_parse(struct gguf **, const char *path, const void *bytes, size_t len, struct err *);
void gguf_close(struct gguf *);

const struct gguf_value *gguf_find(const struct gguf *, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *, const char *name);

/* Typed look-ups. They store `otherwise` if the key is missing, and fail if the value has the wrong type or range. */
bool gguf_get_u32(const struct gguf *, const char *key, uint32_t otherwise, uint32_t *out, struct err *);
bool gguf_get_f32(const struct gguf *, const char *key, float otherwise, float *out, struct err *);
bool gguf_get_bool(const struct gguf *, const char *key, bool otherwise, bool *out, struct err *);
bool gguf_get_string(const struct gguf *, const char *key, struct slice *out, struct err *); /* len 0 if missing */
/* Returns a number of an array. The caller has checked `element` and the index. For strings use gguf_strings(). */
double gguf_number(const struct gguf_value *, uint64_t index);
/* Returns all strings of an array; NULL on error. The caller frees the array of slices; the bytes stay in the file. */
struct slice *gguf_strings(const struct gguf_value *, struct err *);

const char *gguf_type_name(uint32_t tensor_type); /* "Q8_0"; "an unknown type" otherwise */

/* Tensor types, with GGUF's numbers. */

/* A row consists of blocks. Each block contains `block` values in `bytes` bytes. */
struct gguf_type_size {
    const char *name;
    uint32_t block, bytes;
};

/* Returns false if the type is unknown, or was removed from the format. */
bool gguf_type_size(uint32_t tensor_type, struct gguf_type_size *);

/* Converts between GGUF's types and the types that backends compute with; WEIGHT_TYPES if backends lack the type. */
enum weight_type gguf_weight_type(uint32_t tensor_type);
uint32_t gguf_type_of(enum weight_type);
