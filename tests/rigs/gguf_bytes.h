/* Builds a GGUF file in memory, little-endian on every machine. The values are written unchecked, so that tests can
 * build invalid files. A failed allocation sets `failed`, and later calls do nothing, so callers check it once, at the
 * end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "engine/model/files/gguf.h"

struct gguf_bytes {
    unsigned char *data;
    size_t len, room;
    uint64_t n_keys; /* metadata keys written so far */
    bool failed;
};

static inline void
put_bytes(struct gguf_bytes *b, const void *data, size_t n)
{
    if (!b->failed && n > b->room - b->len) {
        size_t room = 2 * (b->len + n) + 256;
        unsigned char *grown = realloc(b->data, room);
        if (grown == NULL) {
            b->failed = true;
        } else {
            b->data = grown;
            b->room = room;
        }
    }
    if (b->failed || n == 0)
        return;
    memcpy(b->data + b->len, data, n);
    b->len += n;
}

/* Writes the lowest n bytes of an integer. */
static inline void
put_uint(struct gguf_bytes *b, uint64_t v, size_t n)
{
    unsigned char little[8];
    put_little_endian(little, sizeof little, v);
    put_bytes(b, little, n);
}

static inline void
put_u32(struct gguf_bytes *b, uint32_t v)
{
    put_uint(b, v, 4);
}

static inline void
put_u64(struct gguf_bytes *b, uint64_t v)
{
    put_uint(b, v, 8);
}

static inline void
put_f32(struct gguf_bytes *b, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(b, bits);
}

static inline void
put_text(struct gguf_bytes *b, const char *text, size_t n)
{
    put_u64(b, n);
    put_bytes(b, text, n);
}

#define GGUF_N_KEYS_AT 16 /* offset of n_values in the header */

static inline void
put_header(struct gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_values)
{
    put_bytes(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_values);
}

static inline void
put_key(struct gguf_bytes *b, const char *key, enum gguf_type type)
{
    put_text(b, key, strlen(key));
    put_u32(b, (uint32_t)type);
    b->n_keys++;
}

static inline void
put_key_u32(struct gguf_bytes *b, const char *key, uint32_t v)
{
    put_key(b, key, GGUF_U32);
    put_u32(b, v);
}

static inline void
put_key_f32(struct gguf_bytes *b, const char *key, float v)
{
    put_key(b, key, GGUF_F32);
    put_f32(b, v);
}

static inline void
put_key_bool(struct gguf_bytes *b, const char *key, bool v)
{
    put_key(b, key, GGUF_BOOL);
    put_uint(b, v, 1);
}

static inline void
put_key_text(struct gguf_bytes *b, const char *key, const char *v)
{
    put_key(b, key, GGUF_STRING);
    put_text(b, v, strlen(v));
}

static inline void
put_key_array(struct gguf_bytes *b, const char *key, enum gguf_type element, uint64_t count)
{
    put_key(b, key, GGUF_ARRAY);
    put_u32(b, (uint32_t)element);
    put_u64(b, count);
}

/* Writes a tensor's entry. `cols` is the contiguous dimension. A tensor with rows = 0 is a vector, and one with planes
 * above 1 is a stack of matrices. */
static inline void
put_stack(struct gguf_bytes *b, const char *name, uint64_t cols, uint64_t rows, uint64_t planes, uint32_t type,
          uint64_t offset)
{
    put_text(b, name, strlen(name));
    put_u32(b, rows == 0 ? 1 : planes > 1 ? 3 : 2);
    put_u64(b, cols);
    if (rows != 0)
        put_u64(b, rows);
    if (rows != 0 && planes > 1)
        put_u64(b, planes);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void
put_tensor(struct gguf_bytes *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset)
{
    put_stack(b, name, cols, rows, 1, type, offset);
}

static inline void
put_padding(struct gguf_bytes *b, size_t alignment)
{
    while (!b->failed && b->len % alignment != 0)
        put_uint(b, 0, 1);
}
