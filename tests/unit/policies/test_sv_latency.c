/* Speculative Verification's latencies: measured once an engine; and how many calls its rounds take. */
#include <math.h>

#include "policies/sv_goodput.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/test.h"

enum { TOKENS = 120 };

static struct engine *engine;

static int
open_models(void **state)
{
    (void)state;
    engine = exact_rig_verification();
    return 0;
}

static int
close_models(void **state)
{
    (void)state;
    engine_close(engine);
    return 0;
}

/* ---- measured latencies ---- */

TEST(the_first_rounds_measure)
{
    uint32_t rounds = 0, aside = 0;
    const struct session_options o = exact_rig_session("sv", "the little", TOKENS);
    struct recorded_run run = exact_rig_record(engine, &o);
    for (size_t i = 0; i < run.n; i++) {
        const struct round_event *line = &run.events[i].round_end;
        if (run.events[i].type != EVENT_ROUND)
            continue;
        const uint32_t round = run.events[i].round;
        aside += line->aside_us > 0;
        assert_true((strcmp(line->stop_reason, "measuring") == 0) == (++rounds <= 2));
        double before = 0;
        for (int gamma = 0; rounds > 2 && gamma <= (int)line->drafted; gamma++) {
            const double latency = recorded_value(&run, round, "latency", gamma);
            assert_true(latency > 0 && latency >= before);
            before = latency;
        }
    }
    assert_true(rounds > 10);
    assert_int_equal(aside, 1); /* outside of the rounds' accounts */
    recorded_run_free(&run);
}

/* How many rounds measured, and how many drafted without knowing what a round takes. */
static void
count_measured(uint32_t batch, const struct knob_setting *set, size_t n_set, uint32_t *aside, uint32_t *measuring)
{
    struct session_options o = exact_rig_session("sv", "the little", 40);
    o.batch = batch;
    o.set = set;
    o.n_set = n_set;
    struct recorded_run run = exact_rig_record(engine, &o);
    *aside = *measuring = 0;
    for (size_t i = 0; i < run.n; i++)
        if (run.events[i].type == EVENT_ROUND && run.events[i].seq == 0) {
            *aside += run.events[i].round_end.aside_us > 0;
            *measuring += strcmp(run.events[i].round_end.stop_reason, "measuring") == 0;
        }
    recorded_run_free(&run);
}

TEST(what_was_measured_stays_with_the_engine)
{
    static const struct knob_setting other = {"window", "3"}, cost = {"row_cost", "0.5"};
    uint32_t aside, measuring;
    count_measured(0, NULL, 0, &aside, &measuring); /* the test before left it */
    assert_int_equal(aside, 0);
    assert_int_equal(measuring, 0);
    count_measured(0, &cost, 1, &aside, &measuring);
    count_measured(0, NULL, 0, &aside, &measuring); /* nor does what needs none take it away */
    assert_int_equal(aside, 0);
    count_measured(0, &other, 1, &aside, &measuring); /* verification is the same, drafting isn't */
    assert_int_equal(aside, 0);
    assert_int_equal(measuring, 2);
    for (int again = 0; again < 2; again++) {
        count_measured(3, NULL, 0, &aside, &measuring);
        assert_int_equal(aside, again ? 0 : 1);
    }
}

/* ---- corrections ---- */

static struct sv_latency
measured(void)
{
    struct sv_latency l = {.rows = 8};
    for (uint32_t i = 0; i < l.rows; i++)
        l.verify_ms[i] = l.first_ms[i] = 10 + i;
    return l;
}

TEST(a_first_value_that_was_an_outlier_does_not_stay)
{
    struct sv_latency l = measured();
    l.verify_ms[3] = l.first_ms[3] = 130;
    for (int i = 0; i < 3; i++) {
        sv_latency_verified(&l, 3, 12);
        sv_latency_verified(&l, 4, 13);
        sv_latency_verified(&l, 5, 14);
    }
    for (uint32_t i = 0; i < l.rows; i++)
        assert_true(fabs(l.verify_ms[i] - (10 + i)) < 1e-9);
}

TEST(outliers_among_verifications_count_for_nothing)
{
    struct sv_latency l = measured();
    sv_latency_verified(&l, 4, 1300);
    assert_true(l.verify_ms[3] == 13); /* a single one */
    for (int i = 0; i < 20; i++)
        sv_latency_verified(&l, 4, i % 5 < 2 ? 1300 : 13);
    assert_true(l.verify_ms[3] == 13);
}

TEST(a_slower_machine_is_slower_for_all_numbers_of_rows)
{
    struct sv_latency l = measured();
    for (int i = 0; i < 3; i++) {
        sv_latency_verified(&l, 1, 20);
        sv_latency_verified(&l, 3, 24);
    }
    for (uint32_t i = 0; i < l.rows; i++)
        assert_true(fabs(l.verify_ms[i] - 2 * (10 + i)) < 1e-9);
    sv_latency_verified(&l, 9, 1); /* more rows than were measured, and what is no time, change nothing */
    sv_latency_verified(&l, 1, 0);
    assert_true(l.verify_ms[0] == 20);
}

extern const struct policy_ops policy_sv;
static struct sv_latency *wronged; /* the session's, before its first round was over; NULL: not yet */

/* Latencies a thousand times too high, once they have been measured. */
static bool
wrong_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    const bool ok = policy_sv.draft(p, r, n);
    if (wronged != NULL || !ok)
        return ok;
    wronged = p[0]->shared;
    for (uint32_t i = 0; i < wronged->rows; i++) {
        wronged->first_ms[i] *= 1000;
        wronged->verify_ms[i] *= 1000;
    }
    return true;
}

static double corrected_ms;

static bool
watching_observe(struct policy *p, struct round *r)
{
    const bool ok = policy_sv.observe(p, r);
    corrected_ms = ((struct sv_latency *)p->shared)->verify_ms[0] / ((struct sv_latency *)p->shared)->first_ms[0];
    return ok;
}

TEST(verifications_of_rounds_correct_what_was_measured)
{
    struct policy_ops wrong = policy_sv;
    const struct policy_ops *const registry[] = {&wrong, NULL};
    struct session_options o = exact_rig_session("sv", "the little", TOKENS);
    wrong.draft = wrong_draft;
    wrong.observe = watching_observe;
    o.policies = registry;
    struct recorded_run run = exact_rig_record(engine, &o);
    assert_true(corrected_ms > 0 && corrected_ms < 0.2);
    recorded_run_free(&run);
}

/* ---- calls ---- */

static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    uint32_t steps, overlaps, draws;
} counted;

static bool
counted_step(struct store *s, const struct sweep *w)
{
    counted.steps++;
    return counted.real->step(s, w);
}

static bool
counted_overlap(struct store *s, const struct overlap_req *requests, size_t n)
{
    counted.overlaps++;
    return counted.real->overlap(s, requests, n);
}

static bool
counted_draw(struct store *s, const struct draw_req *requests, size_t n)
{
    counted.draws++;
    return counted.real->draw(s, requests, n);
}

/* Of m drafts the draft model reads the pending token, then all but the last; the companion reads all of that in one sweep,
 * and the target verifies in one. (Where a draft was accepted without a row, the draft model has read it already.) A step's
 * drafts are drawn in one call, and all of a round's are compared in one. */
TEST(a_round_takes_as_few_calls_as_it_can)
{
    static const struct knob_setting set[] = {{"window", "6"}, {"row_cost", "0.001"}, {"draft_cost", "10"}};
    counted.real = engine->ops;
    counted.ops = *engine->ops;
    counted.ops.step = counted_step;
    counted.ops.overlap = counted_overlap;
    counted.ops.draw = counted_draw;
    engine->ops = &counted.ops;
    for (uint32_t batch = 1; batch <= 4; batch += 3) {
        uint32_t drafted[TOKENS + 1] = {0}, rounds = 0, draws = 0, without_row = 0;
        uint32_t steps = 3 * batch; /* prompts, of three models */
        struct session_options o = exact_rig_session("sv", "the little", TOKENS);
        o.sampling.temperature = 0.8f;
        o.batch = batch;
        o.set = set;
        o.n_set = 3;
        counted.steps = counted.overlaps = counted.draws = 0;
        struct recorded_run run = exact_rig_record(engine, &o);
        for (size_t i = 0; i < run.n; i++) {
            const struct event *e = &run.events[i];
            if (e->type != EVENT_ROUND)
                continue;
            rounds = e->round;
            assert_true(rounds <= TOKENS);
            without_row += e->round_end.emitted == e->round_end.accepted;
            if (e->round_end.drafted > drafted[rounds])
                drafted[rounds] = e->round_end.drafted;
        }
        uint32_t compared = 0;
        for (uint32_t r = 1; r <= rounds; r++) {
            steps += 1 + (drafted[r] > 0 ? drafted[r] + 1 : 0);
            draws += drafted[r];
            compared += drafted[r] > 0;
        }
        assert_true(rounds > 20);
        assert_in_range(counted.steps, steps - 2 * without_row, steps);
        assert_true(2 * without_row < rounds); /* else the bounds say nothing */
        assert_int_equal(counted.draws, draws);
        assert_int_equal(counted.overlaps, compared);
        recorded_run_free(&run);
    }
    engine->ops = counted.real;
}

FIXTURE(open_models, close_models);
