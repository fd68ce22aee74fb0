/* Packed weights of a folder: weights that are refused, and weights that are only inspected. test_golden_families
 * checks the unpacked values. Run from the repository's root. */
#include <math.h>

#include "base/little_endian.h"
#include "engine/model/arch/packed.h"
#include "engine/model/files/hf_folder.h"
#include "kernels/tensor.h"
#include "tests/rigs/test.h"

#define FOLDER       "tests/golden/packed/"
#define SETTING(...) "{\"quantization_config\":{" __VA_ARGS__ "}}"
#define GPTQ         "\"quant_method\":\"gptq\",\"bits\":4"
#define THREE        "\"quant_method\":\"gptq\",\"bits\":3,\"sym\":false,"
#define GEMV         "\"quant_method\":\"awq\",\"bits\":4,\"version\":\"GEMV\""
#define AWQ          "\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32"

static const struct packed_options open_room = {.room = UINT64_MAX};

/* Opens the weights of a golden folder with another configuration. */
static bool
unpack(const char *folder, const char *config, const struct packed_options *o, struct model *m, struct packed **p,
       struct err *err)
{
    char path[96];
    struct safetensors *file;
    struct hf_folder *f;
    *err = (struct err){.kind = ERR_NONE};
    snprintf(path, sizeof path, FOLDER "%s/model.safetensors", folder);
    assert_true(safetensors_open(&file, path, err));
    assert_true(hf_folder_parse(&f, "tiny", config, strlen(config), NULL, 0, file, err));
    const bool ok = packed_open(p, m, f, o, err);
    hf_folder_close(f);
    return ok;
}

TEST(weights_that_cannot_be_unpacked_are_refused)
{
    static const struct {
        const char *folder, *config, *says;
    } cases[] = {
        {"gptq", SETTING("\"quant_method\":\"bitsandbytes\""), "packed as 'bitsandbytes' (8 bits), which is not"},
        {"gptq", SETTING("\"quant_method\":\"gptq\",\"bits\":5"), "packed as 'gptq' (5 bits)"},
        {"gptq", SETTING(GPTQ ",\"checkpoint_format\":\"marlin\""), "packed as 'gptq' (4 bits, marlin)"},
        {"gptq", SETTING(GPTQ ",\"is_marlin_format\":true"), "packed as 'gptq' (4 bits)"},
        {"gptq-3", SETTING(THREE "\"meta\":{\"quantizer\":[\"gptqmodel:2.0\"]}"), "packed as 'gptq' (3 bits)"},
        {"gptq-3", SETTING(THREE "\"group_size\":64"), "is packed in pieces that don't fit each other"},
        {"awq-rows", SETTING(GEMV ",\"group_size\":1"), "is packed in pieces that don't fit each other"},
        {"auto-round", SETTING("\"quant_method\":\"auto-round\",\"bits\":4,\"packing_format\":\"auto_round:fp8\""),
         "packed as 'auto-round' (4 bits, auto_round:fp8)"},
        {"gptq", SETTING(GPTQ ",\"group_size\":64"),
         "'model.layers.0.mlp.down_proj' is packed in pieces that don't fit"},
        {"gptq", SETTING(GPTQ ",\"group_size\":-1"), "is packed in pieces that don't fit each other"},
        {"gptq-8", SETTING(GPTQ ",\"group_size\":-1"), "is packed in pieces that don't fit each other"},
        {"awq", SETTING(AWQ ",\"version\":\"gemv_fast\""), "packed as 'awq' (4 bits, gemv_fast)"},
        {"awq", SETTING(GPTQ ",\"group_size\":32"), "is packed in pieces that don't fit each other"},
        {"fp8-block", SETTING("\"quant_method\":\"fp8\""), "has scales that don't fit it"},
        {"fp8-block", SETTING("\"quant_method\":\"fp8\",\"weight_block_size\":[64,32]"),
         "has scales that don't fit it"},
        {"compressed", SETTING("\"quant_method\":\"compressed-tensors\",\"format\":\"marlin-24\""),
         "packed as compressed-tensors' marlin-24"},
        {"compressed", SETTING("\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\""),
         "packed as compressed-tensors' pack-quantized"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = {.path = NULL};
        struct packed *p;
        struct err err;
        const bool ok = unpack(cases[i].folder, cases[i].config, &open_room, &m, &p, &err);
        if (ok || strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: says \"%s\", not \"%s\"", cases[i].config, ok ? "" : err.text, cases[i].says);
        blocks_free(&m.blocks);
    }
}

/* Opens a 4 x 8 matrix in bitsandbytes' 4 bits: two blocks of 16, in which every code is the second of the table. */
static bool
unpack_bnb4(const char *state, float largest, const char *absmax, struct model *m, struct packed **p, struct err *err)
{
    static unsigned char bytes[2048];
    struct safetensors *file;
    struct hf_folder *f;
    float numbers[18] = {0, 0.5f};
    char header[1024];
    const size_t len = strlen(state);
    const char *config = SETTING("\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true");
    numbers[16] = numbers[17] = largest;
    const int n = snprintf(header, sizeof header,
                           "{\"a.weight\":{\"dtype\":\"U8\",\"shape\":[16,1],\"data_offsets\":[0,16]},"
                           "\"a.weight.quant_map\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[16,80]},"
                           "\"a.weight.absmax\":{%s,\"data_offsets\":[80,88]},"
                           "\"a.weight.quant_state.bitsandbytes__nf4\":{\"dtype\":\"U8\",\"shape\":[%zu],"
                           "\"data_offsets\":[88,%zu]}}",
                           absmax, len, 88 + len);
    memset(bytes, 0, sizeof bytes);
    put_little_endian(bytes, 8, (uint64_t)n);
    memcpy(bytes + 8, header, (size_t)n);
    memset(bytes + 8 + n, 0x11, 16);
    memcpy(bytes + 8 + n + 16, numbers, sizeof numbers);
    memcpy(bytes + 8 + n + 88, state, len);
    *err = (struct err){.kind = ERR_NONE};
    assert_true(safetensors_parse(&file, "tiny", bytes, 8 + (size_t)n + 88 + len, err));
    assert_true(hf_folder_parse(&f, "tiny", config, strlen(config), NULL, 0, file, err));
    const bool ok = packed_open(p, m, f, &open_room, err);
    hf_folder_close(f);
    return ok;
}

TEST(the_declared_layout_of_four_bits_is_checked)
{
#define TWO "\"dtype\":\"F32\",\"shape\":[2]"
    static const struct {
        const char *state, *absmax;
        float largest;
        const char *says; /* NULL: the matrix is unpacked */
    } cases[] = {
        {"{\"shape\":[4,8],\"blocksize\":16}", TWO, 3, NULL},
        {"{\"shape\":[4,9],\"blocksize\":16}", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\":[4,8],\"blocksize\":8}", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\":[4,8],\"blocksize\":0}", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\":[4294967296,8],\"blocksize\":16}", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\":[32],\"blocksize\":16}", TWO, 3, "is packed in pieces that don't fit each other"},
        {"[]", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\"", TWO, 3, "is packed in pieces that don't fit each other"},
        {"{\"shape\":[4,8],\"blocksize\":16}", "\"dtype\":\"U8\",\"shape\":[8]", 3,
         "is packed in pieces that don't fit each other"},
        {"{\"shape\":[4,8],\"blocksize\":16}", TWO, INFINITY, "has a scale that is not a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = {.path = NULL};
        struct packed *p = NULL;
        struct err err;
        const bool ok = unpack_bnb4(cases[i].state, cases[i].largest, cases[i].absmax, &m, &p, &err);
        if (cases[i].says != NULL ? ok || strstr(err.text, cases[i].says) == NULL : !ok)
            fail_msg("%s: says \"%s\"", cases[i].state, ok ? "" : err.text);
        if (ok) {
            float out[8];
            const struct arch_tensor *t = packed_find(p, "a.weight");
            assert_non_null(t);
            assert_int_equal(t->rows, 4);
            assert_int_equal(t->cols, 8);
            assert_int_equal(t->type, WEIGHT_F16);
            tensor_blocks(t->type, t->data + (size_t)3 * 8 * 2, 8, out);
            assert_number_equal(out[7], 1.5f);
        }
        packed_close(p);
        blocks_free(&m.blocks);
    }
}

TEST(no_more_is_unpacked_than_there_is_room_for)
{
    struct model m = {.path = NULL};
    struct packed *p;
    struct err err;
    const struct packed_options small = {.room = 1000};
    assert_false(unpack("awq", SETTING(AWQ), &small, &m, &p, &err));
    assert_contains(err.text, "unpacked its weights take 37.5 KiB, but 1000 bytes of memory are available");
    assert_int_equal(m.blocks.bytes, 0);
}

TEST(a_glance_knows_types_and_leaves_the_weights)
{
    struct model m = {.path = NULL}, whole = {.path = NULL};
    struct packed *p, *q;
    struct err err;
    const struct packed_options glance = {.room = UINT64_MAX, .glance = true};
    assert_ok(unpack("awq", SETTING(AWQ), &glance, &m, &p, &err), err);
    assert_ok(unpack("awq", SETTING(AWQ), &open_room, &whole, &q, &err), err);
    assert_int_equal(p->n_weights, 14);
    assert_int_equal(m.unpacked_of[WEIGHT_Q4_1], whole.unpacked_of[WEIGHT_Q4_1]);
    assert_int_equal(m.unpacked_of[WEIGHT_Q4_1], 61440);
    assert_string_equal(m.packing, "AWQ");
    const struct arch_tensor *t = packed_find(q, "model.layers.1.mlp.down_proj.weight");
    assert_int_equal(t->rows, 64);
    assert_int_equal(t->cols, 96);
    assert_null(packed_find(q, "model.layers.1.mlp.down_proj.qweight"));
    assert_null(packed_find(q, "model.norm.weight"));
    packed_close(p);
    packed_close(q);
    blocks_free(&m.blocks);
    blocks_free(&whole.blocks);
}
