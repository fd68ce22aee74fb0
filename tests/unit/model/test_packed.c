/* What a folder has packed: what is refused, and what is only looked at. That it is unpacked rightly is test_golden_families's.
 * Run from the repository's root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/hf_folder.h"
#include "engine/model/packed.h"

#define FOLDER       "tests/golden/packed/"
#define SETTING(...) "{\"quantization_config\":{" __VA_ARGS__ "}}"
#define GPTQ         "\"quant_method\":\"gptq\",\"bits\":4"
#define AWQ          "\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32"

static const struct packed_options open_room = {.room = UINT64_MAX};

/* The weights of one of the golden folders under another setting. */
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

static void
test_what_cannot_be_unpacked_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *config, *says;
    } cases[] = {
        {"gptq", SETTING("\"quant_method\":\"bitsandbytes\""), "packed as 'bitsandbytes' (0 bits), which is not"},
        {"gptq", SETTING("\"quant_method\":\"gptq\",\"bits\":3"), "packed as 'gptq' (3 bits)"},
        {"gptq", SETTING(GPTQ ",\"group_size\":64"),
         "'model.layers.0.mlp.down_proj' is packed in pieces that don't fit"},
        {"gptq", SETTING(GPTQ ",\"group_size\":-1"), "is packed in pieces that don't fit each other"},
        {"gptq-8", SETTING(GPTQ ",\"group_size\":-1"), "is packed in pieces that don't fit each other"},
        {"awq", SETTING(AWQ ",\"version\":\"gemv\""), "packed as 'awq' (4 bits, gemv)"},
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
        model_free_blocks(&m);
    }
}

static void
test_no_more_is_unpacked_than_there_is_room_for(void **state)
{
    (void)state;
    struct model m = {.path = NULL};
    struct packed *p;
    struct err err;
    const struct packed_options small = {.room = 1000};
    assert_false(unpack("awq", SETTING(AWQ), &small, &m, &p, &err));
    assert_non_null(strstr(err.text, "unpacked its weights take 37.5 KiB, but 1000 bytes of memory are available"));
    assert_null(m.blocks);
}

static void
test_a_glance_knows_types_and_leaves_the_weights(void **state)
{
    (void)state;
    struct model m = {.path = NULL}, whole = {.path = NULL};
    struct packed *p, *q;
    struct err err;
    const struct packed_options glance = {.room = UINT64_MAX, .glance = true};
    assert_true(unpack("awq", SETTING(AWQ), &glance, &m, &p, &err));
    assert_true(unpack("awq", SETTING(AWQ), &open_room, &whole, &q, &err));
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
    model_free_blocks(&m);
    model_free_blocks(&whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_unpacked_is_said),
        cmocka_unit_test(test_no_more_is_unpacked_than_there_is_room_for),
        cmocka_unit_test(test_a_glance_knows_types_and_leaves_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
