/* Opening models: every shape, type and option that is supported, and every lie in a file refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "engine/model/gguf.h"
#include "engine/planted/model_open.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/half.h"
#include "tests/golden/gguf_bytes.h"
#include "tests/golden/tinymodel.h"

#define BUNDLED bundled_model_path()

struct built {
    unsigned char *bytes;
    size_t len;
};

static struct built
build(const struct tinymodel *options)
{
    struct built b = {0};
    struct err err = {0};
    if (!tinymodel_build(options, &b.bytes, &b.len, &err))
        fail_msg("%s", err.text);
    return b;
}

static bool
read_bytes(struct model **m, const struct built *b, struct err *err)
{
    struct gguf *file;
    return gguf_parse(&file, "tiny.gguf", b->bytes, b->len, err) && model_read(m, file, err);
}

static struct model *
open_tiny(struct built *b, const struct tinymodel *options)
{
    struct model *m = NULL;
    struct err err = {0};
    *b = build(options);
    if (!read_bytes(&m, b, &err))
        fail_msg("%s", err.text);
    return m;
}

static void
assert_refused(struct built *b, const char *says)
{
    struct model *m = NULL;
    struct err err = {0};
    assert_false(read_bytes(&m, b, &err));
    assert_null(m);
    if (strstr(err.text, says) == NULL)
        fail_msg("says \"%s\", not \"%s\"", err.text, says);
    free(b->bytes);
}

/* The first place after `name` in the file, to damage what follows it. */
static unsigned char *
after(struct built *b, const char *name)
{
    unsigned char *at = memmem(b->bytes, b->len, name, strlen(name));
    assert_non_null(at);
    return at + strlen(name);
}

static struct built
with_u32(const struct tinymodel *options, const char *key, uint32_t v)
{
    struct built b = build(options);
    memcpy(after(&b, key) + 4, &v, sizeof v); /* its type lies between */
    return b;
}

/* ---- supported ---- */

static void
test_bundled_model_is_what_its_readme_says(void **state)
{
    (void)state;
    struct model *m;
    struct err err = {0};
    if (!model_open(&m, BUNDLED, &err))
        fail_msg("%s", err.text);
    const struct model_desc *d = &m->desc;
    assert_string_equal(m->arch, "llama");
    assert_string_equal(m->types, "Q8_0, F32");
    assert_true(d->n_layers == 16 && d->width == 256 && d->heads == 4 && d->kv_heads == 2 && d->head_dim == 64);
    assert_true(d->ffn == 832 && d->vocab == 2048 && m->ctx_train == 1024 && d->rope_dims == 64);
    assert_true(d->rope == ROPE_ADJACENT && d->rope_base == 10000 && d->rope_scale == 1 && d->rope_factors == NULL);
    assert_true(m->tied && d->head.data == d->embedding.data);
    assert_int_equal(m->parameters, 13902080);
    assert_true(m->rho > 0.62 && m->rho < 0.63);
    assert_int_equal(model_kv_bytes(m, 1024, false), 8 << 20);
    assert_int_equal(model_kv_bytes(m, 1024, true), 16 << 20);
    model_close(m);
}

static void
test_every_shape_of_tiny_model_opens(void **state)
{
    (void)state;
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
        struct model *m = open_tiny(&b, s);
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
        assert_true(d->rope_scale == (s->rope_linear > 0 ? 1 / s->rope_linear : 1));
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
            assert_true(y->wq.rows == d->heads * d->head_dim && y->wq.cols == d->width);
            assert_true(y->wk.rows == d->kv_heads * d->head_dim && y->wv.rows == y->wk.rows);
            assert_true(y->wo.rows == d->width && y->wo.cols == y->wq.rows);
            assert_true(y->gate.rows == d->ffn && y->up.rows == d->ffn && y->down.cols == d->ffn);
            assert_true(y->attn_norm.rows == 1 && y->ffn_norm.cols == d->width);
        }
        model_close(m);
        free(b.bytes);
    }
}

static void
test_rope_factors_are_read(void **state)
{
    (void)state;
    struct built b;
    struct model *m = open_tiny(&b, &(struct tinymodel){.rope_factors = true});
    assert_true(m->desc.rope_factors[0] == 1);
    for (uint32_t i = 1; i < m->desc.rope_dims / 2; i++)
        assert_true(m->desc.rope_factors[i] > m->desc.rope_factors[i - 1]);
    model_close(m);
    free(b.bytes);
}

static void
test_a_written_file_opens_and_its_name_is_printable(void **state)
{
    (void)state;
    char path[64];
    struct model *m;
    struct err err = {0};
    assert_true(tinymodel_write_temp(path, sizeof path, &(struct tinymodel){.nasty = true, .mixed = true}, &err));
    if (!model_open(&m, path, &err))
        fail_msg("%s", err.text);
    assert_string_equal(m->path, path);
    assert_string_equal(m->name, "tiny \\x1b[31mnasty\\x1b[0m");
    for (size_t i = 0; i < m->desc.n_layers; i++) /* backends may count on it */
        assert_int_equal((uintptr_t)m->desc.layers[i].wq.data % 32, 0);
    model_close(m);
    unlink(path);
}

static void
test_hash_tells_models_apart(void **state)
{
    (void)state;
    static const struct tinymodel shapes[] = {
        {.seed = 1}, {.seed = 2}, {.seed = 1, .tied = true}, {.seed = 1, .calm_after = 3}};
    uint64_t hashes[4];
    for (int i = 0; i < 4; i++) {
        struct built b, again;
        struct model *m = open_tiny(&b, &shapes[i]), *same = open_tiny(&again, &shapes[i]);
        assert_int_equal(m->hash, same->hash);
        hashes[i] = m->hash;
        for (int k = 0; k < i; k++)
            assert_true(hashes[k] != hashes[i]);
        model_close(m);
        model_close(same);
        free(b.bytes);
        free(again.bytes);
    }
}

static void
test_weight_types_do_not_change_the_values(void **state)
{
    (void)state;
    struct built exact, rough;
    struct model *m = open_tiny(&exact, &(struct tinymodel){.seed = 5});
    struct model *r = open_tiny(&rough, &(struct tinymodel){.seed = 5, .attention = WEIGHT_BF16});
    const float *x = m->desc.layers[1].wv.data;
    const uint16_t *y = r->desc.layers[1].wv.data;
    for (int i = 0; i < 64; i++) {
        uint32_t bits = (uint32_t)y[i] << 16;
        float v;
        memcpy(&v, &bits, sizeof v);
        const float difference = v > x[i] ? v - x[i] : x[i] - v, size = x[i] < 0 ? -x[i] : x[i];
        assert_true(difference <= size / 256);
    }
    model_close(m);
    model_close(r);
    free(exact.bytes);
    free(rough.bytes);
}

static struct model *
open_golden(const char *path)
{
    struct model *m = NULL;
    struct err err = {0};
    if (!model_open(&m, path, &err))
        fail_msg("%s", err.text);
    return m;
}

static void
test_architectures_differ_in_what_they_need(void **state)
{
    (void)state;
    struct model *m = open_golden("tests/golden/models/qwen2.gguf");
    const struct layer_desc *last = &m->desc.layers[m->desc.n_layers - 1];
    assert_string_equal(m->arch, "qwen2");
    assert_true(m->desc.rope == ROPE_HALVES && m->tied && m->desc.window == 0);
    assert_true(last->bq.type == WEIGHT_F32 && last->bq.cols == m->desc.heads * m->desc.head_dim);
    assert_true(last->bk.cols == m->desc.kv_heads * m->desc.head_dim && tensor_present(&last->bv));
    assert_false(tensor_present(&last->q_norm) || tensor_present(&last->k_norm));
    model_close(m);
    m = open_golden("tests/golden/models/qwen3.gguf");
    last = &m->desc.layers[m->desc.n_layers - 1];
    assert_true(m->desc.rope == ROPE_HALVES && !m->tied && m->desc.head_dim == 24);
    assert_true(last->q_norm.cols == 24 && last->k_norm.type == WEIGHT_F32);
    assert_false(tensor_present(&last->bq));
    model_close(m);
    m = open_golden("tests/golden/models/mistral.gguf");
    assert_true(m->desc.rope == ROPE_ADJACENT && m->desc.window == 5);
    model_close(m);
}

static void
test_every_type_is_used_as_it_lies_in_the_file(void **state)
{
    (void)state;
    struct model *m = open_golden("tests/golden/models/types.gguf");
    const struct layer_desc *y = m->desc.layers;
    assert_true(m->desc.embedding.type == WEIGHT_Q6_K && m->desc.head.type == WEIGHT_Q4_K);
    assert_true(y[0].wq.type == WEIGHT_Q2_K && y[0].wk.type == WEIGHT_Q3_K && y[0].wv.type == WEIGHT_Q4_K);
    assert_true(y[0].wo.type == WEIGHT_Q4_0 && y[0].gate.type == WEIGHT_Q5_K && y[0].down.type == WEIGHT_Q4_1);
    assert_true(y[1].wq.type == WEIGHT_F16 && y[1].wk.type == WEIGHT_BF16 && y[1].wv.type == WEIGHT_F32);
    assert_true(y[1].wo.type == WEIGHT_Q5_0 && y[1].gate.type == WEIGHT_Q8_0 && y[1].down.type == WEIGHT_Q5_1);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < m->file->n_tensors; i++)
        bytes += m->file->tensors[i].bytes;
    assert_int_equal(model_weight_bytes(m, false, false), bytes);
    for (int t = 0; t < WEIGHT_TYPES; t++)
        assert_true(m->tensors_of[t] > 0);
    assert_true(strlen(m->types) < sizeof m->types && strncmp(m->types, "Q4_K, Q6_K", 10) == 0);
    model_close(m);
}

static void
test_a_vocabulary_opens_only_where_it_will_do(void **state)
{
    (void)state;
    static const char path[] = "tests/golden/models/vocabulary.gguf";
    struct model *m = NULL;
    struct err err = {0};
    assert_false(model_open(&m, path, &err));
    assert_non_null(strstr(err.text, "vocabulary.gguf: holds a vocabulary and no weights"));
    if (!model_open_with(&m, path, &(struct model_options){.vocabulary = true}, &err))
        fail_msg("%s", err.text);
    assert_true(m->vocabulary_only && m->desc.n_layers == 0 && m->desc.vocab == tokenizer_size(m->tokenizer));
    assert_true(m->ctx_train == 512 && model_weight_bytes(m, false, false) == 0);
    model_close(m);
}

/* Q8_0 as it is defined, one value at a time. */
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

static void
test_quantising_is_what_its_definition_says(void **state)
{
    (void)state;
    static const char *const paths[] = {"llama", "mistral", "qwen2"}; /* F32, F16, BF16 */
    for (size_t p = 0; p < 3; p++) {
        char path[64];
        struct err err = {0};
        snprintf(path, sizeof path, "tests/golden/models/%s.gguf", paths[p]);
        struct model *plain = open_golden(path), *small = open_golden(path);
        assert_true(model_quantize(small, &err));
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
    struct built b; /* every magnitude that F16 has, and both zeros */
    struct err err = {0};
    struct model *m = open_tiny(&b, &(struct tinymodel){.attention = WEIGHT_F16});
    uint16_t *values = (uint16_t *)m->desc.layers[0].wq.data;
    for (uint32_t i = 0; i < 64 * 64; i++)
        values[i] = (uint16_t)((i * 0x7c00u / 4096) | (i % 3 == 0 ? 0x8000u : 0));
    const struct tensor before = m->desc.layers[0].wq;
    assert_true(model_quantize(m, &err));
    assert_quantised(&before, &m->desc.layers[0].wq);
    model_close(m);
    free(b.bytes);
}

static void
test_quantising_takes_what_it_can_and_refuses_what_is_no_number(void **state)
{
    (void)state;
    struct err err = {0};
    struct built b;
    const struct tinymodel options = {.width = 48, .heads = 3, .kv_heads = 3, .ffn = 64, .attention = WEIGHT_F16};
    struct model *m = open_tiny(&b, &options);
    assert_true(model_quantize(m, &err)); /* rows of 48 stay as they are, those of 64 don't */
    assert_true(m->desc.layers[0].wq.type == WEIGHT_F16 && m->desc.layers[0].down.type == WEIGHT_Q8_0);
    assert_true(m->desc.layers[0].attn_norm.type == WEIGHT_F32);
    assert_int_equal(m->tensors_of[WEIGHT_Q8_0], 4);
    assert_int_equal(m->parameters_of[WEIGHT_Q8_0], 4 * 48 * 64);
    model_close(m);
    free(b.bytes);

    static const uint32_t odd[] = {0x7fc00000, 0x7f800000, 0xff800000}; /* no number, infinite, infinite */
    for (size_t i = 0; i < 3; i++) {
        m = open_tiny(&b, &(struct tinymodel){.seed = 3});
        memcpy((unsigned char *)m->desc.layers[2].up.data + 64 * 4 * 5 + 40, &odd[i], 4);
        assert_false(model_quantize(m, &err));
        assert_non_null(strstr(err.text, "row 5 of ffn_up in layer 2 holds weights that are no finite numbers"));
        model_close(m);
        free(b.bytes);
    }
}

/* ---- refused ---- */

static void
test_other_architectures_are_named(void **state)
{
    (void)state;
    struct built b = build(&(struct tinymodel){.arch = "gemma"});
    assert_refused(&b, "tiny.gguf: architecture 'gemma' is not supported; llama, mistral, qwen2 and qwen3 are");
    b = build(&(struct tinymodel){.arch = "\x1b]0;x\x07"});
    assert_refused(&b, "architecture '\\x1b]0;x\\x07'");
}

static void
test_lies_about_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t v;
        const char *says;
    } cases[] = {
        {"llama.block_count", 0, "'llama.block_count' is 0"},
        {"llama.block_count", 5, "'blk.4.attn_norm.weight' is missing"},
        {"llama.block_count", 3, "tensor 'blk.3.attn_norm.weight' is no part of"},
        {"llama.block_count", 4000, "4000 layers, but only"},
        {"llama.block_count", UINT32_MAX, "'llama.block_count' is 4294967295"},
        {"llama.context_length", 0, "'llama.context_length' is 0"},
        {"llama.embedding_length", 32, "tensor 'token_embd.weight' is 64 x 320"},
        {"llama.embedding_length", 1u << 31, "'llama.embedding_length' is"},
        {"llama.feed_forward_length", 64, "tensor 'blk.0.ffn_gate.weight' is 64 x 128"},
        {"llama.attention.head_count", 3, "3 heads cannot share 2 KV heads"},
        {"llama.attention.head_count", 8, "tensor 'blk.0.attn_q.weight' is"},
        {"llama.attention.head_count_kv", 4, "tensor 'blk.0.attn_k.weight' is"},
        {"llama.attention.head_count_kv", 0, "'llama.attention.head_count_kv' is 0"},
        {"llama.attention.key_length", 32, "tensor 'blk.0.attn_q.weight' is"},
        {"llama.attention.key_length", 8, "RoPE turns 16 dimensions of a head's 8"},
        {"llama.rope.dimension_count", 32, "RoPE turns 32 dimensions of a head's 16"},
        {"llama.rope.dimension_count", 7, "RoPE turns 7"},
        {"llama.rope.freq_base", 0xbf800000, "a RoPE base of -1"},
        {"llama.rope.freq_base", 0x7fc00000, "not a finite number"},
        {"llama.rope.freq_base", 0x7f800000, "not a finite number"},
        {"llama.attention.layer_norm_rms_epsilon", 0xbf800000, "epsilon of -1"},
        {"llama.attention.layer_norm_rms_epsilon", 0x7fc00000, "not a finite number"},
        {"tokenizer.ggml.eos_token_id", 320, "only 320 tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct built b = with_u32(&(struct tinymodel){0}, cases[i].key, cases[i].v);
        assert_refused(&b, cases[i].says);
    }
}

static void
test_missing_metadata_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *key, *says;
    } cases[] = {
        {"general.architecture", "does not say what it is"},
        {"llama.block_count", "'llama.block_count' is missing"},
        {"llama.attention.head_count", "'llama.attention.head_count' is missing"},
        {"llama.attention.layer_norm_rms_epsilon", "layer_norm_rms_epsilon' is missing"},
        {"tokenizer.ggml.tokens", "has no vocabulary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct built b = build(&(struct tinymodel){0});
        after(&b, cases[i].key)[-1] = '?'; /* a key that nobody asks for */
        assert_refused(&b, cases[i].says);
    }
}

static void
test_missing_and_strange_tensors_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"token_embd.weight", "tensor 'token_embd.weight' is missing"},
        {"output_norm.weight", "tensor 'output_norm.weight' is missing"},
        {"blk.2.attn_v.weight", "tensor 'blk.2.attn_v.weight' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct built b = build(&(struct tinymodel){0});
        unsigned char *end = after(&b, cases[i].name);
        end[-1] = '?';
        assert_refused(&b, cases[i].says);
    }
    struct built b = build(&(struct tinymodel){0}); /* without its head a model would be taken for a tied one */
    unsigned char *head = memmem(b.bytes, b.len, "\0output.weight", 14);
    assert_non_null(head);
    head[13] = '?';
    assert_refused(&b, "tensor 'output.weigh?' is no part of");
}

static void
test_unsupported_types_are_named(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *says;
    } cases[] = {
        {20, "tensor 'blk.1.attn_q.weight' is of type IQ4_NL, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to"},
        {24, "of type I8"},
        {77, "of type an unknown type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct built b = build(&(struct tinymodel){0});
        unsigned char *type = after(&b, "blk.1.attn_q.weight") + 4 + 16; /* dimensions lie between */
        memcpy(type, &cases[i].type, sizeof cases[i].type);
        assert_refused(&b, cases[i].says);
    }
}

static void
test_unsupported_rope_scaling_is_named(void **state)
{
    (void)state;
    struct built b = build(&(struct tinymodel){.rope_linear = 2});
    unsigned char *value = after(&b, "llama.rope.scaling.type");
    memcpy(value + 4 + 8, "yarn!!", 6);
    assert_refused(&b, "RoPE scaling 'yarn!!' is not supported");
    b = with_u32(&(struct tinymodel){.rope_linear = 2}, "llama.rope.scaling.factor", 0);
    assert_refused(&b, "a RoPE scaling factor of 0");
}

static void
test_bad_rope_factors_are_refused(void **state)
{
    (void)state;
    struct built b;
    struct model *m = open_tiny(&b, &(struct tinymodel){.rope_factors = true});
    const size_t at = (size_t)((const unsigned char *)m->desc.rope_factors - b.bytes);
    model_close(m);
    memset(b.bytes + at, 0, 4);
    assert_refused(&b, "tensor 'rope_freqs.weight' holds 0");
    b = build(&(struct tinymodel){.rope_factors = true});
    const uint32_t f16 = 1;
    memcpy(after(&b, "rope_freqs.weight") + 4 + 8, &f16, 4);
    assert_refused(&b, "tensor 'rope_freqs.weight' should be 8 F32 values");
}

static void
test_a_generator_refuses_impossible_shapes(void **state)
{
    (void)state;
    static const struct tinymodel shapes[] = {
        {.vocab = 100},
        {.heads = 3, .kv_heads = 2},
        {.width = 48, .heads = 3, .kv_heads = 1, .attention = WEIGHT_Q8_0},
        {.head_dim = 15},
        {.rope_dims = 100},
        {.version = 1},
        {.width = 1u << 20},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        unsigned char *bytes;
        size_t len;
        struct err err = {0};
        assert_false(tinymodel_build(&shapes[i], &bytes, &len, &err));
        assert_int_equal(err.kind, ERR_USAGE);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_model_is_what_its_readme_says),
        cmocka_unit_test(test_every_shape_of_tiny_model_opens),
        cmocka_unit_test(test_architectures_differ_in_what_they_need),
        cmocka_unit_test(test_every_type_is_used_as_it_lies_in_the_file),
        cmocka_unit_test(test_a_vocabulary_opens_only_where_it_will_do),
        cmocka_unit_test(test_quantising_is_what_its_definition_says),
        cmocka_unit_test(test_quantising_takes_what_it_can_and_refuses_what_is_no_number),
        cmocka_unit_test(test_rope_factors_are_read),
        cmocka_unit_test(test_a_written_file_opens_and_its_name_is_printable),
        cmocka_unit_test(test_hash_tells_models_apart),
        cmocka_unit_test(test_weight_types_do_not_change_the_values),
        cmocka_unit_test(test_other_architectures_are_named),
        cmocka_unit_test(test_lies_about_sizes_are_refused),
        cmocka_unit_test(test_missing_metadata_is_named),
        cmocka_unit_test(test_missing_and_strange_tensors_are_named),
        cmocka_unit_test(test_unsupported_types_are_named),
        cmocka_unit_test(test_unsupported_rope_scaling_is_named),
        cmocka_unit_test(test_bad_rope_factors_are_refused),
        cmocka_unit_test(test_a_generator_refuses_impossible_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
