/* Tensor types as GGUF numbers them. */
#ifndef ENGINE_FILES_GGUF_TYPES_H
#define ENGINE_FILES_GGUF_TYPES_H

#include <stdint.h>

#include "kernels/backend.h"

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
