/* Panels drawn into a grid, without a terminal: what they show, what keys and mouse do. */
#include "tests/rigs/panel_rig.h"

static int
set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    open_fixture(f, FAKE_LAYERS);
    f->stream.run = 1;
    stream_control(&f->stream, "run", "start");
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    close_fixture(*state);
    free(*state);
    return 0;
}

static void
prompt(struct fixture *f, const char *const *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        say_vocab(&f->stream, (token_t)i, words[i], strlen(words[i]));
        say_token(&f->stream, SOURCE_PROMPT, i, (token_t)i);
    }
}

/* ---- text ---- */

static void
test_text_breaks_lines_between_words(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"The", " king", " had", " three", " daugh", "ters", ".", "\n", "\nNow"};
    prompt(f, words, 9);
    use(f, &panel_text);
    draw(f, 6, 15);
    assert_string_equal(line(f, 0), "The king had");
    assert_string_equal(line(f, 1), "three");
    assert_string_equal(line(f, 2), "daughters.");
    assert_string_equal(line(f, 3), "");
    assert_string_equal(line(f, 4), "Now");
    draw(f, 6, 5);
    assert_int_equal(row_with(f, "The"), -1); /* the end is shown */
    assert_string_equal(line(f, 5), "Now");
    press(f, INPUT_HOME);
    draw(f, 6, 5);
    assert_string_equal(line(f, 0), "The");
    assert_string_equal(line(f, 4), "daugh");
    assert_string_equal(line(f, 5), "ters.");
}

static void
test_halves_of_a_character_are_joined(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"K\xc3", "\xa4se", " \xf0\x9f", "\x91\x91", " \xc3", "x", "\x1b[2J"};
    prompt(f, words, 7);
    use(f, &panel_text);
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "K\xc3\xa4se \xf0\x9f\x91\x91 \\xc3x\\x1b[2J");
}

static void
test_a_draft_completes_half_a_character(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"K\xc3"};
    prompt(f, words, 1);
    use(f, &panel_text);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "K\\xc3"); /* nobody knows what will come */
    say_vocab(&f->stream, 1, "\xa4se", 3);
    say_draft(&f->stream, 1, 1, 0, 1, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "K\xc3\xa4se");
    assert_int_equal(grid_at(&f->grid, 0, 2)->role, ROLE_DRAFT);
}

static void
test_rejected_drafts_are_struck_until_the_next_round(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"a", " b", " c", " d", " e"};
    prompt(f, words, 1);
    for (token_t t = 1; t < 5; t++)
        say_vocab(&f->stream, t, words[t], 2);
    use(f, &panel_text);
    f->stream.round = 1;
    say_draft(&f->stream, 1, 1, 0, 1, 2);
    say_draft(&f->stream, 2, 2, 1, 2, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "a b c");
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 2, 3);
    say_round(&f->stream, 2, 1, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "a b c d");
    assert_true(grid_at(&f->grid, 0, 4)->marks & MARK_STRUCK);
    assert_false(grid_at(&f->grid, 0, 6)->marks & MARK_STRUCK);
    f->stream.round = 2;
    say_draft(&f->stream, 3, 1, 0, 4, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "a b d e");
    assert_int_equal(grid_at(&f->grid, 0, 6)->role, ROLE_DRAFT);
}

static void
test_text_is_found_and_pointed_at(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"one", " two", " three", " four", " One"};
    prompt(f, words, 5);
    use(f, &panel_text);
    draw(f, 2, 10);
    f->view.search = "one";
    assert_true(panel_text.command(f->panel, &f->view, "search", "one"));
    const uint32_t first = f->selection.pos;
    assert_true(panel_text.command(f->panel, &f->view, "search", "one"));
    assert_int_equal(first + f->selection.pos, 4); /* both places, 0 and 4 */
    assert_false(f->selection.follow);
    panel_text.command(f->panel, &f->view, "search", "dragon");
    assert_non_null(strstr(f->app.said, "dragon"));
    assert_false(panel_text.command(f->panel, &f->view, "panel", "one"));
    draw(f, 4, 10);
    const int y = row_with(f, "One");
    assert_true(y >= 0);
    assert_int_equal(grid_at(&f->grid, y, (int)(strstr(line(f, y), "One") - f->line))->role, ROLE_WARN);
}

/* ---- layers ---- */

static void
tell_a_round(struct fixture *f)
{
    static const char *const words[] = {"Once", " upon", " king", " man", " who", " had", " sons"};
    prompt(f, words, 2);
    for (token_t t = 2; t < 7; t++)
        say_vocab(&f->stream, t, words[t], strlen(words[t]));
    f->stream.round = 1;
    say_layer(&f->stream, 2, 1, 3, 0.8f);
    say_layer(&f->stream, 2, 2, 2, 0.9f);
    say_draft(&f->stream, 2, 1, 0, 2, 2);
    say_layer(&f->stream, 3, 1, 5, 0.3f);
    say_layer(&f->stream, 3, 2, 6, 0.2f);
    say_layer(&f->stream, 3, 3, 6, 0.9f);
    say_draft(&f->stream, 3, 2, 1, 6, 3);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 3, 4);
    say_layer(&f->stream, 2, FAKE_LAYERS, 2, 0.95f)->layer.probed_by = PROBED_VERIFY;
    say_layer(&f->stream, 3, FAKE_LAYERS, 4, 0.6f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 2, 1, 2);
}

static void
test_layers_show_what_each_would_have_said(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f);
    use(f, &panel_layers);
    draw(f, 11, 60);
    assert_non_null(strstr(line(f, 0), "king"));
    assert_non_null(strstr(line(f, 1), "✓2"));
    assert_non_null(strstr(line(f, 1), "◆✗sons"));
    /* Deepest on top, with a line above d_max = 3. */
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    assert_non_null(strstr(line(f, 5), "d_max 3"));
    assert_int_equal(strncmp(line(f, 8), "   1", 4), 0);
    assert_non_null(strstr(line(f, 8), "man▓")); /* sure and wrong */
    assert_non_null(strstr(line(f, 7), "king")); /* where it left */
    assert_non_null(strstr(line(f, 6), "▒▒▒▒")); /* and above */
    assert_non_null(strstr(line(f, 6), "sons ▓"));
    assert_non_null(strstr(line(f, 2), "who"));
}

static void
test_the_cursor_reads_and_opens_a_cell(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f);
    use(f, &panel_layers);
    draw(f, 16, 70);
    press(f, 'h'); /* the newest position, where it left the model */
    assert_int_equal(f->selection.pos, 3);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
    press(f, 'h');
    press(f, 'G');
    assert_int_equal(f->selection.pos, 2);
    assert_int_equal(f->selection.layer, 1);
    draw(f, 16, 70);
    assert_non_null(strstr(line(f, 15), "2 'king'  L1 'man' 0.80"));
    assert_non_null(strstr(line(f, 15), "spurious"));
    press(f, INPUT_ENTER);
    draw(f, 16, 70);
    assert_true(row_with(f, "L1 at 2 'king'") >= 0);
    assert_true(row_with(f, "0.800") >= 0);
    assert_true(row_with(f, "first at L2, stays from L2") >= 0);
    press(f, INPUT_ESCAPE);
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "L1 at 2"), -1);
    press(f, 'f');
    assert_true(f->selection.follow);
}

static void
test_a_tall_model_folds(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 126);
    struct decoder d = {0};
    decode_begin(&d, &f.stream, &f.info, 4);
    for (int i = 0; i < 20; i++)
        decode_round(&d);
    use(&f, &panel_layers);
    draw(&f, 11, 80);
    const int exit = scope_exit_layer(f.scope);
    char label[8];
    assert_int_equal(row_with(&f, " 126"), 2);
    assert_true(row_with(&f, "  1 ") == 9 || row_with(&f, "  1►") == 9); /* the last row is the cursor's */
    snprintf(label, sizeof label, "%3d►", exit);
    assert_true(row_with(&f, label) >= 2);
    assert_true(row_with(&f, "d_max 3") > 0);
    assert_true(row_with(&f, "┆") > 0);
    close_fixture(&f);
}

/* ---- rounds ---- */

static void
test_a_round_is_one_line(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f);
    f->stream.round = 2;
    say_draft(&f->stream, 4, 1, 0, 2, 2);
    use(f, &panel_rounds);
    draw(f, 4, 60);
    assert_non_null(strstr(line(f, 0), "  2 ○"));
    assert_non_null(strstr(line(f, 0), "drafting"));
    assert_non_null(strstr(line(f, 1), "  1 ■□◆ 1/2"));
    assert_non_null(strstr(line(f, 1), "L2 3"));
    assert_non_null(strstr(line(f, 1), "w_max"));
    assert_non_null(strstr(line(f, 1), "2.0 ms"));
    f->grid.utf8 = false;
    draw(f, 4, 60);
    assert_non_null(strstr(line(f, 1), "  1 #.* 1/2"));
}

/* ---- knobs ---- */

static void
test_a_knob_asks_and_waits_for_the_event(void **state)
{
    struct fixture *f = *state;
    use(f, &panel_knobs);
    draw(f, 8, 40);
    assert_true(row_with(f, "τ tau") == 0);
    assert_true(row_with(f, "0.55") == 0);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->app.command, "set tau 0.6");
    draw(f, 8, 40);
    assert_true(row_with(f, "0.6…") == 0);
    assert_true(scope_knob(f->scope, 0) == 0.55);
    stream_control(&f->stream, "tau", "0.6");
    draw(f, 8, 40);
    assert_int_equal(row_with(f, "0.6…"), -1);
    assert_true(row_with(f, "0.6") == 0);
    press(f, '=');
    assert_string_equal(f->app.command, "set tau 0.55");
    press(f, INPUT_END);
    assert_string_equal(f->app.command, "set tau 1");
    /* Three were asked for in all; when as many came, nothing is pending, whatever the value. */
    stream_control(&f->stream, "tau", "0.55");
    draw(f, 8, 40);
    assert_true(row_with(f, "1…") == 0);
    stream_control(&f->stream, "tau", "0.9");
    draw(f, 8, 40);
    assert_true(row_with(f, "0.9") == 0);
}

static void
test_knobs_take_numbers_choices_and_the_mouse(void **state)
{
    struct fixture *f = *state;
    use(f, &panel_knobs);
    draw(f, 8, 40);
    press(f, '0');
    press(f, '.');
    press(f, '3');
    press(f, INPUT_ENTER);
    assert_string_equal(f->app.command, "set tau 0.3");
    press(f, '7');
    press(f, INPUT_ENTER);
    assert_non_null(strstr(f->app.said, "tau = 7"));
    press(f, '1');
    press(f, INPUT_ESCAPE);
    assert_string_equal(f->app.command, "set tau 0.3");
    press(f, INPUT_DOWN);
    press(f, INPUT_SHIFT_LEFT);
    assert_string_equal(f->app.command, "set d_max 1");
    press(f, INPUT_DOWN);
    press(f, INPUT_RIGHT);
    assert_string_equal(f->app.command, "set mode dynamic"); /* from the last round to the first */
    const struct canvas c = {.rows = 8, .cols = 40, .grid = &f->grid};
    panel_knobs.mouse(f->panel, &f->view, &c, 0, 31, MOUSE_PRESS);
    panel_knobs.mouse(f->panel, &f->view, &c, 0, 99, MOUSE_DRAG);
    assert_string_equal(f->app.command, "set tau 1");
    panel_knobs.mouse(f->panel, &f->view, &c, 1, 4, MOUSE_WHEEL_UP);
    assert_string_equal(f->app.command, "set d_max 2");
}

static void
test_a_replay_moves_no_knob(void **state)
{
    struct fixture *f = *state;
    f->view.live = false;
    use(f, &panel_knobs);
    draw(f, 8, 40);
    press(f, INPUT_RIGHT);
    press(f, INPUT_END);
    assert_string_equal(f->app.command, "");
    assert_non_null(strstr(f->app.said, "replay"));
}

/* ---- series, mask ---- */

static void
test_series_take_the_declared_form(void **state)
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
    use(f, &panel_series);
    draw(f, 40, 50);
    assert_true(row_with(f, "a line 12.5") >= 0);
    assert_true(row_with(f, "a band 0.25 – 0.75") >= 0);
    assert_true(row_with(f, "best 2.00 at 3") >= 0);
    assert_true(row_with(f, "a strip") >= 0);
    assert_true(row_with(f, "phase 2") >= 0);
    assert_true(row_with(f, "40%") >= 0);
    assert_true(row_with(f, "round 1") == 39);
    draw(f, 5, 50);
    press(f, INPUT_DOWN);
    draw(f, 5, 50);
    assert_int_equal(row_with(f, "a line"), -1);
    assert_true(row_with(f, "a band") == 0);
}

static void
test_without_series_the_rounds_are_charted(void **state)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "ar");
    for (uint32_t i = 1; i <= 30; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 4, i % 5, i % 5 + 1);
    }
    use(f, &panel_series);
    draw(f, 16, 50);
    assert_true(row_with(f, "acceptance 0") >= 0);
    assert_true(row_with(f, "tokens/round 1") >= 0);
    assert_true(row_with(f, "tokens/s 500") >= 0);
    assert_true(row_with(f, "round 30") == 15);
    press(f, INPUT_LEFT); /* the newest round, then the one before */
    press(f, INPUT_LEFT);
    draw(f, 16, 50);
    assert_true(row_with(f, "tokens/round 5") >= 0);
    assert_true(row_with(f, "at round 29") == 15);
}

static void
test_a_mask_shows_what_is_skipped_and_what_changed(void **state)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    use(f, &panel_mask);
    see(f);
    assert_false(panel_mask.active(&f->view));
    stream_control(&f->stream, "policy", "forms");
    f->stream.round = 1;
    for (int i = 0; i < 2 * FAKE_LAYERS; i++)
        decode_report(&d, "mask", i, i == 1 || i == 8);
    f->stream.round = 5;
    decode_report(&d, "mask", 1, 0);
    decode_report(&d, "mask", 2, 1);
    draw(f, 6, 60);
    assert_true(panel_mask.active(&f->view));
    assert_int_equal(row_with(f, "attention ■ ◆ ◇ ■ ■ ■"), 0);
    assert_int_equal(row_with(f, "MLP       ■ ■ □ ■ ■ ■"), 1);
    assert_int_equal(row_with(f, "2 of 12 skipped"), 3);
    assert_int_equal(row_with(f, "changed in round 5"), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_text_breaks_lines_between_words),
        TEST(test_halves_of_a_character_are_joined),
        TEST(test_a_draft_completes_half_a_character),
        TEST(test_rejected_drafts_are_struck_until_the_next_round),
        TEST(test_text_is_found_and_pointed_at),
        TEST(test_layers_show_what_each_would_have_said),
        TEST(test_the_cursor_reads_and_opens_a_cell),
        cmocka_unit_test(test_a_tall_model_folds),
        TEST(test_a_round_is_one_line),
        TEST(test_a_knob_asks_and_waits_for_the_event),
        TEST(test_knobs_take_numbers_choices_and_the_mouse),
        TEST(test_a_replay_moves_no_knob),
        TEST(test_series_take_the_declared_form),
        TEST(test_without_series_the_rounds_are_charted),
        TEST(test_a_mask_shows_what_is_skipped_and_what_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
