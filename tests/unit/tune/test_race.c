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
open_race(uint32_t candidates, uint64_t with)
{
    struct race *r;
    struct err err;
    assert_true(race_open(&r, prompts, PROMPTS, with, &err) && race_begin(r, candidates, &err));
    return r;
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

TEST(too_few_prompts_are_refused)
{
    struct race *r;
    struct err err;
    assert_false(race_open(&r, prompts, RACE_PROMPTS - 1, 1, &err));
    assert_int_equal(err.kind, ERR_USAGE);
}

TEST_SEED(seed, 7);
FIXTURE(name_prompts, NULL);
