/* The panels of the lower half drawn into a grid, without a terminal: their contents, and the effects of keys and
 * mouse. */
#include "engine/events/sampling_knobs.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

/* ---- rounds ---- */

PANEL_TEST(a_round_is_one_line)
{
    struct fixture *f = *state;
    emit_a_round(f);
    f->stream.round = 2;
    say_draft(&f->stream, 4, 1, 0, 2, 2);
    use(f, "rounds");
    draw(f, 4, 60);
    assert_contains(line(f, 0), "  2 ○");
    assert_contains(line(f, 0), "drafting");
    assert_contains(line(f, 1), "  1 ■□◆ 1/2");
    assert_contains(line(f, 1), "L2 3");
    assert_contains(line(f, 1), "w_max");
    assert_contains(line(f, 1), "2.0 ms");
    f->grid.utf8 = false;
    draw(f, 4, 60);
    assert_contains(line(f, 1), "  1 #.* 1/2");
}

/* At a width that the line of a round fills. */
PANEL_TEST(rounds_from_1000_on_have_the_columns_of_the_others)
{
    struct fixture *f = *state;
    emit_a_round(f);
    for (uint32_t round = 2; round <= 1000; round++) {
        f->stream.round = round;
        say_token(&f->stream, SOURCE_BONUS, 2 + round, 4);
        say_round(&f->stream, 0, 0, 1);
    }
    use(f, "rounds");
    draw(f, 4, 34);
    assert_contains(line(f, 0), " 1000 + –");
    assert_contains(line(f, 1), "  999 + –");
    assert_contains(line(f, 0), "2.0 ms");
    const int at = (int)(strstr(line(f, 0), "2.0 ms") - line(f, 0));
    assert_int_equal(strstr(line(f, 1), "2.0 ms") - line(f, 1), at);
}

/* Draws the tree of a round whose third node is rejected. The accepted path contains the second node. */
static void
draw_a_tree(struct fixture *f, int rows)
{
    say_draft(&f->stream, 2, 1, 0, 2, 2)->token.confidence = 0.5f;
    say_draft(&f->stream, 2, 2, 0, 3, 2)->token.confidence = 0.25f;
    say_draft(&f->stream, 3, 3, 1, 5, 2)->token.confidence = 0.75f;
    say_draft(&f->stream, 3, 4, 2, 6, 2)->token.confidence = 0.001f;
    say_verdict(&f->stream, 1, false, false);
    say_verdict(&f->stream, 2, true, true);
    say_verdict(&f->stream, 3, false, false);
    say_verdict(&f->stream, 4, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 3, 4);
    say_round(&f->stream, 2, 1, 2);
    use(f, "rounds");
    draw(f, rows, 60);
    press(f, INPUT_ENTER);
    draw(f, rows, 60);
}

PANEL_TEST(enter_shows_the_tree_of_a_round)
{
    struct fixture *f = *state;
    draw_a_tree(f, 10);
    static const char *const rows[] = {"□■□▫◆", "drafted          p    path", " ├□ ", " │└□ ", " └■ ", "  ├◆ ",
                                       "  └▫ "};
    static const char *const numbers[] = {
        "", "", "0.500   0.500", "0.750   0.375", "0.250   0.250", "", "0.001   <.001"};
    for (int y = 0; y < 7; y++)
        if (strstr(line(f, y), rows[y]) == NULL || strstr(line(f, y), numbers[y]) == NULL)
            fail_msg("row %d is '%s'", y, line(f, y));
    assert_lacks(line(f, 5), "0.");
    assert_string_equal(line(f, 7), "");
    press(f, INPUT_ESCAPE);
    draw(f, 10, 60);
    assert_string_equal(line(f, 1), "");
}

PANEL_TEST(a_tree_scrolls_and_points_at_accepted_tokens)
{
    struct fixture *f = *state;
    char note[80];
    draw_a_tree(f, 5);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "2–4 of 5 tokens"); /* up to the end of the accepted path */
    press(f, INPUT_PAGE_DOWN);
    draw(f, 5, 60);
    assert_contains(line(f, 2), "└■");
    const struct canvas c = {.rows = 5, .cols = 60, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, 4, 3, MOUSE_PRESS); /* a rejected node */
    assert_true(f->selection.follow);
    f->ops->mouse(f->panel, &f->view, &c, 2, 3, MOUSE_PRESS);
    assert_int_equal(f->selection.pos, 2);
    draw(f, 5, 60);
    assert_int_equal(row_with(f, "▸└■"), 2);
    f->ops->mouse(f->panel, &f->view, &c, 2, 3, MOUSE_WHEEL_UP);
    draw(f, 5, 60);
    assert_int_equal(row_with(f, "▸└■"), 3);
    f->ops->mouse(f->panel, &f->view, &c, 0, 3, MOUSE_DOUBLE);
    draw(f, 5, 60);
    assert_string_equal(line(f, 1), "");
}

/* ---- knobs ---- */

PANEL_TEST(a_knob_asks_and_waits_for_the_event)
{
    struct fixture *f = *state;
    use(f, "knobs");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "τ tau"), 0);
    assert_int_equal(row_with(f, "0.55"), 0);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->command, "set tau 0.6");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "0.6…"), 0);
    assert_number_equal(scope_knob(f->scope, 0), 0.55);
    stream_control(&f->stream, "tau", "0.6");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "0.6…"), -1);
    assert_int_equal(row_with(f, "0.6"), 0);
    press(f, '=');
    assert_string_equal(f->command, "set tau 0.55");
    press(f, INPUT_END);
    assert_string_equal(f->command, "set tau 1");
    stream_control(&f->stream, "tau", "0.55");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "1…"), 0); /* until all requested values are in use */
    stream_control(&f->stream, "tau", "1");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "1…"), -1);
    request(f, "tau", "0.9"); /* by a command, or by a preset */
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "0.9…"), 0);
    f->refuse = true;
    press(f, INPUT_END);
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "0.9…"), 0);
}

PANEL_TEST(knobs_take_numbers_choices_and_the_mouse)
{
    struct fixture *f = *state;
    use(f, "knobs");
    draw(f, 8, 40);
    assert_false(f->ops->key(f->panel, &f->view, '3')); /* digits select panels */
    assert_string_equal(f->command, "");
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "command set tau "); /* the user types the value there */
    press(f, INPUT_DOWN);
    press(f, INPUT_SHIFT_LEFT);
    assert_string_equal(f->command, "set d_max 1");
    press(f, INPUT_DOWN);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->command, "set mode dynamic"); /* from the last choice to the first */
    const struct canvas c = {.rows = 8, .cols = 40, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, 0, 31, MOUSE_PRESS);
    f->ops->mouse(f->panel, &f->view, &c, 0, 99, MOUSE_DRAG);
    assert_string_equal(f->command, "set tau 1");
    f->ops->mouse(f->panel, &f->view, &c, 1, 4, MOUSE_WHEEL_UP);
    assert_string_equal(f->command, "set d_max 2");
}

PANEL_TEST(the_help_of_a_knob_wraps)
{
    struct fixture *f = *state;
    struct policy_info *policy = &f->info.policies[scope_policy(f->scope) - f->info.policies];
    snprintf(policy->knobs[0].help, sizeof policy->knobs[0].help, "one two three four five six seven eight nine ten");
    use(f, "knobs");
    draw(f, 12, 24);
    const int first = row_with(f, "one two three four");
    assert_greater(first, 0);
    assert_int_equal(row_with(f, "five six seven eight"), first + 1);
    assert_int_equal(row_with(f, "nine ten"), first + 2);
    assert_int_equal(first + 2, 11);       /* at the bottom */
    draw(f, (int)policy->n_knobs + 1, 24); /* there is no room: the last row is "…" */
    assert_contains(line(f, (int)policy->n_knobs), "…");
}

PANEL_TEST(sampling_is_turned_below_the_knobs)
{
    struct fixture *f = *state;
    static const char *const begin[][2] = {{"temperature", "0"}, {"top_k", "0"}, {"top_p", "1"}, {"seed", "1"}};
    for (int i = 0; i < SAMPLING_KNOBS; i++) {
        stream_control(&f->stream, begin[i][0], begin[i][1]);
        request(f, begin[i][0], begin[i][1]);
    }
    use(f, "knobs");
    draw(f, 12, 40);
    const int n = (int)scope_policy(f->scope)->n_knobs;
    assert_int_equal(row_with(f, "probe"), n); /* other settings are in between */
    assert_int_equal(row_with(f, "T temperature"), n + 1);
    assert_int_equal(row_with(f, "seed"), n + 4);
    for (int i = 0; i < n; i++)
        press(f, INPUT_DOWN);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->command, "set temperature 0.01");
    draw(f, 12, 40);
    assert_int_equal(row_with(f, "0.01…"), n + 1);
    stream_control(&f->stream, "temperature", "0.01");
    draw(f, 12, 40);
    assert_int_equal(row_with(f, "0.01…"), -1);
    assert_contains(line(f, n + 1), "0.01");
    press(f, INPUT_END);
    assert_string_equal(f->command, "set temperature 2"); /* the slider's largest value; larger ones can be typed */
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "command set temperature ");
    press(f, INPUT_DOWN);
    press(f, INPUT_DOWN);
    press(f, INPUT_LEFT);
    assert_string_equal(f->command, "set top_p 0.99");
    press(f, INPUT_DOWN);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->command, "set seed 2"); /* a step of one */
    press(f, INPUT_DOWN);                          /* the last row */
    stream_control(&f->stream, "seed", "123456789");
    request(f, "seed", "123456789");
    draw(f, 12, 40);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->command, "set seed 123456790");
    const struct canvas c = {.rows = 12, .cols = 40, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, n + 2, 20, MOUSE_WHEEL_UP);
    assert_string_equal(f->command, "set top_k 1");
    draw(f, 4, 40); /* in a small panel the row in focus is visible, with the number of hidden rows */
    assert_int_not_equal(row_with(f, "top_k"), -1);
    assert_int_equal(row_with(f, "tau"), -1);
    assert_int_equal(row_with(f, "↑"), 0);
    assert_int_equal(row_with(f, "↓"), 2); /* directly above the help */
    char note[64] = "";
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_contains(note, " of 7");
}

PANEL_TEST(a_replay_moves_no_knob)
{
    struct fixture *f = *state;
    f->view.live = false;
    use(f, "knobs");
    draw(f, 8, 40);
    press(f, INPUT_RIGHT);
    press(f, INPUT_END);
    assert_string_equal(f->command, "");
    assert_contains(f->said, "replay");
}

/* ---- series ---- */

PANEL_TEST(series_take_the_declared_form)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    stream_control(&f->stream, "policy", "forms");
    f->stream.round = 1;
    decode_report(&d, "line", 0, 12.5f);
    decode_report(&d, "band", 0, 0.25f);
    decode_report(&d, "band", 1, 0.75f);
    decode_report(&d, "bars", 3, 2);
    decode_report(&d, "strip", 0, 0.5f);
    decode_report(&d, "phase", 0, 2);
    decode_report(&d, "phase", 1, 0.4f);
    say_token(&f->stream, SOURCE_BONUS, 0, 1);
    say_round(&f->stream, 0, 0, 1);
    use(f, "series");
    draw(f, 40, 50);
    assert_at_least(row_with(f, "a line mean 12.5"), 0);
    assert_at_least(row_with(f, "a band 0.25 – 0.75"), 0);
    assert_at_least(row_with(f, "most 2.00 at 3"), 0);
    assert_at_least(row_with(f, "a strip"), 0);
    assert_at_least(row_with(f, "phase 2"), 0);
    assert_at_least(row_with(f, "40%"), 0);
    assert_int_equal(row_with(f, "─ round 1"), 39);
    assert_int_equal(row_with(f, "tok/s mean 500"), 0);
    assert_less(row_with(f, "drafted mean 0"), row_with(f, "a line"));
    draw(f, 5, 50);
    for (int i = 0; i < 5; i++)
        press(f, INPUT_DOWN);
    draw(f, 5, 50);
    assert_int_equal(row_with(f, "a line"), -1);
    assert_int_equal(row_with(f, "a band"), 0);
}

PANEL_TEST(a_chart_of_one_value_has_one_label)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "ar");
    for (uint32_t i = 1; i <= 6; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, 2, 3);
    }
    use(f, "series");
    draw(f, 16, 50);
    const int title = row_with(f, "tokens/round mean 3.00");
    assert_at_least(title, 0);
    int labels = 0, plotted = 0;
    for (int y = title + 1; y < 16 && strstr(line(f, y), "acceptance") == NULL; y++) {
        labels += strstr(line(f, y), "┤") != NULL;
        const bool here = strncmp(line(f, y), "    3┤", strlen("    3┤")) == 0;
        plotted += here && strlen(line(f, y)) > strlen("    3┤"); /* on the row of the line */
    }
    assert_int_equal(labels, 1);
    assert_int_equal(plotted, 1);
    f->stream.round = 7;
    say_token(&f->stream, SOURCE_BONUS, 7, 1);
    say_round(&f->stream, 4, 4, 5);
    draw(f, 16, 50);
    labels = 0;
    for (int y = title + 1; y < 16 && strstr(line(f, y), "acceptance") == NULL; y++)
        labels += strstr(line(f, y), "┤") != NULL;
    assert_int_equal(labels, 2);
}

/* 39 rounds of 1 to 5 tokens, one of 80. */
PANEL_TEST(one_large_value_does_not_flatten_a_chart)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "ar");
    for (uint32_t i = 1; i <= 40; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, 2, i == 20 ? 80 : 1 + i % 5);
    }
    use(f, "series");
    draw(f, 16, 50);
    const int title = row_with(f, "tokens/round mean 4.97");
    assert_at_least(title, 0);
    assert_int_equal(strncmp(line(f, title + 1), "    5┤", strlen("    5┤")), 0);
    const struct grid_cell *clipped = grid_at(&f->grid, title + 1, 6 + 19);
    assert_string_equal(clipped->text, "▲");
    assert_int_equal(clipped->role, ROLE_WARN);
    int marks = 0;
    for (int x = 6; x < 50; x++)
        marks += strcmp(grid_at(&f->grid, title + 1, x)->text, "▲") == 0;
    assert_int_equal(marks, 1);
    f->selection = (struct selection){.pos = 20};
    draw(f, 16, 50);
    assert_at_least(row_with(f, "tokens/round 80"), 0); /* its value can be read */
}

/* Emits the events of thirty rounds of a policy that reports no series. */
static void
tell_thirty_rounds(struct fixture *f)
{
    stream_control(&f->stream, "policy", "ar");
    for (uint32_t i = 1; i <= 30; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, i % 5, i % 5 + 1);
    }
}

PANEL_TEST(without_series_the_rounds_are_charted)
{
    struct fixture *f = *state;
    tell_thirty_rounds(f);
    use(f, "series");
    draw(f, 16, 50);
    assert_at_least(row_with(f, "acceptance mean 0.50"), 0);
    assert_at_least(row_with(f, "tokens/round mean 3.00"), 0);
    assert_at_least(row_with(f, "tok/s mean 1500"), 0);
    assert_at_least(row_with(f, "drafted mean 4.00"), 0);
    assert_int_equal(row_with(f, "round 30"), 15);
    press(f, INPUT_LEFT); /* the newest round, then the one before */
    press(f, INPUT_LEFT);
    draw(f, 16, 50);
    assert_at_least(row_with(f, "tokens/round 5"), 0);
    assert_int_equal(row_with(f, "at round 29"), 15);
    assert_int_equal(f->selection.pos, 29); /* the pointer moved in all panels */
    f->selection.pos = 12;
    draw(f, 16, 50);
    assert_int_equal(row_with(f, "at round 12"), 15);
    press(f, INPUT_SHIFT_LEFT);
    assert_int_equal(f->selection.pos, 2);
    press(f, INPUT_END);
    assert_true(f->selection.follow);
    draw(f, 16, 50);
    assert_less(row_with(f, "at round"), 0);
}

PANEL_TEST(charts_share_a_row_if_there_is_room)
{
    struct fixture *f = *state;
    tell_thirty_rounds(f);
    use(f, "series");
    draw(f, 7, 100);
    assert_int_equal(row_with(f, "tok/s"), 0);
    assert_int_equal(row_with(f, "acceptance"), 0);
    assert_int_equal(row_with(f, "tokens/round"), 3);
    assert_int_equal(row_with(f, "drafted"), 3);
    const struct canvas c = {.rows = 7, .cols = 100, .grid = &f->grid};
    const char *second = strstr(line(f, 6), "└1 ");
    assert_non_null(second);
    f->ops->mouse(f->panel, &f->view, &c, 2, 50 + 6, MOUSE_PRESS); /* the left end of the second column's charts */
    assert_int_equal(f->selection.pos, 1);
}
