#include "tests/rigs/tiny_folder.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "kernels/backend.h"

#define HEADER_ROOM 4096

struct writing {
    const struct tiny_weights *w;
    char header[HEADER_ROOM];
    size_t n, data_bytes;
};

static void
add(struct writing *to, const char *name, unsigned rows, unsigned cols)
{
    if (to->w->drop != NULL && strcmp(to->w->drop, name) == 0)
        return;
    const char *dtype = to->w->dtype != NULL ? to->w->dtype : "F32";
    const size_t bytes = (size_t)(rows == 0 ? 1 : rows) * cols * (strcmp(dtype, "F32") == 0 ? 4 : 2);
    char shape[32];
    if (rows == 0)
        snprintf(shape, sizeof shape, "[%u]", cols);
    else
        snprintf(shape, sizeof shape, "[%u,%u]", rows, cols);
    to->n += (size_t)snprintf(to->header + to->n, HEADER_ROOM - to->n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                              to->n > 1 ? "," : "", name, dtype, shape, to->data_bytes, to->data_bytes + bytes);
    to->data_bytes += bytes;
}

unsigned char *
tiny_weights(const struct tiny_weights *w, size_t *len)
{
    struct writing to = {.w = w, .header = "{", .n = 1};
    static const struct model_desc d = {.width = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .ffn = 16};
    add(&to, "model.embed_tokens.weight", 10, 8);
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        char name[80], end[LAYER_NAME_SIZE];
        uint32_t rows, cols;
        if (layer_tensors[i].need == LAYER_OPTIONAL && (w->optional >> i & 1u) == 0)
            continue;
        layer_tensor_shape(&d, 1, i, &rows, &cols);
        snprintf(name, sizeof name, "model.layers.0.%s", layer_tensor_name(end, i, LAYER_NAMED_HF));
        add(&to, name, layer_tensors[i].kind == LAYER_MATRIX ? rows : 0, cols);
    }
    add(&to, "model.norm.weight", 0, 8);
    if (!w->headless)
        add(&to, "lm_head.weight", 10, 8);
    if (w->block) {
        add(&to, "fc.weight", 8, 16);
        add(&to, "hidden_norm.weight", 0, 8);
        add(&to, "markov_head.markov_w1.weight", 10, 4);
        add(&to, "markov_head.markov_w2.weight", 10, 4);
        add(&to, "confidence_head.proj.weight", 1, 12);
        add(&to, "confidence_head.proj.bias", 0, 1);
    }
    if (w->extra != NULL)
        add(&to, w->extra, 0, 2);
    to.header[to.n++] = '}';
    for (unsigned i = 0; i < w->shift; i++)
        to.header[to.n++] = ' ';
    *len = 8 + to.n + to.data_bytes;
    unsigned char *bytes = malloc(*len);
    if (bytes == NULL)
        return NULL;
    put_little_endian(bytes, 8, to.n);
    memcpy(bytes + 8, to.header, to.n);
    for (size_t i = 0; i < to.data_bytes; i++) /* small finite numbers in every type */
        bytes[8 + to.n + i] = (unsigned char)(i % 2 == 1 ? 0x3c : i * 7);
    return bytes;
}
