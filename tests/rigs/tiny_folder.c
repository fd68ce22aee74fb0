#include "tests/rigs/tiny_folder.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/little_endian.h"

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
    static const struct {
        const char *name;
        unsigned rows, cols;
        enum { ALWAYS, BIAS, NORM, HEAD } when;
    } all[] = {
        {"model.embed_tokens.weight", 10, 8, ALWAYS},
        {"model.layers.0.input_layernorm.weight", 0, 8, ALWAYS},
        {"model.layers.0.self_attn.q_proj.weight", 8, 8, ALWAYS},
        {"model.layers.0.self_attn.k_proj.weight", 4, 8, ALWAYS},
        {"model.layers.0.self_attn.v_proj.weight", 4, 8, ALWAYS},
        {"model.layers.0.self_attn.q_proj.bias", 0, 8, BIAS},
        {"model.layers.0.self_attn.k_proj.bias", 0, 4, BIAS},
        {"model.layers.0.self_attn.v_proj.bias", 0, 4, BIAS},
        {"model.layers.0.self_attn.q_norm.weight", 0, 4, NORM},
        {"model.layers.0.self_attn.k_norm.weight", 0, 4, NORM},
        {"model.layers.0.self_attn.o_proj.weight", 8, 8, ALWAYS},
        {"model.layers.0.post_attention_layernorm.weight", 0, 8, ALWAYS},
        {"model.layers.0.mlp.gate_proj.weight", 16, 8, ALWAYS},
        {"model.layers.0.mlp.up_proj.weight", 16, 8, ALWAYS},
        {"model.layers.0.mlp.down_proj.weight", 8, 16, ALWAYS},
        {"model.norm.weight", 0, 8, ALWAYS},
        {"lm_head.weight", 10, 8, HEAD},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].when == ALWAYS || (all[i].when == BIAS && w->bias) || (all[i].when == NORM && w->qk_norm) ||
            (all[i].when == HEAD && !w->headless))
            add(&to, all[i].name, all[i].rows, all[i].cols);
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
