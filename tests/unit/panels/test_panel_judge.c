/* The judgement of drafts: rounds with a verdict on each draft, the grid with its marks, and the chosen number. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

/* A round's drafts: the first `accepted` are accepted, the first `judged` have a verdict. Also reports values of "sure"
 * and "reject". */
static void
tell_drafts(struct fixture *f, uint32_t round, uint32_t n, uint32_t judged, uint32_t accepted, const float *sure)
{
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    const uint32_t at = scope_now(f->scope)->committed;
    float all = 1;
    f->stream.round = round;
    for (uint32_t i = 0; i < n; i++) {
        say_draft(&f->stream, at + i, (int)i + 1, (int)i, (token_t)(2 + i % 5), -1);
        all *= sure[i];
        decode_report(&d, "sure", (int)i, sure[i]);
        decode_report(&d, "reject", (int)i, 1 - all);
        decode_report(&d, "reject", 8 + (int)i, 0.7f);
    }
    for (uint32_t i = 0; i < judged; i++)
        say_verdict(&f->stream, (int)i + 1, i < accepted, i < accepted);
    say_token(&f->stream, accepted < judged ? SOURCE_CORRECTION : SOURCE_BONUS, at + accepted, 6);
    struct event *end = say_round(&f->stream, judged, accepted, accepted + 1);
    end->round_end.drafted = n;
    snprintf(end->round_end.stop_reason, sizeof end->round_end.stop_reason, "h");
    see(f);
}

static void
begin(struct fixture *f)
{
    static const char *const words[] = {"Once", " upon", " king", " man", " who", " had", " sons"};
    stream_control(&f->stream, "policy", "judges");
    prompt(f, words, 2);
    for (token_t t = 2; t < 7; t++)
        say_vocab(&f->stream, t, words[t], strlen(words[t]));
    see(f);
    use(f, "judge");
}

PANEL_TEST(it_is_there_for_policies_that_judge)
{
    struct fixture *f = *state;
    use(f, "judge");
    stream_control(&f->stream, "policy", "forms");
    see(f);
    assert_false(f->ops->active(&f->view));
    stream_control(&f->stream, "policy", "judges");
    see(f);
    assert_true(f->ops->active(&f->view));
    const struct panel_ops *series = panel_named("series");
    struct fixture g = *f;
    g.ops = series;
    assert_true(panel_open(series, &g.panel));
    g.grid = (struct grid){.utf8 = true};
    draw(&g, 20, 60);
    assert_int_equal(row_with(&g, "a table"), -1); /* the series panel leaves out reports that the judge panel shows */
    assert_int_equal(row_with(&g, "rejection"), -1);
    panel_close(series, g.panel);
    grid_close(&g.grid);
}

/* The rounds are alone here: a small panel leaves out the grid and the bars. */
PANEL_TEST(a_draft_is_above_its_judgement)
{
    struct fixture *f = *state;
    begin(f);
    tell_drafts(f, 1, 3, 3, 2, (const float[]){0.95f, 0.9f, 0.25f});
    tell_drafts(f, 2, 2, 2, 2, (const float[]){1, 0.5f});
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "  2 2/2 · h, 0.50 ≤ 0.70"), 0);
    assert_int_equal(row_with(f, "1✓king    2✓man"), 1);
    assert_int_equal(row_with(f, "p      1.0       .50"), 2);
    assert_int_equal(row_with(f, "   .70 "), 3);
    assert_int_equal(row_with(f, "reject"), 4);
    assert_int_equal(row_with(f, "  1 2/3 · h, 0.79 > 0.70"), 5);
    assert_int_equal(row_with(f, "│"), -1); /* round 2 did not end above its limit */
    press(f, INPUT_DOWN);                   /* the newest round, then the one before */
    press(f, INPUT_DOWN);
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "▸  1 2/3"), 0);
    assert_int_equal(row_with(f, "1✓king    2✓man     3✗who"), 1);
    assert_int_equal(row_with(f, "⣀│"), -1);
    assert_contains(line(f, 3), "│");
    assert_contains(line(f, 4), "│");
    press(f, INPUT_UP);
    press(f, INPUT_UP);
    assert_true(f->selection.follow);
}

PANEL_TEST(long_rounds_go_on_below)
{
    struct fixture *f = *state;
    static const float sure[8] = {0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.11f};
    begin(f);
    tell_drafts(f, 1, 8, 8, 8, sure);
    draw(f, 13, 40); /* five drafts side by side, bars below */
    assert_greater(row_with(f, ".11"), row_with(f, ".90"));
    const int second = row_with(f, ".11") - 1;
    f->ops->mouse(f->panel, &f->view, &(struct canvas){.rows = 13, .cols = 40}, second, 7 + 2 * 6, MOUSE_PRESS);
    assert_false(f->selection.follow);
    assert_int_equal(f->selection.pos, 2 + 7);
    f->ops->mouse(f->panel, &f->view, &(struct canvas){.rows = 13, .cols = 40}, 1, 7, MOUSE_PRESS);
    assert_int_equal(f->selection.pos, 2);
}

static void
tell_table(struct fixture *f)
{
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    static const float rows[] = {0, 0.5f, 0.75f, 0.9f}, columns[] = {0, 0.4f, 0.99998f};
    for (int i = 0; i < 12; i++)
        decode_report(&d, "table", i, (float)i / 20);
    for (int i = 0; i < 4; i++)
        decode_report(&d, "rows", i, rows[i]);
    for (int i = 0; i < 3; i++)
        decode_report(&d, "columns", i, columns[i]);
}

PANEL_TEST(the_grid_shows_the_cells_of_drafts_and_the_cut)
{
    struct fixture *f = *state;
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    begin(f);
    f->stream.round = 1;
    tell_table(f);
    static const float cells[] = {11, 0, 7, 7, 7};
    for (int i = 0; i < 5; i++) {
        decode_report(&d, "cell", i, cells[i]);
        decode_report(&d, "gain", i, 1 + (float)(i == 1));
    }
    decode_report(&d, "gain", 9 + 1, 1);
    tell_drafts(f, 1, 5, 2, 1, (const float[]){0.95f, 0.2f, 0.9f, 0.9f, 0.9f});
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "  1 1/2 · 1 row, 2 tested, 3–5 cut · h"), 0);
    assert_int_equal(row_with(f, "1✓king  2✗man   3╌who   4╌had   5╌sons"), 1);
    assert_at_least(row_with(f, "a table"), 0);
    assert_less(row_with(f, "a table  0"), 0);          /* its scale does not fit */
    assert_greater(row_with(f, "  .90 .45 .50 ▸1"), 0); /* the highest row of the grid is at the top */
    assert_greater(row_with(f, "  .75 .30 +3  .40"), row_with(f, "  .90 .45"));
    assert_greater(row_with(f, "  .50 .15 .20 .25"), row_with(f, "  .75 .30"));
    assert_greater(row_with(f, "    0 ▸2  .05 .10"), row_with(f, "  .50 .15"));
    assert_greater(row_with(f, "s\\a≥   0   .40 .99"), row_with(f, "    0 ▸2"));
    assert_at_least(row_with(f, "gain by number ▲1 2"), 0);
    assert_greater(row_with(f, "   ██"), row_with(f, "gain by number")); /* one bar is higher than the others */
    assert_greater(row_with(f, "██ ██ ██ ██ ██"), row_with(f, "   ██"));
    f->grid.mono = true; /* without colours and UTF-8, marks differ from heat */
    f->grid.utf8 = false;
    draw(f, 16, 70);
    assert_greater(row_with(f, ">1"), 0);
    assert_greater(row_with(f, "+3"), 0);
    assert_greater(row_with(f, ">2"), 0);
    assert_at_least(row_with(f, "^1 2"), 0);
}

PANEL_TEST(a_round_without_judgements_has_no_marks)
{
    struct fixture *f = *state;
    begin(f);
    f->stream.round = 1;
    tell_table(f);
    tell_drafts(f, 1, 3, 3, 3, (const float[]){0.5f, 0.5f, 0.5f});
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "▸"), -1);
    assert_greater(row_with(f, ".45 .50 .55"), 0);
    assert_greater(row_with(f, "not known yet"), 0);
}
