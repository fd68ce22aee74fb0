/* A sweep on a simulated session whose results depend only on the settings. A sweep that is interrupted and resumed
 * must give the same results as an uninterrupted one. */
#include "base/rng.h"
#include "tests/rigs/sweep_rig.h"
#include "tests/rigs/test.h"

#include <math.h>

#define GRID   "tau=0.3:0.9:0.15 d_max=3:8:1" /* 5 × 6 */
#define POINTS 30

/* Returns the results of all points as text. */
static char *
report(const struct knob_sweep *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    sweep_csv(s, out);
    fclose(out);
    return text;
}

SEGMENTS_TEST(every_point_is_run_once_and_knobs_come_back)
{
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, GRID, NULL, 0);
    assert_int_equal(m.sweep->n_points, POINTS);
    made_go_on(&m, UINT32_MAX);
    assert_int_equal(m.asked, POINTS);
    assert_int_equal(sweep_done(m.sweep), POINTS);
    assert_number_equal(m.tau, 0.55);
    assert_number_equal(m.d_max, 5);
    for (uint32_t i = 0; i < POINTS; i++) {
        char text[64], wanted[64];
        snprintf(wanted, sizeof wanted, "tau=%.9g d_max=%d", 0.3 + 0.15 * (i / 6), 3 + (int)(i % 6));
        sweep_text(m.sweep, i, text, sizeof text);
        assert_string_equal(text, wanted);
        const struct sweep_point *p = sweep_result(m.sweep, i);
        assert_int_equal(p->total.rounds, 6);
        assert_number_equal(p->total.draft_us, 6 * 500 + 2 * 30 + 6 * 20 * (3 + (int)(i % 6)));
        const struct estimates e = sweep_estimates(m.sweep, i);
        assert_int_equal(e.tokens_per_s.n, 6);
        const double us = p->total.draft_us + p->total.verify_us;
        assert_near(e.tokens_per_s.value, (double)p->total.emitted / us * 1e6, 1e-6);
        assert_greater(e.tokens_per_s.se, 0);
    }
    sweep_close(m.sweep);
}

SEGMENTS_TEST(cut_off_half_way_and_resumed_it_is_the_same)
{
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, GRID, NULL, 0);
    made_go_on(&m, UINT32_MAX);
    char *whole = report(m.sweep);
    sweep_close(m.sweep);
    for (uint32_t cut = 0; cut < POINTS; cut += 7) {
        const struct run_host host = made_host_of(&m);
        struct err err = {0};
        assert_ok(sweep_open(&m.sweep, &m.f->info, &err), err);
        made_sweep(&m, GRID, NULL, 0);
        m.asked = 0;
        made_go_on(&m, cut);
        made_run(&m, 3); /* half of the next run */
        assert_ok(sweep_stop(m.sweep, &host, &err), err);
        assert_false(sweep_running(m.sweep));
        assert_int_equal(sweep_done(m.sweep), cut);
        assert_number_equal(m.tau, 0.55);
        assert_number_equal(m.d_max, 5);
        made_emit_round(&m, 1); /* the interrupted run continues without the sweep */
        made_emit_control(&m, "end", "", "tokens");
        made_sweep(&m, GRID, NULL, 0);
        made_emit_round(&m, 1); /* neither does a run before the sweep resumes */
        made_go_on(&m, UINT32_MAX);
        assert_int_equal(m.asked, POINTS + 1); /* the interrupted point ran twice */
        char *again = report(m.sweep);
        assert_string_equal(again, whole);
        free(again);
        sweep_close(m.sweep);
    }
    free(whole);
}

/* Like made_go_on(), with a host that can choose policies. A run under "ar" is a baseline. */
static void
go_on_among(struct made *m, const struct run_host *host, uint32_t n, char *order)
{
    struct err err = {0};
    for (; sweep_running(m->sweep); n--) {
        assert_ok(sweep_next(m->sweep, host, &err), err);
        if (n == 0 || !sweep_running(m->sweep))
            return;
        strcat(order, strcmp(m->policy, "ar") == 0 ? "a" : ".");
        assert_int_equal(sweep_at(m->sweep) == m->sweep->n_points, strcmp(m->policy, "ar") == 0);
        made_run(m, UINT32_MAX);
    }
}

SEGMENTS_TEST(the_baseline_is_run_among_the_points)
{
    struct made m;
    char order[128] = "";
    made_session(&m, *state);
    snprintf(m.policy, sizeof m.policy, "specbound");
    const struct run_host host = made_host_of(&m);
    made_baseline(&m, true);
    made_sweep(&m, "d_max=3:8:1 tau=0.3:0.6:0.15", NULL, 0); /* 18 points */
    assert_true(isnan(sweep_baseline(m.sweep).value));
    go_on_among(&m, &host, UINT32_MAX, order);
    assert_string_equal(order, "a........a........a..");
    assert_string_equal(m.policy, "specbound"); /* the original settings again */
    assert_number_equal(m.d_max, 5);
    assert_number_equal(m.tau, 0.55);
    const struct estimate ar = sweep_baseline(m.sweep);
    assert_int_equal(ar.n, 18); /* three runs of six rounds */
    for (uint32_t i = 0; i < 18; i++) {
        const struct estimate speed = sweep_estimate(m.sweep, i, SWEEP_SPEED),
                              x = sweep_estimate(m.sweep, i, SWEEP_TIMES);
        assert_near(x.value, speed.value / ar.value, 1e-9);
        assert_true(isnan(x.se)); /* one pass has no standard error */
    }
    char *text = report(m.sweep);
    assert_contains(text, "\r\nar,\"\",");
    char *whole = text;
    sweep_close(m.sweep);

    /* The sweep is interrupted during a baseline, and again between points. It resumes and gives the same results. */
    struct err err = {0};
    assert_ok(sweep_open(&m.sweep, &m.f->info, &err), err);
    order[0] = '\0';
    made_sweep(&m, "d_max=3:8:1 tau=0.3:0.6:0.15", NULL, 0);
    go_on_among(&m, &host, 9, order);
    made_run(&m, 3);
    assert_string_equal(m.policy, "ar");
    assert_ok(sweep_stop(m.sweep, &host, &err), err);
    assert_string_equal(m.policy, "specbound");
    made_sweep(&m, "d_max=3:8:1 tau=0.3:0.6:0.15", NULL, 0);
    go_on_among(&m, &host, 4, order);
    assert_ok(sweep_stop(m.sweep, &host, &err), err);
    made_sweep(&m, "d_max=3:8:1 tau=0.3:0.6:0.15", NULL, 0);
    go_on_among(&m, &host, UINT32_MAX, order);
    assert_string_equal(order, "a........a........a..");
    text = report(m.sweep);
    assert_string_equal(text, whole);
    free(text);
    free(whole);
    order[0] = '\0';
    made_sweep(&m, "d_max=3:8:1 tau=0.3:0.6:0.15", NULL, 0); /* one more pass */
    go_on_among(&m, &host, UINT32_MAX, order);
    assert_string_equal(order, "......a........a....");
    sweep_close(m.sweep);
}

SEGMENTS_TEST(a_sweep_resumes_before_the_earlier_settings_are_recorded)
{
    struct made m;
    char order[64] = "";
    struct err err = {0};
    made_session(&m, *state);
    snprintf(m.policy, sizeof m.policy, "specbound");
    const struct run_host host = made_host_of(&m);
    made_baseline(&m, true);
    made_sweep(&m, "tau=0.3:0.6:0.15", NULL, 0);
    go_on_among(&m, &host, 2, order); /* one point has run, and another one is requested */
    assert_int_equal(sweep_done(m.sweep), 1);
    m.silent = true;
    assert_ok(sweep_stop(m.sweep, &host, &err), err);
    m.silent = false;
    made_sweep(&m, "tau=0.3:0.6:0.15", NULL, 0);
    assert_string_equal(m.sweep->policy->name, "specbound");
    assert_int_equal(sweep_done(m.sweep), 1);
    made_go_on(&m, UINT32_MAX);
    assert_number_equal(m.tau, 0.55);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(a_whole_sweep_begun_again_adds_a_pass)
{
    struct made m;
    made_session(&m, *state);
    for (uint32_t pass = 1; pass <= 3; pass++) {
        made_sweep(&m, "tau=0.3:0.9:0.3", NULL, 0);
        assert_int_equal(m.sweep->pass, pass);
        assert_int_equal(sweep_done(m.sweep), 0);
        made_go_on(&m, UINT32_MAX);
        assert_int_equal(m.asked, 3 * pass);
        assert_int_equal(sweep_result(m.sweep, 1)->total.rounds, 6 * pass);
        assert_int_equal(sweep_estimates(m.sweep, 1).tokens_per_s.n, 6 * pass);
        assert_int_equal(sweep_estimate(m.sweep, 1, SWEEP_SPEED).n, pass == 1 ? 6 : pass);
    }
    sweep_close(m.sweep);
}

SEGMENTS_TEST(other_settings_begin_anew)
{
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, "tau=0.3:0.9:0.3", NULL, 0);
    made_go_on(&m, UINT32_MAX);
    m.refuse = NULL;
    made_ask_knob(&m, "d_max", "7", NULL); /* a knob that is not swept */
    made_sweep(&m, "tau=0.3:0.9:0.3", NULL, 0);
    assert_int_equal(m.sweep->pass, 1);
    made_go_on(&m, 1);
    assert_int_equal(sweep_done(m.sweep), 1);
    const struct run_host host = made_host_of(&m);
    assert_true(sweep_stop(m.sweep, &host, NULL));
    made_ask_knob(&m, "tau", "0.5", NULL); /* the original value of a swept knob has no effect */
    made_sweep(&m, "tau=0.3:0.9:0.3", NULL, 0);
    assert_int_equal(sweep_done(m.sweep), 1);
    assert_true(sweep_stop(m.sweep, &host, NULL));
    assert_number_equal(m.tau, 0.5);
    made_sweep(&m, "tau=0.3:0.6:0.3", NULL, 0);
    assert_int_equal(sweep_done(m.sweep), 0);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(a_list_of_prompts_is_run_at_every_point)
{
    struct made m;
    char one[] = "one", three[] = "three", *prompts[] = {one, three};
    made_session(&m, *state);
    made_ask_run(&m, "mine");
    made_run(&m, UINT32_MAX);
    m.asked = 0;
    made_sweep(&m, "d_max=3:5:1", prompts, 2);
    made_go_on(&m, 3);
    assert_int_equal(sweep_done(m.sweep), 1); /* an interrupted point has no result */
    assert_null(sweep_result(m.sweep, 1));
    made_go_on(&m, UINT32_MAX);
    assert_int_equal(sweep_done(m.sweep), 3);
    assert_int_equal(m.asked, 7);
    assert_string_equal(m.prompt, "mine"); /* the original prompt again */
    assert_int_equal(sweep_result(m.sweep, 2)->total.rounds, 12);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(a_round_of_several_sequences_is_one_sample)
{
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, "d_max=3:4:1", NULL, 0);
    for (int i = 0; i < 2; i++) {
        made_next(&m);
        made_run(&m, 0);
        for (int round = 0; round < 4; round++)
            made_emit_round(&m, 3);
        made_emit_control(&m, "end", "", "batch");
    }
    made_next(&m);
    assert_int_equal(sweep_done(m.sweep), 2);
    assert_int_equal(sweep_result(m.sweep, 0)->total.rounds, 12);
    assert_int_equal(sweep_estimates(m.sweep, 0).tokens_per_s.n, 4);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(failures_end_it_with_knobs_as_they_were)
{
    struct made m;
    struct err err = {0};
    made_session(&m, *state);
    const struct run_host host = made_host_of(&m);
    made_sweep(&m, GRID, NULL, 0);
    made_go_on(&m, 2);
    snprintf(m.end, sizeof m.end, "error: gone");
    made_run(&m, UINT32_MAX);
    assert_number_equal(m.tau, 0.3);
    assert_false(sweep_next(m.sweep, &host, &err));
    assert_contains(err.text, "error: gone");
    assert_false(sweep_running(m.sweep));
    assert_int_equal(sweep_done(m.sweep), 2);
    assert_number_equal(m.tau, 0.55);
    assert_number_equal(m.d_max, 5);
    m.refuse = "d_max";
    made_sweep(&m, GRID, NULL, 0);
    assert_false(sweep_next(m.sweep, &host, &err));
    assert_contains(err.text, "d_max can't be turned");
    assert_false(sweep_running(m.sweep));
    assert_number_equal(m.tau, 0.55);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(the_best_is_one_or_has_others_near)
{
    struct made m;
    uint32_t best, near;
    made_session(&m, *state);
    made_sweep(&m, "d_max=3:6:1", NULL, 0);
    made_go_on(&m, 1);
    assert_false(sweep_best(m.sweep, SWEEP_SPEED, &best, &near));
    made_go_on(&m, UINT32_MAX);
    for (enum sweep_measure k = 0; k < SWEEP_MEASURES; k++) {
        uint32_t wanted = 0;
        assert_int_equal(sweep_best(m.sweep, k, &best, &near), k != SWEEP_TIMES); /* no baseline was run */
        if (k == SWEEP_TIMES)
            continue;
        for (uint32_t i = 0; i < 4; i++) {
            const struct estimate a = sweep_estimate(m.sweep, best, k), b = sweep_estimate(m.sweep, i, k);
            assert_at_least(a.value, b.value);
            wanted += i != best && (k == SWEEP_SPEED || estimate_difference(a, b).verdict != DIFFERENCE_MORE);
        }
        assert_int_equal(near, wanted);
    }
    sweep_close(m.sweep);
}

/* Runs passes over points on a machine whose speed drifts. Each run also has noise of the given deviation. */
static void
run_noisy_passes(struct made *m, const char *grid, uint64_t *random, uint32_t passes, double deviation)
{
    double drift = 0;
    for (uint32_t pass = 0; pass < passes; pass++) {
        made_sweep(m, grid, NULL, 0);
        for (made_next(m); sweep_running(m->sweep); made_next(m)) {
            double noise = -6; /* of deviation 1 */
            for (int k = 0; k < 12; k++)
                noise += splitmix64_uniform(random);
            drift += 2 * deviation * (splitmix64_uniform(random) - 0.4);
            m->slow = 100 * exp(drift + deviation * noise);
            made_run(m, UINT32_MAX);
        }
    }
}

SEGMENTS_TEST(identical_points_are_seldom_called_different)
{
    enum { SWEEPS = 200, POINTS_ALIKE = 8 };
    uint64_t random = 17;
    uint32_t best, near, stars = 0, pairs = 0, clear = 0;
    for (int k = 0; k < SWEEPS; k++) {
        struct made m;
        char standing[64];
        made_session(&m, *state);
        m.alike = true;
        run_noisy_passes(&m, "d_max=1:8:1", &random, 1, 0.03);
        assert_true(sweep_best(m.sweep, SWEEP_SPEED, &best, &near));
        assert_int_equal(near, POINTS_ALIKE - 1);
        assert_string_equal(sweep_standing(m.sweep, SWEEP_SPEED, best, near, standing, sizeof standing),
                            "no verdict after one pass");
        run_noisy_passes(&m, "d_max=1:8:1", &random, 2, 0.03);
        assert_true(sweep_best(m.sweep, SWEEP_SPEED, &best, &near));
        stars += near == 0;
        for (uint32_t i = 0; i < POINTS_ALIKE; i++)
            for (uint32_t j = 0; j < i; j++, pairs++) {
                const struct pass *a = sweep_result(m.sweep, i)->pass, *b = sweep_result(m.sweep, j)->pass;
                clear += estimate_compare(passes_ratio(a, b, 3)).verdict != DIFFERENCE_NOISE;
            }
        sweep_close(m.sweep);
    }
    if (stars > SWEEPS * 5 / 100 || clear > pairs * 7 / 100)
        fail_msg("%u of %d sweeps have a clearly best point, %u of %u pairs a clear difference", stars, (int)SWEEPS,
                 clear, pairs);
}

SEGMENTS_TEST(a_clearly_better_point_is_found_in_three_passes)
{
    enum { SWEEPS = 100 };
    uint64_t random = 19;
    uint32_t best, near, found = 0;
    char standing[64];
    for (int k = 0; k < SWEEPS; k++) {
        struct made m;
        made_session(&m, *state);
        run_noisy_passes(&m, "d_max=1:8:7", &random, 3, 0.004); /* times that differ by a tenth */
        assert_true(sweep_best(m.sweep, SWEEP_SPEED, &best, &near));
        if (near == 0)
            found +=
                strcmp(sweep_standing(m.sweep, SWEEP_SPEED, best, near, standing, sizeof standing), "clearly") == 0;
        sweep_close(m.sweep);
    }
    assert_greater(found, SWEEPS * 80 / 100);
}

SEGMENTS_TEST(the_remaining_time_is_in_seconds)
{
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, "d_max=3:6:1", NULL, 0);
    assert_true(isnan(sweep_left_s(m.sweep)));
    made_next(&m);
    made_run(&m, UINT32_MAX);
    assert_near(sweep_left_s(m.sweep), 3 * 0.012, 1e-9); /* rounds of 2 ms, six in a run */
    made_next(&m);
    made_run(&m, 3);
    assert_near(sweep_left_s(m.sweep), 3 * 0.012 - 0.006, 1e-9);
    sweep_close(m.sweep);
}

SEGMENTS_TEST(invalid_grids_are_refused_in_one_line)
{
    static const struct {
        const char *grid, *why;
    } wrong[] = {{"", "sweep which knobs?"},
                 {"tau", "KNOB=from:to:step is wanted"},
                 {"gamma=1:2:1", "policy specbound has no such knob"},
                 {"tau=0:1:0.5 tau=0:1:0.5", "swept already"},
                 {"tau=0:2:0.5", "policy specbound"},
                 {"tau=0:0.1:0.01", "is between them"}};
    struct made m;
    made_session(&m, *state);
    made_sweep(&m, "d_max=3:4:1", NULL, 0);
    made_go_on(&m, UINT32_MAX);
    const struct settings now = made_settings(&m);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err err = {0};
        assert_false(sweep_begin(m.sweep, wrong[i].grid, NULL, 0, &now, NULL, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        if (strstr(err.text, wrong[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, wrong[i].why);
        assert_int_equal(sweep_done(m.sweep), 2); /* the second result remains */
    }
    made_sweep(&m, "d_max=3:4:1", NULL, 0);
    struct err err = {0};
    assert_false(sweep_begin(m.sweep, "d_max=3:4:1", NULL, 0, &now, NULL, &err));
    assert_contains(err.text, "under way");
    sweep_close(m.sweep);
}
