/* Packed weights: pieces of one weight, whose types and sizes the input chooses, under one of several settings. The
 * unpacked weight must be in memory of the size that follows from its shape and type. */

#include "base/little_endian.h"
#include "engine/model/arch/packed.h"
#include "engine/model/files/hf_folder.h"
#include "kernels/tensor.h"
#include "tests/fuzz/fuzz.h"

#define DATA_BYTES 8192
#define SETTING(s) "{\"quantization_config\":{" s "}}"
#define WEIGHTS(s) SETTING("\"quant_method\":\"compressed-tensors\"," s "}}}")

static const char *const settings[] = {
    SETTING("\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32"),
    SETTING("\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1,\"checkpoint_format\":\"gptq_v2\""),
    SETTING("\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8"),
    SETTING("\"quant_method\":\"awq\",\"bits\":4,\"group_size\":16"),
    SETTING("\"quant_method\":\"fp8\",\"weight_block_size\":[8,16]"),
    SETTING("\"quant_method\":\"fp8\""),
    WEIGHTS("\"format\":\"pack-quantized\",\"config_groups\":{\"a\":{\"weights\":{\"num_bits\":4,\"group_size\":32"),
    WEIGHTS("\"format\":\"int-quantized\",\"config_groups\":{\"a\":{\"weights\":{\"num_bits\":8,\"group_size\":8"),
    SETTING("\"quant_method\":\"mxfp4\""),
    SETTING("\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":32"),
    SETTING("\"quant_method\":\"gptq\",\"bits\":2,\"group_size\":32"),
    SETTING("\"quant_method\":\"awq\",\"bits\":4,\"group_size\":8,\"version\":\"gemv\""),
    SETTING("\"quant_method\":\"auto-round\",\"bits\":8,\"group_size\":16,\"packing_format\":\"auto_round\""),
};
static const char *const pieces[] = {"weight", "qweight", "weight_packed", "weight_scale", "weight_scale_inv",
                                     "scales", "qzeros",  "g_idx",         "weight_g_idx", "weight_zero_point",
                                     "bias",   "_blocks", "_scales"};
static const struct {
    const char *name;
    unsigned bytes;
} types[] = {{"I32", 4}, {"F16", 2}, {"F32", 4}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I8", 1}, {"BF16", 2}, {"I64", 8}};
static const unsigned sizes[] = {0, 1, 2, 3, 4, 8, 16, 32};

#define COUNT(list) (sizeof list / sizeof *list)

/* Writes the header from two bytes per piece: whether it exists and its type, and its sizes. *behind: bytes of all
 * pieces. */
static size_t
write_header(const uint8_t *data, size_t size, char *out, size_t room, size_t *behind)
{
    size_t n = (size_t)snprintf(out, room, "{"), at = 0;
    for (size_t i = 0; i < COUNT(pieces) && 2 * i + 1 < size; i++) {
        const uint8_t what = data[2 * i], shape = data[2 * i + 1];
        const unsigned type = what & 7u, rows = sizes[shape & 7u], cols = sizes[shape >> 3 & 7u];
        const bool stacked = pieces[i][0] == '_', blocks = strcmp(pieces[i], "_blocks") == 0;
        const size_t bytes = (size_t)rows * cols * (stacked ? (blocks ? 32 : 2) : types[type].bytes);
        char dims[32];
        if ((what & 8u) == 0 || at + bytes > DATA_BYTES)
            continue;
        if (stacked)
            snprintf(dims, sizeof dims, blocks ? "2,%u,%u,16" : "2,%u,%u", rows, cols);
        else if ((shape & 64u) != 0)
            snprintf(dims, sizeof dims, "%u", rows * cols);
        else
            snprintf(dims, sizeof dims, "%u,%u", rows, cols);
        n += (size_t)snprintf(
            out + n, room - n, "%s\"a%s%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
            n > 1 ? "," : "", stacked ? "" : ".", pieces[i], stacked ? "U8" : types[type].name, dims, at, at + bytes);
        at += bytes;
    }
    *behind = at;
    return n + (size_t)snprintf(out + n, room - n, "}");
}

static void
check(const struct packed *p, struct model *m)
{
    volatile unsigned char touched = 0;
    for (size_t i = 0; i < p->n_weights; i++) {
        const struct arch_tensor *t = &p->weights[i].tensor;
        MUST(t->type < WEIGHT_TYPES && t->rows > 0 && t->cols > 0 && t->cols % tensor_block_values(t->type) == 0);
        const size_t bytes = (t->planes > 0 ? t->planes : 1) * t->rows * tensor_row_bytes(t->type, t->cols);
        for (size_t b = 0; b < bytes; b++)
            touched = (unsigned char)(touched ^ t->data[b]);
        MUST(packed_find(p, p->weights[i].name) == t);
    }
    MUST(p->n_weights == 0 || m->blocks.bytes > 0);
}

static void
use(const char *setting, unsigned char *bytes, size_t len, bool exact)
{
    struct safetensors *file;
    struct hf_folder *folder;
    struct packed *p;
    struct err err = {0};
    struct model m = {.path = NULL};
    if (!safetensors_parse(&file, "fuzz", bytes, len, &err) ||
        !hf_folder_parse(&folder, "fuzz", setting, strlen(setting), NULL, 0, file, &err))
        return;
    const struct packed_options o = {.exact = exact, .room = 1u << 20};
    if (packed_open(&p, &m, folder, &o, &err)) {
        if (p != NULL)
            check(p, &m);
        packed_close(p);
    } else {
        must_refuse(&err);
    }
    blocks_free(&m.blocks);
    hf_folder_close(folder);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t room = 4096;
    size_t behind;
    unsigned char *bytes = malloc(8 + room + DATA_BYTES);
    if (bytes == NULL)
        return 0;
    const size_t header = write_header(data + 1, size - 1, (char *)bytes + 8, room, &behind);
    put_little_endian(bytes, 8, header);
    for (size_t i = 0; i < behind; i++) /* small numbers, so that groups are present */
        bytes[8 + header + i] = data[i % size] & (i % 4 == 0 ? 0x3u : i % 3 == 0 ? 0xffu : 0x0u);
    use(settings[data[0] % COUNT(settings)], bytes, 8 + header + behind, (data[0] & 64u) != 0);
    free(bytes);
    return 0;
}
