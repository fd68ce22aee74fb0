/* All panels share one pointer over the whole run. Each shows the rounds around it and marks dropped ones. */
#include "engine/scope/scope.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

#define ROUNDS (SCOPE_ROUNDS + 300)
#define FIRST  300 /* round FIRST + 1 is the oldest in memory */

/* Position `round` is the token of that round; position 0 is the prompt. */
static void
tell_rounds(struct fixture *f, const char *policy, uint32_t rounds)
{
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    f->info.ctx = 0; /* unknown: positions are not bounded */
    stream_control(&f->stream, "policy", policy);
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    for (uint32_t i = 1; i <= rounds; i++) {
        f->stream.round = i;
        if (strcmp(policy, "forms") == 0) {
            decode_report(&d, "strip", 0, (float)i);
            decode_report(&d, "phase", 0, (float)i);
        } else if (strcmp(policy, "judges") == 0) {
            decode_report(&d, "table", 0, (float)(i % 10) / 20);
        }
        say_layer(&f->stream, i, FAKE_LAYERS, 1, 0.5f)->layer.probed_by = PROBED_VERIFY;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, i % 5, i % 5 + 1);
    }
    see(f);
}

static void
point(struct fixture *f, uint32_t pos)
{
    f->selection = (struct selection){.pos = pos};
}

static void
press_times(struct fixture *f, int key, int times)
{
    for (int i = 0; i < times; i++) {
        draw(f, 12, 60);
        press(f, key);
    }
    draw(f, 12, 60);
}

PANEL_TEST(the_pointer_goes_along_the_text_by_rounds)
{
    struct fixture *f = *state;
    selection_move(&f->view, -1);
    assert_true(f->selection.follow); /* there is no round yet */
    tell_rounds(f, "ar", 400);
    selection_move(&f->view, -1);
    assert_int_equal(selection_round(&f->view), 400);
    selection_move(&f->view, -150);
    assert_int_equal(selection_round(&f->view), 250);
    selection_move(&f->view, -1000);
    assert_int_equal(selection_round(&f->view), 1);
    selection_move(&f->view, 2);
    assert_int_equal(selection_round(&f->view), 3);
    point(f, 0);
    selection_move(&f->view, -1);
    assert_int_equal(f->selection.pos, 0); /* position 0 of the prompt is the first */
    selection_move(&f->view, 1);
    assert_int_equal(selection_round(&f->view), 1);
    selection_move(&f->view, 400);
    assert_true(f->selection.follow);
}

PANEL_TEST(rounds_are_shown_around_the_pointer)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", 400);
    use(f, "rounds");
    draw(f, 10, 60);
    assert_int_equal(row_with(f, " 400 "), 0);
    point(f, 123); /* as another panel does */
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸123 "), 9);
    char note[80];
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "123–132 of 400");
    press(f, INPUT_UP);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸124 "), 8); /* the rows do not scroll */
    point(f, 200);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸200 "), 0);
    point(f, 0);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "   1 "), 9);
    press(f, INPUT_HOME);
    draw(f, 10, 60);
    assert_true(f->selection.follow);
    assert_int_equal(row_with(f, " 400 "), 0);
    press(f, INPUT_END);
    assert_int_equal(selection_round(&f->view), 1);
    const struct canvas c = {.rows = 10, .cols = 60, .grid = &f->grid};
    draw(f, 10, 60);
    f->ops->mouse(f->panel, &f->view, &c, 4, 3, MOUSE_PRESS);
    assert_int_equal(selection_round(&f->view), 6);
    f->ops->mouse(f->panel, &f->view, &c, 4, 3, MOUSE_WHEEL_UP);
    assert_int_equal(selection_round(&f->view), 9);
}

PANEL_TEST(rounds_do_not_scroll_while_the_pointer_is_out)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", 30);
    use(f, "rounds");
    draw(f, 10, 60);
    press(f, INPUT_DOWN);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸ 30 "), 0);
    f->stream.round = 31;
    say_token(&f->stream, SOURCE_BONUS, 31, 1);
    say_round(&f->stream, 4, 4, 5);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸ 30 "), 0);
    press(f, INPUT_UP);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸ 31 "), 0);
}

PANEL_TEST(rounds_that_left_memory_are_shown_as_gone)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", ROUNDS);
    use(f, "rounds");
    point(f, FIRST);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸300 no longer in memory"), 9);
    assert_int_equal(row_with(f, " 301 "), 8);
    assert_lacks(line(f, 8), "memory");
    press_times(f, INPUT_DOWN, 15);
    assert_at_least(row_with(f, "▸285 no longer in memory"), 0);
    press(f, INPUT_END);
    draw(f, 10, 60);
    assert_int_equal(row_with(f, "▸  1 no longer in memory"), 9);
}

PANEL_TEST(series_go_on_to_the_first_round)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", 400);
    use(f, "series");
    uint32_t last = 401;
    for (int i = 0; i < 400; i++) { /* on a chart of 108 rounds */
        draw(f, 12, 60);
        press(f, INPUT_LEFT);
        assert_int_equal(selection_round(&f->view), --last);
    }
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "at round 1 "), 11);
    assert_at_least(row_with(f, "tokens/round 2"), 0);
    press_times(f, INPUT_SHIFT_RIGHT, 12);
    assert_int_equal(row_with(f, "at round 121 "), 11);
    point(f, 203); /* as another panel does */
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "at round 203 "), 11);
    assert_at_least(row_with(f, "tokens/round 4"), 0);
    press(f, INPUT_HOME);
    assert_int_equal(selection_round(&f->view), 1);
    press(f, INPUT_END);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "─ round 400"), 11);
}

PANEL_TEST(series_of_rounds_that_left_memory_are_not_drawn)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", ROUNDS);
    use(f, "series");
    point(f, 250);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "round 250, gone"), 11);
    assert_at_least(row_with(f, "tokens/round –"), 0);
    assert_contains(line(f, 11), "┈");
    point(f, FIRST + 1);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "at round 301 "), 11);
    assert_at_least(row_with(f, "tokens/round 2"), 0);
}

PANEL_TEST(values_that_hold_are_those_of_the_round)
{
    struct fixture *f = *state;
    tell_rounds(f, "forms", ROUNDS);
    use(f, "series");
    draw(f, 40, 60);
    assert_at_least(row_with(f, "phase 1324"), 0);
    point(f, 777);
    draw(f, 40, 60);
    assert_at_least(row_with(f, "phase 777"), 0);
    assert_at_least(row_with(f, "a strip  777 "), 0);
    point(f, 20);
    draw(f, 40, 60);
    assert_at_least(row_with(f, "phase –"), 0);
}

PANEL_TEST(the_judge_follows_and_marks_dropped_rounds)
{
    struct fixture *f = *state;
    tell_rounds(f, "judges", ROUNDS);
    use(f, "judge");
    point(f, 1003);
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "▸1003"), 0);
    assert_greater(row_with(f, ".15"), 0); /* the table at that round */
    press_times(f, INPUT_DOWN, 3);
    assert_int_equal(row_with(f, "▸1000"), 0);
    point(f, 200);
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "round 200 is no longer in memory"), 0);
    press(f, INPUT_UP);
    assert_int_equal(selection_round(&f->view), 201);
    press(f, INPUT_END);
    assert_int_equal(selection_round(&f->view), 1);
}

PANEL_TEST(layers_go_on_to_the_first_token)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", ROUNDS);
    use(f, "layers");
    point(f, 200);
    f->selection.layer = 2;
    draw(f, 12, 60);
    assert_greater(row_with(f, "┈"), 0);
    assert_greater(row_with(f, "no longer in memory"), 0);
    press(f, INPUT_LEFT);
    assert_int_equal(f->selection.pos, 199);
    press(f, '0');
    assert_int_equal(f->selection.pos, 0);
    point(f, 1000);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "┈"), -1);
}

PANEL_TEST(counts_of_dropped_rounds_are_dropped)
{
    struct fixture *f = *state;
    tell_rounds(f, "ar", ROUNDS);
    scope_show_window(f->scope, WINDOW_LATEST);
    use(f, "exits");
    point(f, 500);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "nothing was drafted"), 0);
    point(f, 100);
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "no longer in memory"), 0);
}

PANEL_TEST(the_ledger_has_the_row_of_the_pointer)
{
    struct fixture *f = *state;
    static const char *const tau[] = {"0.55", "0.7", "0.8"};
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    for (uint32_t i = 1; i <= 30; i++) {
        if (i == 11 || i == 21)
            stream_control(&f->stream, "tau", tau[i / 10]);
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, 0, 1);
    }
    use(f, "ledger");
    draw(f, 8, 80);
    assert_int_equal(row_with(f, "▸C"), 1);
    point(f, 15); /* as another panel does */
    f->view.focused = false;
    draw(f, 8, 80);
    assert_int_equal(row_with(f, "▸B"), 2);
    point(f, 3);
    draw(f, 8, 80);
    assert_int_equal(row_with(f, "▸A"), 3);
    press(f, INPUT_UP);
    assert_int_equal(selection_round(&f->view), 11);
    press(f, INPUT_UP);
    assert_true(f->selection.follow);
    press(f, INPUT_END);
    assert_int_equal(selection_round(&f->view), 1);
    point(f, 15);
    const struct canvas c = {.rows = 8, .cols = 80, .grid = &f->grid};
    draw(f, 8, 80);
    f->ops->mouse(f->panel, &f->view, &c, 2, 5, MOUSE_WHEEL_UP);
    assert_true(f->selection.follow);
    f->ops->mouse(f->panel, &f->view, &c, 3, 5, MOUSE_PRESS);
    assert_int_equal(selection_round(&f->view), 1);
}

/* Both settings emit the same tokens: sequence 0 in odd rounds, sequence 1 in even ones. */
PANEL_TEST(two_settings_show_the_rounds_at_the_pointer)
{
    struct fixture *f = *state;
    f->info.ctx = 0;
    stream_control(&f->stream, "versus", "judges");
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    f->stream.seq = 1;
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    for (uint32_t i = 1; i <= 400; i++) {
        f->stream.round = i;
        f->stream.seq = 1 - i % 2;
        say_token(&f->stream, SOURCE_BONUS, (i + 1) / 2, 1);
        say_round(&f->stream, 4, 4, 1);
    }
    use(f, "versus");
    draw(f, 20, 80);
    assert_at_least(row_with(f, " 399 ■■■■+"), 0);
    assert_int_equal(row_with(f, " 399 ■■■■+"), row_with(f, " 400 ■■■■+"));
    point(f, 60); /* the 60th token of each */
    draw(f, 20, 80);
    const int at = row_with(f, "▸ 119 ■■■■+");
    assert_at_least(at, 0);
    assert_contains(line(f, at), "▸ 120 ■■■■+");
    assert_contains(line(f, at + 1), "117 ■■■■+");
}
