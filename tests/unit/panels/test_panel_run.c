/* The whole run, and aggregates of rounds, on the screen. */
#include "engine/scope/scope.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"
#include "tui/terminal/input.h"

/* A long run under "specbound" in which all layers are probed. */
static void
decode(struct fixture *f, struct decoder *d, uint32_t tokens)
{
    f->info.ctx = 1u << 20;
    d->probe_all = true;
    decode_begin(d, &f->stream, &f->info, 5);
    while (d->length < tokens)
        decode_round(d);
    see(f);
}

static const struct grid_cell *
cell(struct fixture *f, int y, int x)
{
    return grid_at(&f->grid, y, x);
}

/* 6 layers in 3 rows: every half cell is a layer's confidence, or grey above the exit. */
PANEL_TEST(a_cell_is_two_layers_of_a_token)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    decode(f, &d, 60);
    use(f, "run");
    draw(f, 5, 4 + 100);
    uint32_t compared = 0, grey = 0;
    for (uint32_t pos = 5; pos < scope_now(f->scope)->committed; pos++)
        for (int y = 0; y < 3; y++) {
            const struct scope_column *column = scope_column(f->scope, pos);
            const struct scope_cell *cells = scope_cells(f->scope, pos);
            const int exit = column->fate == FATE_ACCEPTED    ? column->exit_layer
                             : column->rejected != TOKEN_NONE ? column->rejected_exit
                                                              : FAKE_LAYERS;
            const struct grid_cell *g = cell(f, y, 4 + (int)pos - 5);
            const int upper = FAKE_LAYERS - 2 * y;
            if (cells == NULL || !cells[1].known || !cells[2].known || !cells[3].known || !cells[4].known ||
                !cells[5].known || !cells[6].known || strcmp(g->text, "▀") != 0)
                continue;
            if (upper > exit && upper < FAKE_LAYERS) {
                assert_int_equal(g->upper, GRID_GREY);
                grey++;
            } else {
                assert_at_most(abs((int)lrintf(cells[upper].confidence * (GRID_HEATS - 1)) + 1 - g->upper), 3);
                compared++;
            }
            if (upper - 1 > exit) {
                assert_int_equal(g->heat, GRID_NO_HEAT);
                assert_int_equal(g->role, ROLE_EXITED);
            } else
                assert_at_most(abs((int)lrintf(cells[upper - 1].confidence * (GRID_HEATS - 1)) - g->heat), 3);
        }
    assert_greater(compared, 30);
    assert_greater(grey, 10);
}

PANEL_TEST(a_long_run_is_folded_and_unchanged)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    char note[80];
    decode(f, &d, 2500);
    use(f, "run");
    draw(f, 8, 4 + 90);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_contains(note, "28 tokens a column");
    struct grid_cell before[3 * 94];
    memcpy(before, f->grid.cells, sizeof before);
    while (d.length < 2515) /* no more than a column */
        decode_round(&d);
    draw(f, 8, 4 + 90);
    assert_memory_equal(before, f->grid.cells, 80 * sizeof *before);
    struct grid_cell kept[3 * 94];
    memcpy(kept, f->grid.cells, sizeof kept);
    panel_close(f->ops, f->panel); /* drawn anew, it equals the stored picture */
    use(f, "run");
    draw(f, 8, 4 + 90);
    assert_memory_equal(kept, f->grid.cells, sizeof kept);
}

/* A run longer than the ring: the oldest columns are dropped one at a time, and the others do not change. */
PANEL_TEST(a_full_ring_drops_the_oldest_columns)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    decode(f, &d, SCOPE_POSITIONS + 1000);
    use(f, "run");
    draw(f, 8, 4 + 90);
    const struct canvas c = {.rows = 8, .cols = 94, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, 2, 4, MOUSE_PRESS);
    const uint32_t first = f->selection.pos;
    f->ops->mouse(f->panel, &f->view, &c, 2, 5, MOUSE_PRESS);
    const uint32_t fold = f->selection.pos - first;
    assert_at_least(first, scope_first(f->scope));
    assert_less(first - scope_first(f->scope), fold);
    assert_int_equal(first % fold, 0);
    assert_at_least(fold, SCOPE_POSITIONS / 90);
    struct grid_cell before[94];
    memcpy(before, f->grid.cells, sizeof before);
    while (scope_first(f->scope) <= first) {
        decode_round(&d);
        see(f);
    }
    draw(f, 8, 4 + 90);
    f->ops->mouse(f->panel, &f->view, &c, 2, 4, MOUSE_PRESS);
    assert_int_equal(f->selection.pos, first + fold);
    for (int x = 4; x < 70; x++) { /* the second column's contents moved to the first */
        assert_int_equal(f->grid.cells[x].upper, before[x + 1].upper);
        assert_int_equal(f->grid.cells[x].heat, before[x + 1].heat);
    }
}

PANEL_TEST(pointing_moves_the_selection)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    decode(f, &d, 400);
    use(f, "run");
    draw(f, 8, 4 + 80); /* 395 tokens: 5 a column */
    const struct canvas c = {.rows = 8, .cols = 84, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, 2, 4 + 20, MOUSE_PRESS);
    assert_false(f->selection.follow);
    assert_int_equal(f->selection.pos, 5 + 20 * 5);
    press(f, INPUT_RIGHT);
    assert_int_equal(f->selection.pos, 5 + 21 * 5);
    press(f, INPUT_SHIFT_LEFT);
    assert_int_equal(f->selection.pos, 5 + 11 * 5);
    f->selection.text = (struct position_range){5 + 10 * 5, 5 + 30 * 5};
    f->selection.layers = (struct position_range){5 + 12 * 5, 5 + 15 * 5};
    draw(f, 8, 4 + 80);
    const int axis = row_with(f, "▲");
    assert_greater(axis, 0);
    assert_string_equal(cell(f, axis, 4 + 11)->text, "▲");
    assert_string_equal(cell(f, axis, 4 + 12)->text, "└");
    assert_string_equal(cell(f, axis, 4 + 14)->text, "┘");
    assert_string_equal(cell(f, axis, 4 + 20)->text, "─");
    press(f, INPUT_HOME);
    assert_int_equal(f->selection.pos, 5);
    press(f, '$');
    assert_int_equal(f->selection.pos, scope_now(f->scope)->length - 1);
    press(f, 'f');
    assert_true(f->selection.follow);
}

PANEL_TEST(turns_and_corrections_are_below)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    decode(f, &d, 30);
    const uint32_t turned = d.length;
    stream_control(&f->stream, "tau", "0.25");
    while (d.length < 70)
        decode_round(&d);
    use(f, "run");
    draw(f, 7, 4 + 90);
    const int axis = row_with(f, "┊");
    assert_greater(axis, 1);
    assert_string_equal(cell(f, axis, 4 + (int)turned - 5)->text, "┊");
    for (uint32_t pos = 5; pos < d.length; pos++)
        assert_int_equal(strcmp(cell(f, axis - 1, 4 + (int)pos - 5)->text, "◆") == 0,
                         scope_column(f->scope, pos)->fate == FATE_CORRECTION);
}

/* ---- aggregates ---- */

PANEL_TEST(exits_are_those_of_the_selected_window)
{
    struct fixture *f = *state;
    struct decoder d = {0};
    char note[80], text[40];
    decode(f, &d, 300);
    stream_control(&f->stream, "tau", "0.25");
    decode_round(&d);
    while (d.length < 340)
        decode_round(&d);
    see(f);
    use(f, "exits");
    scope_show_window(f->scope, WINDOW_RUN);
    draw(f, 10, 90);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "run");
    uint32_t all = 0, newest = 0;
    for (size_t i = 0; i < f->stream.n; i++)
        if (f->stream.events[i].type == EVENT_ROUND) {
            all += f->stream.events[i].round_end.drafted;
            newest += f->stream.events[i].round >= segments_at(scope_now(f->scope)->segments, 0)->first_round
                          ? f->stream.events[i].round_end.drafted
                          : 0;
        }
    assert_greater(all, newest);
    assert_greater(newest, 0);
    snprintf(text, sizeof text, "of %u drafts", (unsigned)all);
    assert_int_equal(row_with(f, text), 0);
    scope_show_window(f->scope, WINDOW_SEGMENT);
    draw(f, 10, 90);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "segment B");
    snprintf(text, sizeof text, "of %u drafts", (unsigned)newest);
    assert_int_equal(row_with(f, text), 0);
    f->selection = (struct selection){.pos = 100}; /* the cursor is in the segment before */
    draw(f, 10, 90);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "segment A");
    snprintf(text, sizeof text, "of %u drafts", (unsigned)(all - newest));
    assert_int_equal(row_with(f, text), 0);
}

/* Drafts of confidence 0.75 from layer 2: 6 of 8 accepted. */
static void
tell_drafts(struct fixture *f)
{
    static const char *const words[] = {"a", " b", " c"};
    prompt(f, words, 3);
    for (uint32_t i = 0; i < 8; i++) {
        f->stream.round = i + 1;
        say_draft(&f->stream, 3 + i, 1, 0, 2, 2);
        say_verdict(&f->stream, 1, i % 4 != 0, i % 4 != 0);
        if (i % 4 == 0)
            say_token(&f->stream, SOURCE_CORRECTION, 3 + i, 1);
        say_layer(&f->stream, 3 + i, 2, i % 4 == 0 ? 2 : 1, 0.7f)->layer.probed_by = PROBED_SCOPE;
        say_layer(&f->stream, 3 + i, FAKE_LAYERS, 1, 0.9f)->layer.probed_by = PROBED_SCOPE;
        say_round(&f->stream, 1, i % 4 != 0, 1);
    }
}

PANEL_TEST(reliability_shows_ece_and_threshold)
{
    struct fixture *f = *state;
    tell_drafts(f);
    use(f, "reliability");
    draw(f, 12, 64);
    assert_int_equal(row_with(f, "ECE 0.000 of 8 drafts"), 0);
    assert_int_equal(row_with(f, "τ 0.6"), 10);
    assert_int_equal(row_with(f, "most 25% at L2"), 11);
    panel_close(f->ops, f->panel);
    use(f, "exits");
    draw(f, 10, 64);
    assert_int_equal(row_with(f, "mean L2.0 of 8 drafts"), 0);
}

static bool
has_number(struct fixture *f, const char *name, const char *number)
{
    const int y = row_with(f, name);
    return y > 0 && strstr(line(f, y), number) != NULL;
}

PANEL_TEST(zoomed_reliability_has_counts_and_intervals)
{
    struct fixture *f = *state;
    tell_drafts(f);
    use(f, "reliability");
    draw(f, 30, 90);
    assert_int_equal(row_with(f, "of 8 drafts · │ 95% (Wilson) · ···· as often as sure"), 0);
    assert_true(has_number(f, "from ", "0.7"));
    assert_true(has_number(f, "drafts   ", "8"));
    assert_true(has_number(f, "accepted ", "6"));
    assert_true(has_number(f, "share ", "0.75"));
    assert_true(has_number(f, "95% from ", "0.41"));
    assert_true(has_number(f, "95% to ", "0.93"));
    assert_true(has_number(f, "mean conf.", "0.75"));
    assert_greater(row_with(f, "0.50 ┤"), row_with(f, "0.75 ┤"));
    int over = 0; /* the interval is drawn over the bar */
    for (int y = 1; y < 20; y++)
        over += strstr(line(f, y), "█│█") != NULL;
    assert_at_least(over, 3);
    draw(f, 30, 60); /* too narrow for the line */
    assert_int_equal(row_with(f, "95% from"), -1);
}

PANEL_TEST(zoomed_exits_have_ticks_and_every_number)
{
    struct fixture *f = *state;
    tell_drafts(f);
    use(f, "exits");
    draw(f, 30, 90);
    assert_true(has_number(f, "layer ", "1   "));
    assert_true(has_number(f, "█ accepted", "6 "));
    assert_true(has_number(f, "▒ others", "2 "));
    assert_true(has_number(f, "of all ", "0.75"));
    assert_true(has_number(f, "after acc.", "0.75"));
    assert_true(has_number(f, "tried ", "8"));
    assert_greater(row_with(f, "0.50 ┤"), row_with(f, "0.75 ┤"));
    assert_int_equal(row_with(f, "8.00 ┤"), 1);
}
