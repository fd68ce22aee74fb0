/* Knob changes as marks: in the rounds panel, in series and on any other time axis. */
#include "base/text.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"
#include "tui/panels/panel.h"

static void
turn(struct fixture *f, const char *knob, const char *before, const char *after)
{
    stream_control(&f->stream, knob, after);
    f->stream.events[f->stream.n - 1].control.old_text = before;
}

static void
rounds(struct fixture *f, int n)
{
    for (int i = 0; i < n; i++) {
        f->stream.round++;
        say_round(&f->stream, 2, 1, 2);
    }
}

static void
turn_twice(struct fixture *f)
{
    rounds(f, 4);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 12);
    turn(f, "d_max", "3", "2");
    turn(f, "tau", "0.7", "0.3");
    rounds(f, 4);
}

PANEL_TEST(a_rounds_line_shows_the_knob_changes_before_it)
{
    struct fixture *f = *state;
    use(f, "rounds");
    turn_twice(f);
    draw(f, 20, 90);
    assert_int_equal(row_with(f, "τ 0.7→0.3"), 3);
    assert_int_equal(row_with(f, "┊ 17"), 3);
    assert_int_equal(row_with(f, "┊τ 0.55→0.7"), 15);
    assert_int_equal(row_with(f, "┊  5"), 15);
    draw(f, 20, 26); /* there is no room for the text, but the tick remains */
    assert_int_equal(row_with(f, "τ"), -1);
    assert_int_equal(row_with(f, "┊  5"), 15);
    f->grid.utf8 = false;
    draw(f, 20, 90);
    assert_int_equal(row_with(f, ":  5"), 15);
}

PANEL_TEST(series_have_a_tick_with_its_text)
{
    struct fixture *f = *state;
    use(f, "series");
    turn_twice(f);
    draw(f, 30, 80);
    assert_contains(line(f, 29), "┊τ 0.55→0.7─");
    assert_contains(line(f, 29), "→0.3");
    const char *axis = strstr(line(f, 29), "┊");
    assert_non_null(axis);
    char before[4096];
    snprintf(before, sizeof before, "%.*s", (int)(axis - f->line), f->line);
    const int x = text_width(before);
    bool above = false; /* the same column of the chart */
    for (int y = 1; y < 29; y++)
        above = above || strcmp(grid_at(&f->grid, y, x)->text, "┊") == 0;
    assert_true(above);
    stream_control(&f->stream, "run", "restart"); /* another run has its own rounds */
    f->stream.run = 2;
    f->stream.events[f->stream.n - 1].run = 2;
    f->stream.round = 0;
    rounds(f, 8);
    draw(f, 30, 80);
    assert_int_equal(row_with(f, "┊"), -1);
}

static int
place(const void *user, const struct segment *s)
{
    const int *scale = user;
    return (int)s->first_round * *scale / 2;
}

PANEL_TEST(texts_give_way_to_the_next_tick)
{
    struct fixture *f = *state;
    turn_twice(f);
    see(f);
    assert_true(grid_open(&f->grid, 1, 100));
    const struct canvas c = {.rows = 1, .cols = 100, .grid = &f->grid};
    struct marks marks;
    for (int scale = 5; scale > 0; scale--) {
        for (int x = 0; x < 100; x++)
            canvas_text(&c, 0, x, ROLE_DIM, "─");
        marks_find(&marks, f->scope, NULL, place, &scale);
        assert_int_equal(marks.n, 2);
        marks_draw(&marks, f->scope, &c, 0, 100, ROLE_LINE);
        for (int i = 0; i < 2; i++)
            assert_string_equal(grid_at(&f->grid, 0, marks.mark[i].x)->text, "┊");
        const bool whole = strstr(line(f, 0), "┊τ 0.55→0.7") != NULL;
        assert_int_equal(whole, 6 * scale > 11);
    }
    canvas_text(&c, 0, 18, ROLE_KNOB, "●"); /* the position of a replay is never hidden */
    marks_draw(&marks, f->scope, &c, 0, 100, ROLE_LINE);
    assert_string_equal(grid_at(&f->grid, 0, 18)->text, "●");
    assert_null(mark_of_round(f->scope, 4));
    assert_non_null(mark_of_round(f->scope, 5));
}

/* `all` contains the whole run; the scope has read it up to the second knob change. */
PANEL_TEST(later_knob_changes_are_those_after_the_newest_round)
{
    struct fixture *f = *state;
    struct segments *all;
    struct err err = {0};
    struct marks marks;
    const int scale = 5;
    assert_ok(segments_open(&all, &f->info, &err), err);
    rounds(f, 4);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 4);
    see(f);
    turn(f, "tau", "0.7", "0.3");
    rounds(f, 4);
    for (size_t i = 0; i < f->stream.n; i++)
        segments_event(all, &f->stream.events[i]);
    marks_find(&marks, f->scope, all, place, &scale);
    assert_int_equal(marks.n, 1);
    assert_string_equal(marks.mark[0].segment->change[0].after, "0.3");
    marks_find(&marks, f->scope, NULL, place, &scale);
    assert_int_equal(marks.n, 1);
    assert_string_equal(marks.mark[0].segment->change[0].after, "0.7");
    see(f); /* the replay resumes: no later knob changes are left */
    marks_find(&marks, f->scope, all, place, &scale);
    assert_int_equal(marks.n, 0);
    segments_close(all);
}
