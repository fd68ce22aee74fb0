/* Units of weights (layout.h): a lane's part of one, loaded from memory and multiplied with a tile of activations.
 *
 * Every type has the same face. place() says where a lane finds unit number `unit` of a strip; load() starts the loads of
 * the i-th unit from there, or leaves things as they are. add() adds the unit's products to `sum` (16, 8), x being the
 * lane's 16 bytes of activations of each of the SPAN units of 32 columns that it is long. Where a block of weights has
 * a scale, its products are added up from zero and scaled before they join the others. */
#ifndef KERNELS_CUDA_DEVICE_UNITS_CUH
#define KERNELS_CUDA_DEVICE_UNITS_CUH

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

/* SPAN: units of activations that one of these is long. DEPTH: how many a warp has on their way at once. FACTOR: what a
 * strip's sums are multiplied by in the end. */
template <enum weight_type T> struct unit_of;

template <> struct unit_of<WEIGHT_F16> {
    static const int SPAN = 1, DEPTH = 4;
    static constexpr float FACTOR = 1;
    static const uint32_t BYTES = STRIP * UNIT * 2;
    struct place {
        const unsigned char *quants;
    };
    uint4 q[2];
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        return {settled((const unsigned char *)m.quants + ((size_t)strip * m.units + unit) * BYTES + lane * 16)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q[0], at.quants + i * BYTES, take);
        load_weights(&q[1], at.quants + i * BYTES + WARP * 16, take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
            mma_f16(sum, a, s == 0 ? x[0].x : x[0].z, s == 0 ? x[0].y : x[0].w);
        }
    }
};

template <> struct unit_of<WEIGHT_BF16> : unit_of<WEIGHT_F16> {
    /* A half is the sum of two BF16 numbers: the first holds its leading 8 bits, the second the other 3. */
    static __device__ __forceinline__ void
    split(uint32_t halves, uint32_t *first, uint32_t *second)
    {
        const float2 x = unpack_halves(halves);
        *first = pack_bf16s(x.x, x.y);
        const float2 y = unpack_bf16s(*first);
        *second = pack_bf16s(x.x - y.x, x.y - y.y);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
            uint32_t first[2], second[2];
            split(s == 0 ? x[0].x : x[0].z, &first[0], &second[0]);
            split(s == 0 ? x[0].y : x[0].w, &first[1], &second[1]);
            mma_bf16(sum, a, first[0], first[1]);
            mma_bf16(sum, a, second[0], second[1]);
        }
    }
};

/* sum += the products of a block, times the scales of rows g and g+8. */
static __device__ __forceinline__ void
add_scaled(float (&sum)[4], float g, float g8, const float (&part)[4])
{
    sum[0] = fmaf(g, part[0], sum[0]);
    sum[1] = fmaf(g, part[1], sum[1]);
    sum[2] = fmaf(g8, part[2], sum[2]);
    sum[3] = fmaf(g8, part[3], sum[3]);
}

template <> struct unit_of<WEIGHT_Q8_0> {
    static const int SPAN = 1, DEPTH = 8;
    static constexpr float FACTOR = 1;
    static const uint32_t BYTES = STRIP * UNIT, SCALE_BYTES = STRIP * 2;
    struct place {
        const unsigned char *quants, *scales;
    };
    uint4 q;
    uint32_t d;
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        const size_t at = (size_t)strip * m.units + unit;
        return {settled((const unsigned char *)m.quants + at * BYTES + lane * 16),
                settled((const unsigned char *)m.scales + at * SCALE_BYTES + lane / 4 * 4)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q, at.quants + i * BYTES, take);
        load_weights(&d, at.scales + i * SCALE_BYTES, take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
        float part[4] = {};
        const float2 scale = unpack_halves(d);
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t a[4];
            bytes_to_halves(s == 0 ? q.x : q.z, &a[0], &a[1]);
            bytes_to_halves(s == 0 ? q.y : q.w, &a[2], &a[3]);
            mma_f16(part, a, s == 0 ? x[0].x : x[0].z, s == 0 ? x[0].y : x[0].w);
        }
        add_scaled(sum, scale.x, scale.y, part);
    }
};

#endif
