/* The tiles of a batch drawn into a grid: their text, their arrangement, and the commands that keys and mouse send. */
#include "engine/scope/scope.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"
#include "tui/panels/text_flow.h"

static void
open_run(struct fixture *f, uint32_t at_a_time, uint32_t prompts)
{
    open_panels(f, FAKE_LAYERS);
    f->info.sequences = at_a_time;
    f->info.prompts = prompts;
    f->stream.run = 1;
    stream_control(&f->stream, "run", "start");
    static const char *const words[] = {"Once", " upon", " a", " time", " there", " was", " so", " much", " snow"};
    for (token_t t = 0; t < 9; t++)
        say_vocab(&f->stream, t, words[t], strlen(words[t]));
    use(f, "batch");
}

static void
tell_joined(struct fixture *f, uint32_t seq)
{
    f->stream.seq = seq;
    stream_control(&f->stream, "joined", "Once upon");
    say_token(&f->stream, SOURCE_PROMPT, 0, 0);
    say_token(&f->stream, SOURCE_PROMPT, 1, 1);
    say_token(&f->stream, SOURCE_PREFILL, 2, 2);
}

static void
tell_left(struct fixture *f, uint32_t seq, const char *why)
{
    f->stream.seq = seq;
    stream_control(&f->stream, "left", why);
}

/* Two drafts, the second of which is rejected. The round took 10 ms of the 20 ms of both sequences. */
static void
tell_round_of(struct fixture *f, uint32_t seq)
{
    f->stream.seq = seq;
    say_draft(&f->stream, 3, 1, 0, 3, 2);
    say_draft(&f->stream, 4, 2, 1, 7, 3);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 4, 8);
    struct event *e = say_round(&f->stream, 2, 1, 2);
    e->round_end.draft_us = 4000;
    e->round_end.verify_us = 6000;
}

TEST(a_tile_shows_the_state_of_its_sequence)
{
    struct fixture f;
    open_run(&f, 2, 3);
    assert_true(f.ops->active(&f.view));
    draw(&f, 10, 80);
    assert_int_equal(row_with(&f, "no sequences yet"), 0);
    tell_joined(&f, 0);
    tell_joined(&f, 1);
    f.stream.round = 1;
    tell_round_of(&f, 0);
    tell_round_of(&f, 1);
    draw(&f, 14, 60);
    assert_contains(line(&f, 0), "1 ■□◆ 1/2");
    assert_contains(line(&f, 0), "50% accepted  2.00/round  100 tok/s"); /* 2 tokens in 20 ms */
    assert_int_equal(row_with(&f, "Once upon a time snow much"), 1);     /* the struck word is at the end */
    assert_contains(line(&f, 7), "2 ■□◆ 1/2");
    char note[160];
    f.ops->note(f.panel, &f.view, note, sizeof note);
    assert_string_equal(note, "goodput 200 tok/s · 2 live · 1 waiting"); /* 4 tokens in 20 ms */
    draw(&f, 14, 44);
    assert_contains(line(&f, 0), "1 ■□◆ 1/2 ━━━━━━━━ 2.00/round  100 tok/s ┓");
    f.ops->note(f.panel, &f.view, note, sizeof note);
    assert_string_equal(note, "200 tok/s · 2 live · 1 waiting");
    draw(&f, 14, 30);
    f.ops->note(f.panel, &f.view, note, sizeof note);
    assert_string_equal(note, "200 tok/s · 2 live");
    tell_left(&f, 1, "eos");
    draw(&f, 14, 80);
    assert_contains(line(&f, 7), "2 ended: eos");
    assert_lacks(line(&f, 7), "■");
    f.ops->note(f.panel, &f.view, note, sizeof note);
    assert_string_equal(note, "goodput 200 tok/s · 1 live · 1 ended · 1 waiting");
    close_panels(&f);
}

/* Without colours the focus is a thick edge and a mark, or a bar next to the text. */
TEST(the_one_in_focus_is_seen_without_colours)
{
    struct fixture f;
    open_run(&f, 2, 2);
    tell_joined(&f, 0);
    tell_joined(&f, 1);
    f.view.focused = false;
    draw(&f, 14, 60);
    assert_contains(line(&f, 0), "┏▸1");
    assert_contains(line(&f, 7), "┌ 2");
    assert_true(scope_set_focus(f.scope, 1));
    draw(&f, 6, 60);
    assert_contains(line(&f, 0), " 1");
    assert_lacks(line(&f, 1), "┃");
    assert_contains(line(&f, 3), "▸2");
    assert_contains(line(&f, 4), "┃");
    close_panels(&f);
}

TEST(tiles_stay_with_their_lanes)
{
    struct fixture f;
    open_run(&f, 2, 5);
    tell_joined(&f, 0);
    tell_joined(&f, 1);
    see(&f);
    assert_true(scope_set_focus(f.scope, 0));
    tell_left(&f, 0, "eos");
    tell_joined(&f, 2); /* takes the slot of sequence 0 */
    f.view.focused = false;
    draw(&f, 15, 30);
    assert_contains(line(&f, 0), "┌ 3 ");
    assert_contains(line(&f, 5), "┌ 2 ");
    assert_contains(line(&f, 10), "▸1 ended: eos");
    tell_left(&f, 1, "tokens"); /* keeps its tile until another sequence joins */
    draw(&f, 15, 30);
    assert_contains(line(&f, 5), "2 ended: tokens");
    tell_joined(&f, 3);
    draw(&f, 20, 30);
    assert_contains(line(&f, 0), "┌ 3 ");
    assert_contains(line(&f, 5), "┌ 4 ");
    assert_contains(line(&f, 10), "2 ended: tokens");
    close_panels(&f);
}

TEST(keys_and_mouse_choose_a_sequence)
{
    struct fixture f;
    open_run(&f, 4, 4);
    for (uint32_t seq = 0; seq < 4; seq++)
        tell_joined(&f, seq);
    draw(&f, 10, 80); /* two by two */
    press(&f, INPUT_ENTER);
    assert_string_equal(f.command, "sequence 1");
    press(&f, INPUT_RIGHT);
    press(&f, INPUT_DOWN);
    press(&f, INPUT_ENTER);
    assert_string_equal(f.command, "sequence 4");
    press(&f, INPUT_RIGHT); /* there is no tile to the right */
    press(&f, INPUT_UP);
    press(&f, INPUT_UP);
    press(&f, INPUT_ENTER);
    assert_string_equal(f.command, "sequence 2");
    press(&f, INPUT_HOME);
    press(&f, INPUT_ENTER);
    assert_string_equal(f.command, "sequence 1");
    const struct canvas c = {.rows = 10, .cols = 80, .grid = &f.grid};
    assert_true(f.ops->mouse(f.panel, &f.view, &c, 7, 10, MOUSE_PRESS));
    assert_string_equal(f.command, "sequence 3");
    assert_true(f.ops->mouse(f.panel, &f.view, &c, 7, 40, MOUSE_PRESS));
    assert_string_equal(f.command, "sequence 4");
    assert_false(f.ops->mouse(f.panel, &f.view, &c, 11, 10, MOUSE_PRESS));
    close_panels(&f);
}

TEST(many_tiles_scroll_and_follow_the_focus)
{
    struct fixture f;
    open_run(&f, 40, 40);
    for (uint32_t seq = 0; seq < 40; seq++)
        tell_joined(&f, seq);
    draw(&f, 9, 34);
    assert_int_equal(row_with(&f, " 1"), 0);
    assert_int_equal(row_with(&f, " 3"), 6);
    assert_true(scope_set_focus(f.scope, 20));
    draw(&f, 10, 34);
    assert_int_equal(row_with(&f, "▸21"), 6);
    assert_int_equal(row_with(&f, "18 above  19 below"), 9);
    press(&f, INPUT_END);
    press(&f, INPUT_ENTER);
    assert_string_equal(f.command, "sequence 40");
    draw(&f, 9, 34);
    assert_int_equal(row_with(&f, " 40"), 6);
    assert_int_equal(row_with(&f, "▸21"), -1);
    const struct canvas c = {.rows = 9, .cols = 34, .grid = &f.grid};
    f.ops->mouse(f.panel, &f.view, &c, 1, 1, MOUSE_WHEEL_UP);
    draw(&f, 9, 34);
    assert_int_equal(row_with(&f, " 39"), 6);
    for (int i = 0; i < 50; i++)
        f.ops->mouse(f.panel, &f.view, &c, 1, 1, MOUSE_WHEEL_UP);
    draw(&f, 9, 34);
    assert_int_equal(row_with(&f, " 1"), 0);
    close_panels(&f);
}

TEST(tiles_that_are_gone_since_they_were_drawn_are_not_pointed_at)
{
    struct fixture f;
    open_run(&f, 4, 4);
    for (uint32_t seq = 0; seq < 4; seq++)
        tell_joined(&f, seq);
    draw(&f, 10, 80);
    press(&f, INPUT_END);
    scope_reset(f.scope); /* a replay jumps back; the next frame is not drawn yet */
    f.command[0] = '\0';
    press(&f, INPUT_LEFT);
    press(&f, INPUT_HOME);
    press(&f, INPUT_ENTER);
    const struct canvas c = {.rows = 10, .cols = 80, .grid = &f.grid};
    f.ops->mouse(f.panel, &f.view, &c, 1, 1, MOUSE_PRESS);
    f.ops->mouse(f.panel, &f.view, &c, 1, 1, MOUSE_WHEEL_DOWN);
    assert_string_equal(f.command, "");
    close_panels(&f);
}

TEST(tiles_are_as_large_as_all_fit)
{
    for (uint32_t n = 1; n <= 40; n++)
        for (int rows = 1; rows <= 70; rows++)
            for (int cols = 20; cols <= 140; cols += 10) {
                const struct tiling t = tiling_of(n, rows, cols);
                const int lines = ((int)n + t.columns - 1) / t.columns;
                assert_at_least(t.columns, 1);
                if (t.columns != 1)
                    assert_at_most(t.columns * 34, cols);
                assert_between(t.rows, 1, rows);
                assert_at_least(t.visible, 1);
                assert_at_most(t.visible * t.rows, rows);
                assert_int_equal(t.boxed, t.rows >= 5);
                /* Either all tiles are visible, or they are small and each row contains as many as fit. */
                assert_true(t.visible >= lines || (t.rows <= 3 && ((t.columns + 1) * 34 > cols)));
                if (t.visible >= lines && t.rows < 12)
                    assert_greater((t.rows + 1) * lines, rows);
            }
    assert_false(tiling_of(2, 4, 80).boxed);
    assert_true(tiling_of(4, 28, 44).boxed);
    assert_int_equal(tiling_of(4, 10, 78).columns, 2);
    assert_int_equal(tiling_of(4, 40, 78).columns, 1);
}
