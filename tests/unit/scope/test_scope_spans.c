/* Spans in which one of two settings was faster: both settings' texts are compared segment by segment. */
#include <math.h>

#include "base/rng.h"
#include "engine/scope/scope.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

struct sides {
    struct run_info info;
    struct scope *scope;
    uint32_t round, emitted[2];
};

static void
begin(struct sides *s)
{
    struct err err = {0};
    memset(s, 0, sizeof *s);
    fake_run(&s->info);
    s->info.ctx = 4096;
    assert_ok(scope_open(&s->scope, &s->info, &err), err);
    static const char *const control[][2] = {{"run", "start"}, {"versus", "layerskip"}};
    for (int i = 0; i < 2; i++) {
        struct event e = {.type = EVENT_CONTROL, .run = 1, .control = {.old_text = "", .new_text = control[i][1]}};
        control_event_set_name(&e.control, control[i][0]);
        scope_event(s->scope, &e);
    }
}

static void
end(struct sides *s)
{
    scope_close(s->scope);
    run_info_free(&s->info);
}

/* A round of so many tokens in about so many microseconds. */
static void
run_round(struct sides *s, uint32_t seq, uint32_t tokens, uint32_t us)
{
    struct event e = {.type = EVENT_TOKEN, .run = 1, .seq = seq, .round = ++s->round};
    e.token = (struct token_event){.pos = s->emitted[seq],
                                   .parent = -1,
                                   .candidate = -1,
                                   .token = 7,
                                   .source = SOURCE_BONUS,
                                   .exit_layer = FAKE_LAYERS,
                                   .accepted = -1,
                                   .committed = 1};
    scope_event(s->scope, &e);
    e.type = EVENT_ROUND;
    e.round_end = (struct round_event){.policy = "specbound",
                                       .draft_us = us + s->round % 3 * us / 50,
                                       .emitted = tokens,
                                       .exit_layer = -1,
                                       .threshold = NAN,
                                       .d_max = -1,
                                       .w_max = -1};
    scope_event(s->scope, &e);
    s->emitted[seq] += tokens;
}

TEST(spans_show_the_faster_side)
{
    struct sides s;
    struct scope_span span[SCOPE_SPANS];
    begin(&s);
    for (int i = 0; i < 64; i++) { /* the first one slows down half-way; the second takes twice as many rounds */
        run_round(&s, 0, 4, i < 32 ? 1000 : 5000);
        run_round(&s, 1, 2, 1000);
        run_round(&s, 1, 2, 1000);
    }
    const uint32_t n = scope_versus_spans(s.scope, span, SCOPE_SPANS);
    assert_int_equal(n, 64 / SPAN_ROUNDS);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(span[i].from, 1 + i * 256 / n);
        assert_int_equal(span[i].to, (i + 1) * 256 / n);
        assert_int_equal(span[i].of.verdict, i < n / 2 ? DIFFERENCE_LESS : DIFFERENCE_MORE);
    }
    assert_int_equal(scope_versus_spans(s.scope, span, 2), 2);
    assert_int_equal(span[1].to, 256);
    end(&s);
}

TEST(equal_sides_are_within_noise_and_short_ones_have_no_spans)
{
    struct sides s;
    struct scope_span span[SCOPE_SPANS];
    begin(&s);
    assert_int_equal(scope_versus_spans(s.scope, span, SCOPE_SPANS), 0);
    for (int i = 0; i < 3 * SPAN_ROUNDS; i++) {
        run_round(&s, 0, 3, 1000);
        if (i + 1 < SPAN_ROUNDS)
            assert_int_equal(scope_versus_spans(s.scope, span, SCOPE_SPANS), 0);
        run_round(&s, 1, 3, 1000);
    }
    for (int i = 0; i < 30; i++) /* text that only one side has is in no span */
        run_round(&s, 1, 3, 1);
    assert_int_equal(scope_versus_spans(s.scope, span, SCOPE_SPANS), 2);
    assert_int_equal(span[1].to, 3 * SPAN_ROUNDS * 3);
    assert_int_equal(span[0].of.verdict, DIFFERENCE_NOISE);
    assert_int_equal(span[1].of.verdict, DIFFERENCE_NOISE);
    end(&s);
}

/* Two equal settings on a machine whose speed drifts, in runs of 240 tokens. */
TEST(equal_sides_are_seldom_called_different_in_any_span)
{
    enum { RUNS = 300 };
    uint64_t random = 5;
    int different = 0;
    for (int k = 0; k < RUNS; k++) {
        struct sides s;
        struct scope_span span[SCOPE_SPANS];
        double slow = 0;
        bool any = false;
        begin(&s);
        for (int i = 0; i < 160; i++) {
            double noise = -6; /* of deviation 1 */
            for (int j = 0; j < 12; j++)
                noise += splitmix64_uniform(&random);
            slow += 0.03 * (splitmix64_uniform(&random) - 0.5);
            run_round(&s, s.emitted[0] > s.emitted[1], 3, (uint32_t)(1000 * exp(slow + 0.1 * noise)));
        }
        const uint32_t n = scope_versus_spans(s.scope, span, SCOPE_SPANS);
        assert_greater(n, 4);
        for (uint32_t i = 0; i < n; i++)
            any = any || span[i].of.verdict != DIFFERENCE_NOISE;
        different += any;
        end(&s);
    }
    if (different > RUNS * 8 / 100)
        fail_msg("%d of %d runs have a clear difference somewhere", different, (int)RUNS);
}

/* Spans cover only the rounds that are still stored. */
TEST(long_runs_have_spans_of_the_stored_rounds)
{
    struct sides s;
    struct scope_span span[SCOPE_SPANS];
    begin(&s);
    for (uint32_t i = 0; i < SCOPE_ROUNDS + 200; i++) {
        run_round(&s, 0, 2, 1000);
        run_round(&s, 1, 2, 2000);
    }
    const uint32_t n = scope_versus_spans(s.scope, span, SCOPE_SPANS);
    assert_int_equal(n, SCOPE_SPANS);
    assert_between(span[0].from, 2 * 200, 2 * 202);
    assert_int_equal(span[n - 1].to, 2 * (SCOPE_ROUNDS + 200));
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(span[i].of.verdict, DIFFERENCE_LESS);
    end(&s);
}
