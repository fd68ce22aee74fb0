/* Acceptance by position: rates of rounds that were counted by hand, and identities that hold for any rounds. */
#include <math.h>

#include "engine/measure/positions.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

static struct round_event
round_of(uint32_t verified, uint32_t accepted)
{
    return (struct round_event){.verified = verified, .accepted = accepted, .emitted = accepted + 1, .reject_rank = -1};
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
        assert_near(positions_conditional(&p, i).value, conditional[i], 1e-12);
        assert_near(positions_unconditional(&p, i).value, unconditional[i], 1e-12);
    }
    assert_near(positions_conditional(&p, 0).se, sqrt(0.75 * 0.25 / 4), 1e-12);
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
                const uint32_t verified = random_below(POSITIONS + 1), accepted = random_below(verified + 1);
                const struct round_event r = round_of(verified, accepted);
                positions_round(&p, &r);
                emitted += r.emitted;
                rounds++;
            }
            positions_add(&all, &p);
        }
        for (uint32_t i = 0; i < positions_count(&all); i++) {
            const double u = positions_unconditional(&all, i).value;
            if (i > 0)
                assert_at_most(u, positions_unconditional(&all, i - 1).value + 1e-12);
            sum += u;
        }
        assert_near(sum, emitted / rounds, 1e-9);
        assert_near(positions_tokens(&all).value, sum, 1e-9);
    }
}

/* An accepted end of text is followed by no bonus, and no rate includes the drafts after it. */
TEST(tokens_of_a_round_are_those_that_were_emitted)
{
    const struct round_event rounds[] = {round_of(3, 1),
                                         {.verified = 2, .accepted = 2, .emitted = 2, .cut = 3, .reject_rank = -1}};
    struct positions p = {0}, all = {0};
    positions_round(&p, &rounds[0]);
    positions_round(&p, &rounds[1]);
    assert_near(positions_tokens(&p).value, 2, 1e-12);
    assert_near(positions_tokens(&p).se, 0, 1e-12);
    assert_int_equal(positions_count(&p), 2);
    assert_near(positions_conditional(&p, 1).value, 0.5, 1e-12);
    positions_add(&all, &p);
    assert_near(positions_tokens(&all).value, 2, 1e-12);
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
    assert_near(positions_unconditional(&all, 0).value, 0.5, 1e-12);
    assert_near(positions_unconditional(&all, 0).se, 0.5, 1e-12); /* over 200 rounds it would be 0.035 */
}

/* By definition, the error is the deviation of a rate over samples of as many prompts, drawn with replacement. */
TEST(errors_over_prompts_are_those_of_resampled_prompts)
{
    enum { PROMPTS = 40, SAMPLES = 4000 };
    struct positions of[PROMPTS] = {0}, all = {0};
    for (uint32_t k = 0; k < PROMPTS; k++) {
        const uint32_t rounds = 10 + random_below(30), easy = random_below(5); /* prompts differ in difficulty */
        for (uint32_t i = 0; i < rounds; i++) {
            uint32_t accepted = 0;
            while (accepted < 4 && random_below(5) < easy)
                accepted++;
            const struct round_event r = round_of(4, accepted);
            positions_round(&of[k], &r);
        }
        positions_add(&all, &of[k]);
    }
    double sum[3] = {0}, squares[3] = {0};
    for (uint32_t s = 0; s < SAMPLES; s++) {
        double y[3] = {0}, x = 0;
        for (uint32_t k = 0; k < PROMPTS; k++) {
            const struct positions *p = &of[random_below(PROMPTS)];
            x += (double)p->rounds;
            y[0] += (double)p->accepted[0];
            y[1] += (double)p->accepted[2];
            y[2] += positions_tokens(p).value * (double)p->rounds;
        }
        for (int m = 0; m < 3; m++) {
            sum[m] += y[m] / x;
            squares[m] += y[m] / x * y[m] / x;
        }
    }
    const double se[] = {positions_unconditional(&all, 0).se, positions_unconditional(&all, 2).se,
                         positions_tokens(&all).se};
    for (int m = 0; m < 3; m++) {
        const double mean = sum[m] / SAMPLES, resampled = sqrt(squares[m] / SAMPLES - mean * mean);
        assert_greater(se[m], 0.85 * resampled);
        assert_less(se[m], 1.2 * resampled);
    }
}

TEST(one_prompts_tokens_have_the_error_of_its_rounds)
{
    struct positions p = {0};
    struct ratio_sums sums = {0};
    for (int i = 0; i < 50; i++) {
        const struct round_event r = round_of(POSITIONS, random_below(POSITIONS + 1));
        positions_round(&p, &r);
        ratio_add(&sums, r.emitted, 1);
    }
    assert_near(positions_tokens(&p).value, ratio_estimate(&sums).value, 1e-9);
    assert_near(positions_tokens(&p).se, ratio_estimate(&sums).se, 1e-9);
}

TEST(ranks_are_counted_at_rejections_alone)
{
    static const struct {
        uint32_t verified, accepted;
        int32_t rank;
    } rounds[] = {{3, 1, 2},  {3, 0, 2},  {3, 0, 3},  {3, 2, 0}, {3, 0, 11},
                  {3, 1, -1}, {3, 3, -1}, {0, 0, -1}, {2, 2, 4}};
    struct positions p = {0}, all = {0};
    char text[80];
    assert_string_equal(positions_ranks_text(&p, text, sizeof text), "");
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        struct round_event r = round_of(rounds[i].verified, rounds[i].accepted);
        r.reject_rank = rounds[i].rank;
        positions_round(&p, &r);
    }
    positions_add(&all, &p);
    assert_int_equal(positions_ranked(&all), 5);
    assert_string_equal(positions_ranks_text(&all, text, sizeof text), "2nd 40%, 3rd 20%, later 40%");
    assert_near(positions_rank(&all, 2).se, sqrt(0.4 * 0.6 / 5), 1e-12);
}

TEST_SEED(seed, 3);
