/* The ledger drawn into a grid: its rows, its comparisons, and the commands that its keys send. */
#include "base/rng.h"
#include "engine/measure/forecast.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

/* Emits `n` rounds with `emitted` tokens each, whose time is within a tenth of `us`. */
static void
rounds(struct fixture *f, int n, uint32_t us, uint32_t emitted)
{
    for (int i = 0; i < n; i++) {
        f->stream.round++;
        struct event *e = say_round(&f->stream, 5, emitted - 1, emitted);
        e->round_end.draft_us = us / 2;
        e->round_end.verify_us = us / 2 + (i % 3 == 0 ? 0 : i % 3 == 1 ? us / 10 : us / 20);
    }
}

static void
turn(struct fixture *f, const char *knob, const char *before, const char *after)
{
    stream_control(&f->stream, knob, after);
    f->stream.events[f->stream.n - 1].control.old_text = before;
}

PANEL_TEST(a_row_is_a_segment_the_newest_first)
{
    struct fixture *f = *state;
    use(f, "ledger");
    draw(f, 6, 100);
    assert_contains(line(f, 0), "no rounds yet");
    rounds(f, 10, 2000, 3);
    turn(f, "tau", "0.55", "0.7");
    draw(f, 6, 100);
    assert_contains(line(f, 1), "τ 0.55→0.7  takes effect from the next round");
    assert_contains(line(f, 2), "▸A   start");
    rounds(f, 12, 2000, 4);
    draw(f, 6, 100);
    assert_contains(line(f, 0), "what changed");
    assert_contains(line(f, 1), "▸B☆  τ 0.7"); /* on its own text */
    assert_contains(line(f, 1), " 48  4.00  0.60");
    assert_contains(line(f, 1), "(2.45×)");
    assert_contains(line(f, 2), " A   start");
    assert_contains(line(f, 2), " 30  3.00  0.40");
    assert_contains(line(f, 2), "reference");
    f->grid.utf8 = false;
    draw(f, 6, 100);
    assert_int_equal(row_with(f, "B'  "), 1);
}

static struct effects effects;

/* A forecast of that modelled speedup. The larger `spread` is, the further its text blocks are from the mean. */
static struct forecast
forecast_of(float modelled, float spread)
{
    struct forecast f = {.speedup = modelled, .modelled = modelled, .tokens = 256};
    for (int i = 0; i < FORECAST_DRAWS; i++)
        f.draw[i] = modelled;
    for (int i = 0; i < RECORD_BLOCKS; i++)
        f.block[i] = i % 2 == 0 ? spread : -spread;
    return f;
}

/* Sets the forecasts for the text of segment `number`: under its own setting and under that of segment 0. */
static void
forecasts(struct fixture *f, uint32_t number, float own, float first)
{
    struct effect_text *text = &effects.text[number];
    *text = (struct effect_text){.number = number, .tokens = 256, .n = number == 0 ? 1 : 2};
    text->setting[0].number = number;
    text->setting[0].of = forecast_of(own, 0.005f);
    text->setting[1].number = 0;
    text->setting[1].of = forecast_of(first, 0);
    f->view.effects = &effects;
}

PANEL_TEST(differences_are_of_the_same_text_and_have_a_verdict)
{
    struct fixture *f = *state;
    char note[160];
    use(f, "ledger");
    rounds(f, 30, 2000, 3);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 30, 1000, 3); /* twice as fast because its text is easier: the first setting would be as fast there */
    turn(f, "tau", "0.7", "0.8");
    rounds(f, 30, 1500, 3);
    turn(f, "tau", "0.8", "0.9");
    rounds(f, 30, 4000, 3);
    turn(f, "tau", "0.9", "1");
    rounds(f, 30, 1500, 3); /* without a forecast */
    see(f);
    memset(&effects, 0, sizeof effects);
    forecasts(f, 1, 1.51f, 1.5f);
    forecasts(f, 2, 2, 1.5f);
    forecasts(f, 3, 0.75f, 1.5f);
    draw(f, 8, 100);
    assert_contains(line(f, 1), " ≠ text");
    assert_lacks(line(f, 1), "% ≠");
    assert_lacks(line(f, 1), "▲");
    assert_contains(line(f, 2), "-50% ±1.4 ▼");
    assert_contains(line(f, 3), "+33% ±1.4 ▲");
    assert_contains(line(f, 4), "+0.7% ±1.4 ≈");
    assert_less(row_with(f, "★"), 0); /* a row on another text is not worse than it */
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_string_equal(note, "E and A are not compared: different text");
    press(f, INPUT_DOWN);
    press(f, INPUT_DOWN);
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_string_equal(note, "C is 33% ±1.4 faster than A on the same text");
    press(f, INPUT_ENTER); /* pins C */
    press(f, INPUT_END);
    draw(f, 8, 100);
    assert_contains(line(f, 3), "reference");
    assert_contains(line(f, 5), "-25%");
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_string_equal(note, "A is 25% ±1.0 slower than C on the same text");
    assert_true(f->ops->command(f->panel, &f->view, "pin", "b"));
    draw(f, 8, 100);
    assert_contains(line(f, 4), "reference");
    assert_false(f->ops->command(f->panel, &f->view, "pin", "Q"));
    assert_false(f->ops->command(f->panel, &f->view, "find", "b"));
}

PANEL_TEST(no_mark_contradicts_the_time_and_none_is_across_prompts)
{
    struct fixture *f = *state;
    char note[160];
    use(f, "ledger");
    rounds(f, 30, 2000, 3);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 30, 4000, 3); /* loads fewer weights, and takes twice as long */
    see(f);
    memset(&effects, 0, sizeof effects);
    forecasts(f, 1, 1.6f, 1.5f);
    draw(f, 8, 100);
    assert_contains(line(f, 1), "+6.7% ±1.4 ≈");
    press(f, 'c');
    draw(f, 8, 100);
    assert_contains(line(f, 1), "+6.7% ±1.4 ▲"); /* by weights read */
    stream_control(&f->stream, "run", "prompt");
    rounds(f, 30, 1000, 3);
    see(f);
    forecasts(f, 2, 3, 1.5f);
    assert_true(f->ops->command(f->panel, &f->view, "pin", "A"));
    draw(f, 8, 100);
    assert_lacks(line(f, 1), "▲");
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_string_equal(note, "C and A are not compared: different prompt");
}

PANEL_TEST(a_second_run_of_the_prompt_has_the_same_tokens)
{
    struct fixture *f = *state;
    use(f, "ledger");
    stream_control(&f->stream, "temperature", "0");
    rounds(f, 30, 2000, 3);
    stream_control(&f->stream, "run", "restart");
    f->stream.round = 0;
    rounds(f, 30, 1000, 3); /* the settings are equal, only the machine's speed differs */
    draw(f, 8, 100);
    assert_contains(line(f, 1), "+0.0% ±0.0 ≈");
    stream_control(&f->stream, "temperature", "0.7");
    stream_control(&f->stream, "run", "restart");
    f->stream.round = 0;
    rounds(f, 30, 1000, 3); /* with sampling, the text differs */
    draw(f, 8, 100);
    assert_contains(line(f, 1), "≠ text");
}

PANEL_TEST(segments_of_one_round_are_too_short_to_be_compared)
{
    struct fixture *f = *state;
    char note[160];
    use(f, "ledger");
    stream_control(&f->stream, "temperature", "0");
    rounds(f, 3, 2000, 1);
    stream_control(&f->stream, "run", "restart");
    f->stream.round = 0;
    rounds(f, 1, 1000, 3);
    draw(f, 8, 100);
    assert_contains(line(f, 1), " too short");
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_string_equal(note, "B and A are not compared: too few rounds");
}

PANEL_TEST(speeds_are_compared_by_the_baseline_once_there_is_one)
{
    struct fixture *f = *state;
    use(f, "ledger");
    rounds(f, 20, 2000, 3);
    draw(f, 6, 100);
    assert_contains(line(f, 1), "–");
    stream_control(&f->stream, "baseline", "1000");
    stream_control(&f->stream, "lossless", "yes");
    draw(f, 6, 100);
    assert_contains(line(f, 1), " ~1.43× "); /* 3 tokens in 2.1 ms */
    assert_contains(line(f, 1), "✓");
    press(f, 'c');
    draw(f, 6, 100);
    assert_contains(line(f, 0), "(model)");
    assert_contains(line(f, 1), "(1.84×)");
    stream_control(&f->stream, "lossless", "no: token 3");
    draw(f, 6, 100);
    assert_contains(line(f, 1), "✗");
}

PANEL_TEST(a_speedup_by_slices_between_the_rows_rounds_has_an_error)
{
    struct fixture *f = *state;
    use(f, "ledger");
    rounds(f, 4, 2000, 3);
    stream_control(&f->stream, "baseline", "1000");
    for (int slice = 0; slice < SLICES_LEAST; slice++) {
        draw(f, 6, 120);
        assert_contains(line(f, 1), "~1.4");
        rounds(f, 4, 2000, 3);
        stream_control(&f->stream, "baseline_slice", slice % 2 == 0 ? "1000" : "900");
    }
    draw(f, 6, 120);
    assert_contains(line(f, 1), "1.49 ±0.05×");
    draw(f, 6, 76);
    assert_contains(line(f, 1), " 1.49× ");
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 30, 2000, 3);
    draw(f, 6, 120);
    assert_contains(line(f, 1), "~1.4");
    assert_contains(line(f, 2), "1.49 ±0.05×");
}

/* The second row of the ledger during a versus, and the versus panel. */
PANEL_TEST(a_ledger_and_a_versus_have_one_comparison_and_one_numbering)
{
    static const struct {
        const char *second;
        uint32_t us;
        const char *panel, *ledger, *note;
    } cases[] = {
        {"forms", 1000, "▶ 2 forms is ", "▲", "faster than"},
        {"forms", 4000, "◀ 1 specbound is ", "▼", "slower than"},
        {"forms", 2000, " no clear difference: -", "≈", "no clear difference, -"},
        {"specbound", 2000, " the settings are identical; no clear difference: -", "≈", "no clear difference, -"},
        {"specbound tau=0.3", 1000, "▶ 2 specbound tau=0.3 is ", "▲", "faster than"},
        {"specbound tau=0.3", 4000, "◀ 1 specbound tau=0.55 is ", "▼", "slower than"},
    };
    struct fixture *f = *state;
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char note[160];
        f->stream.seq = 0;
        stream_control(&f->stream, "run", "prompt");
        f->stream.round = 0;
        stream_control(&f->stream, "versus", cases[i].second);
        for (f->stream.seq = 0; f->stream.seq < 2; f->stream.seq++)
            say_token(&f->stream, SOURCE_PROMPT, 0, 1);
        for (int k = 0; k < 200; k++) {
            f->stream.seq = (uint32_t)(k % 2);
            const double noise = 0.8 + 0.4 * splitmix64_uniform(&random);
            rounds(f, 1, (uint32_t)((k % 2 == 0 ? 2000 : cases[i].us) * noise), 3);
        }
        use(f, "versus");
        draw(f, 20, 160);
        const bool noise = strcmp(cases[i].ledger, "≈") == 0;
        if (row_with(f, cases[i].panel) < 0)
            fail_msg("'%s' is not in the panel of %s", cases[i].panel, cases[i].second);
        assert_int_equal(row_with(f, "identical") > 0, strcmp(cases[i].second, "specbound") == 0);
        assert_int_equal(row_with(f, "faster where  ") > 0, !noise);
        use(f, "ledger");
        draw(f, 20, 160);
        assert_contains(line(f, 1), "2: ");
        assert_contains(line(f, 1), cases[i].ledger);
        assert_contains(line(f, 2), "1: ");
        f->ops->note(f->panel, &f->view, note, (int)sizeof note);
        if (strstr(note, cases[i].note) == NULL)
            fail_msg("'%s' is not in the note '%s'", cases[i].note, note);
    }
}

PANEL_TEST(columns_never_touch)
{
    struct fixture *f = *state;
    use(f, "ledger");
    rounds(f, 30, 20, 3); /* 150,000 tokens/s */
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 30, 2000, 3);
    stream_control(&f->stream, "run", "prompt");
    rounds(f, 30, 4000, 3);
    for (int cols = 40; cols <= 250; cols += 5) {
        draw(f, 8, cols);
        for (int y = 1; y <= 3; y++) {
            const char *row = line(f, y), *ratio = strstr(row, "×");
            assert_true(ratio == NULL || ratio[2] == ')' || ratio[2] == ' ' || ratio[2] == '\0');
            if (ratio != NULL && ratio[2] == ')')
                assert_true(ratio[3] == ' ' || ratio[3] == '\0');
        }
    }
}

PANEL_TEST(keys_ask_for_the_rows_settings)
{
    struct fixture *f = *state;
    use(f, "ledger");
    rounds(f, 3, 2000, 3);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 3, 2000, 3);
    draw(f, 6, 60);
    press(f, 'a');
    assert_string_equal(f->command, "take B");
    press(f, INPUT_DOWN);
    press(f, 's');
    assert_string_equal(f->command, "command preset save A ");
    press(f, 'y');
    assert_string_equal(f->command, "copy-command A");
    press(f, INPUT_HOME);
    turn(f, "tau", "0.7", "0.8");
    rounds(f, 3, 2000, 3);
    draw(f, 6, 60);
    press(f, 'a'); /* the newest row is followed */
    assert_string_equal(f->command, "take C");
    press(f, INPUT_DOWN);
    turn(f, "tau", "0.8", "0.9");
    rounds(f, 3, 2000, 3);
    draw(f, 6, 60);
    press(f, 'a'); /* a row that was chosen stays in focus */
    assert_string_equal(f->command, "take B");
    const struct canvas c = {.rows = 6, .cols = 60, .grid = &f->grid};
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 4, 5, MOUSE_PRESS));
    press(f, 'a');
    assert_string_equal(f->command, "take A");
}

PANEL_TEST(narrow_ledgers_keep_the_important_columns)
{
    struct fixture *f = *state;
    use(f, "ledger");
    rounds(f, 30, 2000, 3);
    turn(f, "tau", "0.55", "0.7");
    rounds(f, 30, 1000, 3);
    memset(&effects, 0, sizeof effects);
    forecasts(f, 1, 2, 1.5f);
    draw(f, 6, 40);
    assert_contains(line(f, 1), "B★  τ 0.7");
    assert_contains(line(f, 1), "▲");
    draw(f, 6, 22);
    assert_contains(line(f, 1), "×");
    draw(f, 2, 12);
    assert_contains(line(f, 0), "τ 0.7");
}

PANEL_TEST(many_segments_scroll)
{
    struct fixture *f = *state;
    use(f, "ledger");
    for (int i = 0; i < SEGMENTS + 30; i++) {
        turn(f, "d_max", i % 2 == 0 ? "4" : "3", i % 2 == 0 ? "3" : "4");
        rounds(f, 2, 2000, 3);
    }
    draw(f, 9, 80);
    press(f, INPUT_PAGE_DOWN);
    press(f, INPUT_END);
    draw(f, 9, 80);
    char letter[8], row[16];
    segment_letter(30, letter);
    snprintf(row, sizeof row, "▸%s ", letter);
    assert_int_equal(row_with(f, row), 8);
    draw(f, 15, 80); /* no row stays empty while there are more entries */
    assert_int_equal(row_with(f, row), 14);
    draw(f, 9, 80);
    turn(f, "d_max", "4", "5");
    rounds(f, 2, 2000, 3);
    draw(f, 9, 80); /* the row in focus was dropped: the focus is on the oldest row left */
    press(f, 'a');
    segment_letter(31, letter);
    snprintf(row, sizeof row, "take %s", letter);
    assert_string_equal(f->command, row);
}
