/* Copies rows of a packed matrix into the strips of another one (layout.h), for sets of tokens. */
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"

#define GATHER_THREADS 256

/* The bits of a strip's 32-bit word that belong to packed rows g and g+8: of each 2 * bits of them, the lower half is
 * row g's. If bits is 32, words of the two rows alternate. */
struct word_of_rows {
    uint32_t g, shift; /* g is bits shift..shift+2 of the word's number */
    uint32_t bits;
};

static __device__ __forceinline__ struct word_of_rows
word_at(uint32_t number, uint32_t shift, uint32_t bits)
{
    return {number >> shift & 7, shift, bits};
}

/* Describes word i of a strip's quants. */
static __device__ __forceinline__ struct word_of_rows
quants_at(enum weight_type type, uint32_t i)
{
    const uint32_t of_pair = i % ((PAIR_NIBBLES + PAIR_HIGHS) / sizeof(uint32_t)),
                   nibbles = PAIR_NIBBLES / sizeof(uint32_t);
    switch (type) {
    case WEIGHT_Q8_0: return word_at(i, 4, 16);
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K: return word_at(i, 4, 8);
    case WEIGHT_Q6_K: return of_pair < nibbles ? word_at(of_pair, 4, 8) : word_at(of_pair - nibbles, 3, 2);
    default: return word_at(i, 4, 32);
    }
}

/* Describes word i of a strip's scales. */
static __device__ __forceinline__ struct word_of_rows
scales_at(enum weight_type type, uint32_t units, uint32_t i)
{
    const uint32_t pairs = units / 2 * (PAIR_SCALES / sizeof(uint32_t));
    if (type == WEIGHT_Q8_0)
        return word_at(i, 0, 16);
    if (i >= pairs)
        return type == WEIGHT_Q4_K ? word_at(i - pairs, 1, 32) : word_at(i - pairs, 0, 16);
    return word_at(i, 1, type == WEIGHT_Q4_0 ? 16 : 32);
}

/* Returns the word at the same place of the strip that contains `row`, for this row's g. */
static __device__ __forceinline__ uint32_t
word_of(const uint32_t *from, size_t words, uint32_t row, uint32_t i, struct word_of_rows at)
{
    return from[row / STRIP * words + i + (row % 8 << at.shift) - (at.g << at.shift)];
}

/* Returns word i of a strip whose packed row r is row ids[r] of the matrix at `from`. */
static __device__ __forceinline__ uint32_t
gathered(const uint32_t *from, size_t words, const uint32_t *ids, uint32_t i, struct word_of_rows at)
{
    const uint32_t row = ids[at.g], row8 = ids[at.g + 8];
    if (at.bits == 32) {
        const uint32_t own = i % 2 == 0 ? row : row8;
        return word_of(from, words, own, i - i % 2 + own % STRIP / 8, at);
    }
    const uint32_t lower = 0xffffffffu / ((1u << at.bits) + 1); /* the bits of row g */
    return (word_of(from, words, row, i, at) >> row % STRIP / 8 * at.bits & lower) |
           (word_of(from, words, row8, i, at) >> row8 % STRIP / 8 * at.bits & lower) << at.bits;
}

/* One block per strip. Rows after the last one are copies of it. */
static __global__ void
__launch_bounds__(GATHER_THREADS) gather_rows(struct gather_args a)
{
    __shared__ uint32_t ids[STRIP];
    const enum weight_type type = a.from.type;
    const uint32_t strip = a.first + blockIdx.x, units = a.from.units;
    const size_t quants = strip_quants(type, units) / sizeof(uint32_t),
                 scales = strip_scales(type, units) / sizeof(uint32_t);
    uint32_t *const to_quants = (uint32_t *)a.to.quants + strip * quants, *const to_scales =
                                                                              (uint32_t *)a.to.scales + strip * scales;
    if (threadIdx.x < STRIP)
        ids[threadIdx.x] = (uint32_t)a.ids[min(strip * STRIP + threadIdx.x, a.n - 1)];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < quants; i += GATHER_THREADS)
        to_quants[i] = gathered((const uint32_t *)a.from.quants, quants, ids, i, quants_at(type, i));
    for (uint32_t i = threadIdx.x; i < scales; i += GATHER_THREADS)
        to_scales[i] = gathered((const uint32_t *)a.from.scales, scales, ids, i, scales_at(type, units, i));
}

cudaError_t
launch_gather(struct gather_args a, cudaStream_t stream)
{
    return launch(gather_rows, a.strips, GATHER_THREADS, a, stream);
}
