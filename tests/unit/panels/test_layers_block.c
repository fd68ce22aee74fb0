/* A block drafter's block in the layers panel. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

/* Round 1 after a prompt of two tokens. Four positions are predicted, of which three are proposed; the second draft is
 * rejected. Of the Markov head, the bias changes the second and the confidence head doubts it. */
static void
emit_a_block(struct fixture *f, bool markov)
{
    static const char *const words[] = {"Once", " upon", " king", " man", " who", " had", " sons"};
    prompt(f, words, 2);
    for (token_t t = 2; t < 7; t++)
        say_vocab(&f->stream, t, words[t], strlen(words[t]));
    f->info.policies[1].needs = NEEDS(AUX_BLOCK);
    f->stream.round = 1;
    for (uint32_t i = 0; i < 4; i++)
        say_block(&f->stream, 2 + i, 0, i == 1 ? 3 : 2 + (token_t)i, 0.8f - 0.1f * (float)i);
    for (uint32_t i = 0; i < 4 && markov; i++)
        say_block(&f->stream, 2 + i, 1, i == 1 ? 4 : 2 + (token_t)i, 0.6f)->layer.acceptance = i == 1   ? 0.25f
                                                                                               : i == 3 ? 0.5f
                                                                                                        : 0.9f;
    for (int i = 0; i < 3; i++)
        say_draft(&f->stream, 2 + (uint32_t)i, i + 1, i, i == 1 ? (markov ? 4 : 3) : 2 + (token_t)i, -1);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_verdict(&f->stream, 3, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 3, 5);
    say_round(&f->stream, 3, 1, 2);
}

/* Asserts that row y contains the text from column x on. */
static void
assert_at(struct fixture *f, int y, int x, const char *text)
{
    const struct canvas c = {.rows = f->grid.rows, .cols = f->grid.cols, .grid = &f->grid};
    char got[200] = "";
    for (int i = x; i < c.cols && strlen(got) < strlen(text); i++)
        strncat(got, grid_at(&f->grid, y, i)->text, sizeof got - strlen(got) - 1);
    assert_string_equal(got, text);
}

PANEL_TEST(a_block_has_a_row_for_each_draft_above_the_targets_layers)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    use(f, "layers");
    draw(f, 20, 100);
    assert_at(f, 2, 0, "  +1 ✓ king");
    assert_contains(line(f, 2), ".60");
    assert_contains(line(f, 2), "c .90");
    assert_contains(line(f, 2), "accepted");
    assert_at(f, 3, 0, "  +2 ✗ who");
    assert_contains(line(f, 3), "≠ man");
    assert_contains(line(f, 3), "c .25");
    assert_contains(line(f, 3), "rejected: 'had'");
    assert_at(f, 4, 0, "  +3 ✗ who");
    assert_contains(line(f, 4), "after a rejection");
    assert_lacks(line(f, 4), "≠");
    assert_at(f, 5, 0, "  +4 · had");
    assert_contains(line(f, 5), "c .50");
    assert_contains(line(f, 5), "below the threshold"); /* of say_round(): 0.6 */
    assert_contains(line(f, 6), "▲ block blocky round 1: 1 of 4 accepted ≠ 1 by the bias");
    assert_at(f, 7, 0, "  L6");
}

PANEL_TEST(without_a_markov_head_a_block_has_probabilities_alone)
{
    struct fixture *f = *state;
    emit_a_block(f, false);
    use(f, "layers");
    draw(f, 20, 100);
    assert_at(f, 3, 0, "  +2 ✗ man");
    for (int y = 2; y < 7; y++) {
        assert_lacks(line(f, y), "≠");
        assert_lacks(line(f, y), " c .");
    }
}

PANEL_TEST(a_narrow_block_keeps_one_choice_and_leaves_parts_out_as_a_whole)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    use(f, "layers");
    for (int cols = 30; cols < 140; cols++) {
        draw(f, 20, cols);
        assert_at(f, 3, 0, "  +2 ✗ who");
        const char *sure = strstr(line(f, 3), "c .2"), *why = strstr(f->line, "rejec"), *bias = strstr(f->line, "≠");
        assert_true(sure == NULL || strncmp(sure, "c .25", 5) == 0);
        assert_true(why == NULL || strncmp(why, "rejected: 'had'", 15) == 0);
        assert_true(bias == NULL || strstr(bias, "≠ man") == bias);
        assert_true(cols < 100 || (sure != NULL && why != NULL && bias != NULL));
    }
}

PANEL_TEST(the_cursor_reads_and_opens_a_draft_of_the_block)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    use(f, "layers");
    draw(f, 24, 100);
    press(f, 'h');
    assert_int_equal(f->selection.model, MODEL_TARGET);
    press(f, 'K');
    assert_int_equal(f->selection.model, MODEL_BLOCK);
    assert_int_equal(f->selection.layer, 1);
    press(f, 'j');
    draw(f, 24, 100);
    assert_contains(line(f, 3), "▸✗ who");
    assert_contains(line(f, 23), "round 1 +2 'who' 0.60  without the bias 'man' 0.70  confidence 0.25  rejected, "
                                 "the target's is 'had'");
    press(f, INPUT_ENTER);
    draw(f, 24, 100);
    assert_greater(row_with(f, "draft 2 of round 1"), 0);
    assert_greater(row_with(f, "with bias"), 0);
    assert_greater(row_with(f, "0.700"), 0);
    assert_greater(row_with(f, "confidence 0.25  rejected, the target's is 'had'"), 0);
    press(f, INPUT_ESCAPE);
    press(f, 'J');
    press(f, 'K');
    for (int i = 0; i < 4; i++)
        press(f, 'j');
    assert_int_equal(f->selection.model, MODEL_TARGET);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
    press(f, 'k');
    assert_int_equal(f->selection.model, MODEL_BLOCK);
    assert_int_equal(f->selection.layer, 4);
}

PANEL_TEST(a_click_selects_a_draft_of_the_block_and_leaves_the_position)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    use(f, "layers");
    draw(f, 24, 100);
    press(f, 'h');
    const uint32_t pos = f->selection.pos;
    const struct canvas c = {.rows = 24, .cols = 100, .grid = &f->grid};
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 3, 6, MOUSE_PRESS));
    assert_int_equal(f->selection.model, MODEL_BLOCK);
    assert_int_equal(f->selection.layer, 2);
    assert_int_equal(f->selection.pos, pos);
}

/* Round 2 proposes one draft, which ends the text: the next one is cut. */
PANEL_TEST(the_cursor_chooses_the_round_and_a_prompt_has_none)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    f->stream.round = 2;
    for (uint32_t i = 0; i < 2; i++) {
        say_block(&f->stream, 4 + i, 0, 6, 0.5f);
        say_draft(&f->stream, 4 + i, (int)i + 1, (int)i, 6, -1);
    }
    use(f, "layers");
    draw(f, 24, 100);
    assert_contains(line(f, 2), "◌ sons");
    assert_contains(line(f, 2), "drafted");
    assert_contains(line(f, 6), "round 2 ");
    say_verdict(&f->stream, 1, true, true);
    say_round(&f->stream, 1, 1, 1)->round_end.cut = 1;
    draw(f, 24, 100);
    assert_contains(line(f, 2), "✓ sons");
    assert_contains(line(f, 3), "after the end");
    f->selection = (struct selection){.pos = 3, .model = MODEL_TARGET, .layer = 1};
    draw(f, 24, 100);
    assert_contains(line(f, 2), "✓ king");
    f->selection.pos = 0;
    draw(f, 24, 100);
    assert_contains(line(f, 2), "no block was drafted here");
    press(f, 'd');
    draw(f, 24, 100);
    assert_at(f, 2, 0, "  L6");
}

PANEL_TEST(reliability_is_of_the_confidence_head)
{
    struct fixture *f = *state;
    emit_a_block(f, true);
    use(f, "reliability");
    draw(f, 12, 60);
    /* tested: 0.9 accepted, 0.25 rejected */
    assert_contains(line(f, 0), "ECE 0.175 of 2 forecasts · confidence head");
}

PANEL_TEST(without_a_confidence_head_reliability_is_of_the_probability)
{
    struct fixture *f = *state;
    emit_a_block(f, false);
    use(f, "reliability");
    draw(f, 12, 60);
    assert_lacks(line(f, 0), "confidence head");
    assert_contains(line(f, 0), "of 2 drafts");
}
