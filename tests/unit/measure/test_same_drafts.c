/* Same drafts: counts by hand, Fisher's test against an enumeration of all tables, and how often equal and unequal
 * drafters are told apart. */
#include <math.h>

#include "engine/measure/same_drafts.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

#define ROUNDS  40
#define PROMPTS 20
#define K       5
#define SHARE   0.8 /* of rounds with drafts */

static struct same_drafts
compare(const struct draft_pair *pairs, size_t n)
{
    struct same_drafts s;
    struct err err;
    assert_ok(same_drafts(&s, pairs, n, 7, &err), err);
    return s;
}

TEST(equal_rounds_are_equal_and_counted_by_position)
{
    static const struct draft_round rounds[] = {{3, 3}, {3, 1}, {0, 0}, {3, 0}};
    const struct draft_pair pair = {{rounds, rounds}, {4, 4}, 100};
    const struct same_drafts s = compare(&pair, 1);
    static const uint64_t n[] = {4, 3, 2, 1}, k[] = {3, 2, 1, 1};
    assert_true(s.equal);
    assert_int_equal(s.differs_from, -1);
    assert_int_equal(s.positions, 3);
    assert_int_equal(s.longest[1], 3);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i <= 3; i++) {
            assert_int_equal(s.n[side][i], n[i]);
            assert_int_equal(s.k[side][i], k[i]);
        }
}

TEST(the_first_difference_has_its_prompt_token_and_draft)
{
    static const struct draft_round same[] = {{2, 2}, {2, 2}}, a[] = {{3, 3}, {3, 2}}, b[] = {{3, 3}, {3, 0}};
    const struct draft_pair pairs[] = {{{same, same}, {2, 2}, 50}, {{a, b}, {2, 2}, 50}};
    const struct same_drafts s = compare(pairs, 2);
    assert_false(s.equal);
    assert_int_equal(s.prompt, 1);
    assert_int_equal(s.token, 5); /* one of the prompt's pass, four of the first round */
    assert_int_equal(s.draft, 1);
}

TEST(drafts_from_the_last_common_token_on_are_not_compared)
{
    /* here the last round is shortened by the limit of 6 tokens, there it is not */
    static const struct draft_round here[] = {{3, 2}, {1, 1}}, there[] = {{3, 2}, {3, 1}};
    const struct draft_pair pair = {{here, there}, {2, 2}, 6};
    const struct same_drafts s = compare(&pair, 1);
    assert_true(s.equal);
    assert_int_equal(s.n[0][1], 2);
    assert_int_equal(s.n[1][2], 1);
}

static double
choose(int n, int k)
{
    double c = 1;
    for (int i = 1; i <= k; i++)
        c = c * (n - k + i) / i;
    return c;
}

TEST(fishers_test_is_the_share_of_all_tables_with_so_few)
{
    for (int trial = 0; trial < 500; trial++) {
        const int n0 = (int)random_below(12), n1 = (int)random_below(12), k0 = (int)random_below((uint32_t)n0 + 1),
                  k1 = (int)random_below((uint32_t)n1 + 1);
        double few = 0, all = 0;
        for (int x = 0; x <= n1; x++) {
            const int other = k0 + k1 - x;
            const double tables = other < 0 || other > n0 ? 0 : choose(n1, x) * choose(n0, other);
            all += tables;
            few += x <= k1 ? tables : 0;
        }
        assert_near(same_drafts_fisher((uint64_t)k0, (uint64_t)n0, (uint64_t)k1, (uint64_t)n1), few / all, 1e-9);
    }
}

/* Draws a drafter's rounds: prompts differ in difficulty, which is the same for both sides. `share`: of the rounds that
 * have drafts. */
static void
draw_rounds(struct draft_round *r, double rate, double share)
{
    for (int i = 0; i < ROUNDS; i++) {
        r[i] = (struct draft_round){.drafted = uniform() < share ? K : 0};
        while (r[i].accepted < r[i].drafted && uniform() < rate)
            r[i].accepted++;
    }
}

struct calls {
    int fewer, more;
};

/* Counts the pairs, of `pairs`, that are called fewer and more. `share`: of the rounds there that have drafts. */
static struct calls
calls_of(int pairs, double factor, double share)
{
    static struct draft_round rounds[PROMPTS][2][ROUNDS];
    int fewer = 0, more = 0;
    for (int i = 0; i < pairs; i++) {
        struct draft_pair pair[PROMPTS];
        for (int p = 0; p < PROMPTS; p++) {
            const double rate = 0.3 + 0.6 * uniform();
            draw_rounds(rounds[p][0], rate, SHARE);
            draw_rounds(rounds[p][1], rate * factor, share);
            pair[p] = (struct draft_pair){{rounds[p][0], rounds[p][1]}, {ROUNDS, ROUNDS}, UINT32_MAX};
        }
        const struct same_drafts s = compare(pair, PROMPTS);
        fewer += s.differs_from >= 0 && s.fewer;
        more += s.differs_from >= 0 && !s.fewer;
    }
    return (struct calls){fewer, more};
}

TEST(drafters_of_equal_rates_differ_in_at_most_one_of_a_hundred_pairs)
{
    const int pairs = 200;
    const struct calls c = calls_of(pairs, 1, SHARE);
    printf("equal rates: %d of %d pairs are called fewer, %d more (seed %llu)\n", c.fewer, pairs, c.more,
           (unsigned long long)seed);
    assert_at_most(c.fewer + c.more, pairs / 100);
}

TEST(a_worse_and_a_better_drafter_are_found)
{
    const int pairs = 40;
    const struct calls worse = calls_of(pairs, 0.75, SHARE), better = calls_of(pairs, 1.1, SHARE);
    printf("rates 0.75 times as high: %d of %d pairs are called fewer, %d more; 1.1 times: %d and %d (seed %llu)\n",
           worse.fewer, pairs, worse.more, better.fewer, better.more, (unsigned long long)seed);
    assert_at_least(worse.fewer, pairs * 9 / 10);
    assert_int_equal(worse.more, 0);
    assert_at_least(better.more, 1);
    assert_int_equal(better.fewer, 0);
}

TEST(a_drafter_that_drafts_in_fewer_rounds_is_found)
{
    const int pairs = 40;
    const struct calls c = calls_of(pairs, 1, SHARE / 2);
    printf("half as many rounds with drafts: %d of %d pairs are called fewer, %d more (seed %llu)\n", c.fewer, pairs,
           c.more, (unsigned long long)seed);
    assert_int_equal(c.fewer, pairs);
}

TEST(drafts_in_every_other_round_differ_in_the_rounds_that_have_some)
{
    static struct draft_round here[2 * ROUNDS], there[2 * ROUNDS];
    struct draft_pair pairs[PROMPTS];
    for (int i = 0; i < 2 * ROUNDS; i++) {
        here[i] = (struct draft_round){K, 2};
        there[i] = (struct draft_round){i % 2 == 0 ? K : 0, i % 2 == 0 ? 2 : 0};
    }
    for (int p = 0; p < PROMPTS; p++)
        pairs[p] = (struct draft_pair){{here, there}, {2 * ROUNDS, 2 * ROUNDS}, UINT32_MAX};
    const struct same_drafts s = compare(pairs, PROMPTS);
    assert_int_equal(s.differs_from, 0);
    assert_true(s.fewer);
    assert_int_equal(s.n[1][0], PROMPTS * 2 * ROUNDS);
    assert_int_equal(s.k[1][0], PROMPTS * ROUNDS);
}
