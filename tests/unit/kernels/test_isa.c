/* Compares the kernels of every instruction set with the portable ones and with sums in double precision. */
#include <unistd.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/repack.h"
#include "kernels/tensor.h"
#include "tests/rigs/isa_checks.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t seed;

TEST(every_usable_instruction_set_follows_the_formulas)
{
    int tables = 0;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        if (cpu_isas[i]->usable()) {
            assert_int_equal(isa_checks(cpu_isas[i], seed), 0);
            tables++;
        }
    assert_greater(tables, 0);
}

TEST(auto_takes_the_first_usable_table)
{
    struct err err;
    size_t best = 0;
    while (!cpu_isas[best]->usable())
        best++;
    assert_ptr_equal(cpu_isa_choose(NULL, &err), cpu_isas[best]);
    assert_ptr_equal(cpu_isa_choose("auto", &err), cpu_isas[best]);
    assert_ptr_equal(cpu_isa_choose(cpu_isas[best]->name, &err), cpu_isas[best]);
    assert_ptr_equal(cpu_isa_choose("reference", &err), &cpu_isa_reference);
}

TEST(an_unknown_instruction_set_is_a_usage_error)
{
    struct err err = {.kind = ERR_NONE};
    assert_null(cpu_isa_choose("mmx", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, "mmx");
    for (size_t i = 0; cpu_isas[i] != NULL; i++) /* the message names all instruction sets of this build */
        assert_contains(err.text, cpu_isas[i]->name);
}

/* Integer dot products are exact, and all other operations have the same order. So all vector tables give the same
 * bits, for one row and for many. */
TEST(products_with_blocks_are_the_same_bits_on_all_vector_instruction_sets)
{
    enum { COLS = 512, ROWS = 48, N = 37, MOST = COLS * 2 };
    static unsigned char rows[ROWS * MOST], q[ROWS * MOST], scale[ROWS * MOST];
    static float x[N * COLS], y[N * ROWS], first[N * ROWS];
    static struct act_block acts[N * (COLS / Q8_BLOCK + 1)];
    srand(7);
    for (size_t i = 0; i < N * COLS; i++)
        x[i] = (float)(rand() % 1000) / 100 - 5;
    bool any = false;
    for (enum weight_type type = WEIGHT_Q8_0; type < WEIGHT_TYPES; type++) {
        for (size_t i = 0; i < sizeof rows; i++) /* all of these bytes are finite as halves */
            rows[i] = (unsigned char)((rand() >> 7) & 0xbb);
        any = false;
        for (size_t i = 0; cpu_isas[i] != NULL; i++) {
            const struct cpu_isa *isa = cpu_isas[i];
            if (!isa->usable() || isa == &cpu_isa_reference)
                continue;
            memset(q, 0, sizeof q);
            memset(scale, 0, sizeof scale);
            const size_t row = tensor_row_bytes(type, COLS);
            for (size_t g = 0; g < ROWS / Q8_GROUP; g++)
                repack(type, rows + g * Q8_GROUP * row, Q8_GROUP, COLS, isa->q8_flip,
                       q + g * COLS / Q8_BLOCK * quant_bytes(type),
                       scale + g * COLS / tensor_block_values(type) * scale_bytes(type));
            const struct matrix m = {.type = type, .rows = ROWS, .cols = COLS, .q = q, .scale = scale};
            const struct acts a = {.q = acts, .cols = COLS, .stride = acts_stride(COLS)};
            for (size_t r = 0; r < N; r++)
                isa->quantise(x + r * COLS, COLS, acts + r * a.stride);
            multiply(isa, &m, &a, N, 0, ROWS, y, ROWS);
            if (any)
                assert_memory_equal(y, first, sizeof y);
            memcpy(first, y, sizeof y);
            any = true;
        }
    }
    if (!any)
        skip();
}

/* Fills weights in F16, BF16 or F32. The exponent's upper bit is clear, so all weights are finite. */
static void
fill_weights(uint16_t *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (uint16_t)((unsigned)rand() >> 3 & 0xbfffu);
}

/* There are more rows than share a panel and more inputs than a panel holds, and neither number is a multiple. */
TEST(products_of_many_rows_have_the_bits_of_a_row_alone)
{
    enum { OUTS = 53, N = 131, MOST = 2600 };
    static uint16_t w[OUTS * MOST * 2];
    static float x[N * MOST], y[N * OUTS], one[OUTS];
    const size_t cols[] = {7, 512, 1031, MOST}, rows[] = {24, 25, 96, 97, N};
    const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16};
    bool any = false;
    srand((unsigned)seed);
    fill_weights(w, sizeof w / sizeof *w);
    for (size_t i = 0; i < N * MOST; i++)
        x[i] = (float)(rand() % 2000 - 1000) / 333;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        for (size_t t = 0; cpu_isas[i]->usable() && t < 3; t++)
            for (size_t c = 0; c < 4; c++)
                for (size_t k = 0; k < 5 && cpu_isas[i]->many[types[t]].matmul != NULL; k++) {
                    struct matrix m = {.type = types[t], .rows = OUTS, .cols = (uint32_t)cols[c], .data = w};
                    struct acts all = {.x = x, .cols = m.cols};
                    const size_t first = (size_t)rand() % OUTS, last = first + 1 + (size_t)rand() % (OUTS - first);
                    any = true;
                    for (size_t j = 0; j < N * OUTS; j++)
                        y[j] = 77;
                    cpu_isas[i]->many[types[t]].matmul(&m, &all, rows[k], first, last, y, OUTS);
                    for (size_t r = 0; r < N; r++) {
                        struct acts alone = {.x = x + r * m.cols, .cols = m.cols};
                        for (size_t o = 0; o < OUTS; o++)
                            one[o] = 77;
                        if (r < rows[k])
                            cpu_isas[i]->matmul[types[t]](&m, &alone, 1, first, last, one, OUTS);
                        assert_memory_equal(one, y + r * OUTS, sizeof one);
                    }
                }
    if (!any)
        skip();
}

#define QEMU "{ command -v qemu-aarch64 || command -v qemu-aarch64-static; }"

/* Runs the same checks for NEON if there are a cross compiler and qemu. The two tables take seconds to compile, so the
 * seed chooses one to replace the other. SPECSCOPE_LONG=1 runs both in more rounds. */
TEST(neon_kernels_under_qemu)
{
#if defined(__aarch64__)
    skip(); /* the checks above ran natively */
#endif
    if (system("command -v aarch64-linux-gnu-gcc >/dev/null && " QEMU " >/dev/null && test -f kernels/cpu/neon.c") != 0)
        skip();
    char name[] = "/tmp/specscope-neon-XXXXXX", line[640], one[160];
    static const char *const tables[] = {"neon", "neondot"};
    const char *chosen = tables[seed % 2], *other = tables[(seed + 1) % 2];
    snprintf(one, sizeof one, "-DISA_ROUNDS=10 -Dcpu_isa_%s=cpu_isa_%s kernels/cpu/%s.c", other, chosen, chosen);
    int fd = mkstemp(name);
    assert_at_least(fd, 0);
    close(fd);
    snprintf(line, sizeof line,
             "aarch64-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -O1 -ffp-contract=off -I. -DISA_CHECKS_MAIN -static "
             "tests/rigs/isa_checks.c tests/rigs/block_scales.c kernels/cpu/isa.c kernels/cpu/reference.c "
             "%s kernels/cpu/repack.c kernels/tensor.c kernels/codebooks.c kernels/synthetic.c -lm -o %s && $(" QEMU
             ") %s",
             getenv("SPECSCOPE_LONG") != NULL ? "kernels/cpu/neon.c kernels/cpu/neondot.c" : one, name, name);
    int status = system(line);
    unlink(name);
    assert_int_equal(status, 0);
}

TEST_SEED(seed, 1);
