/* Paths over several splits of attention (kernels/cuda/device/attention.cuh) in a whole backend. For a prompt's rows,
 * one block walks the splits of many rows at a time; for few rows, different blocks compute the splits and merge them
 * in device memory. Both must give the same bits, and agree with the CPU. SPECSCOPE_SEED=N chooses weights, tokens and
 * one shape, exact or in F16. SPECSCOPE_LONG=1 runs all shapes. */
#include <math.h>

#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum {
    SPLIT = 512,                /* positions */
    POSITIONS = 2 * SPLIT + 70, /* in three splits */
    CHUNK = 64,                 /* rows of the prompt in a forward pass */
    ALIKE = 2 * SPLIT - CHUNK,  /* positions that are read once, in whole chunks */
    LAYERS = 1,
    WIDTH = 48,
    VOCAB = 300
};

static const struct naive_shape shapes[] = {
    RIG_SHAPE(LAYERS, WIDTH, 4, 2, 12, 64, VOCAB, .type = WEIGHT_F16),
    RIG_SHAPE(LAYERS, WIDTH, 2, 1, 24, 64, VOCAB, .type = WEIGHT_F16, .window = 600),
};
static uint64_t seed;

/* Reads n tokens from position `first` on in one forward pass. Earlier positions are the trunk. */
static void
read_chunk(const struct rig *r, struct kv_cache *kv_cache, const slot_t *slots, const token_t *tokens, uint32_t first,
           uint32_t n)
{
    struct row rows[CHUNK];
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (struct row){
            .token = tokens[first + i], .slot = slots[first + i], .ring = first + i, .n_trunk = first, .n_tail = i + 1};
    assert_true(r->ops->embed(kv_cache, rows, n));
    assert_true(r->ops->step(
        kv_cache, &(struct forward_pass){.rows = rows, .n = n, .tails = slots + first, .n_tails = n, .to = LAYERS}));
    assert_true(r->ops->trunk(kv_cache, 0, first, slots + first, n));
}

struct chunks {
    const uint32_t *sizes; /* (n), the sizes of chunks in turn */
    uint32_t n;
};

/* Computes the hidden states (POSITIONS, WIDTH) after the last layer, for each of `ways` to cut the positions from
 * ALIKE on into chunks. */
static void
read_all(const struct backend_ops *ops, const struct naive_shape *shape, bool exact, const struct chunks *chunks,
         size_t ways, float *const *hidden)
{
    static token_t tokens[POSITIONS];
    static slot_t slots[POSITIONS];
    const struct kv_cache_desc d = {
        .slots = POSITIONS, .ring = POSITIONS, .seqs = 1, .trunk = POSITIONS, .max_rows = CHUNK, .max_probes = 1};
    struct err err = {.kind = ERR_NONE};
    struct kv_cache *kv_cache = NULL;
    struct rig r;
    rig_open(&r, ops, shape, seed, &(struct backend_options){.threads = 1, .gpu = -1, .exact = exact});
    assert_ok(ops->kv_cache(r.weights, &d, &kv_cache, &err), err);
    for (uint32_t i = 0; i < POSITIONS; i++) {
        tokens[i] = (token_t)rig_random(&r, VOCAB);
        slots[i] = (slot_t)((uint64_t)i * 101 % POSITIONS);
    }
    for (uint32_t at = 0; at < ALIKE; at += CHUNK) {
        read_chunk(&r, kv_cache, slots, tokens, at, CHUNK);
        assert_ok(ops->wait(kv_cache, &err), err);
    }
    for (size_t way = 0; way < ways; way++) {
        for (uint32_t at = ALIKE, turn = 0; at < POSITIONS;) {
            const uint32_t wanted = chunks[way].sizes[turn++ % chunks[way].n], left = POSITIONS - at;
            read_chunk(&r, kv_cache, slots, tokens, at, wanted < left ? wanted : left);
            at += wanted < left ? wanted : left;
            assert_ok(ops->wait(kv_cache, &err), err);
        }
        for (uint32_t i = 0; i < POSITIONS; i++)
            assert_true(ops->read_hidden(kv_cache, i, LAYERS, hidden[way] + (size_t)i * WIDTH));
        assert_ok(ops->wait(kv_cache, &err), err);
    }
    ops->drop(kv_cache);
    rig_close(&r);
}

TEST(a_late_row_has_the_same_bits_however_it_was_computed)
{
    NEEDS_CUDA;
    static float whole[POSITIONS * WIDTH], cut[POSITIONS * WIDTH], on_cpu[POSITIONS * WIDTH];
    static const uint32_t prompt[] = {CHUNK}, rows[] = {1, 8, 33, 2, 20, 32};
    static const struct chunks ways[] = {{prompt, 1}, {rows, sizeof rows / sizeof *rows}};
    const bool every = !cuda_is_emulated() || getenv("SPECSCOPE_LONG") != NULL;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int exact = 0; exact < 2; exact++) {
            if (!every && seed % 4 != 2 * s + (size_t)exact)
                continue;
            read_all(cuda, &shapes[s], exact > 0, ways, 2, (float *const[]){whole, cut});
            assert_memory_equal(whole, cut, sizeof whole);
            read_all(&cpu_backend, &shapes[s], true, ways, 1, (float *const[]){on_cpu});
            double apart = 0, all = 0;
            for (size_t i = (size_t)SPLIT * WIDTH; i < (size_t)POSITIONS * WIDTH; i++) {
                apart += pow((double)whole[i] - (double)on_cpu[i], 2);
                all += pow((double)on_cpu[i], 2);
            }
            if (!(sqrt(apart / all) < (exact > 0 ? 1e-5 : 0.01)))
                fail_msg("shape %zu, %s: %g apart from the CPU", s, exact > 0 ? "exact" : "F16", sqrt(apart / all));
        }
}

TEST_SEED(seed, 1);
