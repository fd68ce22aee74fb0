/* Products of experts with the rows that visit them (visits.h): which strips a block multiplies, and with what, with the face of
 * all_rows (matmul.cuh). A lane takes the activations of whatever row it has, so rows need not be brought together: an instruction's
 * columns do not mix.
 *
 * Of gate and up a block takes every so manieth strip of all experts that are visited. Of down it takes the same strip of all of them, one
 * expert after the other: so what experts say of a row is added up by one block, in the experts' order. */
#ifndef KERNELS_CUDA_DEVICE_VISITED_ROWS_CUH
#define KERNELS_CUDA_DEVICE_VISITED_ROWS_CUH

#include "kernels/cuda/device/exact.cuh"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/visits.h"

struct visited_place : strip_place {
    uint32_t expert, first, n; /* visits */
};

/* Of a product that is visited: so many experts, of so many strips each. */
struct visited_experts {
    const struct product &p;
    uint32_t experts, strips;

    __device__ __forceinline__
    visited_experts(const struct product &p, uint32_t strips)
        : p(p), experts(p.shared ? 1 : p.store->going->n), strips(strips)
    {
    }
    /* Of what is shared the last blocks come first, of which some had a strip less of what is routed. */
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return p.down ? 0 : p.shared ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return p.down ? 1 : gridDim.x;
    }
    __device__ __forceinline__ uint32_t
    end() const
    {
        if (!p.down)
            return experts * strips;
        return blockIdx.x < strips ? (strips - blockIdx.x + gridDim.x - 1) / gridDim.x * experts : 0;
    }
    __device__ __forceinline__ struct visited_place
    find(uint32_t i) const
    {
        const uint32_t which = p.down ? i % experts : i / strips;
        const struct visited_expert at = p.shared ? p.store->going->alone : p.store->going->experts[which];
        struct visited_place place;
        place.m = p.matrices[0];
        place.matrix = 0;
        place.strip = p.down ? blockIdx.x + i / experts * gridDim.x : i % strips;
        place.expert = p.shared ? 0 : at.expert;
        place.first = at.first;
        place.n = at.n;
        return place;
    }
    /* Which activations visit number v multiplies. */
    __device__ __forceinline__ uint32_t
    row_of_visit(uint32_t v) const
    {
        return p.down && !p.shared ? v : p.store->visits[v].row;
    }
};

/* Of any product, which may be visited. */
template <int NT> struct visited_rows {
    using place = struct visited_place;
    struct of_lane {
        uint32_t row[NT];
        struct packed_place following; /* found with the rows, so that no turn of the ring waits for the list */
    };
    const struct product &p;
    const struct all_rows<NT> all;
    uint32_t end;

    __device__ __forceinline__ struct visited_experts
    visited() const
    {
        return visited_experts(p, p.matrices[0]->strips);
    }
    __device__ __forceinline__ explicit visited_rows(const struct product &p)
        : p(p), all(p), end(p.visited ? visited().end() : all.end)
    {
    }
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return p.visited ? visited().begin() : all.begin();
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return p.visited ? visited().step() : all.step();
    }
    __device__ __forceinline__ place
    find(uint32_t i) const
    {
        if (p.visited)
            return visited().find(i);
        struct visited_place at;
        (struct strip_place &)at = all.find(i);
        at.expert = at.first = 0;
        at.n = p.n;
        return at;
    }
    __device__ __forceinline__ struct packed_place
    packed(const place &at) const
    {
        return {at.m, at.expert * at.m->strips + at.strip};
    }
    __device__ __forceinline__ struct packed_place
    following(const of_lane &own, uint32_t) const
    {
        return own.following;
    }
    __device__ __forceinline__ uint32_t
    passes_of(const place &at) const
    {
        return (at.n + NT * TILE - 1) / (NT * TILE);
    }
    __device__ __forceinline__ bool
    has(const place &at, uint32_t row) const
    {
        return row < at.n;
    }
    __device__ __forceinline__ uint32_t
    number(const place &at, uint32_t row) const
    {
        return at.first + row;
    }
    /* Lanes of rows that are not there take the tiles' first one's. */
    __device__ __forceinline__ of_lane
    look_up(const place &at, uint32_t tile, uint32_t lane, uint32_t next) const
    {
        struct of_lane own;
        own.following = packed(find(next));
#pragma unroll
        for (uint32_t j = 0; j < NT; j++) {
            const uint32_t row = (tile + j) * TILE + lane / 4, there = row < at.n ? row : tile * TILE;
            own.row[j] = p.visited ? visited().row_of_visit(at.first + there) : there;
        }
        return own;
    }
    template <bool NEAR>
    __device__ __forceinline__ const uint4 *
    activations(const of_lane &own, uint32_t, uint32_t j, uint32_t unit, uint32_t units, uint32_t lane) const
    {
        const uint32_t row = own.row[j];
        if (NEAR)
            return (const uint4 *)p.x + row * near_stride(units) + unit * 4 + lane % 4;
        return settled((const uint4 *)p.x + (size_t)(row / TILE) * units * WARP + row % TILE * 4 + lane % 4 +
                       (size_t)unit * WARP);
    }
};

/* The same of exact models. */
template <class Then>
static __device__ __forceinline__ void
exact_visits(const struct product &p, enum pairing pairing, const struct dev_model &model, float *shared,
             uint32_t *turn, Then &then)
{
    const struct dev_matrix &m = *p.matrices[0];
    const struct visited_experts experts(p, exact_strips(m, pairing, model.head_dim));
    for (uint32_t i = experts.begin(); i < experts.end(); i += experts.step()) {
        const struct visited_place at = experts.find(i);
        const float *const w = (const float *)m.quants + (size_t)at.expert * m.rows * m.cols;
        const auto x_of = [&](uint32_t row) {
            return (const float *)p.x + (size_t)experts.row_of_visit(at.first + row) * m.cols;
        };
        const auto put = [&](uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) {
            then(0, at.first + row, o0, o1, y0, y1);
        };
        exact_strip(m, w, at.strip, at.n, pairing, model, shared, turn, x_of, put);
    }
}

#endif
