/* Products with AMX: tiles of sixteen rows of 64 bytes, and an instruction that multiplies two of them. A block of 32
 * inputs of sixteen activations is a tile without rearrangement. The same block of sixteen interleaved outputs is one
 * once its quants are unpacked to int8, which is done once for all rows of the call. The product is the same exact
 * int32 as that of vectors, and is scaled in the same order. */
#if defined(__x86_64__)

#include "kernels/cpu/amx.h"

#include <cpuid.h>
#include <immintrin.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

TARGET_BEGIN("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")

#include "kernels/cpu/avx512.h"
#define Q8_FLIP 0x80 /* weights are interleaved as for avx512vnni.c */
#include "kernels/cpu/quants.h"

#define TILE_ROWS_MOST 16
#define BATCH          64 /* rows per unpacked block */

/* Tiles: products of four times sixteen rows, products of the remaining rows, weights, activations of sixteen rows,
 * activations of the remaining rows. */
#define TILE_LEFT      4
#define TILE_WEIGHTS   5
#define TILE_ACTS      6
#define TILE_ACTS_LEFT 7

/* Ensures that data is in memory before tiles are loaded: some compilers' tile intrinsics do not declare that they read
 * memory. */
SIMD_INLINE void
written(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

struct tile_config { /* format of the instruction's operand */
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* bytes of a row of each tile */
    uint8_t rows[16];
};

/* left: rows after the last whole sixteen; inputs: 32, or 16 if each sixteen has its own scale. */
static void
configure(size_t left, size_t inputs)
{
    struct tile_config c = {.palette = 1};
    for (int t = 0; t <= TILE_LEFT; t++) {
        c.rows[t] = TILE_ROWS_MOST;
        c.bytes[t] = PLANE;
    }
    c.rows[TILE_WEIGHTS] = (uint8_t)(inputs / 4);
    c.bytes[TILE_WEIGHTS] = PLANE;
    c.rows[TILE_ACTS] = TILE_ROWS_MOST;
    c.bytes[TILE_ACTS] = c.bytes[TILE_ACTS_LEFT] = (uint16_t)inputs;
    c.rows[TILE_LEFT] = c.rows[TILE_ACTS_LEFT] = (uint8_t)(left > 0 ? left : 1);
    written(&c);
    _tile_loadconfig(&c);
}

/* Unpacks a block of 32 inputs to int8, plane by plane. */
SIMD_INLINE void
unpack(const enum weight_type type, const uint32_t *grid, const unsigned char *q, int8_t *to)
{
    const __m512i zero = _mm512_set1_epi8((char)quant_zero(type));
    UNROLL for (unsigned j = 0; j < STEPS; j++)
    {
        __m512i quants = (__m512i)quants_at(type, grid, q, 0, j);
        if (quant_zero(type) > 0)
            quants = _mm512_sub_epi8(quants, zero);
        _mm512_storeu_si512(to + j * PLANE, quants);
    }
}

/* Computes dots (n, 16): n <= 64 activations at x, `stride` bytes apart, times unpacked weights. */
SIMD_INLINE void
multiply_tiles(const int8_t *weights, const int8_t *x, size_t stride, size_t n, int32_t *dots)
{
#define MULTIPLY(product, acts, at)                                                                                    \
    do {                                                                                                               \
        _tile_zero(product);                                                                                           \
        _tile_loadd(acts, x + (at)*stride, stride);                                                                    \
        _tile_dpbssd(product, acts, TILE_WEIGHTS);                                                                     \
        _tile_stored(product, dots + (at)*Q8_GROUP, PLANE);                                                            \
    } while (0)
    written(weights);
    _tile_loadd(TILE_WEIGHTS, weights, PLANE);
    if (n >= 16)
        MULTIPLY(0, TILE_ACTS, (size_t)0);
    if (n >= 32)
        MULTIPLY(1, TILE_ACTS, (size_t)16);
    if (n >= 48)
        MULTIPLY(2, TILE_ACTS, (size_t)32);
    if (n >= 64)
        MULTIPLY(3, TILE_ACTS, (size_t)48);
    if (n % 16 != 0)
        MULTIPLY(TILE_LEFT, TILE_ACTS_LEFT, n / 16 * 16);
#undef MULTIPLY
}

/* sums (n, 16) += a block's products, scaled. dots: products of the block, or of its halves. */
SIMD_INLINE void
add_scaled(const enum weight_type type, const unsigned char *scales, size_t i, const struct act_block *x, size_t stride,
           size_t n, int32_t dots[2][BATCH * Q8_GROUP], float *sums)
{
    const size_t halves = Q8_BLOCK / scaled_inputs(type);
    struct scaling scaling[2];
    UNROLL for (size_t h = 0; h < halves; h++) scaling[h] = scaling_at(type, scales, 0, i, h);
    for (size_t r = 0; r < n; r++, x += stride) {
        vec sum = v_load(sums + r * Q8_GROUP);
        UNROLL for (size_t h = 0; h < halves; h++)
        {
            const ints dot = (ints)_mm512_load_si512(dots[h] + r * Q8_GROUP);
            sum = v_fma(v_real(dot), v_mul(scaling[h].each, v_set1(x->scale)), sum);
            if (has_minima(type))
                sum = v_fma(scaling[h].least, v_set1(halves == 2 ? x->sum_half[h] : x->sum), sum);
        }
        v_store(sums + r * Q8_GROUP, sum);
    }
}

/* Computes y (n, ld) of one group. */
SIMD_INLINE void
group_of_many(const enum weight_type type, const struct matrix *w, size_t group, const struct act_block *x,
              size_t stride, size_t n, float *y, size_t ld)
{
    const size_t per = blocks_per_scale(type), halves = Q8_BLOCK / scaled_inputs(type);
    const size_t blocks = w->cols / (Q8_BLOCK * per);
    const uint32_t *grid = has_grid(type) ? grid_of(w->type) : NULL;
    _Alignas(64) int8_t weights[STEPS * PLANE];
    _Alignas(64) int32_t dots[2][2][BATCH * Q8_GROUP];
    _Alignas(64) float sums[BATCH * Q8_GROUP];
    memset(sums, 0, n * Q8_GROUP * sizeof *sums);
    for (size_t next = 0; next <= blocks * per; next++) { /* tiles multiply one block while the previous one is */
                                                          /* scaled */
        if (next < blocks * per) {
            const unsigned char *q = w->q + (group * blocks * per + next) * quant_bytes(type);
            fetch_ahead(type, q, n);
            unpack(type, grid, q, weights);
            UNROLL for (size_t h = 0; h < halves; h++) multiply_tiles(
                weights + h * STEPS / halves * PLANE, x[next].q + h * 16, stride * sizeof *x, n, dots[next % 2][h]);
        }
        if (next > 0)
            add_scaled(type, w->scale + (group * blocks + (next - 1) / per) * scale_bytes(type), (next - 1) % per,
                       x + next - 1, stride, n, dots[(next - 1) % 2], sums);
    }
    for (size_t r = 0; r < n; r++)
        v_store(y + r * ld, v_load(sums + r * Q8_GROUP));
}

SIMD_INLINE void
groups_of_many(const enum weight_type type, const struct matrix *w, const struct acts *x, size_t n, size_t first,
               size_t last, float *y, size_t ld)
{
    configure(n % 16, scaled_inputs(type));
    for (size_t o = first; o < last; o += Q8_GROUP)
        for (size_t r = 0; r < n; r += BATCH)
            group_of_many(type, w, o / Q8_GROUP, x->q + r * x->stride, x->stride, n - r < BATCH ? n - r : BATCH,
                          y + r * ld + o, ld);
    _tile_release();
}

/* Instantiated per type: as one function they would take minutes to compile. */
#define DEFINE_MANY(name, type)                                                                                        \
    static void many_##name(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last,         \
                            float *y, size_t ld)                                                                       \
    {                                                                                                                  \
        groups_of_many(type, w, x, n, first, last, y, ld);                                                             \
    }
INTERLEAVED_TYPES(DEFINE_MANY)

TARGET_END

#define MANY_ENTRY(name, type) [type] = many_##name,
static const matmul_fn many[WEIGHT_TYPES] = {INTERLEAVED_TYPES(MANY_ENTRY) SAME_TYPES(MANY_ENTRY)};

void
amx_matmul(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last, float *y, size_t ld)
{
    const matmul_fn vectors = cpu_isa_avx512vnni.matmul[w->type]; /* for incomplete groups */
    const size_t from = (first + Q8_GROUP - 1) / Q8_GROUP * Q8_GROUP, to = last / Q8_GROUP * Q8_GROUP;
    if (from >= to) {
        vectors(w, x, n, first, last, y, ld);
        return;
    }
    if (first < from)
        vectors(w, x, n, first, from, y, ld);
    many[w->type](w, x, n, from, to, y, ld);
    if (to < last)
        vectors(w, x, n, to, last, y, ld);
}

/* Linux saves tiles only for processes that requested them (arch_prctl ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
bool
amx_usable(void)
{
#if defined(__linux__)
    unsigned a, b, c, d = 0;
    const unsigned needed = 1u << 24 | 1u << 25; /* AMX-TILE, AMX-INT8 */
    return cpu_isa_avx512vnni.usable() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & needed) == needed &&
           syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return false;
#endif
}

#else
typedef int no_amx_here;
#endif
