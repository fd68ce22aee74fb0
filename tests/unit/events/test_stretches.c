/* Stretches against a slow definition: the longest spans of a run's rounds that ran with the same settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/stretches.h"
#include "kernels/rng.h"
#include "tests/rigs/seed.h"

#define LINES 4096

/* ---- a run that is made up: two policies, each with knobs of its own ---- */

struct line { /* a ROUND line as it was told, and the settings it ran with */
    struct round_event end;
    uint32_t run, round, policy;
    double knob[2];
    bool trained;
};

struct fixture {
    struct run_info info;
    struct stretches *stretches;
    uint32_t run, round, policy;
    double knob[2][2]; /* of the policies */
    bool trained;
    struct line line[LINES];
    size_t n_lines;
    uint64_t random;
};

static int
set_up(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    f->info = (struct run_info){.layers = 16, .rho = 0.5, .n_policies = 2, .policy = "specbound"};
    f->info.policies = calloc(2, sizeof *f->info.policies);
    assert_non_null(f->info.policies);
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "specbound");
    assert_true(policy_number(&p, "tau", "τ", 0, 1, 0.05, 0.55, "threshold"));
    assert_true(policy_number(&p, "d_max", "", 1, 16, 1, 5, "deepest exit"));
    f->info.policies[0] = p.info;
    p = (struct policy){0};
    snprintf(p.info.name, sizeof p.info.name, "layerskip");
    assert_true(policy_number(&p, "exit_layer", "E", 1, 15, 1, 4, "layer"));
    assert_true(policy_number(&p, "gamma", "γ", 1, 16, 1, 5, "drafts"));
    f->info.policies[1] = p.info;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            f->knob[i][k] = f->info.policies[i].knobs[k].def;
    struct err err = {0};
    assert_true(stretches_open(&f->stretches, &f->info, &err));
    f->random = 1;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;
    stretches_close(f->stretches);
    free(f->info.policies);
    free(f);
    return 0;
}

static uint32_t
below(struct fixture *f, uint32_t n)
{
    return (uint32_t)(splitmix64_uniform(&f->random) * n);
}

static void
control(struct fixture *f, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .run = f->run, .round = f->round};
    e.control = (struct control_event){.old_text = before, .new_text = after, .applied_round = f->round + 1};
    snprintf(e.control.name, sizeof e.control.name, "%s", name);
    stretches_event(f->stretches, &e);
}

static void
begin(struct fixture *f, const char *cause)
{
    f->run++;
    f->round = 0;
    control(f, "run", "", cause);
    control(f, "head", "", f->trained ? "trained" : "lens");
}

static void
turn(struct fixture *f, int k, double value)
{
    const struct knob *knob = &f->info.policies[f->policy].knobs[k];
    char before[32], after[32];
    assert_true(knob_check(knob, value, &value, NULL));
    knob_format(knob, f->knob[f->policy][k], before, sizeof before);
    knob_format(knob, value, after, sizeof after);
    control(f, knob->name, before, after);
    f->knob[f->policy][k] = value;
}

static void
choose(struct fixture *f, uint32_t policy)
{
    control(f, "policy", f->info.policies[f->policy].name, f->info.policies[policy].name);
    f->policy = policy;
}

static void
look_by(struct fixture *f, bool trained)
{
    control(f, "head", f->trained ? "trained" : "lens", trained ? "trained" : "lens");
    f->trained = trained;
}

/* A round of several sequences: a line for each, with its share of the times. */
static void
play(struct fixture *f, uint32_t sequences)
{
    f->round++;
    const uint32_t draft = 400 + below(f, 300), verify = 800 + below(f, 500);
    for (uint32_t seq = 0; seq < sequences && f->n_lines < LINES; seq++) {
        struct line *l = &f->line[f->n_lines++];
        const uint32_t verified = below(f, 7), accepted = below(f, verified + 1);
        *l = (struct line){.run = f->run, .round = f->round, .policy = f->policy, .trained = f->trained};
        memcpy(l->knob, f->knob[f->policy], sizeof l->knob);
        l->end = (struct round_event){.draft_us = draft / sequences,
                                      .verify_us = verify / sequences,
                                      .drafted = verified,
                                      .verified = verified,
                                      .accepted = accepted,
                                      .emitted = accepted + 1,
                                      .layers_loaded = 16 + (float)below(f, 20),
                                      .heads_loaded = 1 + (float)below(f, 9)};
        const struct event e = {
            .type = EVENT_ROUND, .run = f->run, .seq = seq, .round = f->round, .t_us = 10000, .round_end = l->end};
        stretches_event(f->stretches, &e);
    }
}

/* ---- the slow definition ---- */

static bool
same_settings(const struct line *a, const struct line *b)
{
    return a->run == b->run && a->policy == b->policy && a->trained == b->trained &&
           memcmp(a->knob, b->knob, sizeof a->knob) == 0;
}

static void
assert_close(double expected, double got)
{
    if (!(fabs(expected - got) <= 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%.12g instead of %.12g", got, expected);
}

/* tokens/s of lines from..to, over rounds as a whole, by the formula as it stands in the books. */
static struct estimate
slow_speed(const struct line *lines, size_t from, size_t to)
{
    double y[LINES] = {0}, x[LINES] = {0}, sum_y = 0, sum_x = 0, residuals = 0;
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        n += i == from || lines[i].round != lines[i - 1].round;
        y[n - 1] += lines[i].end.emitted;
        x[n - 1] += (lines[i].end.draft_us + lines[i].end.verify_us) * 1e-6;
    }
    for (size_t i = 0; i < n; i++)
        sum_y += y[i], sum_x += x[i];
    const double r = sum_y / sum_x, mean = sum_x / (double)n;
    for (size_t i = 0; i < n; i++)
        residuals += (y[i] - r * x[i]) * (y[i] - r * x[i]);
    const double se = n > 1 ? sqrt(residuals / (double)(n - 1) / (double)n) / mean : NAN;
    return (struct estimate){.value = r, .se = se, .n = n};
}

/* Lines from..to are stretch s. */
static void
assert_stretch(const struct fixture *f, const struct stretch *s, size_t from, size_t to)
{
    uint64_t emitted = 0, accepted = 0, verified = 0;
    double loads = 0;
    for (size_t i = from; i < to; i++) {
        emitted += f->line[i].end.emitted;
        accepted += f->line[i].end.accepted;
        verified += f->line[i].end.verified;
        loads += (double)f->line[i].end.layers_loaded + f->info.rho * (double)f->line[i].end.heads_loaded;
    }
    assert_int_equal(s->run, f->line[from].run);
    assert_int_equal(s->first_round, f->line[from].round);
    assert_int_equal(s->policy, f->line[from].policy);
    assert_memory_equal(s->value, f->line[from].knob, sizeof f->line[from].knob);
    assert_string_equal(s->head, f->line[from].trained ? "trained" : "lens");
    assert_int_equal(s->total.emitted, emitted);
    assert_int_equal(s->total.rounds, to - from);
    const struct estimates e = stretch_estimates(s, &f->info);
    const struct estimate speed = slow_speed(f->line, from, to);
    assert_int_equal(e.tokens_per_s.n, speed.n);
    assert_close(speed.value, e.tokens_per_s.value);
    if (speed.n > 1)
        assert_close(speed.se, e.tokens_per_s.se);
    assert_close((double)emitted / (double)(to - from), e.tokens_per_round.value);
    if (verified > 0)
        assert_close((double)accepted / (double)verified, e.acceptance_rate.value);
    assert_close((double)emitted * (16 + 0.5) / loads, e.modelled.value);
}

static void
assert_all(const struct fixture *f)
{
    size_t to = f->n_lines;
    for (uint32_t back = 0; to > 0; back++) {
        size_t from = to - 1;
        while (from > 0 && same_settings(&f->line[from - 1], &f->line[to - 1]))
            from--;
        if (back >= STRETCHES)
            break;
        const struct stretch *s = stretches_at(f->stretches, back);
        assert_non_null(s);
        assert_stretch(f, s, from, to);
        to = from;
    }
    assert_null(stretches_at(f->stretches, stretches_held(f->stretches)));
}

/* ---- tests ---- */

static void
test_stretches_are_the_spans_of_equal_settings(void **state)
{
    struct fixture *f = *state;
    f->random = seed_or(11);
    begin(f, "start");
    for (int step = 0; step < 600; step++) {
        switch (below(f, 12)) {
        case 0: turn(f, 0, f->policy == 0 ? 0.25 * below(f, 4) : 1 + below(f, 4)); break;
        case 1: turn(f, 1, 1 + below(f, 3)); break;
        case 2: choose(f, below(f, 2)); break;
        case 3: look_by(f, below(f, 2) == 0); break;
        case 4: begin(f, below(f, 2) == 0 ? "restart" : "prompt"); break;
        default:
            for (uint32_t n = below(f, 9); n > 0; n--)
                play(f, 1 + below(f, 3));
        }
    }
    assert_true(f->n_lines > 500 && f->n_lines < LINES && stretches_held(f->stretches) > 80);
    assert_all(f);
    for (uint32_t back = 0; back < stretches_held(f->stretches); back++) {
        char letter[8];
        stretch_letter(stretches_at(f->stretches, back)->number, letter);
        assert_ptr_equal(stretches_named(f->stretches, letter), stretches_at(f->stretches, back));
    }
}

static void
test_old_stretches_are_forgotten(void **state)
{
    struct fixture *f = *state;
    begin(f, "start");
    for (int i = 0; i < STRETCHES + 40; i++) {
        turn(f, 1, 1 + i % 2);
        play(f, 1);
    }
    assert_int_equal(stretches_held(f->stretches), STRETCHES);
    assert_all(f);
    assert_null(stretches_named(f->stretches, "A"));
    assert_null(stretches_named(f->stretches, ""));
    assert_null(stretches_named(f->stretches, "A1"));
    assert_null(stretches_named(f->stretches, "ZZZZZZZZZZZZZZZZZZZZZZ"));
}

static const char *
text(const struct fixture *f, const struct stretch *s, bool arrows)
{
    static char out[256];
    assert_non_null(s);
    stretch_text(s, &f->info, arrows, out, sizeof out);
    return out;
}

static void
test_what_changed_is_said(void **state)
{
    struct fixture *f = *state;
    begin(f, "start");
    assert_null(stretches_coming(f->stretches)); /* the first stretch is nobody's turn */
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), true), "start");
    turn(f, 0, 0.6);
    turn(f, 0, 0.7);
    assert_string_equal(text(f, stretches_coming(f->stretches), true), "τ 0.55→0.7");
    play(f, 1);
    assert_null(stretches_coming(f->stretches));
    assert_string_equal(text(f, stretches_at(f->stretches, 0), false), "τ 0.7");
    choose(f, 1);
    turn(f, 1, 3);
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), true), "specbound→layerskip, γ 5→3");
    look_by(f, true);
    begin(f, "restart");
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), true), "head lens→trained");
    begin(f, "restart");
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), true), "again");
    turn(f, 1, 4);
    begin(f, "prompt");
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), false), "new prompt, γ 4");
    control(f, "temperature", "0", "0.7"); /* what no policy declares is a setting, too */
    play(f, 1);
    assert_string_equal(text(f, stretches_at(f->stretches, 0), true), "temperature 0→0.7");
    control(f, "probe", "all", "off"); /* but these are not */
    control(f, "state", "", "paused");
    assert_null(stretches_coming(f->stretches));
}

static void
test_a_knob_that_is_back_has_not_changed(void **state)
{
    struct fixture *f = *state;
    begin(f, "start");
    play(f, 1);
    turn(f, 0, 0.6);
    choose(f, 1);
    turn(f, 0, 9);
    choose(f, 0);
    assert_non_null(stretches_coming(f->stretches));
    turn(f, 0, 0.55);
    assert_null(stretches_coming(f->stretches));
    play(f, 1);
    assert_int_equal(stretches_held(f->stretches), 1);
    choose(f, 1); /* where E was turned before */
    assert_string_equal(text(f, stretches_coming(f->stretches), true), "specbound→layerskip, E 4→9");
}

static void
test_a_verdict_belongs_to_the_stretches_it_compared(void **state)
{
    struct fixture *f = *state;
    begin(f, "start");
    play(f, 1);
    begin(f, "restart");
    for (int i = 0; i < 3; i++) {
        turn(f, 1, 2 + i);
        for (int r = 0; r < 4; r++)
            play(f, 1);
    }
    const struct stretch *c = stretches_at(f->stretches, 0), *b = stretches_at(f->stretches, 1),
                         *a = stretches_at(f->stretches, 2), *other = stretches_at(f->stretches, 3);
    assert_int_equal(a->before, 1); /* the prefill's token */
    assert_int_equal(b->before, 1 + a->total.emitted);
    control(f, "lossless", "", "nothing to compare yet");
    assert_int_equal(c->lossless, LOSSLESS_UNKNOWN);
    control(f, "baseline", "", "250");
    control(f, "lossless", "", "yes");
    assert_int_equal(a->lossless, LOSSLESS_YES);
    assert_int_equal(c->lossless, LOSSLESS_YES);
    assert_int_equal(c->compared, c->total.emitted);
    assert_int_equal(other->lossless, LOSSLESS_UNKNOWN); /* another run's text */
    assert_close(stretch_estimates(other, &f->info).tokens_per_s.value / 250,
                 stretch_speedup(other, &f->info).value); /* but the same prompt */
    play(f, 1);
    assert_true(c->compared < c->total.emitted);
    char differs[40];
    snprintf(differs, sizeof differs, "no: token %u", (unsigned)b->before + 1);
    control(f, "lossless", "", differs);
    assert_int_equal(a->lossless, LOSSLESS_YES);
    assert_int_equal(b->lossless, LOSSLESS_NO);
    assert_int_equal(c->lossless, LOSSLESS_UNKNOWN);
    begin(f, "prompt");
    play(f, 1);
    assert_true(isnan(stretch_speedup(stretches_at(f->stretches, 0), &f->info).value));
    assert_close(250, c->baseline.value);
}

#define STRETCHES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STRETCHES_TEST(test_stretches_are_the_spans_of_equal_settings),
        STRETCHES_TEST(test_old_stretches_are_forgotten),
        STRETCHES_TEST(test_what_changed_is_said),
        STRETCHES_TEST(test_a_knob_that_is_back_has_not_changed),
        STRETCHES_TEST(test_a_verdict_belongs_to_the_stretches_it_compared),
    };
    return cmocka_run_group_tests_name("stretches", tests, NULL, NULL);
}
