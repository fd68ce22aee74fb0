#include "engine/training/ridge.h"

#include <math.h>
#include <string.h>

#include "base/blocks.h"
#include "engine/training/blas.h"

#define ROWS  256u /* pairs that are added at a time */
#define BLOCK 64u  /* columns that are eliminated at a time */
#define RIDGE 1e-3

/* The normal equations: `g` has the moments of x in its first `width` rows, and in the other ones those of y - x with
 * x. Elimination turns the first half into L, where moments of x = L·Lᵀ, and the second into A. */
struct fit {
    struct blocks blocks; /* the memory of all the following */
    struct blas *blas;
    const atomic_bool *cancel;
    uint32_t width;
    float *g;        /* (2 width, width) */
    float *part;     /* (2 width, BLOCK) of a product */
    float *x, *y;    /* (ROWS, width) x and y - x, less their means */
    double *mean[2]; /* (width) of x, of y - x */
};

static bool
cancelled(const struct fit *f)
{
    return f->cancel != NULL && atomic_load(f->cancel);
}

static bool
open_fit(struct fit *f)
{
    const size_t w = f->width;
    f->g = blocks_take(&f->blocks, 2 * w * w, sizeof *f->g);
    f->part = blocks_take(&f->blocks, 2 * w * BLOCK, sizeof *f->part);
    f->x = blocks_take(&f->blocks, ROWS * w, sizeof *f->x);
    f->y = blocks_take(&f->blocks, ROWS * w, sizeof *f->y);
    f->mean[0] = blocks_take(&f->blocks, w, sizeof *f->mean[0]);
    f->mean[1] = blocks_take(&f->blocks, w, sizeof *f->mean[1]);
    return !f->blocks.starved;
}

static void
find_means(struct fit *f, const float *x, const float *y, size_t stride, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < f->width; k++) {
            f->mean[0][k] += (double)x[i * stride + k] / (double)n;
            f->mean[1][k] += ((double)y[i * stride + k] - (double)x[i * stride + k]) / (double)n;
        }
}

/* Adds the moments of up to ROWS pairs. */
static void
add_rows(struct fit *f, const float *x, const float *y, size_t stride, size_t n)
{
    const size_t w = f->width;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < w; k++) {
            const float was = x[i * stride + k];
            f->x[i * w + k] = (float)((double)was - f->mean[0][k]);
            f->y[i * w + k] = (float)((double)y[i * stride + k] - (double)was - f->mean[1][k]);
        }
    for (int half = 0; half < 2; half++) {
        const struct host_product p =
            blas_packed(true, false, w, w, n, half == 0 ? f->x : f->y, f->x, 1, f->g + (size_t)half * w * w);
        blas_multiply(f->blas, &p);
    }
}

static void
add_ridge(struct fit *f)
{
    const size_t w = f->width;
    double trace = 0;
    for (size_t k = 0; k < w; k++)
        trace += (double)f->g[k * w + k];
    for (size_t k = 0; k < w; k++)
        f->g[k * w + k] += (float)(RIDGE * trace / (double)w) + 1e-30f;
}

/* Rows [row, 2 width) of columns [at, at + n) become those columns less the product of (rows, [from, to)) and `other`,
 * which is (n, to - from), transposed, or (to - from, n). */
static void
subtract_product(struct fit *f, size_t row, size_t at, size_t n, size_t from, size_t to, const float *other,
                 bool transposed)
{
    const size_t w = f->width, rows = 2 * w - row;
    if (from == to)
        return;
    struct host_product p =
        blas_packed(false, transposed, rows, n, to - from, f->g + row * w + from, other, 0, f->part);
    p.stride_a = p.stride_b = w;
    blas_multiply(f->blas, &p);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < n; k++)
            f->g[(row + i) * w + at + k] -= f->part[i * n + k];
}

/* Cholesky's factorisation of the first half, by blocks of columns from the left; the second half becomes its product
 * with the inverse of Lᵀ. */
static void
factorise(struct fit *f)
{
    const size_t w = f->width;
    for (size_t at = 0; at < w && !cancelled(f); at += BLOCK) {
        const size_t end = at + BLOCK < w ? at + BLOCK : w;
        subtract_product(f, at, at, end - at, 0, at, f->g + at * w, true);
        for (size_t j = at; j < end; j++)
            for (size_t i = j; i < 2 * w; i++) {
                double sum = (double)f->g[i * w + j];
                for (size_t k = at; k < j; k++)
                    sum -= (double)f->g[i * w + k] * (double)f->g[j * w + k];
                f->g[i * w + j] = (float)(i == j ? sqrt(fmax(sum, 1e-30)) : sum / (double)f->g[j * w + j]);
            }
    }
}

/* The second half becomes its product with the inverse of L, by blocks of columns from the right. */
static void
substitute(struct fit *f)
{
    const size_t w = f->width;
    for (size_t end = w, at; end > 0 && !cancelled(f); end = at) {
        at = end > BLOCK ? end - BLOCK : 0;
        subtract_product(f, w, at, end - at, end, w, f->g + end * w + at, false);
        for (size_t i = w; i < 2 * w; i++)
            for (size_t j = end; j-- > at;) {
                double sum = (double)f->g[i * w + j];
                for (size_t k = j + 1; k < end; k++)
                    sum -= (double)f->g[i * w + k] * (double)f->g[k * w + j];
                f->g[i * w + j] = (float)(sum / (double)f->g[j * w + j]);
            }
    }
}

bool
ridge_fit(struct blas *blas, const float *x, const float *y, size_t stride, size_t n, uint32_t width,
          const atomic_bool *cancel, float *a, float *b)
{
    struct fit f = {.blas = blas, .cancel = cancel, .width = width};
    const bool ok = open_fit(&f);
    if (ok) {
        find_means(&f, x, y, stride, n);
        for (size_t i = 0; i < n && !cancelled(&f); i += ROWS)
            add_rows(&f, x + i * stride, y + i * stride, stride, n - i < ROWS ? n - i : ROWS);
        add_ridge(&f);
        factorise(&f);
        substitute(&f);
    }
    if (ok && !cancelled(&f)) {
        memcpy(a, f.g + (size_t)width * width, (size_t)width * width * sizeof *a);
        for (size_t i = 0; i < width; i++) {
            double sum = f.mean[1][i];
            for (size_t k = 0; k < width; k++)
                sum -= (double)a[i * width + k] * f.mean[0][k];
            b[i] = (float)sum;
        }
    }
    blocks_free(&f.blocks);
    return ok;
}
