/* Emulates cuBLASLt: column-major products with sums in F32, queued on emulated streams.
 *
 * Like the real library it lists unsuitable algorithms, too: one splits k and adds the parts in a different order
 * each time, one needs a workspace, and one cannot run here. It checks what the real library does not check: layouts
 * fit each other; the whole matrix is on the device, at a multiple of 256 bytes; an algorithm was found for this
 * product; streams exist and descriptions were initialised; each handle is destroyed exactly once. An error is printed
 * to standard error, and the call fails. */
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include <cublasLt.h>

struct emulated_handle {
};

using emulated_matmul = cublasLtMatmulDescOpaque_t;
using emulated_layout = cublasLtMatrixLayoutOpaque_t;

namespace
{

constexpr uint64_t MADE = 0x6d616465;

struct handles {
    std::set<const void *> alive;
    ~handles()
    {
        if (!alive.empty())
            fprintf(stderr, "emulated cuBLASLt: %zu handles were not destroyed\n", alive.size());
    }
} all;

cublasStatus_t
refuse(const char *what)
{
    fprintf(stderr, "emulated cuBLASLt: %s\n", what);
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* Returns true if all descriptions were initialised. */
template <class... T>
bool
alive(cublasLtHandle_t h, const T *...each)
{
    return (h == nullptr || all.alive.count(h) != 0) && ((each->made == MADE) && ...);
}

/* ---- a product ---- */

struct product {
    bool transpose_a, transpose_b;
    emulated_layout a, b, d;
    uint64_t m, n, k;
};

bool
product_of(const emulated_matmul *what, const emulated_layout *a, const emulated_layout *b, const emulated_layout *d,
           product *p)
{
    *p = {what->transpose_a == CUBLAS_OP_T, what->transpose_b == CUBLAS_OP_T, *a, *b, *d, 0, 0, 0};
    p->m = p->transpose_a ? a->cols : a->rows;
    p->k = p->transpose_a ? a->rows : a->cols;
    p->n = p->transpose_b ? b->rows : b->cols;
    const bool fit = (p->transpose_b ? b->cols : b->rows) == p->k && d->rows == p->m && d->cols == p->n;
    const bool wide = a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && d->ld >= (int64_t)d->rows;
    return fit && wide && a->type == b->type && d->type == CUDA_R_32F && p->m > 0 && p->n > 0 && p->k > 0;
}

size_t
size_of(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

size_t
bytes_of(const emulated_layout &l)
{
    return ((size_t)l.ld * (l.cols - 1) + l.rows) * size_of(l.type);
}

bool
is_valid(const void *at, const emulated_layout &l)
{
    return (uintptr_t)at % 256 == 0 && emulated_cuda_on_device(at, bytes_of(l));
}

/* Converts a half. The factor 2^112 corrects the exponent, also for subnormal numbers. */
float
half(uint16_t h)
{
    const uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float f;
    memcpy(&f, &bits, sizeof f);
    f = (h & 0x7c00) == 0x7c00 ? ((h & 1023) != 0 ? NAN : INFINITY) : f * 0x1p112f;
    return h >> 15 ? -f : f;
}

float
value(const void *from, cudaDataType type, size_t i)
{
    if (type == CUDA_R_32F)
        return ((const float *)from)[i];
    const uint16_t bits = ((const uint16_t *)from)[i];
    if (type == CUDA_R_16F)
        return half(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float out;
    memcpy(&out, &wide, sizeof out);
    return out;
}

/* ---- algorithms ---- */

enum field { ID, TILE, SPLITS, SCHEME, SWIZZLE, OPTION, STAGES, SHAPE };

/* Returns a hash of the product's shape, which its algorithms store. */
uint64_t
mark(const product &p)
{
    uint64_t h = 14695981039346656037u;
    for (const uint64_t each : {p.m, p.n, p.k, (uint64_t)p.transpose_a, (uint64_t)p.transpose_b, (uint64_t)p.a.type})
        h = (h ^ each) * 1099511628211u;
    return h;
}

struct offer {
    uint64_t id, splits, scheme;
    size_t workspace;
    cublasStatus_t state;
};
const offer offers[] = {
    {6, 4, CUBLASLT_REDUCTION_SCHEME_INPLACE, 0, CUBLAS_STATUS_SUCCESS},
    {21, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 1 << 20, CUBLAS_STATUS_SUCCESS},
    {23, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, CUBLAS_STATUS_NOT_SUPPORTED},
    {66, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, CUBLAS_STATUS_SUCCESS},
    {67, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, CUBLAS_STATUS_SUCCESS},
};

struct call {
    product p;
    float alpha, beta;
    const void *a, *b;
    float *d;
    uint64_t splits, step;
};

/* Returns a matrix as (n, k) with k innermost; `k_inner` is true if it is stored so. */
std::vector<float>
numbers(const void *from, const emulated_layout &l, bool k_inner, uint64_t n, uint64_t k)
{
    std::vector<float> all(n * k);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t q = 0; q < k; q++)
            all[i * k + q] = value(from, l.type, k_inner ? i * (size_t)l.ld + q : q * (size_t)l.ld + i);
    return all;
}

/* Returns the sum of the terms from..to of an output, in groups of `step` terms. */
float
part(const float *a, const float *b, uint64_t step, uint64_t from, uint64_t to)
{
    float sum = 0;
    for (uint64_t k = from; k < to; k += step) {
        float few = 0;
        for (uint64_t q = k; q < to && q < k + step; q++)
            few += a[q] * b[q];
        sum += few;
    }
    return sum;
}

cudaError_t
multiply(void *what)
{
    static std::atomic<uint64_t> turn{0};
    const std::unique_ptr<const call> c((const call *)what);
    const product &p = c->p;
    if (!is_valid(c->a, p.a) || !is_valid(c->b, p.b) || !is_valid(c->d, p.d)) {
        refuse("a matrix was freed before it was multiplied");
        return cudaErrorIllegalAddress;
    }
    const std::vector<float> a = numbers(c->a, p.a, p.transpose_a, p.m, p.k),
                             b = numbers(c->b, p.b, !p.transpose_b, p.n, p.k);
    const uint64_t first = turn++;
    for (uint64_t j = 0; j < p.n; j++)
        for (uint64_t i = 0; i < p.m; i++) {
            float sum = 0;
            for (uint64_t s = 0; s < c->splits; s++) {
                const uint64_t at = (s + first) % c->splits;
                sum += part(&a[i * p.k], &b[j * p.k], c->step, at * p.k / c->splits, (at + 1) * p.k / c->splits);
            }
            float *to = c->d + j * (size_t)p.d.ld + i;
            *to = c->alpha * sum + (c->beta == 0 ? 0 : c->beta * *to);
        }
    return cudaSuccess;
}

} // namespace

extern "C" {

cublasStatus_t
cublasLtCreate(cublasLtHandle_t *out)
{
    *out = new emulated_handle;
    all.alive.insert(*out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtDestroy(cublasLtHandle_t h)
{
    if (all.alive.erase(h) == 0)
        return refuse("a handle is destroyed that does not exist");
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

size_t
cublasLtGetVersion(void)
{
    return 130000;
}

const char *
cublasLtGetStatusName(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t
cublasLtMatmulDescInit(cublasLtMatmulDesc_t d, cublasComputeType_t compute, cudaDataType_t scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return refuse("sums must be in F32");
    *d = {MADE, CUBLAS_OP_N, CUBLAS_OP_N};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, const void *from, size_t n)
{
    if (!alive(nullptr, d) || n != sizeof(int32_t))
        return refuse("an attribute of a description that does not exist, or of a wrong size");
    memcpy(which == CUBLASLT_MATMUL_DESC_TRANSA ? &d->transpose_a : &d->transpose_b, from, n);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
    *l = {MADE, type, rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p)
{
    *p = {MADE, SIZE_MAX, 7};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which,
                                     const void *from, size_t n)
{
    const bool workspace = which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (!alive(nullptr, p) || n != (workspace ? sizeof p->workspace : sizeof p->schemes))
        return refuse("a preference that does not exist, or of a wrong size");
    memcpy(workspace ? (void *)&p->workspace : &p->schemes, from, n);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t wanted, int most, cublasLtMatmulHeuristicResult_t *out,
                               int *n)
{
    product p;
    if (!alive(h, what, a, b, c, d, wanted) || c->rows != d->rows || c->cols != d->cols ||
        !product_of(what, a, b, d, &p))
        return refuse("matrices whose sizes do not fit a product");
    *n = 0;
    for (const offer &each : offers) {
        if (*n == most)
            break;
        cublasLtMatmulHeuristicResult_t *const r = &out[(*n)++];
        *r = {};
        const uint64_t data[8] = {each.id, 20, each.splits, each.scheme, 0, 0, 36, mark(p)};
        memcpy(r->algo.data, data, sizeof data);
        r->workspaceSize = each.workspace;
        r->state = each.state;
        r->wavesCount = 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *a, cublasLtMatmulAlgoConfigAttributes_t which,
                                     void *to, size_t n, size_t *written)
{
    const bool narrow = which == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || which == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    const uint32_t wide = narrow ? 0 : (uint32_t)a->data[which];
    const uint16_t half_wide = 0;
    if (n != (narrow ? sizeof half_wide : sizeof wide))
        return CUBLAS_STATUS_INVALID_VALUE; /* a caller that does not know the size calls again */
    memcpy(to, narrow ? (const void *)&half_wide : &wide, n);
    *written = n;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
               cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c,
               cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algorithm,
               void *workspace, size_t bytes, cudaStream_t stream)
{
    product p;
    if (!alive(h, what, la, lb, lc, ld) || !product_of(what, la, lb, ld, &p))
        return refuse("matrices whose sizes do not fit a product");
    if (c != d || lc != ld)
        return refuse("C is not D");
    if (!is_valid(a, *la) || !is_valid(b, *lb) || !is_valid(d, *ld))
        return refuse("a matrix is not in device memory, or its address is not a multiple of 256");
    if (algorithm->data[SHAPE] != mark(p))
        return refuse("the algorithm was found for another product");
    if (workspace != nullptr || bytes != 0)
        return refuse("a workspace, which no chosen algorithm may need");
    if (algorithm->data[ID] == 21 || algorithm->data[ID] == 23)
        return refuse("an algorithm that needs a workspace, or that is not supported");
    auto *todo = new call{p,
                          *(const float *)alpha,
                          *(const float *)beta,
                          a,
                          b,
                          (float *)d,
                          algorithm->data[SPLITS],
                          algorithm->data[ID] == 66 ? 32u : 48u};
    const emulated_range touched[] = {{a, bytes_of(p.a), false}, {b, bytes_of(p.b), false}, {d, bytes_of(p.d), true}};
    if (emulated_cuda_enqueue(stream, multiply, todo, touched, 3) == cudaSuccess)
        return CUBLAS_STATUS_SUCCESS;
    delete todo;
    return CUBLAS_STATUS_EXECUTION_FAILED;
}
}
