/* Conversion of a model to Q8_0 while it is opened, against the definition. */
#include <math.h>

#include "engine/model/model_open.h"
#include "kernels/half.h"
#include "tests/rigs/built_model.h"
#include "tests/rigs/test.h"

/* Converts to Q8_0 by its definition, one value at a time. */
static void
assert_quantised(const struct tensor *from, const struct tensor *to)
{
    const unsigned char *block = to->data;
    const uint16_t *half = from->data;
    const float *full = from->data;
    assert_int_equal(to->type, WEIGHT_Q8_0);
    for (size_t at = 0; at < (size_t)from->rows * from->cols; at += 32, block += 34) {
        float x[32], largest = 0;
        for (size_t i = 0; i < 32; i++) {
            x[i] = from->type == WEIGHT_F16    ? f16_to_f32(half[at + i])
                   : from->type == WEIGHT_BF16 ? bf16_to_f32(half[at + i])
                                               : full[at + i];
            largest = fmaxf(largest, fabsf(x[i]));
        }
        const float d = largest / 127, inverse = d > 0 ? 1 / d : 0;
        const uint16_t scale = f32_to_f16(d);
        assert_memory_equal(block, &scale, 2);
        for (size_t i = 0; i < 32; i++)
            assert_int_equal((signed char)block[2 + i], (int)roundf(x[i] * inverse));
    }
}

TEST(quantising_follows_its_definition)
{
    static const char *const paths[] = {"llama", "mistral", "qwen2"}; /* F32, F16, BF16 */
    for (size_t p = 0; p < 3; p++) {
        char path[64];
        struct err err = {0};
        snprintf(path, sizeof path, "tests/golden/models/%s.gguf", paths[p]);
        struct model *plain = open_golden_model(path), *small = open_golden_model(path);
        assert_ok(model_quantize(small, &err), err);
        assert_quantised(&plain->desc.embedding, &small->desc.embedding);
        assert_quantised(&plain->desc.head, &small->desc.head);
        for (uint32_t l = 0; l < plain->desc.n_layers; l++) {
            assert_quantised(&plain->desc.layers[l].wq, &small->desc.layers[l].wq);
            assert_quantised(&plain->desc.layers[l].wo, &small->desc.layers[l].wo);
            assert_quantised(&plain->desc.layers[l].down, &small->desc.layers[l].down);
        }
        model_close(plain);
        model_close(small);
    }
    struct built b; /* every magnitude of F16, and both zeros */
    struct err err = {0};
    struct model *m = open_tiny_model(&b, &(struct tinymodel){.attention = WEIGHT_F16});
    uint16_t *values = (uint16_t *)m->desc.layers[0].wq.data;
    for (uint32_t i = 0; i < 64 * 64; i++)
        values[i] = (uint16_t)((i * 0x7c00u / 4096) | (i % 3 == 0 ? 0x8000u : 0));
    const struct tensor before = m->desc.layers[0].wq;
    assert_ok(model_quantize(m, &err), err);
    assert_quantised(&before, &m->desc.layers[0].wq);
    model_close(m);
    free(b.bytes);
}

TEST(quantising_accepts_all_numbers_and_refuses_others)
{
    struct err err = {0};
    struct built b;
    const struct tinymodel options = {.width = 48, .heads = 3, .kv_heads = 3, .ffn = 64, .attention = WEIGHT_F16};
    struct model *m = open_tiny_model(&b, &options);
    assert_ok(model_quantize(m, &err), err); /* rows of 48 are not converted, rows of 64 are */
    assert_int_equal(m->desc.layers[0].wq.type, WEIGHT_F16);
    assert_int_equal(m->desc.layers[0].down.type, WEIGHT_Q8_0);
    assert_int_equal(m->desc.layers[0].attn_norm.type, WEIGHT_F32);
    assert_int_equal(m->tensors_of[WEIGHT_Q8_0], 4);
    assert_int_equal(m->parameters_of[WEIGHT_Q8_0], 4 * 48 * 64);
    model_close(m);
    free(b.bytes);

    static const uint32_t odd[] = {0x7fc00000, 0x7f800000, 0xff800000}; /* not a number, infinite, infinite */
    for (size_t i = 0; i < 3; i++) {
        m = open_tiny_model(&b, &(struct tinymodel){.seed = 3});
        memcpy((unsigned char *)m->desc.layers[2].up.data + 64 * 4 * 5 + 40, &odd[i], 4);
        assert_false(model_quantize(m, &err));
        assert_contains(err.text, "row 5 of ffn_up in layer 2 contains weights that are not finite numbers");
        model_close(m);
        free(b.bytes);
    }
}
