/* Races on simulated times: the candidates of a heat, the held-out prompts, and the rate of correct verdicts. */
#include "engine/tune/race.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

enum { PROMPTS = 36, RACES = 100 };

static char texts[PROMPTS][16];
static struct race_prompt prompts[PROMPTS];

static int
name_prompts(void **state)
{
    static const char *const categories[] = {"tales", "sums", "lists"};
    (void)state;
    for (uint32_t i = 0; i < PROMPTS; i++) {
        snprintf(texts[i], sizeof texts[i], "prompt %u", i);
        prompts[i] = (struct race_prompt){texts[i], categories[i % 3]};
    }
    return 0;
}

/* Times of candidates. The first one's time is 1, and the others are speed[i] times as fast, within 5% for each prompt.
 * A run's time varies by another 3%. */
struct times {
    double speed[RACE_CANDIDATES], of_prompt[RACE_CANDIDATES][PROMPTS];
};

static void
draw_times(struct times *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < PROMPTS; p++)
            t->of_prompt[i][p] = exp(0.05 * (double)gaussian()) / t->speed[i];
}

static void
run(struct race *r, const struct times *t)
{
    uint32_t candidate, prompt;
    while (race_next(r, &candidate, &prompt) != RACE_OVER)
        race_took(r, t->of_prompt[candidate][prompt] * exp(0.03 * (double)gaussian()));
}

static struct race *
open_blocks(uint32_t candidates, uint32_t block, uint64_t with)
{
    struct race *r;
    struct err err;
    assert_true(race_open(&r, prompts, PROMPTS, with, &err) && race_begin(r, candidates, block, &err));
    return r;
}

static struct race *
open_race(uint32_t candidates, uint64_t with)
{
    return open_blocks(candidates, 1, with);
}

static struct comparison
race_of(struct times *t, uint32_t n, uint64_t with, uint32_t *winner)
{
    struct race *r = open_race(n, with);
    draw_times(t, n);
    run(r, t);
    *winner = r->finalist[RACE_WINNER];
    const struct comparison c = race_held_out(r, *winner, r->finalist[RACE_RUNNER_UP], NULL);
    race_close(r);
    return c;
}

TEST(identical_candidates_seldom_differ)
{
    uint32_t different = 0, winner;
    for (uint64_t i = 0; i < RACES * 10; i++) {
        struct times t = {.speed = {1, 1}};
        different += race_of(&t, 2, i, &winner).verdict != DIFFERENCE_NOISE;
    }
    print_message("%u of %d verdicts\n", different, RACES * 10);
    assert_at_most(different, RACES * 10 * 5 / 100 + 20); /* 5%, and three standard errors of the count */
}

TEST(a_candidate_that_is_a_tenth_faster_is_found)
{
    uint32_t found = 0, winner;
    for (uint64_t i = 0; i < RACES; i++) {
        struct times t = {.speed = {1, 1.1}};
        const struct comparison c = race_of(&t, 2, i, &winner);
        found += winner == 1 && c.verdict == DIFFERENCE_MORE;
    }
    print_message("%u of %d\n", found, RACES);
    assert_at_least(found, RACES * 80 / 100);
}

TEST(the_best_of_many_wins_and_the_slow_ones_are_dropped)
{
    uint32_t close = 0, wrong = 0;
    for (uint64_t i = 0; i < RACES; i++) {
        struct times t = {.speed = {1}};
        struct race_standing all[RACE_CANDIDATES];
        for (uint32_t c = 1; c < 20; c++)
            t.speed[c] = 0.5 + 0.08 * c; /* the last speed is 2.02 */
        struct race *r = open_race(20, i);
        draw_times(&t, 20);
        run(r, &t);
        assert_int_equal(race_standings(r, all), 20);
        close += t.speed[r->finalist[RACE_WINNER]] > 1.97;
        for (uint32_t c = 0; c < 20; c++) {
            wrong += all[c].dropped > 0 && all[c].candidate == 19;
            assert_true(all[c].dropped > 0 || t.speed[all[c].candidate] > 1);
            if (all[c].dropped > 0)
                assert_at_least(all[c].dropped, RACE_HEATS);
            assert_true(c == 0 || all[c - 1].dropped == 0 || all[c].dropped <= all[c - 1].dropped);
        }
        assert_int_equal(race_held_out(r, r->finalist[RACE_WINNER], 0, NULL).verdict, DIFFERENCE_MORE);
        assert_greater(race_held_out(r, r->finalist[RACE_WINNER], 0, NULL).low, 1.7);
        race_close(r);
    }
    print_message("%u of %d winners are the best one, which was dropped %u times\n", close, RACES, wrong);
    assert_at_least(close, RACES * 85 / 100);
    assert_at_most(wrong, 2);
}

TEST(a_heat_is_one_prompt_for_each_candidate_left_in_alternating_order)
{
    struct race *r = open_race(6, seed);
    uint32_t order[2][6], candidate, prompt, first;
    for (uint32_t heat = 0; heat < 2; heat++) {
        for (uint32_t i = 0; i < 6; i++) {
            assert_int_equal(race_next(r, &candidate, &prompt), RACE_RUNS);
            first = i == 0 ? prompt : first;
            assert_int_equal(prompt, first);
            order[heat][i] = candidate;
            race_took(r, 1 + uniform());
        }
        assert_int_equal(r->heat, heat + 1);
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 6; i++) {
        seen |= 1U << order[0][i];
        assert_int_equal(order[1][i], order[0][5 - i]);
    }
    assert_int_equal(seen, 63);
    race_close(r);
}

TEST(halving_keeps_the_faster_half_and_plain_decoding)
{
    enum { N = 9 };
    struct race *r = open_race(N, seed);
    struct race_standing all[RACE_CANDIDATES];
    uint32_t candidate, prompt, seen = 0;
    for (uint32_t i = 0; r->heat < RACE_HEATS; i++) {
        race_fit(r, 1);
        assert_int_equal(race_left(r), N);
        race_next(r, &candidate, &prompt);
        /* even candidates are faster than odd ones; prompts vary more, so the t-test drops no candidate */
        race_took(r, (candidate % 2 == 0 ? 1 : 1.1) * exp(gaussian()));
    }
    race_standings(r, all);
    const uint32_t before = race_left(r), left = (before + 1) / 2;
    race_fit(r, left * log2(left));
    assert_int_equal(race_left(r), left);
    bool kept[N] = {false};
    for (uint32_t i = 0; i < left; i++)
        kept[all[i].candidate] = true;
    race_next(r, &candidate, &prompt);
    while (r->heat == RACE_HEATS) {
        assert_true(kept[candidate] || candidate == 0);
        seen |= 1U << candidate;
        race_took(r, 1);
        race_next(r, &candidate, &prompt);
    }
    assert_true(seen & 1);
    for (uint32_t i = 0; i < N; i++)
        assert_true(!kept[i] || seen >> i & 1);
    race_close(r);
}

/* Many similar candidates and few runs: races that halve find faster winners than races in which all candidates run. */
TEST(halving_finds_the_faster_of_many_in_the_same_number_of_runs)
{
    enum { N = 40, RUNS = N * 6 };
    double won[2] = {0, 0};
    for (uint64_t i = 0; i < RACES; i++) {
        struct times t = {.speed = {1}};
        for (uint32_t c = 1; c < N; c++)
            t.speed[c] = exp(0.1 * (double)gaussian());
        draw_times(&t, N);
        for (uint32_t halved = 0; halved < 2; halved++) {
            struct race *r = open_race(N, i);
            uint32_t candidate, prompt;
            for (uint32_t runs = 0; race_next(r, &candidate, &prompt) == RACE_RUNS && runs < RUNS; runs++) {
                race_took(r, t.of_prompt[candidate][prompt] * exp(0.03 * (double)gaussian()));
                if (halved == 1)
                    race_fit(r, RUNS - runs);
            }
            race_finish_heats(r);
            won[halved] += log(t.speed[r->finalist[RACE_WINNER]]) / RACES;
            race_close(r);
        }
    }
    print_message("ln(speed) of the winner: %.4f, halved %.4f\n", won[0], won[1]);
    assert_greater(won[1], won[0]);
}

TEST(a_third_of_each_category_is_held_out)
{
    struct race *r = open_race(2, seed);
    bool in_heat[PROMPTS] = {false};
    uint32_t candidate, prompt, held[3] = {0};
    assert_int_equal(r->n_held, PROMPTS / 3);
    while (race_next(r, &candidate, &prompt) != RACE_OVER) {
        if (race_next(r, &candidate, &prompt) == RACE_RUNS) {
            in_heat[prompt] = true;
        } else {
            assert_false(in_heat[prompt]);
            held[prompt % 3] += candidate == 0;
        }
        race_took(r, 1 + 0.5 * uniform());
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(held[i], PROMPTS / 9 * RACE_PASSES);
    assert_int_equal(race_held_out(r, 0, 1, NULL).n, PROMPTS / 3);
    assert_int_equal(race_held_out(r, 0, 1, "sums").n, PROMPTS / 9);
    race_close(r);
}

/* A race that ends early has prompts of all categories. */
TEST(categories_alternate_in_heats_and_held_out_prompts)
{
    static const char *const categories[] = {"chat", "lists", "summaries", "sums"};
    enum { N = 40, CATEGORIES = 4 };
    struct race_prompt list[N];
    char words[N][16];
    struct race *r;
    struct err err;
    for (uint32_t i = 0; i < N; i++) {
        snprintf(words[i], sizeof words[i], "prompt %u", i);
        list[i] = (struct race_prompt){words[i], categories[i % CATEGORIES]};
    }
    for (uint64_t n = 0; n < 20; n++) {
        assert_ok(race_open(&r, list, N, n, &err), err);
        for (uint32_t i = 0; i < r->n_prompts / CATEGORIES; i++) {
            uint32_t seen = 0;
            for (uint32_t k = 0; k < CATEGORIES; k++)
                seen |= 1u << r->prompts[i * CATEGORIES + k].index % CATEGORIES;
            assert_int_equal(seen, (1u << CATEGORIES) - 1);
        }
        race_close(r);
    }
}

TEST(time_may_end_the_heats)
{
    struct race *r = open_race(4, seed);
    uint32_t candidate, prompt;
    enum race_phase phase;
    for (uint32_t i = 0; (phase = race_next(r, &candidate, &prompt)) == RACE_RUNS; i++) {
        if (i == 10)
            race_finish_heats(r);
        else
            race_took(r, candidate == 3 ? 0.5 : 1);
    }
    assert_int_equal(phase, RACE_HELD_OUT);
    assert_int_equal(r->finalist[RACE_WINNER], 3);
    while (race_next(r, &candidate, &prompt) == RACE_HELD_OUT)
        race_took(r, candidate == 3 ? 0.5 : 1);
    assert_near(race_held_out(r, 3, 0, NULL).value, 2, 1e-9);
    race_close(r);
}

/* ---- blocks of heats ---- */

TEST(a_block_has_all_runs_of_a_candidate_together_and_the_next_block_the_opposite_order)
{
    enum { N = 5, BLOCK = 4 };
    struct race *r = open_blocks(N, BLOCK, seed);
    uint32_t order[2][N], of_block[BLOCK] = {0}, candidate, prompt;
    for (uint32_t i = 0; i < 2 * N * BLOCK; i++) {
        const uint32_t block = i / (N * BLOCK), k = i % BLOCK;
        assert_int_equal(race_next(r, &candidate, &prompt), RACE_RUNS);
        if (k == 0)
            order[block][i % (N * BLOCK) / BLOCK] = candidate;
        if (i % (N * BLOCK) < BLOCK)
            of_block[k] = prompt;
        assert_int_equal(prompt, of_block[k]);
        assert_int_equal(candidate, order[block][i % (N * BLOCK) / BLOCK]);
        assert_int_equal(r->heat, block * BLOCK);
        race_took(r, 1 + uniform());
    }
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(order[1][i], order[0][N - 1 - i]);
    race_close(r);
}

/* Drift affects all alike: the places of a finalist have the same sum. */
TEST(each_pass_over_held_out_prompts_is_a_block_with_starts_of_its_own)
{
    enum { N = 4, BLOCK = 5 };
    for (uint64_t n = 0; n < 20; n++) {
        struct race *r = open_blocks(N, BLOCK, n);
        uint32_t candidate, prompt, changes = 0;
        while (race_next(r, &candidate, &prompt) == RACE_RUNS)
            race_took(r, exp(0.5 * (double)gaussian()));
        uint32_t places[N] = {0};
        race_limit_held_out(r, 7, 1);
        for (uint32_t before = N; race_next(r, &candidate, &prompt) == RACE_HELD_OUT; before = candidate) {
            changes += candidate != before;
            places[candidate] += candidate != before ? changes : 0;
            race_took(r, 1);
        }
        assert_int_equal(changes, 3 * RACE_PASSES);
        for (uint32_t i = 0; i < r->n_finalists; i++)
            assert_int_equal(places[r->finalist[i]], 15);
        assert_int_equal(r->finalist[RACE_BASE], 0);
        assert_int_equal(r->held_at, 7 * RACE_PASSES);
        race_close(r);
    }
}

/* A naive model: stores all times, and takes means of the logarithms of their ratios prompt by prompt. */
TEST(speeds_of_blocks_are_those_of_a_naive_model)
{
    enum { N = 3 };
    uint32_t compared = 0;
    for (uint32_t block = 1; block <= 36; block += 5) {
        double sum[2][N][PROMPTS] = {{{0}}};
        uint32_t runs[2][N][PROMPTS] = {{{0}}}, candidate, prompt;
        enum race_phase phase;
        struct race *r = open_blocks(N, block, block);
        while ((phase = race_next(r, &candidate, &prompt)) != RACE_OVER) {
            const double seconds = exp(0.3 * (double)gaussian());
            sum[phase == RACE_HELD_OUT][candidate][prompt] += log(seconds);
            runs[phase == RACE_HELD_OUT][candidate][prompt]++;
            race_took(r, seconds);
        }
        for (uint32_t c = 1; c < N; c++) {
            double mean[2] = {0, 0};
            uint32_t n[2] = {0, 0};
            for (uint32_t held = 0; held < 2; held++)
                for (uint32_t p = 0; p < PROMPTS; p++) {
                    if (runs[held][c][p] == 0)
                        continue;
                    /* a dropped candidate has fewer heats than plain decoding, in no known part of its sums */
                    mean[held] += (sum[held][0][p] - sum[held][c][p]) / runs[held][c][p];
                    n[held] += runs[held][0][p] == runs[held][c][p];
                }
            if (n[0] == r->n_prompts)
                assert_near(race_speed(r, c, NULL).value, exp(mean[0] / n[0]), 1e-9);
            if (n[1] == r->n_held)
                assert_near(race_held_out(r, c, 0, NULL).value, exp(mean[1] / n[1]), 1e-9);
            compared += n[0] == r->n_prompts ? 1 : 0;
            compared += n[1] == r->n_held ? 1 : 0;
        }
        race_close(r);
    }
    assert_at_least(compared, 20);
}

struct machine {
    double slower; /* after 100 runs */
    double start;  /* standard deviation of the logarithm of a start's speed */
};

/* Runs a race of equal candidates in blocks on such a machine. Adds the logarithm of the speed of the winner ÷ that of
 * the runner-up to *favour, and the number of dropped candidates to *dropped. Returns whether there is a verdict on
 * them. */
static bool
race_on(const struct machine *m, uint32_t candidates, uint32_t block, uint64_t with, double *favour, uint32_t *dropped)
{
    struct times t;
    struct race *r = open_blocks(candidates, block, with);
    uint32_t candidate, prompt, before = candidates;
    double start = 0;
    for (uint32_t i = 0; i < candidates; i++)
        t.speed[i] = 1;
    draw_times(&t, candidates);
    for (uint32_t runs = 0; race_next(r, &candidate, &prompt) != RACE_OVER; runs++) {
        start = candidate != before ? m->start * (double)gaussian() : start;
        before = candidate;
        race_took(r, t.of_prompt[candidate][prompt] * exp(0.03 * (double)gaussian() + start + m->slower * runs / 100));
    }
    for (uint32_t i = 0; i < candidates; i++)
        *dropped += r->of[i].dropped > 0;
    const struct comparison c = race_held_out(r, r->finalist[RACE_WINNER], r->finalist[RACE_RUNNER_UP], NULL);
    *favour += log(c.value);
    race_close(r);
    return c.verdict != DIFFERENCE_NOISE;
}

TEST(equal_candidates_in_blocks_seldom_differ_also_on_a_machine_that_slows_down_and_with_starts_of_unequal_speed)
{
    enum { N = 1000 };
    static const uint32_t blocks[] = {2, 6, 12};
    static const struct machine machines[] = {{0, 0}, {0.05, 0}, {0.3, 0}, {0, 0.02}, {0, 0.1}, {0.05, 0.1}};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
            for (uint32_t candidates = 2; candidates < 8; candidates += 5) {
                uint32_t different = 0, dropped = 0;
                double favour = 0;
                for (uint64_t i = 0; i < N; i++)
                    different += race_on(&machines[m], candidates, blocks[b], seed + i, &favour, &dropped);
                print_message("%u candidates, blocks of %u, %.0f%% slower after 100 runs, starts ±%.0f%%: "
                              "%u of %d verdicts, %u dropped, mean ln(speed) %.4f\n",
                              candidates, blocks[b], machines[m].slower * 100, machines[m].start * 100, different, N,
                              dropped, favour / N);
                assert_at_most(different, N * 5 / 100 + 20); /* 5%, and three standard errors of the count */
                if (candidates > 2) /* the places of two have unequal means; no verdict comes of it */
                    assert_near(favour / N, 0, 0.01);
            }
}

TEST(a_candidate_in_blocks_that_is_a_tenth_faster_is_found_in_spite_of_unequal_starts)
{
    uint32_t found = 0;
    for (uint64_t i = 0; i < RACES; i++) {
        struct times t = {.speed = {1, 1.1, 0.9}};
        struct race *r = open_blocks(3, 6, i);
        uint32_t candidate, prompt, before = 3;
        double start = 0;
        draw_times(&t, 3);
        while (race_next(r, &candidate, &prompt) != RACE_OVER) {
            start = candidate != before ? 0.02 * (double)gaussian() : start;
            before = candidate;
            race_took(r, t.of_prompt[candidate][prompt] * exp(0.03 * (double)gaussian() + start));
        }
        found += race_held_out(r, 1, 0, NULL).verdict == DIFFERENCE_MORE;
        race_close(r);
    }
    print_message("%u of %d\n", found, RACES);
    assert_at_least(found, RACES * 75 / 100);
}

TEST(too_few_prompts_are_refused)
{
    struct race *r;
    struct err err;
    assert_false(race_open(&r, prompts, RACE_PROMPTS - 1, 1, &err));
    assert_int_equal(err.kind, ERR_USAGE);
}

TEST_SEED(seed, 7);
FIXTURE(name_prompts, NULL);
