/* Look-ups in a parsed GGUF file. The parser has checked that all values are inside the file. These functions check
 * only that a value has the type and range that the caller expects. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "engine/model/files/gguf.h"
#include "kernels/tensor.h"

static const char *const type_names[GGUF_TYPES] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                   "bool", "string", "array", "u64", "i64", "f64"};

static double
number_at(enum gguf_type type, const unsigned char *base, uint64_t i)
{
    uint32_t bits32;
    uint64_t bits64;
    float f;
    double d;
    switch (type) {
    case GGUF_U8:
    case GGUF_BOOL: return base[i];
    case GGUF_I8: return (int8_t)base[i];
    case GGUF_U16: return (double)little_endian(base + 2 * i, 2);
    case GGUF_I16: return (int16_t)little_endian(base + 2 * i, 2);
    case GGUF_U32: return (double)little_endian(base + 4 * i, 4);
    case GGUF_I32: return (int32_t)little_endian(base + 4 * i, 4);
    case GGUF_F32:
        bits32 = (uint32_t)little_endian(base + 4 * i, 4);
        memcpy(&f, &bits32, sizeof f);
        return f;
    case GGUF_U64: return (double)little_endian(base + 8 * i, 8);
    case GGUF_I64: return (double)(int64_t)little_endian(base + 8 * i, 8);
    case GGUF_F64:
        bits64 = little_endian(base + 8 * i, 8);
        memcpy(&d, &bits64, sizeof d);
        return d;
    default: return NAN;
    }
}

double
gguf_number(const struct gguf_value *v, uint64_t index)
{
    return number_at(v->element, v->at, index);
}

const struct gguf_value *
gguf_find(const struct gguf *g, const char *key)
{
    for (uint64_t i = 0; i < g->n_values; i++)
        if (slice_is(g->values[i].key, key))
            return &g->values[i];
    return NULL;
}

const struct gguf_tensor *
gguf_find_tensor(const struct gguf *g, const char *name)
{
    for (uint64_t i = 0; i < g->n_tensors; i++)
        if (slice_is(g->tensors[i].name, name))
            return &g->tensors[i];
    return NULL;
}

static bool
wrong_type(const struct gguf *g, const struct gguf_value *v, const char *key, const char *wanted, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: metadata '%s' is of type %s, but should be %s; convert the model again", g->path,
                   key, type_names[v->type], wanted);
}

bool
gguf_get_u32(const struct gguf *g, const char *key, uint32_t otherwise, uint32_t *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = otherwise;
    if (v == NULL)
        return true;
    if (v->type == GGUF_F32 || v->type == GGUF_F64 || v->type == GGUF_BOOL || v->type == GGUF_STRING ||
        v->type == GGUF_ARRAY)
        return wrong_type(g, v, key, "a whole number", err);
    double d = number_at(v->type, v->at, 0);
    if (d < 0 || d > (double)UINT32_MAX)
        return err_set(err, ERR_WORK,
                       "%s: metadata '%s' is %.0f, not between 0 and %" PRIu32 "; convert the model again", g->path,
                       key, d, UINT32_MAX);
    *out = (uint32_t)d;
    return true;
}

bool
gguf_get_f32(const struct gguf *g, const char *key, float otherwise, float *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = otherwise;
    if (v == NULL)
        return true;
    if (v->type != GGUF_F32 && v->type != GGUF_F64)
        return wrong_type(g, v, key, "a real number", err);
    double d = number_at(v->type, v->at, 0);
    if (!(fabs(d) <= 3.4e38))
        return err_set(err, ERR_WORK, "%s: metadata '%s' is not a finite number; convert the model again", g->path,
                       key);
    *out = (float)d;
    return true;
}

bool
gguf_get_bool(const struct gguf *g, const char *key, bool otherwise, bool *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = otherwise;
    if (v == NULL)
        return true;
    if (v->type != GGUF_BOOL)
        return wrong_type(g, v, key, "true or false", err);
    *out = v->at[0] == 1;
    return true;
}

bool
gguf_get_string(const struct gguf *g, const char *key, struct slice *out, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = (struct slice){"", 0};
    if (v == NULL)
        return true;
    if (v->type != GGUF_STRING)
        return wrong_type(g, v, key, "a string", err);
    *out = (struct slice){(const char *)v->at + 8, (size_t)little_endian(v->at, 8)};
    return true;
}

struct slice *
gguf_strings(const struct gguf_value *v, struct err *err)
{
    if (v->type != GGUF_ARRAY || v->element != GGUF_STRING) {
        err_set(err, ERR_WORK, "metadata of type %s should be an array of strings", type_names[v->type]);
        return NULL;
    }
    struct slice *strings = calloc((size_t)v->count + 1, sizeof *strings);
    if (strings == NULL) {
        err_set(err, ERR_WORK, "out of memory for %" PRIu64 " strings", v->count);
        return NULL;
    }
    const unsigned char *at = v->at;
    for (uint64_t i = 0; i < v->count; i++) {
        strings[i] = (struct slice){(const char *)at + 8, (size_t)little_endian(at, 8)};
        at += 8 + strings[i].len;
    }
    return strings;
}

static const uint32_t weight_types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = 0,      [WEIGHT_F16] = 1,    [WEIGHT_BF16] = 30,    [WEIGHT_Q8_0] = 8,   [WEIGHT_Q4_0] = 2,
    [WEIGHT_Q4_1] = 3,     [WEIGHT_Q5_0] = 6,   [WEIGHT_Q5_1] = 7,     [WEIGHT_Q2_K] = 10,  [WEIGHT_Q3_K] = 11,
    [WEIGHT_Q4_K] = 12,    [WEIGHT_Q5_K] = 13,  [WEIGHT_Q6_K] = 14,    [WEIGHT_MXFP4] = 39, [WEIGHT_IQ4_NL] = 20,
    [WEIGHT_IQ4_XS] = 23,  [WEIGHT_IQ3_S] = 21, [WEIGHT_IQ3_XXS] = 18, [WEIGHT_IQ2_S] = 22, [WEIGHT_IQ2_XS] = 17,
    [WEIGHT_IQ2_XXS] = 16, [WEIGHT_IQ1_M] = 29, [WEIGHT_IQ1_S] = 19,   [WEIGHT_TQ1_0] = 34, [WEIGHT_TQ2_0] = 35,
};

/* Types that no backend computes with. Files that contain them can still be checked and described. */
static const struct gguf_type_size others[] = {
    [9] = {"Q8_1", 32, 36},   [15] = {"Q8_K", 256, 292}, [24] = {"I8", 1, 1},  [25] = {"I16", 1, 2},
    [26] = {"I32", 1, 4},     [27] = {"I64", 1, 8},      [28] = {"F64", 1, 8}, [40] = {"NVFP4", 64, 36},
    [41] = {"Q1_0", 128, 18}, [42] = {"Q2_0", 64, 18},
};

bool
gguf_type_size(uint32_t type, struct gguf_type_size *out)
{
    const enum weight_type known = gguf_weight_type(type);
    if (known != WEIGHT_TYPES)
        *out = (struct gguf_type_size){tensor_type_name(known), (uint32_t)tensor_block_values(known),
                                       (uint32_t)tensor_block_bytes(known)};
    else if (type < sizeof others / sizeof others[0] && others[type].name != NULL)
        *out = others[type];
    else
        return false;
    return true;
}

const char *
gguf_type_name(uint32_t type)
{
    struct gguf_type_size known;
    if (gguf_type_size(type, &known))
        return known.name;
    return "an unknown type";
}

enum weight_type
gguf_weight_type(uint32_t type)
{
    enum weight_type t = 0;
    while (t < WEIGHT_TYPES && weight_types[t] != type)
        t++;
    return t;
}

uint32_t
gguf_type_of(enum weight_type type)
{
    return weight_types[type];
}
