/* Opening models: every shape, type and option that is supported. */
#include <unistd.h>

#include "cli/options/commands.h"
#include "engine/model/files/gguf.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "kernels/tensor.h"
#include "tests/rigs/built_model.h"
#include "tests/rigs/test.h"

#define BUNDLED bundled_model_path()

TEST(bundled_model_is_as_its_readme_describes)
{
    struct model *m;
    struct err err = {0};
    assert_ok(model_open(&m, BUNDLED, &err), err);
    const struct model_desc *d = &m->desc;
    assert_string_equal(m->arch, "llama");
    assert_string_equal(m->types, "Q8_0, F32");
    assert_int_equal(d->n_layers, 16);
    assert_int_equal(d->width, 256);
    assert_int_equal(d->heads, 4);
    assert_int_equal(d->kv_heads, 2);
    assert_int_equal(d->head_dim, 64);
    assert_int_equal(d->ffn, 832);
    assert_int_equal(d->vocab, 2048);
    assert_int_equal(m->ctx_train, 1024);
    assert_int_equal(d->rope_dims, 64);
    assert_int_equal(d->rope, ROPE_ADJACENT);
    assert_number_equal(d->rope_base, 10000);
    assert_number_equal(d->rope_scale, 1);
    assert_null(d->rope_factors);
    assert_true(m->tied);
    assert_ptr_equal(d->head.data, d->embedding.data);
    assert_int_equal(m->parameters, 13902080);
    assert_greater(m->rho, 0.62);
    assert_less(m->rho, 0.63);
    assert_int_equal(model_kv_bytes(m, 1024, false), 8 << 20);
    assert_int_equal(model_kv_bytes(m, 1024, true), 16 << 20);
    model_close(m);
}

TEST(every_shape_of_tiny_model_opens)
{
    static const struct tinymodel shapes[] = {
        {.seed = 0},
        {.tied = true},
        {.mixed = true, .nasty = true},
        {.version = 2},
        {.heads = 1, .kv_heads = 1},
        {.heads = 8, .kv_heads = 1, .head_dim = 32},
        {.width = 48, .heads = 3, .kv_heads = 3, .ffn = 80, .attention = WEIGHT_F16, .mlp = WEIGHT_BF16},
        {.embedding = WEIGHT_Q8_0, .attention = WEIGHT_Q8_0, .mlp = WEIGHT_Q8_0, .head = WEIGHT_Q8_0},
        {.n_layers = 1, .vocab = 5000},
        {.rope_factors = true, .rope_linear = 4, .rope_base = 500000, .rope_dims = 8},
        {.calm_after = 2, .calm = 0.1f},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct tinymodel *s = &shapes[i];
        struct built b;
        struct model *m = open_tiny_model(&b, s);
        const struct model_desc *d = &m->desc;
        assert_int_equal(d->n_layers, s->n_layers ? s->n_layers : 4);
        assert_int_equal(d->width, s->width ? s->width : 64);
        assert_int_equal(d->heads, s->heads ? s->heads : 4);
        assert_int_equal(d->kv_heads, s->kv_heads ? s->kv_heads : 2);
        assert_int_equal(d->head_dim, s->head_dim ? s->head_dim : d->width / d->heads);
        assert_int_equal(d->ffn, s->ffn ? s->ffn : 2 * d->width);
        assert_int_equal(d->vocab, s->vocab ? s->vocab : 320);
        assert_int_equal(tokenizer_size(m->tokenizer), d->vocab);
        assert_int_equal(d->rope_dims, s->rope_dims ? s->rope_dims : d->head_dim);
        assert_number_equal(d->rope_scale, s->rope_linear > 0 ? 1 / s->rope_linear : 1);
        assert_int_equal(m->tied, s->tied);
        assert_int_equal(d->rope_factors != NULL, s->rope_factors);
        if (!s->mixed) {
            assert_int_equal(d->embedding.type, s->embedding);
            assert_int_equal(d->head.type, s->tied ? s->embedding : s->head);
            assert_int_equal(d->layers[0].wq.type, s->attention);
            assert_int_equal(d->layers[0].down.type, s->mlp);
        }
        for (uint32_t l = 0; l < d->n_layers; l++) {
            const struct layer_desc *y = &d->layers[l];
            assert_int_equal(y->wq.rows, d->heads * d->head_dim);
            assert_int_equal(y->wq.cols, d->width);
            assert_int_equal(y->wk.rows, d->kv_heads * d->head_dim);
            assert_int_equal(y->wv.rows, y->wk.rows);
            assert_int_equal(y->wo.rows, d->width);
            assert_int_equal(y->wo.cols, y->wq.rows);
            assert_int_equal(y->gate.rows, d->ffn);
            assert_int_equal(y->up.rows, d->ffn);
            assert_int_equal(y->down.cols, d->ffn);
            assert_int_equal(y->attn_norm.rows, 1);
            assert_int_equal(y->ffn_norm.cols, d->width);
        }
        model_close(m);
        free(b.bytes);
    }
}

TEST(rope_factors_are_read)
{
    struct built b;
    struct model *m = open_tiny_model(&b, &(struct tinymodel){.rope_factors = true});
    assert_number_equal(m->desc.rope_factors[0], 1);
    for (uint32_t i = 1; i < m->desc.rope_dims / 2; i++)
        assert_greater(m->desc.rope_factors[i], m->desc.rope_factors[i - 1]);
    model_close(m);
    free(b.bytes);
}

TEST(a_written_file_opens_and_its_name_is_printable)
{
    char path[64];
    struct model *m;
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, &(struct tinymodel){.nasty = true, .mixed = true}, &err), err);
    assert_ok(model_open(&m, path, &err), err);
    assert_string_equal(m->path, path);
    assert_string_equal(m->name, "tiny \\x1b[31mnasty\\x1b[0m");
    for (size_t i = 0; i < m->desc.n_layers; i++) /* backends rely on it */
        assert_int_equal((uintptr_t)m->desc.layers[i].wq.data % 32, 0);
    model_close(m);
    unlink(path);
}

TEST(the_tensor_with_values_that_are_not_numbers_is_named)
{
    static const char name[] = "blk.1.ffn_down.weight";
    static const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_Q8_0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct tinymodel options = {.n_layers = 3, .mlp = types[i]};
        struct built b;
        struct model *m = open_tiny_model(&b, &options);
        char broken[80];
        assert_false(model_broken_tensor(m, broken, sizeof broken));
        const struct gguf_tensor *t = gguf_find_tensor(m->file, name);
        assert_non_null(t);
        const size_t last = (size_t)(t->data - b.bytes) + (size_t)t->bytes - tensor_block_bytes(types[i]);
        memset(b.bytes + last, 0xff, types[i] == WEIGHT_F32 ? 4 : 2); /* NaN; of Q8_0, the last block's scale */
        assert_true(model_broken_tensor(m, broken, sizeof broken));
        assert_string_equal(broken, name);
        model_close(m);
        free(b.bytes);
    }
}

TEST(hashes_of_models_differ)
{
    static const struct tinymodel shapes[] = {
        {.seed = 1}, {.seed = 2}, {.seed = 1, .tied = true}, {.seed = 1, .calm_after = 3}};
    uint64_t hashes[4];
    for (int i = 0; i < 4; i++) {
        struct built b, again;
        struct model *m = open_tiny_model(&b, &shapes[i]), *same = open_tiny_model(&again, &shapes[i]);
        assert_int_equal(m->hash, same->hash);
        hashes[i] = m->hash;
        for (int k = 0; k < i; k++)
            assert_int_not_equal(hashes[k], hashes[i]);
        model_close(m);
        model_close(same);
        free(b.bytes);
        free(again.bytes);
    }
}

TEST(weight_types_do_not_change_the_values)
{
    struct built exact, rough;
    struct model *m = open_tiny_model(&exact, &(struct tinymodel){.seed = 5});
    struct model *r = open_tiny_model(&rough, &(struct tinymodel){.seed = 5, .attention = WEIGHT_BF16});
    const float *x = m->desc.layers[1].wv.data;
    const uint16_t *y = r->desc.layers[1].wv.data;
    for (int i = 0; i < 64; i++) {
        uint32_t bits = (uint32_t)y[i] << 16;
        float v;
        memcpy(&v, &bits, sizeof v);
        const float difference = v > x[i] ? v - x[i] : x[i] - v, size = x[i] < 0 ? -x[i] : x[i];
        assert_at_most(difference, size / 256);
    }
    model_close(m);
    model_close(r);
    free(exact.bytes);
    free(rough.bytes);
}

TEST(architectures_need_different_tensors)
{
    struct model *m = open_golden_model("tests/golden/models/qwen2.gguf");
    const struct layer_desc *last = &m->desc.layers[m->desc.n_layers - 1];
    assert_string_equal(m->arch, "qwen2");
    assert_int_equal(m->desc.rope, ROPE_HALVES);
    assert_true(m->tied);
    assert_int_equal(m->desc.window, 0);
    assert_int_equal(last->bq.type, WEIGHT_F32);
    assert_int_equal(last->bq.cols, m->desc.heads * m->desc.head_dim);
    assert_int_equal(last->bk.cols, m->desc.kv_heads * m->desc.head_dim);
    assert_true(tensor_present(&last->bv));
    assert_false(tensor_present(&last->q_norm));
    assert_false(tensor_present(&last->k_norm));
    model_close(m);
    m = open_golden_model("tests/golden/models/qwen3.gguf");
    last = &m->desc.layers[m->desc.n_layers - 1];
    assert_int_equal(m->desc.rope, ROPE_HALVES);
    assert_false(m->tied);
    assert_int_equal(m->desc.head_dim, 24);
    assert_int_equal(last->q_norm.cols, 24);
    assert_int_equal(last->k_norm.type, WEIGHT_F32);
    assert_false(tensor_present(&last->bq));
    model_close(m);
    m = open_golden_model("tests/golden/models/mistral.gguf");
    assert_int_equal(m->desc.rope, ROPE_ADJACENT);
    assert_int_equal(m->desc.window, 5);
    model_close(m);
}

TEST(every_type_is_used_as_stored_in_the_file)
{
    struct model *m = open_golden_model("tests/golden/models/types.gguf");
    const struct layer_desc *y = m->desc.layers;
    assert_int_equal(m->desc.embedding.type, WEIGHT_Q6_K);
    assert_int_equal(m->desc.head.type, WEIGHT_Q4_K);
    assert_int_equal(y[0].wq.type, WEIGHT_Q2_K);
    assert_int_equal(y[0].wk.type, WEIGHT_Q3_K);
    assert_int_equal(y[0].wv.type, WEIGHT_Q4_K);
    assert_int_equal(y[0].wo.type, WEIGHT_Q4_0);
    assert_int_equal(y[0].gate.type, WEIGHT_Q5_K);
    assert_int_equal(y[0].down.type, WEIGHT_Q4_1);
    assert_int_equal(y[1].wq.type, WEIGHT_F16);
    assert_int_equal(y[1].wk.type, WEIGHT_BF16);
    assert_int_equal(y[1].wv.type, WEIGHT_F32);
    assert_int_equal(y[1].wo.type, WEIGHT_Q5_0);
    assert_int_equal(y[1].gate.type, WEIGHT_Q8_0);
    assert_int_equal(y[1].down.type, WEIGHT_Q5_1);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < m->file->n_tensors; i++)
        bytes += m->file->tensors[i].bytes;
    bytes -= tensor_row_bytes(WEIGHT_Q6_K, m->desc.embedding.cols) * m->desc.embedding.rows; /* it stays in the file */
    bytes += 4 * (m->parameters_of[WEIGHT_Q3_K] + m->parameters_of[WEIGHT_Q4_K] + m->parameters_of[WEIGHT_Q5_K]) / 256;
    assert_int_equal(model_weight_bytes(m, false, false), bytes); /* a six-bit scale takes a byte in memory */
    struct model *tables = open_golden_model("tests/golden/models/tables.gguf");
    for (int t = 0; t < WEIGHT_TYPES; t++)
        assert_greater((t <= WEIGHT_Q6_K ? m : tables)->tensors_of[t], 0);
    model_close(tables);
    assert_less(strlen(m->types), sizeof m->types);
    assert_int_equal(strncmp(m->types, "Q4_K, Q6_K", 10), 0);
    model_close(m);
}

TEST(a_vocabulary_opens_only_where_it_will_do)
{
    static const char path[] = "tests/golden/models/vocabulary.gguf";
    struct model *m = NULL;
    struct err err = {0};
    assert_false(model_open(&m, path, &err));
    assert_contains(err.text, "vocabulary.gguf: holds a vocabulary and no weights");
    assert_ok(model_open_with(&m, path, &(struct model_options){.vocabulary = true}, &err), err);
    assert_true(m->vocabulary_only);
    assert_int_equal(m->desc.n_layers, 0);
    assert_int_equal(m->desc.vocab, tokenizer_size(m->tokenizer));
    assert_int_equal(m->ctx_train, 512);
    assert_int_equal(model_weight_bytes(m, false, false), 0);
    model_close(m);
}
