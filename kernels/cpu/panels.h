/* Products of many rows with weights stored row by row, written once for any vector. Included by simd.h, after the
 * instruction set has defined
 *   PANEL_OUTS    outs * PANEL_ROWS sums fit into the registers beside PANEL_ROWS vectors; a multiple of four
 * Weights of PANEL_OUTS outputs are converted to F32 once, PANEL_COLS inputs at a time, and stay in the first-level
 * cache while all rows are multiplied. Conversions thus cost almost nothing. Between two panels of inputs the sums are
 * stored in memory as vectors. Each sum therefore still runs over k in vectors, then across lanes, and has the same
 * bits as with tiles. */
#pragma once

#define PANEL_ROWS  ((size_t)3)
#define PANEL_MANY  24 /* number of rows from which panels are faster than simd.h's tiles */
#define PANEL_COLS  ((size_t)512)
#define PANEL_BATCH ((size_t)96)      /* largest number of rows that pass over a panel together: as many as fit into */
                                      /* PANEL_CACHE, */
#define PANEL_LEAST ((size_t)48)      /* but at least this number */
#define PANEL_CACHE ((size_t)3 << 18) /* bytes of the second-level cache used */
#define PANEL_LINE  64                /* bytes of a cache line */

/* One panel of inputs for its tiles. */
struct panel {
    const float *w; /* (PANEL_COLS/LANES, PANEL_OUTS, LANES) */
    const float *x; /* (rows, ld), from the panel's first input on */
    size_t ld, cols;
    bool first, last;  /* whether it is the first, last panel of its outputs */
    const char *ahead; /* weights of the next panel: `lines` cache lines in each of PANEL_OUTS rows, `stride` bytes */
                       /* apart */
    size_t lines, stride;
};

/* Adds to sums (PANEL_OUTS, rows) of rows from `row` on; writes them to y for their last panel. */
SIMD_INLINE void
panel_tile(const struct panel *p, size_t row, const size_t rows, vec *sums, float *y, size_t ld)
{
    vec sum[PANEL_OUTS * PANEL_ROWS];
    UNROLL for (size_t o = 0; o < PANEL_OUTS; o++) UNROLL for (size_t r = 0; r < rows; r++) sum[o * rows + r] =
        p->first ? v_zero() : sums[o * rows + r];
    const float *x = p->x + row * p->ld;
    size_t k = 0;
    for (; k + LANES <= p->cols; k += LANES) {
        vec xk[PANEL_ROWS];
        UNROLL for (size_t r = 0; r < rows; r++) xk[r] = v_load(x + r * p->ld + k);
        UNROLL for (size_t o = 0; o < PANEL_OUTS; o++)
        {
            const vec wk = v_keep(v_load(p->w + k * PANEL_OUTS + o * LANES));
            UNROLL for (size_t r = 0; r < rows; r++) sum[o * rows + r] = v_fma(wk, xk[r], sum[o * rows + r]);
        }
    }
    if (k < p->cols)
        UNROLL for (size_t r = 0; r < rows; r++)
        {
            const vec xk = load_tail(x + r * p->ld + k, p->cols - k, 0);
            UNROLL for (size_t o = 0; o < PANEL_OUTS; o++) sum[o * rows + r] =
                v_fma(v_load(p->w + k * PANEL_OUTS + o * LANES), xk, sum[o * rows + r]);
        }
    if (!p->last) {
        UNROLL for (size_t o = 0; o < PANEL_OUTS; o++) UNROLL for (size_t r = 0; r < rows; r++) sums[o * rows + r] =
            sum[o * rows + r];
        return;
    }
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t o = 0; o < PANEL_OUTS; o += 4) v_sum4(
        y + r * ld + o, sum[o * rows + r], sum[(o + 1) * rows + r], sum[(o + 2) * rows + r], sum[(o + 3) * rows + r]);
}

/* Prefetches a share of the next panel's weights while this panel's are multiplied. */
SIMD_INLINE void
panel_ahead(const struct panel *p, size_t row, size_t n)
{
    const size_t all = p->lines * PANEL_OUTS, from = all * row / n, to = all * (row + PANEL_ROWS) / n;
    for (size_t i = from; i < to && i < all; i++)
        __builtin_prefetch(p->ahead + i / p->lines * p->stride + i % p->lines * PANEL_LINE);
}

/* Multiplies n <= PANEL_BATCH rows with one panel. */
SIMD_INLINE void
panel_rows(const struct panel *p, size_t n, vec *sums, float *y, size_t ld)
{
    size_t r = 0;
    for (; r + PANEL_ROWS <= n; r += PANEL_ROWS) {
        panel_ahead(p, r, n);
        panel_tile(p, r, PANEL_ROWS, sums + r * PANEL_OUTS, y + r * ld, ld);
    }
    for (; r < n; r++)
        panel_tile(p, r, 1, sums + r * PANEL_OUTS, y + r * ld, ld);
}

SIMD_INLINE size_t
panel_batch(size_t cols)
{
    const size_t fit = PANEL_CACHE / (cols * sizeof(float));
    return fit < PANEL_LEAST ? PANEL_LEAST : fit > PANEL_BATCH ? PANEL_BATCH : fit;
}

#define DEFINE_PANELS(type, element)                                                                                   \
    /* Computes y (n, ld) of PANEL_OUTS outputs, n <= PANEL_BATCH. `then`: weights whose first panel comes next. */    \
    static void panels_of_##type(const element *w, const element *then, size_t cols, const float *x, size_t n,         \
                                 float *y, size_t ld)                                                                  \
    {                                                                                                                  \
        _Alignas(64) float panel[PANEL_OUTS * PANEL_COLS];                                                             \
        vec sums[PANEL_BATCH * PANEL_OUTS];                                                                            \
        for (size_t k = 0; k < cols; k += PANEL_COLS) {                                                                \
            const size_t m = cols - k < PANEL_COLS ? cols - k : PANEL_COLS, next = k + m;                              \
            for (size_t o = 0; o < PANEL_OUTS; o++)                                                                    \
                for (size_t i = 0; i < m; i += LANES)                                                                  \
                    v_store(panel + i * PANEL_OUTS + o * LANES, load_##type##_any(w + o * cols + k, i, m));            \
            const element *ahead = next < cols ? w + next : then;                                                      \
            const size_t left = next < cols ? cols - next : cols, fetched = left < PANEL_COLS ? left : PANEL_COLS;     \
            const struct panel p = {.w = panel,                                                                        \
                                    .x = x + k,                                                                        \
                                    .ld = cols,                                                                        \
                                    .cols = m,                                                                         \
                                    .first = k == 0,                                                                   \
                                    .last = next == cols,                                                              \
                                    .ahead = (const char *)ahead,                                                      \
                                    .lines = ahead == NULL ? 0 : (fetched * sizeof *w + PANEL_LINE - 1) / PANEL_LINE,  \
                                    .stride = cols * sizeof *w};                                                       \
            panel_rows(&p, n, sums, y, ld);                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void panels_##type(const struct matrix *m, const struct acts *x, size_t n, size_t first, size_t last,       \
                              float *y, size_t ld)                                                                     \
    {                                                                                                                  \
        const element *w = (const element *)m->data;                                                                   \
        const size_t cols = m->cols, batch = panel_batch(cols), whole = (last - first) / PANEL_OUTS * PANEL_OUTS;      \
        for (size_t r = 0; r < n; r += batch)                                                                          \
            for (size_t o = first; o < first + whole; o += PANEL_OUTS) {                                               \
                const bool more = o + PANEL_OUTS < first + whole, further = r + batch < n;                             \
                const element *then = more ? w + (o + PANEL_OUTS) * cols : further ? w + first * cols : NULL;          \
                panels_of_##type(w + o * cols, then, cols, x->x + r * cols, further ? batch : n - r, y + r * ld + o,   \
                                 ld);                                                                                  \
            }                                                                                                          \
        if (first + whole < last)                                                                                      \
            matmul_##type(m, x, n, first + whole, last, y, ld);                                                        \
    }
DEFINE_PANELS(f32, float)
DEFINE_PANELS(f16, uint16_t)
DEFINE_PANELS(bf16, uint16_t)

#define PANEL_KERNELS                                                                                                  \
    [WEIGHT_F32] = {panels_f32, PANEL_MANY}, [WEIGHT_F16] = {panels_f16, PANEL_MANY},                                  \
    [WEIGHT_BF16] = {panels_bf16, PANEL_MANY}
