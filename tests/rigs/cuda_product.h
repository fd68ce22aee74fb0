/* A product by strips as a kernel of its own, and its definition. The including file must define run(kernel, arguments,
 * shared memory), with any number of blocks. */
#pragma once

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/tile.cuh"
#include "tests/rigs/cuda_matrix.h"

struct product_args {
    struct product product;
    struct dev_model model;
    float *out[3]; /* (n, rows) of each matrix */
};

struct put_output {
    const struct product_args &a;
    __device__ void
    operator()(uint32_t which, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const size_t rows = a.product.matrices[which]->rows;
        if (o0 != UINT32_MAX)
            a.out[which][row * rows + o0] = y0;
        if (o1 != UINT32_MAX)
            a.out[which][row * rows + o1] = y1;
    }
};

template <enum weight_type T, int NT>
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_rows(struct product_args a)
{
    SHARED_MEMORY(float, shared);
    struct put_output put = {a};
    if (T == WEIGHT_F32)
        exact_strips(block_rows<false, 1>(a.product), shared, put);
    else
        all_strips<T == WEIGHT_F32 ? WEIGHT_F16 : T, NT, false>(
            block_rows<false, NT>(a.product), shared, [] {}, put);
}

/* Multiplies at most a tile of rows, which each block first copies to shared memory. */
template <enum weight_type T>
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_smem_rows(struct product_args a)
{
    SHARED_MEMORY(unsigned char, shared);
    const uint32_t units = a.product.matrices[0]->units;
    uint16_t *const rows = (uint16_t *)(shared + SMEM_AT);
    struct put_output put = {a};
    struct product p = a.product;
    p.x = rows;
    p.in_smem = true;
    const auto copy = [&] {
        for (uint32_t r = 0; r < p.n; r++)
            for (uint32_t k = thread_here(); k < units * UNIT; k += BLOCK_THREADS)
                rows[smem_place(units, r, k)] = ((const uint16_t *)a.product.x)[packed_place(units, r, k)];
        __syncthreads();
    };
    all_strips<T, 1, true>(block_rows<false, 1>(p), (float *)shared, copy, put);
}

/* Runs the product with rows in shared memory if they fit. Returns false if they do not. */
template <enum weight_type T>
static bool
run_smem_product(const struct product_args &a)
{
    const uint32_t units = a.product.matrices[0]->units;
    if (T == WEIGHT_F32 || a.product.n > TILE || a.product.n * smem_stride(units) * 16 > SMEM_BYTES)
        return false;
    run(multiply_smem_rows < T == WEIGHT_F32 ? WEIGHT_F16 : T >, a, SMEM_AT + SMEM_BYTES);
    return true;
}

template <enum weight_type T>
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_in_tiles(struct product_args a)
{
    SHARED_MEMORY(struct tile_shared, shared);
    struct put_output put = {a};
    all_tiles<T>(a.product, shared, put);
}

/* Runs the product in tiles, for more rows than a tile. */
template <enum weight_type T>
static bool
run_tiled_product(const struct product_args &a)
{
    if (T == WEIGHT_F32 || a.product.n <= TILE)
        return false;
    run(multiply_in_tiles < T == WEIGHT_F32 ? WEIGHT_F16 : T >, a, sizeof(struct tile_shared));
    return true;
}

template <enum weight_type T>
static void
run_product(const struct product_args &a)
{
    const uint32_t n = a.product.n;
    run(n <= TILE       ? multiply_rows<T, 1>
        : n <= 2 * TILE ? multiply_rows<T, 2>
                        : multiply_rows<T, PRODUCT_TILES>,
        a, PRODUCT_SHARED);
}

static std::vector<double>
define_product(const test_matrix &w, const test_rows &x, uint32_t n)
{
    std::vector<double> y((size_t)n * w.m.rows);
#pragma omp parallel for
    for (uint32_t o = 0; o < w.m.rows; o++)
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < w.m.cols; k++)
                y[(size_t)r * w.m.rows + o] +=
                    (double)w.values[(size_t)o * w.m.cols + k] * (double)x.values[(size_t)r * w.m.cols + k];
    return y;
}
