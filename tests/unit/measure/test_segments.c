/* Segments, the longest spans of a run's rounds with the same settings, compared with a slow definition. */
#include <math.h>

#include "tests/rigs/seed.h"
#include "tests/rigs/segment_rig.h"
#include "tests/rigs/test.h"

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

/* Returns tokens/s of lines from..to: the ratio estimator over whole rounds, with its textbook standard error. */
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

/* Checks that segment s consists of lines from..to. */
static void
assert_segment(const struct fixture *f, const struct segment *s, size_t from, size_t to)
{
    uint64_t emitted = 0, accepted = 0, verified = 0;
    double loads = 0, steps = 0; /* steps: of autoregressive decoding with as many sequences */
    for (size_t i = from; i < to; i++) {
        size_t first = i, after = i + 1;
        while (first > from && f->line[first - 1].round == f->line[i].round)
            first--;
        while (after < to && f->line[after].round == f->line[i].round)
            after++;
        steps += (double)f->line[i].end.emitted / (double)(after - first);
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
    const struct estimates e = segment_estimates(s, &f->info);
    const struct estimate speed = slow_speed(f->line, from, to);
    assert_int_equal(e.tokens_per_s.n, speed.n);
    assert_close(speed.value, e.tokens_per_s.value);
    if (speed.n > 1)
        assert_close(speed.se, e.tokens_per_s.se);
    assert_close((double)emitted / (double)(to - from), e.tokens_per_round.value);
    if (verified > 0)
        assert_close((double)accepted / (double)verified, e.acceptance_rate.value);
    assert_close(steps * (16 + 0.5) / loads, e.modelled.value);
}

static void
assert_all(const struct fixture *f)
{
    size_t to = f->n_lines;
    for (uint32_t back = 0; to > 0; back++) {
        size_t from = to - 1;
        while (from > 0 && same_settings(&f->line[from - 1], &f->line[to - 1]))
            from--;
        if (back >= SEGMENTS)
            break;
        const struct segment *s = segments_at(f->segments, back);
        assert_non_null(s);
        assert_segment(f, s, from, to);
        to = from;
    }
    assert_null(segments_at(f->segments, segments_held(f->segments)));
}

/* ---- tests ---- */

SEGMENTS_TEST(segments_are_the_spans_of_equal_settings)
{
    struct fixture *f = *state;
    f->random = seed_or(11);
    made_begin(f, "start");
    for (int step = 0; step < 600; step++) {
        switch (made_below(f, 12)) {
        case 0: made_change(f, 0, f->policy == 0 ? 0.25 * made_below(f, 4) : 1 + made_below(f, 4)); break;
        case 1: made_change(f, 1, 1 + made_below(f, 3)); break;
        case 2: made_choose(f, made_below(f, 2)); break;
        case 3: made_look_by(f, made_below(f, 2) == 0); break;
        case 4: made_begin(f, made_below(f, 2) == 0 ? "restart" : "prompt"); break;
        default:
            for (uint32_t n = made_below(f, 9); n > 0; n--)
                made_play(f, 1 + made_below(f, 3));
        }
    }
    assert_greater(f->n_lines, 500);
    assert_less(f->n_lines, LINES);
    assert_greater(segments_held(f->segments), 80);
    assert_all(f);
    for (uint32_t back = 0; back < segments_held(f->segments); back++) {
        char letter[8];
        segment_letter(segments_at(f->segments, back)->number, letter);
        assert_ptr_equal(segments_named(f->segments, letter), segments_at(f->segments, back));
    }
}

SEGMENTS_TEST(only_the_latest_segments_are_kept)
{
    struct fixture *f = *state;
    made_begin(f, "start");
    for (int i = 0; i < SEGMENTS + 40; i++) {
        made_change(f, 1, 1 + i % 2);
        made_play(f, 1);
    }
    assert_int_equal(segments_held(f->segments), SEGMENTS);
    assert_all(f);
    assert_null(segments_named(f->segments, "A"));
    assert_null(segments_named(f->segments, ""));
    assert_null(segments_named(f->segments, "A1"));
    assert_null(segments_named(f->segments, "ZZZZZZZZZZZZZZZZZZZZZZ"));
}

static const char *
text(const struct fixture *f, const struct segment *s, bool arrows)
{
    static char out[256];
    assert_non_null(s);
    segment_text(s, &f->info, arrows, out, sizeof out);
    return out;
}

SEGMENTS_TEST(a_segments_text_lists_the_changed_settings)
{
    struct fixture *f = *state;
    made_begin(f, "start");
    assert_null(segments_coming(f->segments)); /* no knob change began the first segment */
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "start");
    made_change(f, 0, 0.6);
    made_change(f, 0, 0.7);
    assert_string_equal(text(f, segments_coming(f->segments), true), "τ 0.55→0.7");
    made_play(f, 1);
    assert_null(segments_coming(f->segments));
    assert_string_equal(text(f, segments_at(f->segments, 0), false), "τ 0.7");
    made_choose(f, 1);
    made_change(f, 1, 3);
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "specbound→layerskip, γ 5→3");
    made_look_by(f, true);
    made_begin(f, "restart");
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "head lens→trained");
    made_begin(f, "restart");
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "again");
    made_change(f, 1, 4);
    made_begin(f, "prompt");
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), false), "new prompt, γ 4");
    made_control(f, "temperature", "0", "0.7"); /* a setting that no policy declares */
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "T 0→0.7");
    made_control(f, "probe", "all", "off"); /* these controls are no settings */
    made_control(f, "state", "", "paused");
    assert_null(segments_coming(f->segments));
}

SEGMENTS_TEST(a_knob_that_is_back_has_not_changed)
{
    struct fixture *f = *state;
    made_begin(f, "start");
    made_play(f, 1);
    made_change(f, 0, 0.6);
    made_choose(f, 1);
    made_change(f, 0, 9);
    made_choose(f, 0);
    assert_non_null(segments_coming(f->segments));
    made_change(f, 0, 0.55);
    assert_null(segments_coming(f->segments));
    made_play(f, 1);
    assert_int_equal(segments_held(f->segments), 1);
    made_choose(f, 1); /* the value of E has changed since */
    assert_string_equal(text(f, segments_coming(f->segments), true), "specbound→layerskip, E 4→9");
}

SEGMENTS_TEST(a_verdict_belongs_to_the_segments_it_compared)
{
    struct fixture *f = *state;
    made_begin(f, "start");
    made_play(f, 1);
    made_begin(f, "restart");
    for (int i = 0; i < 3; i++) {
        made_change(f, 1, 2 + i);
        for (int r = 0; r < 4; r++)
            made_play(f, 1);
    }
    const struct segment *c = segments_at(f->segments, 0), *b = segments_at(f->segments, 1),
                         *a = segments_at(f->segments, 2), *other = segments_at(f->segments, 3);
    assert_int_equal(a->before, 1); /* the prefill's token */
    assert_int_equal(b->before, 1 + a->total.emitted);
    made_control(f, "lossless", "", "nothing to compare yet");
    assert_int_equal(c->lossless, LOSSLESS_UNKNOWN);
    made_control(f, "baseline", "", "250");
    made_control(f, "lossless", "", "yes: 3 sequences");
    assert_int_equal(a->lossless, LOSSLESS_YES);
    made_control(f, "lossless", "", "yes");
    assert_int_equal(a->lossless, LOSSLESS_YES);
    assert_int_equal(c->lossless, LOSSLESS_YES);
    assert_int_equal(c->compared, c->total.emitted);
    assert_int_equal(other->lossless, LOSSLESS_UNKNOWN); /* belongs to another run */
    assert_close(segment_estimates(other, &f->info).tokens_per_s.value / 250,
                 segment_speedup(other, &f->info).value); /* but has the same prompt */
    made_play(f, 1);
    assert_less(c->compared, c->total.emitted);
    char differs[40];
    snprintf(differs, sizeof differs, "no: token %u", (unsigned)b->before + 1);
    made_control(f, "lossless", "", differs);
    assert_int_equal(a->lossless, LOSSLESS_YES);
    assert_int_equal(b->lossless, LOSSLESS_NO);
    assert_int_equal(c->lossless, LOSSLESS_UNKNOWN);
    made_control(f, "pace", "0", "25"); /* rounds of a slowed run begin with cold caches, unlike the baseline's steps */
    made_play(f, 1);
    assert_string_equal(text(f, segments_at(f->segments, 0), true), "speed max→slowed");
    assert_true(isnan(segment_speedup(segments_at(f->segments, 0), &f->info).value));
    made_control(f, "baseline_se", "", "5");
    made_control(f, "baseline", "", "100");
    assert_close(100, segments_at(f->segments, 0)->baseline.value);
    assert_close(5, segments_at(f->segments, 0)->baseline.se);
    assert_close(250, c->baseline.value);
    made_control(f, "pace", "25", "50"); /* still slowed */
    assert_null(segments_coming(f->segments));
    made_control(f, "pace", "50", "0");
    made_play(f, 1);
    assert_close(250, segments_at(f->segments, 0)->baseline.value);
    made_begin(f, "prompt");
    made_play(f, 1);
    assert_true(isnan(segment_speedup(segments_at(f->segments, 0), &f->info).value));
    assert_close(250, c->baseline.value);
}

/* The machine becomes slower with each round, so a baseline from the beginning does not apply to later settings. */
SEGMENTS_TEST(a_speedup_is_of_slices_in_the_segment)
{
    struct fixture *f = *state;
    char speed[32];
    made_begin(f, "start");
    made_play(f, 4);
    made_control(f, "baseline_se", "", "5");
    made_control(f, "baseline", "", "1000");
    struct estimate e = segment_speedup(segments_at(f->segments, 0), &f->info);
    assert_greater(e.value, 0);
    assert_true(isnan(e.se)); /* measured at another time */
    for (int segment = 0; segment < 3; segment++) {
        made_control(f, "tau", segment % 2 ? "0.7" : "0.55", segment % 2 ? "0.55" : "0.7");
        for (int slice = 0; slice < 2 * SLICES_LEAST; slice++) {
            const struct segment *at = segments_at(f->segments, 0);
            const double us = at->total.draft_us + at->total.verify_us, emitted = (double)at->total.emitted;
            made_play(f, 3);
            at = segments_at(f->segments, 0);
            const bool first = slice == 0;
            const double spent = at->total.draft_us + at->total.verify_us - (first ? 0 : us),
                         tokens = (double)at->total.emitted - (first ? 0 : emitted);
            snprintf(speed, sizeof speed, "%.17g", tokens / spent * 1e6 / 2); /* half as fast as the rounds */
            e = segment_speedup(at, &f->info);
            assert_int_equal(isnan(e.se), slice < SLICES_LEAST);
            made_control(f, "baseline_slice", "", speed);
        }
        e = segment_speedup(segments_at(f->segments, 0), &f->info);
        assert_close(2, e.value);
        assert_less(e.se, 1e-6);
    }
}

SEGMENTS_TEST(a_race_is_one_segment_and_the_prompt_before_it_is_the_same_after_it)
{
    struct fixture *f = *state;
    made_begin(f, "prompt");
    made_control(f, "prompt", "", "mine");
    made_play(f, 1);
    made_control(f, "race", "", "begins");
    for (int run = 0; run < SEGMENTS + 40; run++) {
        char prompt[32];
        snprintf(prompt, sizeof prompt, "prompt %d", run);
        made_control(f, "tau", run % 2 ? "0.7" : "0.55", run % 2 ? "0.55" : "0.7");
        made_begin(f, "prompt");
        made_control(f, "prompt", "", prompt);
        made_play(f, 1);
        made_play(f, 1);
    }
    made_control(f, "race", "", "ends");
    made_play(f, 1); /* the rest of the race's last run */
    assert_int_equal(segments_held(f->segments), 2);
    const struct segment *race = segments_at(f->segments, 0), *mine = segments_at(f->segments, 1);
    assert_int_equal(race->races, SEGMENTS + 40);
    assert_string_equal(text(f, race, false), "race, 296 runs");
    made_control(f, "tau", "0.55", "0.7");
    assert_string_equal(text(f, segments_coming(f->segments), true), "τ 0.55→0.7");
    made_control(f, "tau", "0.7", "0.55");
    assert_int_equal(race->total.rounds, 3); /* the rounds of the last run */
    made_begin(f, "prompt");
    made_control(f, "prompt", "", "mine");
    made_play(f, 1);
    assert_int_equal(segments_held(f->segments), 3);
    const struct segment *after = segments_at(f->segments, 0);
    assert_int_equal(after->races, 0);
    assert_int_equal(after->prompt, mine->prompt);
    assert_int_not_equal(race->prompt, mine->prompt);
    assert_string_equal(segments_prompt(f->segments, after), "mine");
    made_begin(f, "prompt");
    made_control(f, "prompt", "", "another");
    made_play(f, 1);
    for (int back = 1; back < 4; back++)
        assert_int_not_equal(segments_at(f->segments, 0)->prompt, segments_at(f->segments, (uint32_t)back)->prompt);
    assert_string_equal(segments_prompt(f->segments, segments_at(f->segments, 0)), "another");
}

/* ---- two settings ---- */

static void
tell_of(struct fixture *f, uint32_t seq, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .run = f->run, .seq = seq, .round = f->round};
    e.control = (struct control_event){.old_text = before, .new_text = after, .applied_round = f->round + 1};
    control_event_set_name(&e.control, name);
    segments_event(f->segments, &e);
}

static void
play_one(struct fixture *f, uint32_t seq, uint32_t emitted)
{
    struct event e = {.type = EVENT_ROUND, .run = f->run, .seq = seq, .round = ++f->round};
    e.round_end = (struct round_event){.draft_us = 100, .verify_us = 900, .emitted = emitted, .layers_loaded = 16};
    segments_event(f->segments, &e);
}

SEGMENTS_TEST(two_settings_have_segments_of_their_own)
{
    struct fixture *f = *state;
    const struct policy_info *second = &f->info.policies[1];
    const struct knob *knob = &second->knobs[0];
    char text[80], least[32], most[32];
    knob_format(knob, knob->min, least, sizeof least);
    knob_format(knob, knob->max, most, sizeof most);
    f->trained = true;
    made_begin(f, "start");
    snprintf(text, sizeof text, "%s %s=%s", second->name, knob->name, most);
    tell_of(f, 0, "versus", "", text);
    tell_of(f, 1, "head", "", "lens");
    for (int i = 0; i < 3; i++) {
        play_one(f, 0, 2);
        play_one(f, 1, 3);
    }
    assert_int_equal(segments_held(f->segments), 2);
    const struct segment *b = segments_at(f->segments, 0), *a = segments_at(f->segments, 1);
    assert_true(a->versus && b->versus);
    assert_int_equal(a->seq, 0);
    assert_int_equal(b->seq, 1);
    assert_int_equal(a->total.emitted, 6);
    assert_int_equal(b->total.emitted, 9);
    assert_int_equal(b->policy, 1);
    assert_string_equal(a->head, "trained");
    assert_string_equal(b->head, "lens");
    assert_number_equal(b->value[0], knob->max);
    assert_int_equal(a->policy, f->policy);
    assert_number_equal(segment_estimates(a, &f->info).tokens_per_s.value, 2000);
    assert_number_equal(segment_estimates(b, &f->info).tokens_per_s.value, 3000);
    segment_text(b, &f->info, false, text, sizeof text);
    assert_memory_equal(text, "2: ", 3);
    assert_contains(text, second->name);
    /* A knob change of the second setting begins a segment of the second setting only. */
    tell_of(f, 1, knob->name, most, least);
    play_one(f, 0, 2);
    assert_int_equal(segments_held(f->segments), 2);
    play_one(f, 1, 3);
    play_one(f, 0, 2);
    assert_int_equal(segments_held(f->segments), 3);
    assert_int_equal(a->total.emitted, 10);
    assert_int_equal(segments_at(f->segments, 0)->seq, 1);
    assert_int_equal(segments_at(f->segments, 0)->total.emitted, 3);
    assert_number_equal(segments_at(f->segments, 0)->value[0], knob->min);
    /* The current settings are those of the sequence in focus. */
    assert_int_equal(segments_now(f->segments)->policy, f->policy);
    segments_focus(f->segments, 1);
    assert_int_equal(segments_now(f->segments)->policy, 1);
    assert_number_equal(segments_now(f->segments)->value[0], knob->min);
    /* A run of one sequence has the settings of the first. */
    made_begin(f, "restart");
    play_one(f, 0, 2);
    assert_int_equal(segments_now(f->segments)->policy, f->policy);
    assert_false(segments_at(f->segments, 0)->versus);
    assert_int_equal(segments_at(f->segments, 0)->n_changes, 0);
}
