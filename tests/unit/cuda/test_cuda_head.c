/* The CUDA backend's head, from hidden states to logits, on the emulator (tests/emulator). It is compared with products
 * in double, and a row's bits must not depend on the number of rows in the call. SPECSCOPE_SEED=N chooses the numbers,
 * and a third of the shapes for the bits. */
#include <math.h>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/device_memory.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/requantise.h"
#include "tests/rigs/test.h"

enum { MAX_ROWS = 144, BLOCKS = 3 };

static float
balanced(void) /* returns a number in -1..1 */
{
    return (float)(2 * uniform() - 1);
}

static int
prepare(void **state)
{
    (void)state;
    seed = seed_or(1);
    return head_prepare(0) == cudaSuccess ? 0 : -1;
}

static void *
host_memory(size_t bytes)
{
    void *p = calloc(1, bytes);
    assert_non_null(p);
    return p;
}

/* ---- a head on the device ---- */

struct bench {
    uint32_t vocab, width, layers, ring;
    struct tensor head;
    float *norm, *hidden; /* (width), (ring, layers + 1, width) */
    struct dev_model sizes, *model;
    struct dev_kv_cache kv_cache;
    struct head_row *rows;
    void *owned[8]; /* memory of the device */
};

static struct tensor
random_tensor(enum weight_type type, uint32_t rows, uint32_t cols)
{
    float *x = host_memory(cols * sizeof *x);
    unsigned char *const data = host_memory(rows * tensor_row_bytes(type, cols));
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t k = 0; k < cols; k++)
            x[k] = balanced();
        requantise_row(type, x, cols, data + r * tensor_row_bytes(type, cols));
    }
    free(x);
    return (struct tensor){.data = data, .type = type, .rows = rows, .cols = cols};
}

static void
open_bench(struct bench *b, enum weight_type type, uint32_t vocab, uint32_t width)
{
    const bool exact = type == WEIGHT_F32;
    const size_t padded = (size_t)units_of(width) * UNIT;
    struct packing packing;
    *b = (struct bench){.vocab = vocab, .width = width, .layers = 2, .ring = MAX_ROWS};
    b->head = random_tensor(type, vocab, width);
    packing = pack_plain(&b->head, exact);
    const size_t quant_bytes = pack_quant_bytes(&packing) * packing.strips,
                 scale_bytes = pack_scale_bytes(&packing) * packing.strips;
    void *quants = host_memory(quant_bytes), *scales = host_memory(scale_bytes + 1);
    assert_true(pack_strips(&packing, 0, packing.strips, 1, quants, scales));

    b->norm = host_memory(width * sizeof *b->norm);
    const size_t n = (size_t)b->ring * (b->layers + 1) * width;
    b->hidden = host_memory(n * sizeof *b->hidden);
    for (uint32_t i = 0; i < width; i++)
        b->norm[i] = 1 + 0.5f * balanced();
    for (size_t i = 0; i < n; i++)
        b->hidden[i] = 3 * balanced();

    b->owned[0] = on_device(quants, quant_bytes);
    b->owned[1] = on_device(scales, scale_bytes + 1);
    b->owned[2] = on_device(b->norm, width * sizeof *b->norm);
    b->owned[3] = on_device(b->hidden, n * sizeof *b->hidden);
    b->owned[4] = take(MAX_ROWS * padded * (exact ? 4 : 2));
    b->owned[5] = take((size_t)MAX_ROWS * vocab * sizeof(float));
    b->owned[6] = take(MAX_ROWS * sizeof(struct head_row));
    b->sizes = (struct dev_model){.n_layers = b->layers,
                                  .width = width,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .head_dim = 16,
                                  .vocab = vocab,
                                  .rms_eps = 1e-5f,
                                  .exact = exact,
                                  .head = {.quants = b->owned[0],
                                           .scales = b->owned[1],
                                           .type = packing.type,
                                           .rows = vocab,
                                           .cols = width,
                                           .strips = packing.strips,
                                           .units = packing.units},
                                  .final_norm = {.weight = b->owned[2]}};
    b->owned[7] = b->model = on_device(&b->sizes, sizeof b->sizes);
    b->kv_cache = (struct dev_kv_cache){.ring = b->ring,
                                        .head_rows = MAX_ROWS,
                                        .hidden = b->owned[3],
                                        .head_normed = b->owned[4],
                                        .head_logits = b->owned[5]};
    b->rows = b->owned[6];
    free(packing.source);
    free(quants);
    free(scales);
}

static void
close_bench(struct bench *b)
{
    for (size_t i = 0; i < sizeof b->owned / sizeof *b->owned; i++)
        assert_int_equal(cudaFree(b->owned[i]), cudaSuccess);
    free((void *)b->head.data);
    free(b->norm);
    free(b->hidden);
}

static struct head_row
row_of(uint32_t ring)
{
    return (struct head_row){.ring = ring, .layer = ring * 7 % 3, .temperature = 1, .final = -1};
}

/* Computes logits of ring entries first..first+n, each at a different layer, into out (n, vocab). */
static void
run(struct bench *b, uint32_t first, uint32_t n, float *out)
{
    struct head_row rows[MAX_ROWS];
    for (uint32_t i = 0; i < n; i++)
        rows[i] = row_of(first + i);
    send(b->rows, rows, n * sizeof *rows);
    const struct head_args a = {.model = b->model, .kv_cache = b->kv_cache, .rows = b->rows, .n = n, .blocks = BLOCKS};
    assert_int_equal(launch_head(a, &b->sizes, 0), cudaSuccess);
    fetch(out, b->kv_cache.head_logits, (size_t)n * b->vocab * sizeof *out);
}

static void
naive_logits(const struct bench *b, uint32_t ring, double *out)
{
    const float *h = b->hidden + ((size_t)ring * (b->layers + 1) + row_of(ring).layer) * b->width;
    double square = 0;
    for (uint32_t i = 0; i < b->width; i++)
        square += (double)h[i] * (double)h[i];
    const double scale = 1 / sqrt(square / b->width + (double)b->sizes.rms_eps);
    float *w = host_memory(b->width * sizeof *w);
    for (uint32_t v = 0; v < b->vocab; v++) {
        tensor_row(&b->head, v, w);
        out[v] = 0;
        for (uint32_t i = 0; i < b->width; i++)
            out[v] += (double)w[i] * (double)h[i] * scale * (double)b->norm[i];
    }
    free(w);
}

/* ---- tests ---- */

struct shape {
    enum weight_type type;
    uint32_t vocab, width;
};

static const struct shape shapes[] = {{WEIGHT_F16, 100, 96},   {WEIGHT_F16, 272, 544},   {WEIGHT_F16, 16, 32},
                                      {WEIGHT_BF16, 33, 608},  {WEIGHT_Q8_0, 150, 576},  {WEIGHT_Q8_0, 129, 1056},
                                      {WEIGHT_Q4_0, 145, 544}, {WEIGHT_Q4_K, 147, 1280}, {WEIGHT_Q6_K, 130, 768},
                                      {WEIGHT_F32, 45, 100}};

/* Returns the relative error of the norm. */
static double
error_of(const struct bench *b, uint32_t ring, const float *got)
{
    double *expected = host_memory(b->vocab * sizeof *expected), off = 0, all = 0;
    naive_logits(b, ring, expected);
    for (uint32_t v = 0; v < b->vocab; v++) {
        off += pow((double)got[v] - expected[v], 2);
        all += pow(expected[v], 2);
    }
    free(expected);
    return sqrt(off / all);
}

TEST(logits_are_the_product_of_the_head_and_the_normed_state)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct bench b;
        open_bench(&b, shapes[s].type, shapes[s].vocab, shapes[s].width);
        float *got = host_memory((size_t)MAX_ROWS * b.vocab * sizeof *got);
        double worst = 0;
        run(&b, 0, MAX_ROWS, got);
        for (uint32_t i = 0; i < MAX_ROWS; i++)
            worst = fmax(worst, error_of(&b, i, got + (size_t)i * b.vocab));
        print_message("type %d, %u x %u: %.2g\n", (int)b.head.type, b.vocab, b.width, worst);
        assert_less(worst, b.sizes.exact ? 1e-5 : 1e-3);
        free(got);
        close_bench(&b);
    }
}

TEST(a_rows_logits_have_the_same_bits_in_every_call)
{
    const uint32_t counts[] = {2, 8, 9, 17, 32, 33, 64, 65, 130};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct bench b;
        if (getenv("SPECSCOPE_LONG") == NULL && (s + seed) % 3 != 0)
            continue;
        open_bench(&b, shapes[s].type, shapes[s].vocab, shapes[s].width);
        const size_t row = b.vocab * sizeof(float);
        float *all = host_memory(MAX_ROWS * row), *got = host_memory(MAX_ROWS * row);
        run(&b, 0, MAX_ROWS, all);
        for (uint32_t i = 0; i < MAX_ROWS; i += 11) {
            run(&b, i, 1, got);
            assert_memory_equal(got, all + (size_t)i * b.vocab, row);
        }
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const uint32_t first = MAX_ROWS - counts[c];
            run(&b, first, counts[c], got);
            assert_memory_equal(got, all + (size_t)first * b.vocab, counts[c] * row);
        }
        free(all);
        free(got);
        close_bench(&b);
    }
}

FIXTURE(prepare, NULL);
