/* Acceptance by position: the rates of rounds that were counted by hand, and identities that hold for any rounds. */
#include <math.h>

#include "engine/events/positions.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

static struct round_event
round_of(uint32_t verified, uint32_t accepted)
{
    return (struct round_event){.verified = verified, .accepted = accepted, .emitted = accepted + 1};
}

TEST(rates_are_those_of_rounds_counted_by_hand)
{
    static const uint32_t rounds[][2] = {{3, 3}, {3, 1}, {3, 0}, {1, 1}, {0, 0}};
    struct positions p = {0};
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        const struct round_event r = round_of(rounds[i][0], rounds[i][1]);
        positions_round(&p, &r);
    }
    assert_int_equal(positions_count(&p), 3);
    static const double conditional[] = {3.0 / 4, 1.0 / 2, 1}, unconditional[] = {3.0 / 5, 1.0 / 5, 1.0 / 5};
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fabs(positions_conditional(&p, i).value - conditional[i]) < 1e-12);
        assert_true(fabs(positions_unconditional(&p, i).value - unconditional[i]) < 1e-12);
    }
    assert_true(fabs(positions_conditional(&p, 0).se - sqrt(0.75 * 0.25 / 4)) < 1e-12);
    assert_true(isnan(positions_conditional(&p, 3).value));
}

TEST(unconditional_rates_never_rise_and_add_up_to_the_tokens_of_a_round)
{
    for (int trial = 0; trial < 200; trial++) {
        struct positions all = {0};
        double emitted = 0, rounds = 0, sum = 1;
        for (uint32_t prompt = 0; prompt < 1 + random_below(4); prompt++) {
            struct positions p = {0};
            for (uint32_t i = 0; i < 1 + random_below(30); i++) {
                const uint32_t verified = random_below(POSITIONS), accepted = random_below(verified + 1);
                const struct round_event r = round_of(verified, accepted);
                positions_round(&p, &r);
                emitted += r.emitted;
                rounds++;
            }
            positions_add(&all, &p);
        }
        for (uint32_t i = 0; i < positions_count(&all); i++) {
            const double u = positions_unconditional(&all, i).value;
            assert_true(i == 0 || u <= positions_unconditional(&all, i - 1).value + 1e-12);
            sum += u;
        }
        assert_true(fabs(sum - emitted / rounds) < 1e-9);
    }
}

TEST(prompts_are_the_samples_of_unconditional_rates)
{
    struct positions all = {0}, a = {0}, b = {0};
    const struct round_event good = round_of(1, 1), bad = round_of(1, 0);
    for (int i = 0; i < 100; i++) {
        positions_round(&a, &good);
        positions_round(&b, &bad);
    }
    positions_add(&all, &a);
    positions_add(&all, &b);
    assert_true(fabs(positions_unconditional(&all, 0).value - 0.5) < 1e-12);
    assert_true(fabs(positions_unconditional(&all, 0).se - 0.5) < 1e-12); /* of 200 rounds: 0.035 */
}

TEST_SEED(seed, 3);
