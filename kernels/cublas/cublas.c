/* Products by cuBLASLt: the plug-in specscope-cublas.so (kernels/cuda/gemm.h describes it).
 *
 * The library thinks in columns: a row-major (r, c) is its (c, r). So y (n, m) is its D (m, n) = A B with A = w and B =
 * x, A is transposed where w is (m, k), B where x is (k, n). */
#include <cublasLt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/gemm.h"

#define ASKED 64 /* maximum number of algorithms requested; the library has fewer per shape */

struct gemm_plan { /* a shape and its algorithm */
    struct gemm_plan *next;
    struct gemm_shape shape;
    cublasLtMatmulDescOpaque_t what;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

struct gemm {
    cublasLtHandle_t handle;
    struct gemm_plan *plans;
};

static bool
did(cublasStatus_t status, const char *doing, struct err *err)
{
    return status == CUBLAS_STATUS_SUCCESS ||
           err_set(err, ERR_WORK, "cuBLASLt failed while %s (%.60s)", doing, cublasLtGetStatusName(status));
}

static bool
gemm_open(struct gemm **out, struct err *err)
{
    struct gemm *g = calloc(1, sizeof *g);
    *out = NULL;
    if (g == NULL)
        return err_set(err, ERR_WORK, "not enough memory for cuBLASLt");
    if (!did(cublasLtCreate(&g->handle), "starting", err)) {
        free(g);
        return false;
    }
    *out = g;
    return true;
}

static void
gemm_close(struct gemm *g)
{
    for (struct gemm_plan *p = g->plans, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    (void)cublasLtDestroy(g->handle);
    free(g);
}

/* ---- plans ---- */

static bool
describe(struct gemm_plan *p, struct err *err)
{
    static const char doing[] = "describing a product";
    const struct gemm_shape *s = &p->shape;
    const int32_t transpose_a = s->transpose_w ? CUBLAS_OP_N : CUBLAS_OP_T,
                  transpose_b = s->transpose_x ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t a_rows = s->transpose_w ? s->m : s->k, a_cols = s->transpose_w ? s->k : s->m;
    const uint32_t b_rows = s->transpose_x ? s->n : s->k, b_cols = s->transpose_x ? s->k : s->n;
    return did(cublasLtMatmulDescInit(&p->what, CUBLAS_COMPUTE_32F, CUDA_R_32F), doing, err) &&
           did(cublasLtMatmulDescSetAttribute(&p->what, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a, sizeof transpose_a),
               doing, err) &&
           did(cublasLtMatmulDescSetAttribute(&p->what, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b, sizeof transpose_b),
               doing, err) &&
           did(cublasLtMatrixLayoutInit(&p->a, CUDA_R_32F, a_rows, a_cols, (int64_t)a_rows), doing, err) &&
           did(cublasLtMatrixLayoutInit(&p->b, CUDA_R_32F, b_rows, b_cols, (int64_t)b_rows), doing, err) &&
           did(cublasLtMatrixLayoutInit(&p->d, CUDA_R_32F, s->m, s->n, (int64_t)s->m), doing, err);
}

/* Returns an attribute of an algorithm; 0 if this library lacks it. */
static uint32_t
attribute(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t which)
{
    uint32_t value = 0;
    size_t written = 0;
    (void)cublasLtMatmulAlgoConfigGetAttribute(algorithm, which, &value, sizeof value, &written);
    return value;
}

static bool
suits(const cublasLtMatmulHeuristicResult_t *r)
{
    return r->state == CUBLAS_STATUS_SUCCESS && r->workspaceSize == 0 &&
           attribute(&r->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1 &&
           attribute(&r->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) == CUBLASLT_REDUCTION_SCHEME_NONE;
}

/* Chooses an algorithm. The library receives the requirements; its answers are still checked. */
static bool
choose(struct gemm *g, struct gemm_plan *p, struct err *err)
{
    static const char doing[] = "looking for an algorithm";
    cublasLtMatmulPreferenceOpaque_t wanted;
    cublasLtMatmulHeuristicResult_t found[ASKED];
    const size_t workspace = 0;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    int n = 0, i = 0;
    if (!did(cublasLtMatmulPreferenceInit(&wanted), doing, err) ||
        !did(cublasLtMatmulPreferenceSetAttribute(&wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                  sizeof workspace),
             doing, err) ||
        !did(cublasLtMatmulPreferenceSetAttribute(&wanted, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                  sizeof schemes),
             doing, err) ||
        !did(cublasLtMatmulAlgoGetHeuristic(g->handle, &p->what, &p->a, &p->b, &p->d, &p->d, &wanted, ASKED, found, &n),
             doing, err))
        return false;
    while (i < n && !suits(&found[i]))
        i++;
    if (i == n)
        return err_set(err, ERR_WORK,
                       "cuBLASLt has no algorithm with sums in one order for a product of %" PRIu32 "x%" PRIu32
                       "x%" PRIu32,
                       p->shape.n, p->shape.m, p->shape.k);
    p->algorithm = found[i].algo;
    return true;
}

static bool
same(const struct gemm_shape *a, const struct gemm_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->transpose_w == b->transpose_w &&
           a->transpose_x == b->transpose_x;
}

/* Returns the plan of a shape, which is made once; NULL on failure. */
static struct gemm_plan *
plan_of(struct gemm *g, const struct gemm_shape *shape, struct err *err)
{
    struct gemm_plan **at = &g->plans;
    while (*at != NULL && !same(&(*at)->shape, shape))
        at = &(*at)->next;
    if (*at != NULL)
        return *at;
    struct gemm_plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_set(err, ERR_WORK, "not enough memory for cuBLASLt");
        return NULL;
    }
    p->shape = *shape;
    if (!describe(p, err) || !choose(g, p, err)) {
        free(p);
        return NULL;
    }
    return *at = p;
}

static bool
gemm_multiply(struct gemm *g, const struct gemm_shape *shape, const void *w, const void *x, float *y, float beta,
              cudaStream_t stream, struct err *err)
{
    const float alpha = 1;
    struct gemm_plan *const p = plan_of(g, shape, err);
    return p != NULL && did(cublasLtMatmul(g->handle, &p->what, &alpha, w, &p->a, x, &p->b, &beta, y, &p->d, y, &p->d,
                                           &p->algorithm, NULL, 0, stream),
                            "multiplying", err);
}

static const struct gemm_ops cublas_gemm = {
    .abi = GEMM_ABI,
    .open = gemm_open,
    .close = gemm_close,
    .multiply = gemm_multiply,
};

__attribute__((visibility("default"))) const struct gemm_ops *specscope_gemm(void);

const struct gemm_ops *
specscope_gemm(void)
{
    return &cublas_gemm;
}
