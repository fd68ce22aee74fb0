/* The layer mask: the sets of skipped sublayers that were in use up to the cursor's round, with their scores. */
#include "tests/rigs/panel_rig.h"

/* Round 1 skips two sublayers. Round 3 skips one of them and another one; the score rises. */
static void
tell_masks(struct fixture *f)
{
    struct decoder d = {.stream = &f->stream, .info = &f->info};
    stream_control(&f->stream, "policy", "forms");
    say_token(&f->stream, SOURCE_PROMPT, 0, 1);
    for (uint32_t round = 1; round <= 4; round++) {
        f->stream.round = round;
        for (int i = 0; i < 2 * FAKE_LAYERS; i++)
            decode_report(&d, "mask", i, i == 8 || i == (round < 3 ? 1 : 2));
        decode_report(&d, "line", 0, round < 3 ? 0.5f : 0.75f);
        say_token(&f->stream, SOURCE_BONUS, round, 1);
        say_round(&f->stream, 0, 0, 1);
    }
    see(f);
}

PANEL_TEST(masks_are_listed_with_their_scores)
{
    struct fixture *f = *state;
    use(f, "mask");
    see(f);
    assert_false(f->ops->active(&f->view));
    tell_masks(f);
    assert_true(f->ops->active(&f->view));
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "round score skipped 1         6"), 0);
    assert_int_equal(row_with(f, "    3  0.75       2 █ █ · █ █ █"), 1); /* newest on top */
    assert_int_equal(row_with(f, "    1  0.50       2 █ ▄ ▀ █ █ █"), 2);
    assert_int_equal(row_with(f, "█ both ▀ attention ▄ MLP · none, underlined: new"), 5);
    char note[80];
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "2 of 12 skipped");
    draw(f, 6, 20); /* the legend is whole; masks fill the remaining rows */
    assert_int_equal(row_with(f, "█ both ▀ attention ▄"), 3);
    assert_int_equal(row_with(f, "underlined: new"), 5);
    assert_int_equal(row_with(f, "    3  0.75 ██·███"), 1);
    assert_int_equal(row_with(f, "    1  0.50 █▄▀███"), 2);
    draw(f, 6, 16);
    assert_int_equal(row_with(f, " 3 0.75 ██·███"), 1);
    f->grid.utf8 = false;
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "    1  0.50       2 # 4 ^ # # #"), 2);
}

PANEL_TEST(the_kinds_of_layers_stand_above_if_they_differ)
{
    struct fixture *f = *state;
    snprintf(f->info.layer_kinds, sizeof f->info.layer_kinds, "rrwarr");
    use(f, "mask");
    tell_masks(f);
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "round score skipped r r w a r r"), 0);
    draw(f, 6, 8); /* columns of two layers have no letter */
    assert_int_equal(row_with(f, "1 6"), 0);
}

PANEL_TEST(changed_values_are_underlined)
{
    struct fixture *f = *state;
    use(f, "mask");
    tell_masks(f);
    draw(f, 6, 60);
    for (int layer = 1; layer <= FAKE_LAYERS; layer++) {
        const bool changed = layer == 2 || layer == 3;
        assert_int_equal((grid_at(&f->grid, 1, 20 + 2 * (layer - 1))->marks & MARK_UNDERLINED) != 0, changed);
        assert_int_equal(grid_at(&f->grid, 2, 20 + 2 * (layer - 1))->marks & MARK_UNDERLINED, 0);
    }
}

PANEL_TEST(the_mask_is_that_of_the_cursors_round)
{
    struct fixture *f = *state;
    use(f, "mask");
    tell_masks(f);
    f->selection = (struct selection){.pos = 2};
    draw(f, 6, 60);
    assert_int_equal(row_with(f, "    1  0.50"), 1);
    assert_int_equal(row_with(f, "    3  0.75"), -1);
}

PANEL_TEST(more_layers_than_columns_are_folded)
{
    struct fixture *f = *state;
    use(f, "mask");
    tell_masks(f);
    draw(f, 6, 8);
    assert_int_equal(row_with(f, "0.75 █▅█"), 1); /* three columns of two layers each: 2 of 4 sublayers run */
}
