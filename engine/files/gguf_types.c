#include "engine/files/gguf_types.h"

#include "engine/files/gguf.h"
#include "kernels/tensor.h"

static const uint32_t weight_types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = 0,      [WEIGHT_F16] = 1,    [WEIGHT_BF16] = 30,    [WEIGHT_Q8_0] = 8,   [WEIGHT_Q4_0] = 2,
    [WEIGHT_Q4_1] = 3,     [WEIGHT_Q5_0] = 6,   [WEIGHT_Q5_1] = 7,     [WEIGHT_Q2_K] = 10,  [WEIGHT_Q3_K] = 11,
    [WEIGHT_Q4_K] = 12,    [WEIGHT_Q5_K] = 13,  [WEIGHT_Q6_K] = 14,    [WEIGHT_MXFP4] = 39, [WEIGHT_IQ4_NL] = 20,
    [WEIGHT_IQ4_XS] = 23,  [WEIGHT_IQ3_S] = 21, [WEIGHT_IQ3_XXS] = 18, [WEIGHT_IQ2_S] = 22, [WEIGHT_IQ2_XS] = 17,
    [WEIGHT_IQ2_XXS] = 16, [WEIGHT_IQ1_M] = 29, [WEIGHT_IQ1_S] = 19,   [WEIGHT_TQ1_0] = 34, [WEIGHT_TQ2_0] = 35,
};

/* Those that this program does not compute with, so that a file that holds them can still be checked and described. */
static const struct gguf_type_size others[] = {
    [9] = {"Q8_1", 32, 36},   [15] = {"Q8_K", 256, 292}, [24] = {"I8", 1, 1},  [25] = {"I16", 1, 2},
    [26] = {"I32", 1, 4},     [27] = {"I64", 1, 8},      [28] = {"F64", 1, 8}, [40] = {"NVFP4", 64, 36},
    [41] = {"Q1_0", 128, 18}, [42] = {"Q2_0", 64, 18},
};

/* Unknown types get a name too: a table, so that the string is nobody's to free. */
#define T(n) "type " #n
static const char *const unnamed[] = {
    T(0),  T(1),  T(2),  T(3),  T(4),  T(5),  T(6),  T(7),  T(8),  T(9),  T(10), T(11), T(12), T(13), T(14), T(15),
    T(16), T(17), T(18), T(19), T(20), T(21), T(22), T(23), T(24), T(25), T(26), T(27), T(28), T(29), T(30), T(31),
    T(32), T(33), T(34), T(35), T(36), T(37), T(38), T(39), T(40), T(41), T(42), T(43), T(44), T(45), T(46), T(47),
};
#undef T

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
    return type < sizeof unnamed / sizeof unnamed[0] ? unnamed[type] : "an unknown type";
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
