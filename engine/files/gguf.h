/* A GGUF file, versions 2 and 3, mapped and never trusted: every length, offset, alignment, count and type is checked
 * before anything is read through it. */
#ifndef ENGINE_FILES_GGUF_H
#define ENGINE_FILES_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/slice.h"
#include "kernels/backend.h"
#include "kernels/base/err.h"

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
    struct slice key; /* in the file, as all slices are */
    enum gguf_type type;
    enum gguf_type element;  /* of an array */
    uint64_t count;          /* of an array */
    const unsigned char *at; /* first byte of the value (of the first element), inside the file */
};

struct gguf_tensor {
    struct slice name;
    uint32_t type; /* as in the file: 0 F32, 1 F16, 8 Q8_0, 30 BF16, … */
    uint32_t n_dims;
    uint64_t dims[4];          /* dims[0] is contiguous; 1 beyond n_dims */
    uint64_t bytes;            /* 0 for a type whose size this reader does not know */
    const unsigned char *data; /* at a multiple of `alignment` from the file's start; all `bytes` are in the file */
};

struct gguf {
    char *path;
    uint32_t version;
    uint64_t n_values, n_tensors, alignment, file_bytes;
    uint64_t data_start;         /* offset of the tensors' data; file_bytes at most */
    struct gguf_value *values;   /* (n_values) */
    struct gguf_tensor *tensors; /* (n_tensors) */
    const unsigned char *map;    /* the whole file */
    bool mapped;                 /* by gguf_open(); gguf_close() unmaps it */
    struct gguf **parts;         /* (n_parts) the further files of a split model; `tensors` lists theirs too */
    uint32_t n_parts;
};

/* Errors name the file, what is wrong, where, and what to do. Nothing is copied: values and tensors point into the map.
 * Of a model split over several files any one's path will do: metadata are the first's, tensors those of all. */
bool gguf_open(struct gguf **, const char *path, struct err *);
/* The same on bytes that the caller keeps alive (fuzzing, tests). */
bool gguf_parse(struct gguf **, const char *name, const void *bytes, size_t len, struct err *);
void gguf_close(struct gguf *);

const struct gguf_value *gguf_find(const struct gguf *, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *, const char *name);

/* Typed look-ups. A missing key gives `otherwise`, a key of the wrong type or range is an error. */
bool gguf_get_u32(const struct gguf *, const char *key, uint32_t otherwise, uint32_t *out, struct err *);
bool gguf_get_f32(const struct gguf *, const char *key, float otherwise, float *out, struct err *);
bool gguf_get_bool(const struct gguf *, const char *key, bool otherwise, bool *out, struct err *);
bool gguf_get_string(const struct gguf *, const char *key, struct slice *out, struct err *); /* len 0 if missing */
/* Element access for arrays; the caller checked `element` and the index. Strings are walked: use gguf_strings(). */
double gguf_number(const struct gguf_value *, uint64_t index);
/* All strings of an array, in memory that the caller frees (the bytes stay the file's); NULL on error. */
struct slice *gguf_strings(const struct gguf_value *, struct err *);

const char *gguf_type_name(uint32_t tensor_type); /* "Q8_0"; "type 31" or "an unknown type" otherwise */

/* Tensor types as GGUF numbers them. */

/* A row is cut into blocks of `block` values, `bytes` bytes each. */
struct gguf_type_size {
    const char *name;
    uint32_t block, bytes;
};

/* False for a type that this program has never heard of (or that has been withdrawn). */
bool gguf_type_size(uint32_t tensor_type, struct gguf_type_size *);

/* Types that backends compute with, and back; WEIGHT_TYPES: not one of them. */
enum weight_type gguf_weight_type(uint32_t tensor_type);
uint32_t gguf_type_of(enum weight_type);

#endif
