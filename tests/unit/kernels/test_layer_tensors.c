/* The check of tensors before a backend loads a model: it includes every tensor of the list. */
#include "kernels/experts.h"
#include "tests/rigs/naive_model.h"
#include "tests/rigs/test.h"

#define LAYERS 2u
#define ALL    (~(LAYER_ROUTING | LAYER_OF_RECURRENT)) /* tensors of an attention layer without experts */

struct model { /* a valid model, which tests damage */
    struct naive_model *naive;
    struct model_desc desc;
    struct layer_desc layers[LAYERS];
};

static struct model
model(void)
{
    const struct naive_shape shape = {.n_layers = LAYERS,
                                      .width = 32,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .ffn = 64,
                                      .vocab = 40,
                                      .type = WEIGHT_Q8_0,
                                      .optional = ALL,
                                      .form = {.per_layer = 32}};
    struct model m = {.naive = naive_model_random(&shape, 1)};
    assert_non_null(m.naive);
    m.desc = *naive_model_desc(m.naive);
    memcpy(m.layers, m.desc.layers, sizeof m.layers);
    return m;
}

static bool
fits(struct model *m, struct err *err)
{
    m->desc.layers = m->layers;
    return model_desc_fits(&m->desc, ALL, err);
}

static void
assert_refused(struct model *m, enum layer_tensor i)
{
    struct err err = {0};
    char expected[64];
    assert_false(fits(m, &err));
    snprintf(expected, sizeof expected, "%s of layer 2 is ", layer_tensors[i].names[LAYER_NAMED_GGUF]);
    if (strstr(err.text, expected) != err.text)
        fail_msg("'%s' does not begin with '%s'", err.text, expected);
}

TEST(every_tensor_has_to_be_there_unless_it_is_optional)
{
    struct model m = model();
    assert_true(fits(&m, NULL));
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        const struct tensor was = m.layers[1].all[i];
        m.layers[1].all[i] = (struct tensor){0};
        if (layer_tensors[i].need != LAYER_NEEDED && i != LAYER_WK && (LAYER_INPUTS >> i & 1u) == 0)
            assert_true(fits(&m, NULL));
        else
            assert_refused(&m, i);
        m.layers[1].all[i] = was;
    }
    naive_model_free(m.naive);
}

TEST(every_tensor_has_its_shape_and_a_type_that_fits_it)
{
    struct model m = model();
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        if ((ALL >> i & 1u) == 0)
            continue;
        struct tensor *t = &m.layers[1].all[i];
        const struct tensor was = *t;
        t->rows++;
        assert_refused(&m, i);
        *t = was;
        t->cols += 32;
        assert_refused(&m, i);
        *t = was;
        t->type = WEIGHT_TYPES;
        assert_refused(&m, i);
        t->type = WEIGHT_Q4_K; /* has blocks of 256; a vector must not have blocks */
        assert_refused(&m, i);
        *t = was;
    }
    naive_model_free(m.naive);
}

TEST(an_optional_tensor_is_refused_where_a_backend_does_not_compute_with_it)
{
    struct model m = model();
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        struct err err = {0};
        if ((ALL >> i & 1u) == 0)
            continue;
        assert_int_equal(model_desc_fits(&m.desc, ALL & ~(1ull << i), &err), layer_tensors[i].need != LAYER_OPTIONAL);
        assert_int_equal(strstr(err.text, "is not known to this backend") != NULL,
                         layer_tensors[i].need == LAYER_OPTIONAL);
    }
    naive_model_free(m.naive);
}

/* A layer of experts needs its router and each expert's matrices in the right shapes. Biases are optional. */
TEST(every_expert_has_its_tensors)
{
    const struct naive_shape shape = {.n_layers = 1,
                                      .width = 32,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .ffn = 64,
                                      .vocab = 40,
                                      .type = WEIGHT_Q8_0,
                                      .expert_biases = true,
                                      .form = {.experts = {.n = 3, .used = 2, .ffn = 32, .shared_ffn = 64}}};
    struct naive_model *naive = naive_model_random(&shape, 1);
    struct model_desc desc = *naive_model_desc(naive);
    struct layer_desc layer = desc.layers[0];
    struct expert_desc experts[4];
    struct err err = {0};
    memcpy(experts, layer.experts, sizeof experts);
    layer.experts = experts;
    desc.layers = &layer;
    assert_ok(model_desc_fits(&desc, UINT32_MAX, &err), err);
    for (uint32_t e = 0; e < 4; e++)
        for (enum expert_tensor i = 0; i < EXPERT_TENSORS; i++) {
            const struct tensor was = experts[e].all[i];
            experts[e].all[i] = (struct tensor){0};
            assert_int_equal(model_desc_fits(&desc, UINT32_MAX, &err), i != EXPERT_UP && i != EXPERT_DOWN);
            experts[e].all[i] = was;
            experts[e].all[i].rows++;
            assert_int_equal(model_desc_fits(&desc, UINT32_MAX, &err), !tensor_present(&was));
            experts[e].all[i] = was;
        }
    layer.router = (struct tensor){0};
    assert_false(model_desc_fits(&desc, UINT32_MAX, &err));
    layer.router = naive_model_desc(naive)->layers[0].router;
    desc.form.experts.used = 4;
    assert_false(model_desc_fits(&desc, UINT32_MAX, &err));
    naive_model_free(naive);
}

TEST(names_in_files_end_as_their_kind_does)
{
    char name[LAYER_NAME_SIZE];
    assert_string_equal(layer_tensor_name(name, LAYER_WQ, LAYER_NAMED_GGUF), "attn_q.weight");
    assert_string_equal(layer_tensor_name(name, LAYER_BQ, LAYER_NAMED_GGUF), "attn_q.bias");
    assert_string_equal(layer_tensor_name(name, LAYER_FFN_NORM, LAYER_NAMED_HF), "post_attention_layernorm.weight");
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        for (enum layer_naming n = 0; n < LAYER_NAMINGS; n++)
            assert_less(strlen(layer_tensor_name(name, i, n)) + 1, LAYER_NAME_SIZE);
}
