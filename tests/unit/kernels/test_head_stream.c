/* Predictions whose logits are not kept have the same bits as predictions whose logits are compared with the last
 * layer's, for any number of predictions. */
#include <math.h>

#include "kernels/cpu/kv_cache.h"
#include "tests/rigs/cpu_shapes.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define MOST 300 /* more than HEAD_ROWS */

static uint64_t seed; /* printed by main */

static void
ask(struct rig *r, const struct probe *probes, size_t n, struct prediction *out)
{
    memset(out, 0, n * sizeof *out);
    assert_true(r->ops->predict(r->kv_cache, probes, n, out));
    rig_wait(r);
}

static void
check_streams(struct rig *r, double bound)
{
    (void)bound;
    static struct probe probes[MOST];
    static struct prediction compared[MOST], alone[MOST], one;
    _Static_assert(MOST > HEAD_ROWS && HEAD_ROWS > HEAD_TILE, "several passes of either kind");
    rig_chain(r, RIG_NODES);
    rig_step_all(r);
    for (size_t i = 0; i < MOST; i++)
        probes[i] = (struct probe){.ring = rig_random(r, RIG_NODES),
                                   .layer = rig_random(r, r->desc->n_layers + 1),
                                   .temperature = rig_random(r, 2) == 0 ? 1 : 0.5f,
                                   .versus_final = true};
    ask(r, probes, MOST, compared);
    for (size_t i = 0; i < MOST; i++)
        probes[i].versus_final = false;
    ask(r, probes, MOST, alone);
    for (size_t i = 0; i < MOST; i++)
        assert_memory_equal(&alone[i], &compared[i], offsetof(struct prediction, kl_final));
    for (size_t n = 1; n < 70; n = 2 * n + 1) { /* any part of the probes */
        const size_t first = rig_random(r, MOST - 70);
        ask(r, probes + first, n, alone);
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(&alone[i], &compared[first + i], offsetof(struct prediction, kl_final));
    }
    ask(r, probes, 1, &one);
    assert_true(isnan(one.kl_final));
    assert_int_equal(one.rank_final, -1);
}

TEST(predictions_without_logits_have_the_bits_of_those_with)
{
    on_every_isa_and_shape(false, seed, check_streams);
}

TEST_SEED(seed, 1);
