/* Units of weights (layout.h): a lane's part of one, loaded from memory and multiplied with a tile of activations.
 *
 * Every type has the same face. load() starts the loads (or leaves things as they are), of unit number `unit` of a matrix or of what lane_quants() and
 * lane_scales() say of it; the next unit is BYTES and SCALE_BYTES further. multiply(s, x, sum) adds the products of k-step s, x being the
 * lane's 16 bytes of the unit's activations. Where `scaled` is true the weights are scale() times what was multiplied:
 * .x in row g, .y in row g+8; a unit's sum is multiplied by it before it joins the others. */
#ifndef KERNELS_CUDA_UNITS_CUH
#define KERNELS_CUDA_UNITS_CUH

#include "kernels/cuda/layout.h"
#include "kernels/cuda/ptx.cuh"

/* DEPTH: units that a warp has on their way at once, 128 bytes a lane. BYTES: of one unit. */
template <enum weight_type T> struct unit_of;

template <> struct unit_of<WEIGHT_F16> {
    static const bool scaled = false;
    static const int DEPTH = 4;
    static const uint32_t BYTES = STRIP * UNIT * 2, SCALE_BYTES = 0;
    uint4 q[2];
    static __device__ __forceinline__ const unsigned char *
    lane_quants(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        return (const unsigned char *)m.quants + unit * BYTES + lane * 16;
    }
    static __device__ __forceinline__ const unsigned char *
    lane_scales(const struct dev_matrix &, size_t, uint32_t)
    {
        return NULL;
    }
    __device__ __forceinline__ void
    load(const unsigned char *quants, const unsigned char *, bool take)
    {
        load_weights(&q[0], quants, take);
        load_weights(&q[1], quants + WARP * 16, take);
    }
    __device__ __forceinline__ void
    load(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        load(lane_quants(m, unit, lane), lane_scales(m, unit, lane), true);
    }
    __device__ __forceinline__ void
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
        mma_f16(sum, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
    }
    __device__ __forceinline__ float2
    scale() const
    {
        return make_float2(1, 1);
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
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
        uint32_t first[2], second[2];
        split(s == 0 ? x.x : x.z, &first[0], &second[0]);
        split(s == 0 ? x.y : x.w, &first[1], &second[1]);
        mma_bf16(sum, a, first[0], first[1]);
        mma_bf16(sum, a, second[0], second[1]);
    }
};

template <> struct unit_of<WEIGHT_Q8_0> {
    static const bool scaled = true;
    static const int DEPTH = 8;
    static const uint32_t BYTES = STRIP * UNIT, SCALE_BYTES = STRIP * 2;
    uint4 q;
    uint32_t d;
    static __device__ __forceinline__ const unsigned char *
    lane_quants(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        return (const unsigned char *)m.quants + unit * BYTES + lane * 16;
    }
    static __device__ __forceinline__ const unsigned char *
    lane_scales(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        return (const unsigned char *)m.scales + unit * SCALE_BYTES + lane / 4 * 4;
    }
    __device__ __forceinline__ void
    load(const unsigned char *quants, const unsigned char *scales, bool take)
    {
        load_weights(&q, quants, take);
        load_weights(&d, scales, take);
    }
    __device__ __forceinline__ void
    load(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        load(lane_quants(m, unit, lane), lane_scales(m, unit, lane), true);
    }
    __device__ __forceinline__ void
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        uint32_t a[4];
        bytes_to_halves(s == 0 ? q.x : q.z, &a[0], &a[1]);
        bytes_to_halves(s == 0 ? q.y : q.w, &a[2], &a[3]);
        mma_f16(sum, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
    }
    __device__ __forceinline__ float2
    scale() const
    {
        return unpack_halves(d);
    }
};

/* sum (16, 8) += the unit times its activations. */
template <enum weight_type T>
static __device__ __forceinline__ void
add_unit(const unit_of<T> &unit, const uint4 &x, float (&sum)[4])
{
    if (!unit_of<T>::scaled) {
        unit.multiply(0, x, sum);
        unit.multiply(1, x, sum);
        return;
    }
    float part[4] = {};
    const float2 d = unit.scale();
    unit.multiply(0, x, part);
    unit.multiply(1, x, part);
    sum[0] = fmaf(d.x, part[0], sum[0]);
    sum[1] = fmaf(d.x, part[1], sum[1]);
    sum[2] = fmaf(d.y, part[2], sum[2]);
    sum[3] = fmaf(d.y, part[3], sum[3]);
}

/* Bytes of a packed strip, and of its scales; 0: not packed. */
static __device__ __forceinline__ void
strip_bytes(const struct dev_matrix &m, size_t *quants, size_t *scales)
{
    *scales = m.type == WEIGHT_Q8_0 ? (size_t)m.units * unit_of<WEIGHT_Q8_0>::SCALE_BYTES : 0;
    switch (m.type) {
    case WEIGHT_F32: *quants = 0; break;
    case WEIGHT_Q8_0: *quants = (size_t)m.units * unit_of<WEIGHT_Q8_0>::BYTES; break;
    default: *quants = (size_t)m.units * unit_of<WEIGHT_F16>::BYTES;
    }
}

#endif
