/* Overlaps of distributions that the CUDA backend computes on the emulator (tests/emulator), compared with
 * kernels/cpu/sampling.h. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "kernels/cuda/device/launch.h"
#include "tests/rigs/sampling_bench.h"
#include "tests/rigs/test.h"

enum { PAIRS = 8 };

TEST(overlaps_are_those_of_the_reference)
{
    struct bench *b = *state;
    static float p[2 * PAIRS * MAX_VOCAB], z[MAX_VOCAB];
    static uint32_t order[MAX_VOCAB];
    const uint32_t vocabs[] = {1, 2, 31, 257, 1025, MAX_VOCAB};
    for (uint32_t k = 0; k < sizeof vocabs / sizeof *vocabs; k++) {
        const uint32_t n = vocabs[k];
        struct overlap_req requests[PAIRS];
        struct overlap got[PAIRS], *const out = (struct overlap *)((struct overlap_req *)b->arena + PAIRS);
        set_vocab(b, n);
        for (uint32_t i = 0; i < 2 * PAIRS; i++) {
            const struct sampling s = random_sampling(n);
            random_logits(z, n, (enum shape)(i % SHAPES));
            sampling_dist(z, n, &s, p + (size_t)i * n, order);
        }
        for (uint32_t i = 0; i < PAIRS; i++) /* the last pair is a distribution with itself */
            requests[i] = (struct overlap_req){
                .d = 2 * i, .c = i < PAIRS - 1 ? 2 * i + 1 : 2 * i, .token = (token_t)random_below(n), .out = &out[i]};
        send(b->kv_cache.dists_p, p, (size_t)2 * PAIRS * n * sizeof *p);
        send(b->arena, requests, sizeof requests);
        const struct overlap_args a = {.kv_cache = b->kv_cache, .requests = b->arena, .n = PAIRS};
        assert_int_equal(launch_overlap(a, 0), cudaSuccess);
        fetch(got, out, sizeof got);
        for (uint32_t i = 0; i < PAIRS; i++) {
            const struct overlap want =
                sampling_overlap(p + (size_t)requests[i].d * n, p + (size_t)requests[i].c * n, n, requests[i].token);
            if (fabsf(got[i].similarity - want.similarity) > 1e-6f ||
                fabsf(got[i].acceptance - want.acceptance) > 1e-6f)
                fail_msg("vocab %u, pair %u: similarity %.9g, acceptance %.9g instead of %.9g, %.9g", n, i,
                         (double)got[i].similarity, (double)got[i].acceptance, (double)want.similarity,
                         (double)want.acceptance);
        }
        assert_near(got[PAIRS - 1].similarity, 1, 1e-5f);
    }
}

FIXTURE(open_bench, close_bench);
