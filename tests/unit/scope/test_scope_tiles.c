/* The scope's data about each sequence of a batch, and the focus. */
#include "engine/scope/scope.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

static void
say(struct fixture *f, uint32_t seq, const char *name, const char *text)
{
    f->stream.seq = seq;
    stream_control(&f->stream, name, text);
}

static void
join(struct fixture *f, uint32_t seq, const char *prompt)
{
    say(f, seq, "joined", prompt);
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    say_token(&f->stream, SOURCE_PREFILL, 1, 2);
}

/* A round's line: the number of drafts, of accepted drafts, and its share of the time. */
static void
line(struct fixture *f, uint32_t seq, uint32_t round, uint32_t drafts, uint32_t accepted, uint32_t us)
{
    f->stream.seq = seq;
    f->stream.round = round;
    const struct scope_tile *t = scope_tile(seen(f), scope_tile_index(f->scope, seq));
    const uint32_t at = 2 + (uint32_t)(t != NULL ? t->total.emitted : 0);
    for (uint32_t i = 0; i < drafts; i++)
        say_draft(&f->stream, at + i, (int)i + 1, (int)i, 10 + (token_t)i, 2);
    for (uint32_t i = 0; i < drafts; i++)
        say_verdict(&f->stream, (int)i + 1, i < accepted, i < accepted);
    say_token(&f->stream, accepted < drafts ? SOURCE_CORRECTION : SOURCE_BONUS, at + accepted, 20);
    struct event *e = say_round(&f->stream, drafts, accepted, accepted + 1);
    e->round_end.draft_us = us / 4;
    e->round_end.verify_us = us - us / 4;
}

static int
batch_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct err err = {0};
    assert_non_null(f);
    fake_forms_run(&f->info, FAKE_LAYERS);
    f->info.sequences = 2;
    f->info.prompts = 4;
    assert_ok(scope_open(&f->scope, &f->info, &err), err);
    stream_begin(&f->stream, 1);
    f->stream.run = 1;
    say(f, 0, "run", "start");
    *state = f;
    return 0;
}
#define BATCH_TEST(name) TEST_WITH(name, batch_set_up, scope_tear_down)

static const struct scope_tile *
tile(struct fixture *f, uint32_t seq)
{
    const struct scope_tile *t = scope_tile(seen(f), scope_tile_index(f->scope, seq));
    assert_non_null(t);
    assert_int_equal(t->seq, seq);
    return t;
}

SCOPE_TEST(a_run_of_one_sequence_is_no_batch)
{
    struct fixture *f = *state;
    assert_false(scope_is_batch(seen(f)));
    assert_int_equal(scope_batch(f->scope).tiles, 1);
    assert_int_equal(scope_batch(f->scope).waiting, 0);
    assert_true(tile(f, 0)->live && tile(f, 0)->held);
    assert_string_equal(tile(f, 0)->prompt, "");
    assert_int_equal(scope_focus(f->scope), 0);
}

BATCH_TEST(who_joined_who_left_and_who_waits)
{
    struct fixture *f = *state;
    assert_true(scope_is_batch(seen(f)));
    assert_int_equal(scope_batch(f->scope).waiting, 4);
    join(f, 0, "Once upon\na time");
    join(f, 1, "Three \x1b[31mmice");
    assert_string_equal(tile(f, 0)->prompt, "Once upon⏎a time");
    assert_string_equal(tile(f, 1)->prompt, "Three \\x1b[31mmice");
    say(f, 0, "left", "eos");
    join(f, 2, "Twelve");
    const struct scope_batch b = scope_batch(seen(f));
    assert_int_equal(b.tiles, 3);
    assert_int_equal(b.live, 2);
    assert_int_equal(b.left, 1);
    assert_int_equal(b.waiting, 1);
    assert_false(tile(f, 0)->live);
    assert_true(tile(f, 0)->held);
    assert_string_equal(tile(f, 0)->left, "eos");
    assert_string_equal(tile(f, 2)->left, "");
    assert_null(scope_tile(f->scope, 3));
    assert_int_equal(scope_tile_index(f->scope, 3), 3);
    line(f, 0, 1, 2, 1, 100); /* the sequence was extended */
    assert_true(tile(f, 0)->live);
    assert_string_equal(tile(f, 0)->left, "");
}

/* Traces that are older than the event `back` have a round of the sequence instead. */
BATCH_TEST(a_resumed_sequence_is_live_after_each_kind_of_event)
{
    struct fixture *f = *state;
    join(f, 0, "a");
    for (int how = 0; how < 3; how++) {
        const uint32_t place = tile(f, 0)->place;
        say(f, 0, "left", "tokens");
        assert_false(tile(f, 0)->live);
        assert_string_equal(tile(f, 0)->left, "tokens");
        if (how == 0)
            say(f, 0, "back", "");
        else if (how == 1)
            say_token(&f->stream, SOURCE_BONUS, 2, 9);
        else
            line(f, 0, 1, 2, 1, 100);
        assert_true(tile(f, 0)->live && tile(f, 0)->held);
        assert_string_equal(tile(f, 0)->left, "");
        assert_int_equal(tile(f, 0)->place, place);
    }
}

BATCH_TEST(prompts_are_cut_at_whole_characters)
{
    struct fixture *f = *state;
    char prompt[400] = "";
    for (int i = 0; i < 45; i++)
        strcat(prompt, i % 7 == 0 ? "ab" : "\xe6\xbc\xa2");
    join(f, 0, prompt);
    const char *shown = tile(f, 0)->prompt;
    assert_greater(strlen(shown), 100);
    assert_null(strchr(shown, '\\'));
    assert_int_equal(strncmp(shown, prompt, strlen(shown)), 0);
}

/* Two sequences share rounds 1 and 2, then one of them has a third. A user waits for the time of the whole round,
 * however it is divided. */
BATCH_TEST(speed_is_tokens_over_the_time_of_the_rounds_it_took_part_in)
{
    struct fixture *f = *state;
    join(f, 0, "a");
    join(f, 1, "b");
    line(f, 0, 1, 3, 2, 1000);
    line(f, 1, 1, 4, 4, 1000);
    assert_number_equal(tile(f, 0)->rounds_us, 2000);
    assert_number_equal(tile(f, 1)->rounds_us, 2000);
    line(f, 1, 2, 2, 0, 500);
    line(f, 0, 2, 1, 1, 500);
    say(f, 0, "left", "tokens");
    join(f, 2, "c");
    line(f, 1, 3, 3, 1, 700);
    line(f, 2, 3, 0, 0, 700);
    assert_number_equal(tile(f, 0)->rounds_us, 3000);
    assert_number_equal(tile(f, 1)->rounds_us, 3000 + 1400);
    assert_number_equal(tile(f, 2)->rounds_us, 1400);
    assert_int_equal(tile(f, 0)->total.emitted, 3 + 2);
    assert_int_equal(tile(f, 1)->total.emitted, 5 + 1 + 2);
    assert_int_equal(tile(f, 0)->round, 2);
    assert_int_equal(tile(f, 1)->round, 3);
    assert_near(scope_tile_tokens_per_s(tile(f, 0)), 5e6 / 3000, 1e-6);
    assert_near(scope_tile_tokens_per_s(tile(f, 1)), 8e6 / 4400, 1e-6);
    const struct measures m = metrics_measures(&scope_now(f->scope)->metrics, &tile(f, 1)->total);
    assert_near(m.tokens_per_round, 8.0 / 3, 1e-9);
    assert_near(m.acceptance_rate, 5.0 / 9, 1e-9);
    /* All sequences together: tokens divided by the sum of the shares. */
    const struct metrics *all = &scope_now(f->scope)->metrics;
    assert_near(metrics_measures(all, &all->total).tokens_per_s, 14e6 / 4400, 1e-6);
    assert_int_equal(scope_now(f->scope)->round, 3);
}

BATCH_TEST(a_tile_shows_the_last_round_and_the_end_of_the_text)
{
    struct fixture *f = *state;
    struct scope_said said[8];
    join(f, 0, "a");
    join(f, 1, "b");
    line(f, 1, 1, 2, 1, 10);
    const struct scope_round *r = scope_round_of(f->scope, tile(f, 1)->seq, 0);
    assert_non_null(r);
    assert_int_equal(r->n_drafts, 2);
    assert_int_equal(r->drafts[1].accepted, 0);
    assert_int_equal(r->last, SOURCE_CORRECTION);
    assert_null(scope_round_of(f->scope, tile(f, 0)->seq, 0));
    /* prompt, first token, accepted draft, replacement, struck draft */
    assert_int_equal(scope_tile_tail(f->scope, tile(f, 1), said, 8), 5);
    static const struct scope_said expected[] = {
        {1, FATE_PROMPT}, {2, FATE_PREFILL}, {10, FATE_ACCEPTED}, {20, FATE_CORRECTION}, {11, FATE_REJECTED}};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(said[i].token, expected[i].token);
        assert_int_equal(said[i].fate, expected[i].fate);
    }
    f->stream.seq = 1;
    f->stream.round = 2;
    say_draft(&f->stream, 4, 1, 0, 30, 2);
    say_draft(&f->stream, 5, 2, 1, 31, 2);
    seen(f);
    assert_int_equal(scope_tile_tail(f->scope, tile(f, 1), said, 3), 3);
    assert_int_equal(said[0].token, 20);
    assert_int_equal(said[2].token, 31);
    assert_int_equal(said[2].fate, FATE_GHOST);
}

/* ---- the focus ---- */

BATCH_TEST(the_focus_follows_the_running_prompt_until_the_user_chooses)
{
    struct fixture *f = *state;
    join(f, 0, "a");
    join(f, 1, "b");
    assert_int_equal(scope_focus(seen(f)), 0);
    say(f, 1, "left", "eos");
    join(f, 2, "c");
    assert_int_equal(scope_focus(seen(f)), 0);
    say(f, 0, "left", "eos");
    assert_int_equal(scope_focus(seen(f)), 0);
    const uint32_t epoch = scope_now(f->scope)->epoch;
    join(f, 3, "d");
    assert_int_equal(scope_focus(seen(f)), 3);
    assert_int_not_equal(scope_now(f->scope)->epoch, epoch);
    assert_true(scope_set_focus(f->scope, 2));
    say(f, 2, "left", "eos");
    join(f, 4, "e");
    assert_int_equal(scope_focus(seen(f)), 2);
}

BATCH_TEST(the_chosen_number_has_the_focus_in_the_next_run_too)
{
    struct fixture *f = *state;
    join(f, 0, "a");
    join(f, 1, "b");
    line(f, 1, 1, 2, 2, 10);
    seen(f);
    assert_false(scope_set_focus(f->scope, 7));
    assert_int_equal(scope_focus(f->scope), 0);
    assert_int_equal(scope_now(f->scope)->committed, 2);
    assert_true(scope_set_focus(f->scope, 1));
    assert_int_equal(scope_now(f->scope)->committed, 5);
    say(f, 0, "run", "restart");
    assert_int_equal(scope_batch(seen(f)).tiles, 0);
    assert_int_equal(scope_now(f->scope)->length, 0);
    join(f, 0, "a");
    assert_int_equal(scope_focus(seen(f)), 0);
    join(f, 1, "b");
    assert_int_equal(scope_focus(seen(f)), 1);
    scope_reset(f->scope); /* a replay jumps back */
    f->fed = 0;
    assert_int_equal(scope_focus(seen(f)), 1);
}
