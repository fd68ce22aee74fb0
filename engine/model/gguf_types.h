/* Tensor types as GGUF numbers them. */
#ifndef ENGINE_MODEL_GGUF_TYPES_H
#define ENGINE_MODEL_GGUF_TYPES_H

#include <stdint.h>

#include "kernels/backend.h"

enum gguf_tensor_type { GGUF_TENSOR_F32 = 0, GGUF_TENSOR_F16 = 1, GGUF_TENSOR_Q8_0 = 8, GGUF_TENSOR_BF16 = 30 };

/* A row is cut into blocks of `block` values, `bytes` bytes each. */
struct gguf_type_size {
    const char *name;
    uint32_t block, bytes;
};

/* NULL for a type that this program has never heard of (or that has been withdrawn). */
const struct gguf_type_size *gguf_type_size(uint32_t tensor_type);

/* Types that backends compute with, and back; WEIGHT_TYPES: not one of them. */
enum weight_type gguf_weight_type(uint32_t tensor_type);
const struct gguf_type_size *weight_type_size(enum weight_type);

#endif
