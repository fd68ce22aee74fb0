/* The scope on streams of hand-written events: committed tokens, runs, policies, predictions. */
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

static enum fate
fate_at(struct fixture *f, uint32_t pos)
{
    const struct scope_column *c = scope_column(seen(f), pos);
    return c == NULL ? FATE_NONE : c->fate;
}

SCOPE_TEST(prompt_and_first_token_are_committed)
{
    struct fixture *f = *state;
    assert_int_equal(fate_at(f, 0), FATE_PROMPT);
    assert_int_equal(fate_at(f, 3), FATE_PREFILL);
    assert_int_equal(scope_now(f->scope)->committed, 4);
    assert_int_equal(scope_now(f->scope)->length, 4);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_column(f->scope, 3)->exit_layer, FAKE_LAYERS);
}

SCOPE_TEST(drafts_are_ghosts_until_they_are_judged)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 4, 2, 41, 0.5f);
    assert_int_equal(fate_at(f, 4), FATE_NONE);
    assert_int_equal(scope_now(f->scope)->length, 5);
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    say_draft(&f->stream, 5, 2, 1, 50, 3);
    assert_int_equal(fate_at(f, 4), FATE_GHOST);
    assert_int_equal(fate_at(f, 5), FATE_GHOST);
    assert_int_equal(scope_now(f->scope)->committed, 4);
    assert_int_equal(scope_round(f->scope, 0)->n_drafts, 2);
    assert_false(scope_round(f->scope, 0)->whole);
    say_verdict(&f->stream, 1, true, true);
    assert_int_equal(fate_at(f, 4), FATE_ACCEPTED);
    assert_int_equal(scope_column(f->scope, 4)->exit_layer, 2);
    assert_int_equal(scope_now(f->scope)->committed, 5);
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 41);
}

SCOPE_TEST(a_rejected_draft_gives_way_to_the_correction)
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
    assert_int_equal(scope_column(f->scope, 4)->rejected, TOKEN_NONE);
    /* Rejected drafts after it stay visible until the next round begins. */
    assert_int_equal(scope_now(f->scope)->committed, 6);
    assert_int_equal(scope_now(f->scope)->length, 7);
    assert_int_equal(fate_at(f, 6), FATE_REJECTED);
    assert_true(scope_cells(f->scope, 6)[1].known);
    assert_int_equal(scope_struck(f->scope, &struck), 2);
    assert_int_equal(struck[0].token, 41);
    assert_int_equal(struck[1].token, 42);
    f->stream.round = 2;
    say_layer(&f->stream, 6, 3, 60, 0.9f);
    seen(f);
    assert_int_equal(scope_struck(f->scope, &struck), 0);
    assert_int_equal(scope_now(f->scope)->length, 7);
    assert_int_equal(fate_at(f, 6), FATE_NONE);
    assert_false(scope_cells(f->scope, 6)[1].known);
    assert_false(scope_round(f->scope, 0)->whole);
    assert_int_equal(scope_round(f->scope, 1)->last, SOURCE_CORRECTION);
}

SCOPE_TEST(full_acceptance_ends_in_a_bonus)
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
    assert_int_equal(scope_now(f->scope)->round, 1);
    assert_number_equal(scope_column(f->scope, 4)->threshold, 0.6f);
    assert_int_equal(scope_d_max(f->scope), 3);
}

SCOPE_TEST(an_accepted_sibling_takes_the_place_of_the_main_line)
{
    struct fixture *f = *state;
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    say_draft(&f->stream, 4, 2, 0, 41, 2);
    say_draft(&f->stream, 4, 3, 0, 42, 2);
    say_layer(&f->stream, 5, 1, 99, 0.9f); /* in the text that ends in 40 */
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

SCOPE_TEST(a_path_has_the_product_of_its_probabilities)
{
    /* a tree; drafts without a confidence follow */
    static const struct {
        uint32_t pos;
        int parent;
        float confidence, probability, path;
    } nodes[] = {
        {4, 0, 0.5f, 0.5f, 0.5f}, {4, 0, 0.25f, 0.25f, 0.25f}, {5, 1, 0.75f, 0.75f, 0.375f}, {5, 2, 0.5f, 0.5f, 0.125f},
        {5, 2, NAN, NAN, NAN},    {6, 3, NAN, NAN, NAN},       {6, 5, 0.5f, 0.5f, NAN},      {6, 4, 0, 0, 0},
        {7, 8, 1.5f, NAN, NAN}};
    struct fixture *f = *state;
    const int n = (int)(sizeof nodes / sizeof nodes[0]);
    for (int i = 0; i < n; i++)
        say_draft(&f->stream, nodes[i].pos, i + 1, nodes[i].parent, 40 + i, 2)->token.confidence = nodes[i].confidence;
    seen(f);
    const struct scope_round *r = scope_round(f->scope, 0);
    assert_int_equal(r->n_drafts, n);
    for (int i = 0; i < n; i++) {
        const float got[] = {r->drafts[i].probability, r->drafts[i].path};
        const float wanted[] = {nodes[i].probability, nodes[i].path};
        for (int k = 0; k < 2; k++)
            if (!(isnan(got[k]) && isnan(wanted[k])) && got[k] != wanted[k])
                fail_msg("node %d has %g in place of %g", i + 1, (double)got[k], (double)wanted[k]);
    }
}

SCOPE_TEST(a_cut_round_keeps_no_rows_after_the_end_of_the_text)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        say_draft(&f->stream, 4 + (uint32_t)i, 1 + i, i, 40 + i, 2);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, true, false);
    say_verdict(&f->stream, 3, true, false);
    say_round(&f->stream, 3, 3, 1);
    assert_int_equal(fate_at(f, 4), FATE_ACCEPTED);
    assert_int_equal(scope_now(f->scope)->length, 5);
    assert_int_equal(scope_round(f->scope, 0)->last, ROUND_OPEN);
}

SCOPE_TEST(verdicts_may_come_after_the_correction)
{
    struct fixture *f = *state;
    struct fixture *other;
    void *second;
    scope_set_up(&second);
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
    assert_same_scope(seen(f), seen(other));
    assert_int_equal(scope_column(f->scope, 5)->rejected, 41);
    scope_tear_down(&second);
}

SCOPE_TEST(a_new_run_forgets_the_text_and_keeps_the_knobs)
{
    struct fixture *f = *state;
    const uint32_t epoch = scope_now(f->scope)->epoch;
    stream_control(&f->stream, "tau", "0.35");
    decode_report(&(struct decoder){.stream = &f->stream}, "tau", 0, 0.35f);
    say_token(&f->stream, SOURCE_BONUS, 4, 40);
    say_round(&f->stream, 0, 0, 1);
    seen(f);
    assert_near(scope_knob(f->scope, 0), 0.35, 1e-9);
    assert_int_equal(scope_series(f->scope, 0)->count, 1);
    f->stream.run = 2;
    f->stream.round = 0;
    stream_control(&f->stream, "end", "tokens");
    seen(f);
    assert_string_equal(scope_now(f->scope)->end, "tokens");
    stream_control(&f->stream, "run", "restart");
    seen(f);
    assert_int_equal(scope_now(f->scope)->run, 2);
    assert_int_equal(scope_now(f->scope)->length, 0);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_series(f->scope, 0)->count, 0);
    assert_string_equal(scope_now(f->scope)->end, "");
    assert_int_not_equal(scope_now(f->scope)->epoch, epoch);
    assert_near(scope_knob(f->scope, 0), 0.35, 1e-9);
}

SCOPE_TEST(another_policy_brings_its_own_knobs_and_series)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream};
    decode_report(&d, "tau", 0, 0.5f);
    stream_control(&f->stream, "policy", "forms");
    decode_report(&d, "tau", 0, 0.5f); /* a report of another policy */
    decode_report(&d, "band", 0, 1);
    decode_report(&d, "band", 1, 2);
    decode_report(&d, "mask", 3, 0);
    f->stream.round = 2;
    decode_report(&d, "mask", 3, 1);
    decode_report(&d, "mask", 2 * FAKE_LAYERS, 1); /* after its last cell */
    stream_control(&f->stream, "ratio", "0.25");
    stream_control(&f->stream, "policy", "no such");
    seen(f);
    assert_string_equal(scope_policy(f->scope)->name, "forms");
    assert_number_equal(scope_knob(f->scope, 0), 0.25);
    const struct scope_series *band = scope_series(f->scope, 1), *mask = scope_series(f->scope, 5);
    assert_int_equal(scope_series(f->scope, 0)->count, 0);
    assert_int_equal(band->count, 1);
    assert_number_equal(band->ring[0].value, 1);
    assert_number_equal(band->ring[0].value2, 2);
    assert_number_equal(scope_round_values(f->scope, 5, 1)[3], 0); /* the value stays until the next report */
    assert_number_equal(scope_round_values(f->scope, 5, 2)[3], 1);
    assert_int_equal(mask->used, 4);
    assert_null(scope_series(f->scope, 7));
}

SCOPE_TEST(judgements_of_drafts_are_stored_by_round)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream};
    stream_control(&f->stream, "policy", "judges");
    for (uint32_t round = 1; round <= SCOPE_ROUNDS + 5; round++) {
        f->stream.round = round;
        decode_report(&d, "sure", 0, (float)round / 4096);
        decode_report(&d, "table", 0, 1);
        if (round % 2 == 0)
            decode_report(&d, "sure", 7, 0.5f);
        decode_report(&d, "sure", 8, 0.5f); /* after its last cell */
    }
    seen(f);
    const uint32_t newest = SCOPE_ROUNDS + 5, sure = 4;
    for (uint32_t round = newest; round > newest - SCOPE_ROUNDS; round--) {
        const float *value = scope_round_values(f->scope, sure, round);
        assert_non_null(value);
        assert_number_equal(value[0], (float)round / 4096);
        assert_true(isnan(value[1]));
        assert_true(round % 2 == 0 ? value[7] == 0.5f : isnan(value[7])); /* no value of the round before is left */
    }
    assert_null(scope_round_values(f->scope, sure, newest - SCOPE_ROUNDS));
    assert_null(scope_round_values(f->scope, sure, newest + 1));
    assert_null(scope_round_values(f->scope, 99, newest));
    f->stream.round = 3;
    decode_report(&d, "sure", 0, 0.9f); /* round 3 was dropped: its place has another round now */
    seen(f);
    assert_number_equal(scope_round_values(f->scope, sure, 3 + SCOPE_ROUNDS)[0], (float)(3 + SCOPE_ROUNDS) / 4096);
    stream_control(&f->stream, "policy", "specbound");
    stream_control(&f->stream, "policy", "judges");
    seen(f);
    assert_null(scope_round_values(f->scope, sure, newest));
}

SCOPE_TEST(lost_events_leave_the_committed_tokens)
{
    struct fixture *f = *state;
    say_draft(&f->stream, 4, 1, 0, 40, 2);
    seen(f);
    scope_lost(f->scope, 12);
    assert_int_equal(scope_now(f->scope)->length, 4);
    assert_int_equal(scope_rounds(f->scope), 0);
    assert_int_equal(scope_now(f->scope)->lost, 12);
    say_verdict(&f->stream, 1, true, true); /* the draft was dropped already */
    say_token(&f->stream, SOURCE_BONUS, 9, 90);
    say_round(&f->stream, 1, 1, 2);
    seen(f);
    assert_null(scope_column(f->scope, 4));
    assert_int_equal(fate_at(f, 9), FATE_BONUS);
    assert_int_equal(scope_rounds(f->scope), 1);
}

SCOPE_TEST(words_are_safe_and_unknown_ones_have_a_number)
{
    struct fixture *f = *state;
    say_vocab(&f->stream, 5, "\x1b[2J\n", 5);
    say_token(&f->stream, SOURCE_BONUS, 4, 6);
    seen(f);
    assert_string_equal(scope_text(f->scope, 5), "\\x1b[2J⏎");
    assert_string_equal(scope_text(f->scope, 6), "‹6›");
    assert_string_equal(scope_text(f->scope, TOKEN_NONE), "");
    uint32_t n;
    assert_memory_equal(scope_bytes(f->scope, 5, &n), "\x1b[2J\n", 5);
    assert_int_equal(n, 5);
    assert_null(scope_bytes(f->scope, FAKE_VOCAB + 3, &n));
}
