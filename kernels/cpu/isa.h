/* The functions that each instruction set implements: the inner loops of a transformer. There is one table and one file
 * per instruction set; reference.c is the portable one, against which the others are tested.
 *
 * Every kernel is batch invariant: its result for a (row, output) does not depend on the rest of the call. */
#pragma once

#include <string.h>

#include "kernels/backend.h"

/* For kernels: functions that must be inlined, and loops that must be unrolled into registers. */
#define SIMD_INLINE static inline __attribute__((always_inline, unused))
#define UNROLL      _Pragma("GCC unroll 16")

/* Functions between TARGET_BEGIN("avx2,fma") and TARGET_END use these features of the processor. */
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define TARGET_BEGIN(features) PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TARGET_END             PRAGMA(clang attribute pop)
#else
#define TARGET_BEGIN(features) PRAGMA(GCC push_options) PRAGMA(GCC target(features))
#define TARGET_END             PRAGMA(GCC pop_options)
#endif

#define ATTEND_BLOCK 64 /* positions; blocks start at multiples of it, however a path is divided */

#define Q8_BLOCK 32 /* inputs that share a scale */
#define Q8_GROUP 16 /* outputs that are interleaved */

#define STATE_COLS 16 /* columns of a state that are computed together */
#define STATE_ROWS 4  /* partial sums over a state's rows */

#define Q8_TINY 1e-30f /* smaller activations count as 0, so that 127 / x does not overflow */

/* A weight matrix in memory. F32, F16 and BF16 matrices, and block types that the instruction set has no product for,
 * are read from the file's mapping. Other block types are interleaved (repack.h), into memory that is allocated at load
 * and written when the matrix is repacked (weights.h). */
struct matrix {
    enum weight_type type;
    uint32_t rows, cols;
    const void *data;         /* (rows, cols) as in the file, or NULL: interleaved at load */
    unsigned char *q, *scale; /* interleaved weights, or NULL if never interleaved */
    bool mapped;              /* data is mapped, as in struct tensor */
};

/* 32 activations in int8, with their scale and sums for products: one cache line. */
struct act_block {
    int8_t q[Q8_BLOCK];
    float scale;          /* x = q * scale */
    int32_t less;         /* -sum q: if weights are stored as w + 2^k, a product is 2^k times the sum too large */
    int32_t less_half[2]; /* the same for the first and the last sixteen */
    float sum;            /* scale * sum q: contribution of a weight of 1 */
    float sum_half[2];
    uint32_t unused;
};

/* Activations of n rows. Interleaved matrices read the int8 form, all other matrices the F32 form. */
struct acts {
    float *x;            /* (n, cols) */
    struct act_block *q; /* (n, stride): the first cols/32 of each row */
    uint32_t cols, stride;
};

/* Returns an odd number of cache lines per row: rows a power of two apart would evict each other from the cache. */
static inline uint32_t
acts_stride(size_t cols)
{
    return (uint32_t)(cols / Q8_BLOCK) | 1u;
}

/* Softmax statistics of a piece of a row of logits, relative to the piece's own maximum. */
struct piece {
    float max;
    float sum;      /* sum exp(z - max) */
    float weighted; /* sum exp(z - max) * (z - max) */
    float annealed; /* sum exp((z - max) / T) */
};

/* Computes y[r*ld + o] = sum_k W[o][k] x[r][k] for rows r < n and outputs first <= o < last. */
typedef void (*matmul_fn)(const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last, float *y,
                          size_t ld);

struct cpu_isa {
    const char *name;   /* "avx512vnni" */
    const char *family; /* name for --isa: "avx512" */
    bool (*usable)(void);
    uint8_t q8_flip;                /* 0x80 if the dot product requires unsigned weights, else 0 */
    matmul_fn matmul[WEIGHT_TYPES]; /* NULL: multiply() dequantises */
    struct matmul_many {
        matmul_fn matmul; /* same results bit by bit, or NULL */
        size_t from;      /* number of rows from which it is faster */
    } many[WEIGHT_TYPES];

    /* y = weight * x / sqrt(mean(x^2) + eps) */
    void (*rms_norm)(const float *x, const float *weight, size_t n, float eps, float *y);
    /* q = round(x / scale), scale = max|x| / 127, per block of 32; n is a multiple of 32. A block with a number that is
     * not finite gets the scale NAN. */
    void (*quantise)(const float *x, size_t n, struct act_block *);
    /* gate = silu(gate) * up */
    void (*swiglu)(float *gate, const float *up, size_t n);
    void (*to_f16)(const float *x, size_t n, uint16_t *y);
    void (*from_f16)(const uint16_t *x, size_t n, float *y);

    /* Attention of heads that share a key-value head, over a block of n <= ATTEND_BLOCK slots: key or value i is at
     * base + at[i] * stride, dim elements. q, out: (heads, dim); scores, p: (heads, ATTEND_BLOCK). */
    void (*dots_f16)(const float *q, size_t heads, size_t dim, const uint16_t *base, size_t stride, const slot_t *at,
                     size_t n, float *scores);
    void (*dots_f32)(const float *q, size_t heads, size_t dim, const float *base, size_t stride, const slot_t *at,
                     size_t n, float *scores);
    /* out = keep[head] * out + sum_i p[head][i] * value[i] */
    void (*mix_f16)(const float *p, size_t heads, size_t dim, const uint16_t *base, size_t stride, const slot_t *at,
                    size_t n, const float *keep, float *out);
    void (*mix_f32)(const float *p, size_t heads, size_t dim, const float *base, size_t stride, const slot_t *at,
                    size_t n, const float *keep, float *out);
    /* Recurrent layers, for STATE_COLS columns of a head's state s (dim, STATE_COLS), dim a multiple of STATE_ROWS:
     *   d = beta v, or with `corrects` beta (v - decay sum_i k_i s_i); s_i = decay s_i + k_i d;
     *   out = sum_i q_i s_i unless q is NULL. */
    void (*delta_rule)(float *s, size_t dim, const float *k, const float *q, const float *v, float decay, float beta,
                       bool corrects, float *out);
    /* y = bias[i] + sum_j w[j * ld + i] x[j][i] for i < n, with `silu` silu of that. x[j] and bias may be NULL, which
     * counts as zeros. */
    void (*convolve)(const float *const *x, size_t taps, const float *w, size_t ld, const float *bias, bool silu,
                     size_t n, float *y);
    float (*most)(const float *x, size_t n); /* returns the largest value */
    /* x = exp(x - max); returns the sum */
    float (*exp_sum)(float *x, size_t n, float max);

    /* Returns the softmax statistics of logits. */
    struct piece (*piece)(const float *z, size_t n, float temperature);
    /* Returns sum exp(f - max) * (f - z): the cross term of KL(final || layer). */
    float (*kl_term)(const float *f, const float *z, size_t n, float max);
    size_t (*next_above)(const float *z, size_t i, size_t n, float bar); /* returns the first index >= i with z > */
                                                                         /* bar, or n */
    size_t (*count_above)(const float *z, size_t n, float bar);
};

/* The instruction sets, best first; I(name) for cpu_isa_NAME. --isa knows those of all processors. */
#define CPU_ISAS_X86(I) I(amx) I(avx512vnni) I(avx512) I(avx2)
#define CPU_ISAS_ARM(I) I(neondot) I(neon)
#if defined(__x86_64__)
#define CPU_ISAS(I) CPU_ISAS_X86(I) I(reference)
#elif defined(__aarch64__)
#define CPU_ISAS(I) CPU_ISAS_ARM(I) I(reference)
#else
#define CPU_ISAS(I) I(reference)
#endif
#define CPU_ISA_DECLARE(name) extern const struct cpu_isa cpu_isa_##name;
CPU_ISAS(CPU_ISA_DECLARE)

/* All instruction sets of this build, best first, the reference last; ends with NULL. Some may not be usable on this
 * machine. */
extern const struct cpu_isa *const cpu_isas[];

/* Returns the best usable instruction set of a family; NULL or "auto": of all. Returns NULL with an error if there is
 * none. */
const struct cpu_isa *cpu_isa_choose(const char *family, struct err *err);

/* Computes a product with the fastest function of the instruction set for the matrix and the number of rows. Parameters
 * as in matmul_fn. */
void multiply(const struct cpu_isa *, const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last,
              float *y, size_t ld);
