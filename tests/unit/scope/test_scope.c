/* The scope against streams of events written by hand, made up, broken, traced and replayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/scope_events.h"
#include "traces/reader.h"

struct fixture {
    struct run_info info;
    struct scope *scope;
    struct stream stream;
    size_t fed;
};

static int
set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    fake_forms_run(&f->info, FAKE_LAYERS);
    struct err err = {0};
    assert_true(scope_open(&f->scope, &f->info, &err));
    stream_begin(&f->stream, 1);
    f->stream.run = 1;
    stream_control(&f->stream, "run", "start");
    for (uint32_t i = 0; i < 3; i++)
        say_token(&f->stream, SOURCE_PROMPT, i, (token_t)i);
    say_token(&f->stream, SOURCE_PREFILL, 3, 30);
    f->stream.round = 1;
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;
    scope_close(f->scope);
    run_info_free(&f->info);
    stream_free(&f->stream);
    free(f);
    return 0;
}

static const struct scope *
see(struct fixture *f)
{
    feed(f->scope, &f->stream, f->fed);
    f->fed = f->stream.n;
    return f->scope;
}

static enum fate
fate_at(struct fixture *f, uint32_t pos)
{
    const struct scope_column *c = scope_column(see(f), pos);
    return c == NULL ? FATE_NONE : c->fate;
}

static void
test_prompt_and_first_token_are_committed(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(fate_at(f, 0), FATE_PROMPT);
    assert_int_equal(fate_at(f, 3), FATE_PREFILL);
    assert_int_equal(scope_committed(f->scope), 4);
    assert_int_equal(scope_length(f->scope), 4);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_column(f->scope, 3)->exit_layer, FAKE_LAYERS);
}

static void
test_drafts_are_ghosts_until_they_are_judged(void **state)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 4, 2, 41, 0.5f);
    assert_int_equal(fate_at(f, 4), FATE_NONE);
    assert_int_equal(scope_length(f->scope), 5);
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    say_draft(&f->stream, 5, 2, 1, 50, 3);
    assert_int_equal(fate_at(f, 4), FATE_GHOST);
    assert_int_equal(fate_at(f, 5), FATE_GHOST);
    assert_int_equal(scope_committed(f->scope), 4);
    assert_int_equal(scope_round(f->scope, 0)->n_drafts, 2);
    assert_false(scope_round(f->scope, 0)->whole);
    say_verdict(&f->stream, 1, true, true);
    assert_int_equal(fate_at(f, 4), FATE_ACCEPTED);
    assert_int_equal(scope_column(f->scope, 4)->exit_layer, 2);
    assert_int_equal(scope_committed(f->scope), 5);
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 41);
}

static void
test_a_rejected_draft_gives_way_to_the_correction(void **state)
{
    struct fixture *f = *state;
    const struct scope_draft *struck;
    for (int i = 0; i < 3; i++) {
        say_layer(&f->stream, 4 + (uint32_t)i, 1, 40, 0.9f);
        say_draft(&f->stream, 4 + (uint32_t)i, 1 + i, i, 40 + i, 2);
    }
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_verdict(&f->stream, 3, false, false);
    assert_int_equal(fate_at(f, 5), FATE_REJECTED);
    say_token(&f->stream, SOURCE_CORRECTION, 5, 77);
    say_round(&f->stream, 3, 1, 2);
    assert_int_equal(fate_at(f, 5), FATE_CORRECTION);
    const struct scope_column *c = scope_column(f->scope, 5);
    assert_int_equal(c->token, 77);
    assert_int_equal(c->rejected, 41);
    assert_int_equal(c->rejected_exit, 2);
    assert_true(scope_column(f->scope, 4)->rejected == TOKEN_NONE);
    /* What was drafted behind it is there to be looked at, until the next round begins. */
    assert_int_equal(scope_committed(f->scope), 6);
    assert_int_equal(scope_length(f->scope), 7);
    assert_int_equal(fate_at(f, 6), FATE_REJECTED);
    assert_true(scope_cells(f->scope, 6)[1].known);
    assert_int_equal(scope_struck(f->scope, &struck), 2);
    assert_int_equal(struck[0].token, 41);
    assert_int_equal(struck[1].token, 42);
    f->stream.round = 2;
    say_layer(&f->stream, 6, 3, 60, 0.9f);
    see(f);
    assert_int_equal(scope_struck(f->scope, &struck), 0);
    assert_int_equal(scope_length(f->scope), 7);
    assert_int_equal(fate_at(f, 6), FATE_NONE);
    assert_false(scope_cells(f->scope, 6)[1].known);
    assert_false(scope_round(f->scope, 0)->whole);
    assert_int_equal(scope_round(f->scope, 1)->last, SOURCE_CORRECTION);
}

static void
test_full_acceptance_ends_in_a_bonus(void **state)
{
    struct fixture *f = *state;
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    say_verdict(&f->stream, 1, true, true);
    say_token(&f->stream, SOURCE_BONUS, 5, 50);
    say_round(&f->stream, 1, 1, 2);
    assert_int_equal(fate_at(f, 5), FATE_BONUS);
    assert_int_equal(scope_column(f->scope, 5)->exit_layer, FAKE_LAYERS);
    assert_int_equal(scope_round(f->scope, 0)->last, SOURCE_BONUS);
    assert_int_equal(scope_round(f->scope, 0)->first_pos, 4);
    assert_int_equal(scope_round_number(f->scope), 1);
    assert_true(scope_column(f->scope, 4)->threshold == 0.6f);
    assert_int_equal(scope_d_max(f->scope), 3);
}

static void
test_an_accepted_sibling_takes_the_place_of_the_main_line(void **state)
{
    struct fixture *f = *state;
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    say_draft(&f->stream, 4, 2, 0, 41, 2);
    say_draft(&f->stream, 4, 3, 0, 42, 2);
    say_layer(&f->stream, 5, 1, 99, 0.9f); /* about the text that ends in 40 */
    say_draft(&f->stream, 5, 4, 1, 50, 2);
    assert_int_equal(fate_at(f, 4), FATE_GHOST);
    assert_int_equal(scope_column(f->scope, 4)->token, 40);
    assert_int_equal(scope_column(f->scope, 4)->siblings, 2);
    assert_int_equal(scope_column(f->scope, 5)->siblings, 0);
    say_verdict(&f->stream, 1, false, false);
    say_verdict(&f->stream, 2, true, true);
    say_verdict(&f->stream, 3, false, false);
    say_verdict(&f->stream, 4, false, false);
    say_token(&f->stream, SOURCE_BONUS, 5, 51);
    say_layer(&f->stream, 5, FAKE_LAYERS, 51, 0.9f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 2, 1, 2);
    assert_int_equal(fate_at(f, 4), FATE_ACCEPTED);
    assert_int_equal(scope_column(f->scope, 4)->token, 41);
    assert_int_equal(scope_column(f->scope, 4)->rejected, 40);
    assert_false(scope_cells(f->scope, 5)[1].known);
    assert_true(scope_cells(f->scope, 5)[FAKE_LAYERS].known);
}

static void
test_a_cut_round_keeps_nothing_behind_the_end_of_the_text(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        say_draft(&f->stream, 4 + (uint32_t)i, 1 + i, i, 40 + i, 2);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, true, false);
    say_verdict(&f->stream, 3, true, false);
    say_round(&f->stream, 3, 3, 1);
    assert_int_equal(fate_at(f, 4), FATE_ACCEPTED);
    assert_int_equal(scope_length(f->scope), 5);
    assert_int_equal(scope_round(f->scope, 0)->last, ROUND_OPEN);
}

static void
test_verdicts_may_come_after_the_correction(void **state)
{
    struct fixture *f = *state;
    struct fixture *other;
    void *second;
    set_up(&second);
    other = second;
    for (int late = 0; late < 2; late++) {
        struct stream *s = late ? &other->stream : &f->stream;
        say_draft(s, 4, 1, 0, 40, 2);
        say_draft(s, 5, 2, 1, 41, 2);
        if (late)
            say_token(s, SOURCE_CORRECTION, 5, 77);
        say_verdict(s, 1, true, true);
        say_verdict(s, 2, false, false);
        if (!late)
            say_token(s, SOURCE_CORRECTION, 5, 77);
        s->t_us = 9000;
        say_round(s, 2, 1, 2)->t_us = 10000;
    }
    assert_same_scope(see(f), see(other));
    assert_int_equal(scope_column(f->scope, 5)->rejected, 41);
    tear_down(&second);
}

static void
test_a_new_run_forgets_the_text_and_keeps_the_knobs(void **state)
{
    struct fixture *f = *state;
    const uint32_t epoch = scope_epoch(f->scope);
    stream_control(&f->stream, "tau", "0.35");
    decode_report(&(struct decoder){.stream = &f->stream}, "tau", 0, 0.35f);
    say_token(&f->stream, SOURCE_BONUS, 4, 40);
    say_round(&f->stream, 0, 0, 1);
    see(f);
    assert_true(fabs(scope_knob(f->scope, 0) - 0.35) < 1e-9);
    assert_int_equal(scope_knob_events(f->scope, 0), 1);
    assert_int_equal(scope_series(f->scope, 0)->count, 1);
    f->stream.run = 2;
    f->stream.round = 0;
    stream_control(&f->stream, "end", "tokens");
    see(f);
    assert_string_equal(scope_end(f->scope), "tokens");
    stream_control(&f->stream, "run", "restart");
    see(f);
    assert_int_equal(scope_run(f->scope), 2);
    assert_int_equal(scope_length(f->scope), 0);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_series(f->scope, 0)->count, 0);
    assert_string_equal(scope_end(f->scope), "");
    assert_true(scope_epoch(f->scope) != epoch);
    assert_true(fabs(scope_knob(f->scope, 0) - 0.35) < 1e-9);
}

static void
test_another_policy_brings_its_own_knobs_and_series(void **state)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream};
    decode_report(&d, "tau", 0, 0.5f);
    stream_control(&f->stream, "policy", "forms");
    decode_report(&d, "tau", 0, 0.5f); /* not its */
    decode_report(&d, "band", 0, 1);
    decode_report(&d, "band", 1, 2);
    decode_report(&d, "mask", 3, 0);
    f->stream.round = 2;
    decode_report(&d, "mask", 3, 1);
    decode_report(&d, "mask", 2 * FAKE_LAYERS, 1); /* beyond its cells */
    stream_control(&f->stream, "ratio", "0.25");
    stream_control(&f->stream, "policy", "no such");
    see(f);
    assert_string_equal(scope_policy(f->scope)->name, "forms");
    assert_true(scope_knob(f->scope, 0) == 0.25);
    const struct scope_series *band = scope_series(f->scope, 1), *mask = scope_series(f->scope, 5);
    assert_int_equal(scope_series(f->scope, 0)->count, 0);
    assert_int_equal(band->count, 1);
    assert_true(band->ring[0].value == 1 && band->ring[0].value2 == 2);
    assert_int_equal(mask->changed[3], 2);
    assert_int_equal(mask->last_change, 2);
    assert_int_equal(mask->used, 4);
    assert_null(scope_series(f->scope, 7));
}

static void
test_lost_events_leave_what_was_committed(void **state)
{
    struct fixture *f = *state;
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    see(f);
    scope_lost(f->scope, 12);
    assert_int_equal(scope_length(f->scope), 4);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_events_lost(f->scope), 12);
    say_verdict(&f->stream, 1, true, true); /* of a draft that is not known any more */
    say_token(&f->stream, SOURCE_BONUS, 9, 90);
    say_round(&f->stream, 1, 1, 2);
    see(f);
    assert_null(scope_column(f->scope, 4));
    assert_int_equal(fate_at(f, 9), FATE_BONUS);
    assert_int_equal(scope_rounds(f->scope), 1);
}

static void
test_sure_and_wrong_is_spurious(void **state)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 4, 1, 41, 0.65f);
    say_layer(&f->stream, 4, 2, 41, 0.55f);
    say_layer(&f->stream, 4, 3, 40, 0.95f);
    say_draft(&f->stream, 4, 1, 0, 40, 3);
    see(f);
    assert_false(scope_spurious(f->scope, 4, 1)); /* nobody knows yet */
    say_verdict(&f->stream, 1, true, true);
    say_layer(&f->stream, 4, FAKE_LAYERS, 40, 0.9f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 1, 1, 1);
    see(f);
    assert_true(scope_spurious(f->scope, 4, 1));
    assert_false(scope_spurious(f->scope, 4, 2)); /* below 0.6 */
    assert_false(scope_spurious(f->scope, 4, 3));
    assert_false(scope_spurious(f->scope, 4, FAKE_LAYERS));
}

static void
test_a_later_probe_adds_to_what_the_policy_saw(void **state)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 3, 2, 41, 0.5f)->layer.annealed = 0.4f;
    struct event *e = say_layer(&f->stream, 3, 2, 41, 0.5f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.kl_final = 1.5f;
    e->layer.rank_final = 7;
    see(f);
    const struct scope_cell *cell = &scope_cells(f->scope, 3)[2];
    assert_int_equal(cell->probed_by, PROBED_POLICY);
    assert_true(cell->annealed == 0.4f && cell->kl_final == 1.5f);
    assert_int_equal(cell->rank_final, 7);
    assert_int_equal(scope_probed(f->scope, 2), 1);
}

/* Position 4, layer 2: what a head says, and whether the last layer says so too. */
static void
say_head(struct fixture *f, uint32_t pos, int head, token_t token, bool agrees)
{
    struct event *e = say_layer(&f->stream, pos, 2, token, 0.5f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.head = head;
    e->layer.final_agrees = agrees;
}

static void
test_both_heads_are_kept_and_the_one_in_use_is_shown(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(scope_head(see(f)), "");
    stream_control(&f->stream, "head", "lens");
    say_head(f, 4, 0, 7, false);
    assert_true(isnan(scope_agreement(see(f), 2, false)));
    say_head(f, 4, 1, 8, true);
    say_layer(&f->stream, 4, FAKE_LAYERS, 8, 0.9f)->layer.probed_by = PROBED_SCOPE;
    assert_int_equal(scope_cells(see(f), 4)[2].token, 7);
    assert_string_equal(scope_head(f->scope), "lens");
    stream_control(&f->stream, "head", "trained");
    assert_int_equal(scope_cells(see(f), 4)[2].token, 8);
    assert_int_equal(scope_cells(f->scope, 4)[FAKE_LAYERS].token, 8); /* the last layer has one word */
    scope_show_head(f->scope, false);
    assert_string_equal(scope_head(f->scope), "lens");
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 7);
}

static void
test_agreement_counts_positions_where_both_heads_were_asked_once(void **state)
{
    struct fixture *f = *state;
    say_head(f, 4, 0, 7, false);
    say_head(f, 4, 1, 8, true);
    say_head(f, 4, 1, 8, true);  /* again: no news */
    say_head(f, 5, 1, 8, false); /* the lens was not asked here */
    say_head(f, 6, 1, 8, true);
    say_head(f, 6, 0, 8, true);
    assert_true(scope_agreement(see(f), 2, false) == 0.5);
    assert_true(scope_agreement(f->scope, 2, true) == 1);
    assert_true(isnan(scope_agreement(f->scope, 3, true)));
    assert_true(isnan(scope_agreement(f->scope, FAKE_LAYERS + 1, true)));
    f->stream.run = 2;
    stream_control(&f->stream, "run", "restart");
    assert_true(isnan(scope_agreement(see(f), 2, true)));
}

static void
test_words_are_safe_and_unknown_ones_have_a_number(void **state)
{
    struct fixture *f = *state;
    say_vocab(&f->stream, 5, "\x1b[2J\n", 5);
    say_token(&f->stream, SOURCE_BONUS, 4, 6);
    see(f);
    assert_string_equal(scope_text(f->scope, 5), "\\x1b[2J⏎");
    assert_string_equal(scope_text(f->scope, 6), "‹6›");
    assert_string_equal(scope_text(f->scope, TOKEN_NONE), "");
    uint32_t n;
    assert_memory_equal(scope_bytes(f->scope, 5, &n), "\x1b[2J\n", 5);
    assert_int_equal(n, 5);
    assert_null(scope_bytes(f->scope, FAKE_VOCAB + 3, &n));
}

static void
test_history_is_bounded(void **state)
{
    struct fixture *f = *state;
    f->info.ctx = 1u << 20;
    const uint32_t n = SCOPE_POSITIONS + 500;
    for (uint32_t pos = 4; pos < n; pos++) {
        f->stream.round = pos - 3;
        say_token(&f->stream, SOURCE_BONUS, pos, (token_t)(pos % FAKE_VOCAB));
        say_layer(&f->stream, pos, 1, 9, 0.1f);
        say_round(&f->stream, 0, 0, 1);
    }
    see(f);
    assert_int_equal(scope_length(f->scope), n);
    assert_int_equal(scope_first(f->scope), 500);
    assert_null(scope_column(f->scope, 499));
    assert_int_equal(scope_column(f->scope, 500)->pos, 500);
    assert_null(scope_cells(f->scope, n - SCOPE_COLUMNS - 1));
    assert_non_null(scope_cells(f->scope, n - SCOPE_COLUMNS));
    assert_int_equal(scope_rounds(f->scope), SCOPE_ROUNDS);
    assert_int_equal(scope_round(f->scope, 0)->number, n - 4);
    assert_null(scope_round(f->scope, SCOPE_ROUNDS));
    /* An event about what is forgotten changes nothing. */
    say_layer(&f->stream, 3, 1, 9, 0.1f);
    say_token(&f->stream, SOURCE_PROMPT, 3, 9);
    see(f);
    assert_int_equal(scope_length(f->scope), n);
    assert_null(scope_column(f->scope, 3));
}

/* Events whose every number is drawn anew: nothing may be touched that is not the scope's. */
static void
test_broken_events_do_no_harm(void **state)
{
    struct fixture *f = *state;
    struct stream *s = &f->stream;
    print_message("seed 1\n");
    static const int32_t odd[] = {-1, 0, 1, 63, 64, FAKE_LAYERS, FAKE_LAYERS + 1, FAKE_VOCAB, INT32_MAX, INT32_MIN};
    static const char *const names[] = {"run", "policy", "state", "probe", "end", "tau", "d_max", "mode", "nothing"};
    static const char *const texts[] = {"", "forms", "ar", "specbound", "paused", "0.5", "1e999", "dynamic", "\x1b[2J"};
    for (int i = 0; i < 60000; i++) {
        const enum event_type type = (enum event_type)stream_below(s, EVENT_TYPES);
        s->n = 0;
        struct event *e = stream_add(s, type);
        uint32_t *words = (uint32_t *)(void *)&e->token;
        const size_t n_words = (sizeof *e - offsetof(struct event, token)) / sizeof *words;
        for (size_t k = 0; k < n_words; k++)
            words[k] = stream_below(s, 3) == 0 ? stream_below(s, UINT32_MAX)
                                               : (uint32_t)odd[stream_below(s, sizeof odd / sizeof odd[0])];
        e->round = stream_below(s, 50);
        if (type == EVENT_TOKEN)
            e->token.source = (enum token_source)stream_below(s, TOKEN_SOURCES + 1);
        if (type == EVENT_TOKEN && stream_below(s, 2) == 0)
            e->token.pos = stream_below(s, 40);
        if (type == EVENT_VOCAB) {
            e->vocab.bytes = texts[stream_below(s, 9)];
            e->vocab.n_bytes = (uint32_t)strlen(e->vocab.bytes);
        }
        if (type == EVENT_CONTROL) {
            snprintf(e->control.name, sizeof e->control.name, "%s", names[stream_below(s, 9)]);
            e->control.old_text = "";
            e->control.new_text = texts[stream_below(s, 9)];
        }
        if (type == EVENT_SERIES && stream_below(s, 2) == 0)
            snprintf(e->series.key, sizeof e->series.key, "%s", stream_below(s, 2) == 0 ? "tau" : "mask");
        scope_event(f->scope, e);
        if (stream_below(s, 500) == 0)
            scope_lost(f->scope, 3);
        const uint32_t length = scope_length(f->scope);
        assert_true(scope_committed(f->scope) <= length);
        assert_true(length <= FAKE_CTX + 1);
        const struct scope_column *c = scope_column(f->scope, stream_below(s, FAKE_CTX + 9));
        if (c != NULL) {
            assert_non_null(scope_text(f->scope, c->token));
            assert_true(c->exit_layer >= -1 && c->exit_layer <= FAKE_LAYERS);
        }
    }
}

static void
test_a_reset_scope_is_a_new_one(void **state)
{
    struct fixture *f = *state;
    struct scope *fresh;
    struct err err = {0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct stream s;
        struct decoder d = {.trees = seed % 2 == 0, .probe_all = seed % 3 == 0};
        stream_begin(&s, seed);
        decode_begin(&d, &s, &f->info, 5);
        for (int i = 0; i < 30; i++)
            decode_round(&d);
        stream_control(&s, "policy", "forms");
        decode_begin(&d, &s, &f->info, 4);
        for (int i = 0; i < 20; i++)
            decode_round(&d);
        see(f);
        scope_reset(f->scope);
        feed(f->scope, &s, 0);
        assert_true(scope_open(&fresh, &f->info, &err));
        feed(fresh, &s, 0);
        assert_int_equal(scope_committed(fresh), d.length);
        assert_int_equal(scope_rounds(fresh), 20);
        assert_same_scope(fresh, f->scope);
        scope_close(fresh);
        stream_free(&s);
    }
}

/* What DESIGN.md promises: what is on screen is in the trace, and what is in the trace can be put on screen. */
static void
test_a_replayed_trace_gives_the_same_scope(void **state)
{
    (void)state;
    char folder[256], path[256];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct run_info info;
        struct scope *live, *again;
        struct stream s;
        struct err err = {0};
        print_message("seed %u\n", (unsigned)seed);
        fake_run(&info);
        make_temp_folder(folder);
        stream_begin(&s, seed);
        struct decoder d = {.trees = seed % 2 == 0, .probe_all = seed % 3 == 0};
        decode_begin(&d, &s, &info, 5);
        for (int i = 0; i < 25; i++) {
            decode_round(&d);
            if (i % 7 == 3)
                stream_control(&s, "tau", i % 2 == 0 ? "0.4" : "0.7");
        }
        stream_control(&s, "end", "tokens");
        decode_begin(&d, &s, &info, 3);
        for (int i = 0; i < 25; i++)
            decode_round(&d);
        write_trace(folder, &s, true, path);

        assert_true(scope_open(&live, &info, &err));
        feed(live, &s, 0);
        struct trace_reader *reader;
        assert_true(trace_reader_open(&reader, path, &err));
        assert_true(scope_open(&again, trace_reader_info(reader), &err));
        struct event e;
        while (trace_reader_next(reader, &e, &err))
            scope_event(again, &e);
        assert_int_equal(err.kind, ERR_NONE);
        assert_same_scope(live, again);
        scope_close(again);
        trace_reader_close(reader);
        scope_close(live);
        stream_free(&s);
        run_info_free(&info);
        remove_folder(folder);
    }
}

static void
test_a_model_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct run_info info;
    struct scope *scope;
    struct err err = {0};
    fake_run(&info);
    info.layers = 0;
    assert_false(scope_open(&scope, &info, &err));
    assert_int_equal(err.kind, ERR_WORK);
    assert_null(scope);
    info.layers = 5000;
    assert_false(scope_open(&scope, &info, &err));
    run_info_free(&info);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_prompt_and_first_token_are_committed),
        TEST(test_drafts_are_ghosts_until_they_are_judged),
        TEST(test_a_rejected_draft_gives_way_to_the_correction),
        TEST(test_full_acceptance_ends_in_a_bonus),
        TEST(test_an_accepted_sibling_takes_the_place_of_the_main_line),
        TEST(test_a_cut_round_keeps_nothing_behind_the_end_of_the_text),
        TEST(test_verdicts_may_come_after_the_correction),
        TEST(test_a_new_run_forgets_the_text_and_keeps_the_knobs),
        TEST(test_another_policy_brings_its_own_knobs_and_series),
        TEST(test_lost_events_leave_what_was_committed),
        TEST(test_sure_and_wrong_is_spurious),
        TEST(test_a_later_probe_adds_to_what_the_policy_saw),
        TEST(test_both_heads_are_kept_and_the_one_in_use_is_shown),
        TEST(test_agreement_counts_positions_where_both_heads_were_asked_once),
        TEST(test_words_are_safe_and_unknown_ones_have_a_number),
        TEST(test_history_is_bounded),
        TEST(test_broken_events_do_no_harm),
        TEST(test_a_reset_scope_is_a_new_one),
        cmocka_unit_test(test_a_replayed_trace_gives_the_same_scope),
        cmocka_unit_test(test_a_model_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
