/* Synthetic weights that the device makes equal those that the host packs, bit for bit. */

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/tensor.h"
#include "tests/rigs/device_memory.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

static struct tensor
random_tensor(struct synthetic *p, enum weight_type type, uint32_t rows, uint32_t cols)
{
    *p = (struct synthetic){.key = synthetic_key(seed, random_below(1000)),
                            .scale = synthetic_scale((double)(1 + random_below(1000)) / 30000),
                            .faint_row = random_below(rows + 9),
                            .faint_col = random_below(cols + 9)};
    return (struct tensor){.type = type, .rows = rows, .cols = cols, .synthetic = p};
}

/* Compares a matrix from the device with one from the host. */
static void
assert_same(struct packing *p)
{
    const size_t quant = pack_quant_bytes(p) * p->strips, scale = pack_scale_bytes(p) * p->strips;
    unsigned char *want = malloc(quant + 1), *want_scales = malloc(scale + 1), *got = malloc(quant + scale + 1);
    assert_non_null(want);
    assert_non_null(want_scales);
    assert_non_null(got);
    assert_true(pack_strips(p, 0, p->strips, 2, want, want_scales));
    struct synthetic_args a = {.parts = {*p->parts[0]->synthetic},
                               .from = {p->parts[0]->type},
                               .first = p->parts[0]->rows,
                               .to = {.quants = take(quant),
                                      .scales = scale > 0 ? take(scale) : NULL,
                                      .type = p->type,
                                      .rows = p->rows,
                                      .cols = p->cols,
                                      .strips = p->strips,
                                      .units = p->units}};
    if (p->source != NULL)
        a.to.source = on_device(p->source, (size_t)p->strips * STRIP * sizeof *p->source);
    if (p->n_parts == 2) {
        a.parts[1] = *p->parts[1]->synthetic;
        a.from[1] = p->parts[1]->type;
    }
    must(launch_synthetic(a, NULL));
    must(cudaDeviceSynchronize());
    fetch(got, a.to.quants, quant);
    if (memcmp(got, want, quant) != 0)
        fail_msg("seed %llu: %s, %u by %u: other bits", (unsigned long long)seed, tensor_type_name(p->type), p->rows,
                 p->cols);
    if (scale > 0) {
        fetch(got, a.to.scales, scale);
        assert_memory_equal(got, want_scales, scale);
    }
    must(cudaFree((void *)a.to.quants));
    if (a.to.scales != NULL)
        must(cudaFree((void *)a.to.scales));
    if (a.to.source != NULL)
        must(cudaFree((void *)a.to.source));
    free(want);
    free(want_scales);
    free(got);
    free(p->source);
}

static const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8_0};
#define TYPES (sizeof types / sizeof *types)

TEST(the_device_makes_the_bytes_that_the_host_packs)
{
    for (uint32_t i = 0; i < 48; i++) {
        const enum weight_type type = types[i % TYPES];
        const uint32_t cols = type == WEIGHT_Q8_0 ? 32 * (1 + random_below(4)) : 1 + random_below(120),
                       head_dim = 2 * (1 + random_below(20));
        const bool exact = i / TYPES % 4 == 3;
        struct synthetic first, second;
        struct packing p;
        struct tensor a = random_tensor(&first, type, 1 + random_below(50), cols), b;
        switch (i / TYPES % 3) {
        case 0: p = pack_plain(&a, exact); break;
        case 1:
            a.rows = head_dim * (1 + random_below(3));
            p = pack_heads(&a, head_dim, head_dim, i % 2 ? ROPE_HALVES : ROPE_ADJACENT, exact);
            break;
        default:
            b = random_tensor(&second, random_below(3) ? type : WEIGHT_F16, a.rows, cols);
            p = pack_gate_up(&a, &b, exact);
        }
        assert_same(&p);
    }
}

TEST_SEED(seed, 1);
