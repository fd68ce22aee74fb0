/* Every invalid value in a file is refused with an error that names it. */

#include "engine/model/model_open.h"
#include "tests/rigs/built_model.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

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

/* Returns the first place after `name` in the file, where the value can be damaged. */
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
    memcpy(after(&b, key) + 4, &v, sizeof v); /* the value's type is in between */
    return b;
}

/* Replaces a number by a list of six, all equal except the last. 32 more bytes keep the tensors aligned. */
static void
make_list(struct built *b, const char *key, uint32_t last)
{
    enum { N = 6, MORE = 32 };
    struct gguf_bytes list = {0};
    uint32_t v;
    const size_t at = (size_t)(after(b, key) - b->bytes);
    memcpy(&v, b->bytes + at + 4, sizeof v);
    put_u32(&list, GGUF_ARRAY);
    put_u32(&list, GGUF_U32);
    put_u64(&list, N);
    for (int i = 0; i < N; i++)
        put_u32(&list, i < N - 1 || last == 0 ? v : last);
    b->bytes = realloc(b->bytes, b->len + MORE);
    assert_non_null(b->bytes);
    assert_false(list.failed);
    assert_int_equal(list.len, MORE + 8);
    memmove(b->bytes + at + list.len, b->bytes + at + 8, b->len - at - 8);
    memcpy(b->bytes + at, list.data, list.len);
    b->len += MORE;
    free(list.data);
}

TEST(a_number_for_each_layer_is_one_number_if_all_are_equal)
{
    static const char *const keys[] = {"llama.attention.head_count_kv", "llama.feed_forward_length",
                                       "llama.attention.head_count"};
    static const struct tinymodel six = {.n_layers = 6};
    for (size_t i = 0; i < 3; i++) {
        struct built b = build(&six);
        make_list(&b, keys[i], 7);
        char says[100];
        snprintf(says, sizeof says, "'%s' should be a whole number", keys[i]);
        assert_refused(&b, says);
    }
    struct built b = build(&six);
    for (size_t i = 0; i < 3; i++)
        make_list(&b, keys[i], 0);
    struct model *m;
    struct err err;
    assert_ok(read_bytes(&m, &b, &err), err);
    assert_int_equal(m->desc.heads, 4);
    assert_int_equal(m->desc.kv_heads, 2);
    assert_int_equal(m->desc.ffn, 128);
    model_close(m);
    free(b.bytes);
}

TEST(other_architectures_are_named)
{
    struct built b = build(&(struct tinymodel){.arch = "plamo"});
    assert_refused(&b, "tiny.gguf: architecture 'plamo' is not supported; Llama, Mistral, Qwen,");
    b = build(&(struct tinymodel){.arch = "\x1b]0;x\x07"});
    assert_refused(&b, "architecture '\\x1b]0;x\\x07'");
}

TEST(lies_about_sizes_are_refused)
{
    static const struct {
        const char *key;
        uint32_t v;
        const char *says;
    } cases[] = {
        {"llama.block_count", 0, "'llama.block_count' is 0"},
        {"llama.block_count", 5, "'blk.4.attn_norm.weight' is missing"},
        {"llama.block_count", 3, "tensor 'blk.3.attn_norm.weight' does not belong to"},
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
        {"llama.attention.key_length", 8, "RoPE rotates 16 dimensions of a head's 8"},
        {"llama.rope.dimension_count", 32, "RoPE rotates 32 dimensions of a head's 16"},
        {"llama.rope.dimension_count", 7, "RoPE rotates 7"},
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

TEST(missing_metadata_is_named)
{
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
        after(&b, cases[i].key)[-1] = '?'; /* no code reads this key */
        assert_refused(&b, cases[i].says);
    }
}

TEST(missing_and_strange_tensors_are_named)
{
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
    struct built b = build(&(struct tinymodel){0}); /* without a head the model would count as tied */
    unsigned char *head = memmem(b.bytes, b.len, "\0output.weight", 14);
    assert_non_null(head);
    head[13] = '?';
    assert_refused(&b, "tensor 'output.weigh?' does not belong to");
}

TEST(unsupported_types_are_named)
{
    static const struct {
        uint32_t type;
        const char *says;
    } cases[] = {
        {9, "tensor 'blk.1.attn_q.weight' is of type Q8_1, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to"},
        {24, "of type I8"},
        {40, "of type NVFP4"},
        {77, "of type an unknown type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct built b = build(&(struct tinymodel){0});
        unsigned char *type = after(&b, "blk.1.attn_q.weight") + 4 + 16; /* the dimensions are in between */
        memcpy(type, &cases[i].type, sizeof cases[i].type);
        assert_refused(&b, cases[i].says);
    }
}

TEST(unsupported_rope_scaling_is_named)
{
    struct built b = build(&(struct tinymodel){.rope_linear = 2});
    unsigned char *value = after(&b, "llama.rope.scaling.type");
    memcpy(value + 4 + 8, "yarn!!", 6);
    assert_refused(&b, "RoPE scaling 'yarn!!' is not supported");
    b = with_u32(&(struct tinymodel){.rope_linear = 2}, "llama.rope.scaling.factor", 0);
    assert_refused(&b, "a RoPE scaling factor of 0");
}

TEST(bad_rope_factors_are_refused)
{
    struct built b;
    struct model *m = open_tiny_model(&b, &(struct tinymodel){.rope_factors = true});
    const size_t at = (size_t)((const unsigned char *)m->desc.rope_factors - b.bytes);
    model_close(m);
    memset(b.bytes + at, 0, 4);
    assert_refused(&b, "tensor 'rope_freqs.weight' contains 0");
    b = build(&(struct tinymodel){.rope_factors = true});
    const uint32_t f16 = 1;
    memcpy(after(&b, "rope_freqs.weight") + 4 + 8, &f16, 4);
    assert_refused(&b, "tensor 'rope_freqs.weight' should be 8 F32 values");
}

TEST(a_generator_refuses_impossible_shapes)
{
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
