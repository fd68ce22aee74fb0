/* Layers × tokens drawn into a grid. */
#include "tests/rigs/panel_rig.h"

static void
test_layers_show_what_each_would_have_said(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f);
    use(f, "layers");
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
    use(f, "layers");
    draw(f, 16, 70);
    press(f, 'h'); /* the newest position, where it left the model */
    assert_int_equal(f->selection.pos, 3);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
    press(f, 'h');
    press(f, 'J');
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

/* The cell of a layer's word in the column of position 2; -1: the word is not there. */
static const struct grid_cell *
cell_of(struct fixture *f, int y, const char *word)
{
    for (int x = 0; x < f->grid.cols; x++) {
        const struct grid_cell *c = grid_at(&f->grid, y, x);
        if (c->text[0] == word[0] && grid_at(&f->grid, y, x + 1)->text[0] == word[1])
            return c;
    }
    fail_msg("no %s in row %d", word, y);
    return NULL;
}

static void
test_after_the_exit_a_cell_is_grey_until_g(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f); /* position 2 left at layer 2 */
    for (int layer = 3; layer < FAKE_LAYERS; layer++)
        say_layer(&f->stream, 2, layer, 2, 0.99f)->layer.probed_by = PROBED_SCOPE;
    use(f, "layers");
    draw(f, 11, 60);
    const int beyond = row_with(f, "  5 "), left = row_with(f, "  2");
    assert_int_equal(cell_of(f, beyond, "king")->role, ROLE_EXITED);
    assert_int_equal(cell_of(f, beyond, "king")->heat, GRID_NO_HEAT);
    assert_non_null(strstr(line(f, beyond), "king▒"));
    assert_true(cell_of(f, left, "king")->heat > GRID_HEATS / 2);
    press(f, 'g');
    draw(f, 11, 60);
    assert_true(cell_of(f, beyond, "king")->heat > GRID_HEATS / 2);
    assert_non_null(strstr(line(f, beyond), "king▒")); /* it is told from the others all the same */
    press(f, 'g');
    draw(f, 11, 60);
    assert_int_equal(cell_of(f, beyond, "king")->heat, GRID_NO_HEAT);
}

static void
test_the_best_rank_is_1_and_most(void **state)
{
    struct fixture *f = *state;
    tell_a_round(f);
    use(f, "layers");
    for (int i = 0; i < 3; i++)
        press(f, 'v'); /* confidence, entropy, KL, rank */
    draw(f, 12, 70);
    char note[160];
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_non_null(strstr(note, "rank 1024 ▁▂▃▄▅▆▇█ 1"));
    const int agrees = row_with(f, "  2"), differs = row_with(f, "  1 ");
    assert_int_equal(cell_of(f, agrees, "king")->heat, GRID_HEATS - 1);
    const int8_t other = cell_of(f, differs, "ma")->heat;
    assert_true(other == GRID_NO_HEAT || other < GRID_HEATS - 1);
    press(f, 'h');
    press(f, 'h');
    draw(f, 12, 70);
    press(f, 'K');
    draw(f, 12, 70);
    assert_non_null(strstr(line(f, 11), "rank 1"));
}

static void
test_a_tall_model_folds(void **state)
{
    (void)state;
    struct fixture f;
    open_panels(&f, 126);
    struct decoder d = {0};
    decode_begin(&d, &f.stream, &f.info, 4);
    for (int i = 0; i < 20; i++)
        decode_round(&d);
    use(&f, "layers");
    draw(&f, 11, 80);
    const int exit = scope_exit_layer(f.scope);
    char label[8];
    assert_int_equal(row_with(&f, " 126"), 2);
    assert_true(row_with(&f, "  1 ") == 9 || row_with(&f, "  1►") == 9); /* the last row is the cursor's */
    snprintf(label, sizeof label, "%3d►", exit);
    assert_true(row_with(&f, label) >= 2);
    assert_true(row_with(&f, "d_max 3") > 0);
    assert_true(row_with(&f, "┆") > 0);
    close_panels(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        PANEL_TEST(test_layers_show_what_each_would_have_said),
        PANEL_TEST(test_the_cursor_reads_and_opens_a_cell),
        PANEL_TEST(test_after_the_exit_a_cell_is_grey_until_g),
        PANEL_TEST(test_the_best_rank_is_1_and_most),
        cmocka_unit_test(test_a_tall_model_folds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
