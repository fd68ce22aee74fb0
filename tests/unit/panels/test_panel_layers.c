/* Layers × tokens drawn into a grid. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

PANEL_TEST(layers_show_the_prediction_of_each)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    draw(f, 11, 60);
    assert_contains(line(f, 0), "king");
    assert_contains(line(f, 1), "✓2");
    assert_contains(line(f, 1), "◆✗sons");
    /* The deepest layer is at the top, with a line above d_max = 3. */
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    assert_contains(line(f, 5), "d_max 3");
    assert_int_equal(strncmp(line(f, 8), "   1", 4), 0);
    assert_contains(line(f, 8), "man▓"); /* confident and wrong */
    assert_contains(line(f, 7), "king"); /* the exit layer */
    assert_contains(line(f, 6), "▒▒▒▒"); /* layers above the exit */
    assert_contains(line(f, 6), "sons ▓");
    assert_contains(line(f, 2), "who");
}

PANEL_TEST(a_letter_shows_the_kind_of_a_layer_if_kinds_differ)
{
    struct fixture *f = *state;
    snprintf(f->info.layer_kinds, sizeof f->info.layer_kinds, "rrwarr");
    emit_a_round(f);
    use(f, "layers");
    draw(f, 16, 70);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    assert_int_equal(strncmp(line(f, 4), "  a4", 4), 0);
    assert_int_equal(strncmp(line(f, 6), "  w3", 4), 0);
    assert_int_equal(strncmp(line(f, 8), "  r1", 4), 0);
    press(f, 'h');
    draw(f, 16, 70);
    assert_contains(line(f, 15), "  recurrent");
}

PANEL_TEST(the_cursor_reads_and_opens_a_cell)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    draw(f, 16, 70);
    press(f, 'h'); /* the newest position, at its exit */
    assert_int_equal(f->selection.pos, 3);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
    press(f, 'h');
    press(f, 'J');
    assert_int_equal(f->selection.pos, 2);
    assert_int_equal(f->selection.layer, 1);
    draw(f, 16, 70);
    assert_contains(line(f, 15), "2 'king'  L1 'man' 0.80");
    assert_contains(line(f, 15), "spurious");
    press(f, INPUT_ENTER);
    draw(f, 16, 70);
    assert_at_least(row_with(f, "L1 at 2 'king'"), 0);
    assert_at_least(row_with(f, "0.800"), 0);
    assert_at_least(row_with(f, "first at L2, stays from L2"), 0);
    press(f, INPUT_ESCAPE);
    draw(f, 16, 70);
    assert_int_equal(row_with(f, "L1 at 2"), -1);
    press(f, 'f');
    assert_true(f->selection.follow);
}

/* The cell of a layer's prediction in the column of position 2. For y = -1 the prediction is not on screen. */
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

PANEL_TEST(after_the_exit_a_cell_is_grey_until_g)
{
    struct fixture *f = *state;
    emit_a_round(f); /* position 2 exited at layer 2 */
    for (int layer = 3; layer < FAKE_LAYERS; layer++)
        say_layer(&f->stream, 2, layer, 2, 0.99f)->layer.probed_by = PROBED_SCOPE;
    use(f, "layers");
    draw(f, 11, 60);
    const int beyond = row_with(f, "  5 "), left = row_with(f, "  2");
    assert_int_equal(cell_of(f, beyond, "king")->role, ROLE_EXITED);
    assert_int_equal(cell_of(f, beyond, "king")->heat, GRID_NO_HEAT);
    assert_contains(line(f, beyond), "king▒");
    assert_greater(cell_of(f, left, "king")->heat, GRID_HEATS / 2);
    press(f, 'g');
    draw(f, 11, 60);
    assert_greater(cell_of(f, beyond, "king")->heat, GRID_HEATS / 2);
    assert_contains(line(f, beyond), "king▒"); /* heat distinguishes it from other cells here too */
    press(f, 'g');
    draw(f, 11, 60);
    assert_int_equal(cell_of(f, beyond, "king")->heat, GRID_NO_HEAT);
}

/* Layer 1 predicts token 2 over all tokens, and token 3 over the draft vocabulary, which lacks token 2. */
PANEL_TEST(a_token_outside_the_draft_vocabulary_is_marked_and_both_probabilities_are_in_the_readout)
{
    struct fixture *f = *state;
    emit_a_round(f);
    say_layer(&f->stream, 2, 1, 3, 0.75f)->layer.draft_vocab = 4100;
    say_layer(&f->stream, 2, 1, 2, 0.5f)->layer.probed_by = PROBED_SCOPE;
    use(f, "layers");
    draw(f, 12, 70);
    const int row = row_with(f, "  1");
    assert_contains(line(f, row), "∉");
    assert_lacks(line(f, row_with(f, "  2")), "∉");
    press(f, 'h');
    press(f, 'h');
    press(f, 'J');
    draw(f, 12, 70);
    assert_contains(line(f, 11), "0.50  in S '");
    assert_contains(line(f, 11), "0.75");
}

PANEL_TEST(the_best_rank_is_1_and_most)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    for (int i = 0; i < 3; i++)
        press(f, 'c'); /* confidence, entropy, KL, rank */
    draw(f, 12, 70);
    char note[160];
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_contains(note, "rank 1024 ▁▂▃▄▅▆▇█ 1");
    const int agrees = row_with(f, "  2"), differs = row_with(f, "  1 ");
    assert_int_equal(cell_of(f, agrees, "king")->heat, GRID_HEATS - 1);
    const int8_t other = cell_of(f, differs, "ma")->heat;
    if (other != GRID_NO_HEAT)
        assert_less(other, GRID_HEATS - 1);
    press(f, 'h');
    press(f, 'h');
    draw(f, 12, 70);
    press(f, 'K');
    draw(f, 12, 70);
    assert_contains(line(f, 11), "rank 1");
}

/* The panel of 20 rounds of a model with 126 layers. */
static void
open_tall(struct fixture *f)
{
    struct decoder d = {0};
    open_panels(f, 126);
    decode_begin(&d, &f->stream, &f->info, 4);
    for (int i = 0; i < 20; i++)
        decode_round(&d);
    use(f, "layers");
}

TEST(a_tall_model_folds)
{
    struct fixture f;
    open_tall(&f);
    draw(&f, 11, 80);
    const int exit = scope_exit_layer(f.scope);
    char label[8];
    assert_int_equal(row_with(&f, " 126"), 2);
    assert_true(row_with(&f, "  1 ") == 9 || row_with(&f, "  1►") == 9); /* the last row is the cursor's */
    snprintf(label, sizeof label, "%3d►", exit);
    assert_at_least(row_with(&f, label), 2);
    assert_greater(row_with(&f, "d_max 3"), 0);
    assert_greater(row_with(&f, "┆"), 0);
    close_panels(&f);
}

/* With 126 layers in few rows, j and k visit every layer, and the exit, d_max and the last layer stay visible. */
TEST(the_cursor_reaches_every_layer_of_a_tall_model)
{
    struct fixture f;
    open_tall(&f);
    draw(&f, 16, 80);
    press(&f, 'h');
    press(&f, 'J');
    for (int layer = 1; layer <= 126; layer++) {
        bool shown = false;
        draw(&f, 16, 80);
        assert_int_equal(f.selection.layer, layer);
        for (int y = 2; y < 15; y++)
            shown = shown || atoi(line(&f, y) + strspn(line(&f, y), "┆ ")) == layer;
        assert_true(shown);
        assert_int_equal(row_with(&f, " 126"), 2);
        assert_greater(row_with(&f, "d_max 3"), 0);
        assert_greater(row_with(&f, "►"), 0);
        press(&f, 'k');
    }
    close_panels(&f);
}

/* A model with the logit lens alone: the right edge shows how often each layer agreed with the last one. */
PANEL_TEST(agreement_is_there_with_the_lens_alone)
{
    struct fixture *f = *state;
    emit_a_round(f);
    say_layer(&f->stream, 2, 1, 3, 0.8f)->layer.final_agrees = 0;
    say_layer(&f->stream, 2, 2, 2, 0.9f)->layer.final_agrees = 1;
    use(f, "layers");
    draw(f, 11, 80);
    assert_contains(line(f, 0), "same as");
    assert_contains(line(f, 7), " 100%");
    assert_contains(line(f, 8), "   0%");
    assert_lacks(line(f, 1), "trained");
    draw(f, 11, 60);
    assert_lacks(line(f, 0), "same as");
}

PANEL_TEST(a_position_that_was_not_probed_is_dim_and_says_so)
{
    struct fixture *f = *state;
    emit_a_round(f);
    say_token(&f->stream, SOURCE_BONUS, 4, 5);
    use(f, "layers");
    draw(f, 20, 70);
    press(f, 'h');
    draw(f, 20, 70);
    assert_int_equal(f->selection.pos, 4);
    assert_greater(row_with(f, "no layer was probed at this position"), 0);
    assert_int_equal(cell_of(f, 0, "had")->role, ROLE_DIM);
    assert_int_equal(cell_of(f, 0, "who")->role, ROLE_CORRECTION);
    press(f, 'h');
    press(f, 'j');
    draw(f, 20, 70);
    assert_greater(row_with(f, "this layer was not probed here"), 0);
}

/* Position 4 has the prediction of the last layer, which the verification computed. */
PANEL_TEST(a_position_that_probes_left_out_is_dim_and_names_their_share)
{
    struct fixture *f = *state;
    emit_a_round(f);
    stream_add(&f->stream, EVENT_CONTROL)->control =
        (struct control_event){.kind = RECORDED_PROBE, .old_text = "", .new_text = "15%"};
    say_token(&f->stream, SOURCE_BONUS, 4, 5);
    say_layer(&f->stream, 4, FAKE_LAYERS, 5, 0.9f)->layer.probed_by = PROBED_VERIFY;
    use(f, "layers");
    draw(f, 20, 70);
    assert_int_equal(cell_of(f, 0, "had")->role, ROLE_DIM);
    assert_int_equal(cell_of(f, 0, "who")->role, ROLE_CORRECTION);
    press(f, 'h');
    press(f, 'j');
    draw(f, 20, 70);
    assert_int_equal(f->selection.pos, 4);
    assert_greater(row_with(f, "only the last layer was probed"), 0);
    assert_greater(row_with(f, "(at most 15% of the time)"), 0);
}

/* A character of three tokens: E3, 81, 82 is あ. */
PANEL_TEST(the_token_that_ends_a_character_is_shown_as_the_character)
{
    struct fixture *f = *state;
    emit_a_round(f);
    say_vocab(&f->stream, 20, "\xe3", 1);
    say_vocab(&f->stream, 21, "\x81", 1);
    say_vocab(&f->stream, 22, "\x82!", 2);
    say_token(&f->stream, SOURCE_BONUS, 4, 20);
    say_token(&f->stream, SOURCE_BONUS, 5, 21);
    say_token(&f->stream, SOURCE_BONUS, 6, 22);
    say_token(&f->stream, SOURCE_BONUS, 7, 22); /* ends no character */
    use(f, "layers");
    draw(f, 20, 90);
    assert_contains(line(f, 0), "\\xe3 ");
    assert_contains(line(f, 0), "\\x81 ");
    assert_contains(line(f, 0), "あ!");
    assert_contains(line(f, 0), "\\x82!");
}

PANEL_TEST(predictions_of_the_last_layers_token_are_bold)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    draw(f, 11, 60);
    assert_true((cell_of(f, 7, "king")->marks & MARK_BOLD) != 0);
    assert_true((cell_of(f, 8, "man")->marks & MARK_BOLD) == 0);
}

/* Each part of the line about a cell is whole or left out. */
PANEL_TEST(the_line_about_a_cell_is_not_cut)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    draw(f, 11, 80);
    press(f, 'h');
    for (int cols = 24; cols < 80; cols++) {
        draw(f, 11, cols);
        const char *end = line(f, 10) + strlen(line(f, 10));
        assert_true(end > line(f, 10));
        assert_non_null(strchr("'0123456789)s", end[-1]));
        const char *dot = strrchr(line(f, 10), '.');
        if (dot)
            assert_at_least(strlen(dot), 3);
    }
}

/* The draft model's layer events for the round of emit_a_round(). */
static void
tell_draft_layers(struct fixture *f)
{
    emit_a_round(f);
    say_draft_layer(&f->stream, 2, FAKE_DRAFT, 2, 0.9f);
    for (int l = 1; l <= FAKE_DRAFT; l++) {
        struct event *e = say_draft_layer(&f->stream, 3, l, l == 1 ? 3 : 6, 0.7f);
        e->layer.probed_by = PROBED_SCOPE;
        e->layer.final_agrees = false;
    }
}

PANEL_TEST(a_draft_models_layers_are_in_a_strip_above)
{
    struct fixture *f = *state;
    tell_draft_layers(f);
    use(f, "layers");
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  d2", 4), 0);
    assert_contains(line(f, 2), "king");
    assert_contains(line(f, 2), "sons ▓"); /* confident, and the target's token is shown */
    assert_int_equal(strncmp(line(f, 3), "  d1", 4), 0);
    assert_contains(line(f, 4), "▲ draft small");
    assert_int_equal(strncmp(line(f, 5), "  L6", 4), 0);
    assert_contains(line(f, 5), "who");
    assert_contains(line(f, 8), "d_max 3");
    draw(f, 16, 80); /* there is room for the agreement with the target */
    assert_contains(line(f, 0), "same as");
    assert_contains(line(f, 1), " L6");
    assert_contains(line(f, 2), "0%");
}

PANEL_TEST(the_cursor_goes_through_the_strip)
{
    struct fixture *f = *state;
    tell_draft_layers(f);
    use(f, "layers");
    draw(f, 16, 70);
    press(f, 'h');
    assert_int_equal(f->selection.model, MODEL_TARGET);
    press(f, 'K');
    assert_int_equal(f->selection.model, MODEL_DRAFT);
    assert_int_equal(f->selection.layer, FAKE_DRAFT);
    press(f, 'j');
    assert_int_equal(f->selection.layer, 1);
    draw(f, 16, 70);
    assert_contains(line(f, 15), "3 'who'  d1 'man' 0.70");
    press(f, INPUT_ENTER);
    draw(f, 16, 70);
    assert_at_least(row_with(f, "d1 at 3 'who'"), 0);
    assert_at_least(row_with(f, "rank of 'sons' in d1..d2"), 0); /* in the draft model's own last layer */
    assert_at_least(row_with(f, "first at d2, stays from d2"), 0);
    press(f, INPUT_ESCAPE);
    press(f, 'j');
    assert_int_equal(f->selection.model, MODEL_TARGET);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
    press(f, 'k');
    assert_int_equal(f->selection.model, MODEL_DRAFT);
    press(f, 'd'); /* the strip disappears, the cursor stays */
    assert_int_equal(f->selection.model, MODEL_TARGET);
    draw(f, 16, 70);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    assert_int_equal(row_with(f, "▲ draft"), -1);
    press(f, 'd');
    draw(f, 16, 70);
    assert_int_equal(strncmp(line(f, 2), "  d2", 4), 0);
}

PANEL_TEST(a_click_on_the_strip_points_at_it)
{
    struct fixture *f = *state;
    tell_draft_layers(f);
    use(f, "layers");
    draw(f, 16, 70);
    const struct canvas c = {.rows = 16, .cols = 70, .grid = &f->grid};
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 3, 6, MOUSE_PRESS));
    assert_int_equal(f->selection.model, MODEL_DRAFT);
    assert_int_equal(f->selection.layer, 1);
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 5, 6, MOUSE_PRESS));
    assert_int_equal(f->selection.model, MODEL_TARGET);
    assert_int_equal(f->selection.layer, FAKE_LAYERS);
}

/* At every height the target keeps half of the lines (one of them may be the d_max line). */
PANEL_TEST(the_strip_folds_where_there_is_little_room)
{
    struct fixture *f = *state;
    tell_draft_layers(f);
    f->info.aux[AUX_COMPANION] = (struct aux_info){.name = "third", .layers = 9};
    stream_control(&f->stream, "probe", "all");
    for (int l = 1; l <= 9; l++)
        say_draft_layer(&f->stream, 3, l, 4, 0.5f)->layer.model = MODEL_COMPANION;
    use(f, "layers");
    for (int rows = 3; rows < 40; rows++) {
        int target = 0, aux = 0, edges = 0;
        draw(f, rows, 70);
        for (int y = 2; y < rows; y++) {
            const char *text = line(f, y);
            edges += strstr(text, "▲") != NULL;
            text += strspn(text, "┆ ");
            aux += (text[0] == 'd' || text[0] == 'c') && text[1] >= '1' && text[1] <= '9' && y < rows - 1;
            target += text[0] == 'L' || (text[0] >= '1' && text[0] <= '5');
        }
        const int lines = rows - 2 - (rows >= 6);
        if (target != FAKE_LAYERS)
            assert_at_least(2 * (target + (lines >= 6)), lines);
        assert_true(aux == FAKE_DRAFT + 9 || aux + edges <= lines - target);
        if (lines >= 4)
            assert_at_least(aux, 2);
        if (lines >= FAKE_LAYERS + 1 + FAKE_DRAFT + 1 + 9 + 1) { /* with the line of d_max */
            assert_int_equal(aux, FAKE_DRAFT + 9);
            assert_int_equal(edges, 2);
            assert_int_equal(target, FAKE_LAYERS);
        }
    }
}

PANEL_TEST(without_a_draft_model_there_is_no_strip_and_d_reports_it)
{
    struct fixture *f = *state;
    f->info.aux[AUX_DRAFT] = (struct aux_info){.name = "self:3"};
    f->info.aux[AUX_BLOCK] = (struct aux_info){0};
    emit_a_round(f);
    use(f, "layers");
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    press(f, 'd');
    assert_contains(f->said, "no draft model");
}

/* The strip is visible while the policy needs the model, and later while the model's predictions are on screen. */
PANEL_TEST(the_strip_goes_with_the_policy)
{
    struct fixture *f = *state;
    emit_a_round(f);
    use(f, "layers");
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    stream_control(&f->stream, "policy", "ar"); /* fake_run() declares that "ar" needs one */
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  d2", 4), 0);
    stream_control(&f->stream, "policy", "specbound");
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0);
    say_draft_layer(&f->stream, 3, FAKE_DRAFT, 6, 0.7f);
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  d2", 4), 0);
    for (uint32_t pos = 4; pos < 60; pos++)
        say_token(&f->stream, SOURCE_BONUS, pos, 4);
    draw(f, 16, 60);
    assert_int_equal(strncmp(line(f, 2), "  L6", 4), 0); /* the model's predictions are out of view */
}

static void
say_experts(struct fixture *f, uint32_t pos, int32_t layer, uint16_t a, uint16_t b)
{
    stream_add(&f->stream, EVENT_EXPERTS)->experts =
        (struct experts_event){.pos = pos, .layer = layer, .n = 2, .expert = {a, b}, .weight = {0.8f, 0.2f}};
}

PANEL_TEST(a_mixtures_experts_are_shown_by_weight_and_by_load)
{
    struct fixture *f = *state;
    emit_a_round(f);
    say_experts(f, 2, 4, 39, 0);
    say_experts(f, 3, 4, 7, 0);
    say_experts(f, 3, 5, 11, 12);
    use(f, "layers");
    draw(f, 12, 90);
    press(f, 'h');
    press(f, 'E');
    draw(f, 12, 90);
    assert_contains(line(f, 0), "went to 3 of 40 experts a layer");
    const int four = row_with(f, "7 .80   0 .20"), five = row_with(f, "11 .80  12 .20");
    assert_greater(four, 0);
    assert_int_equal(five, four - 1);
    /* An expert has one column or more. The bar of the most used expert has full height; a rarely used one is a dot. */
    assert_contains(line(f, four), "   4 ▃      █      ");
    assert_contains(line(f, four), " ·  7 .80");
    assert_int_equal(row_with(f, "39 .80"), -1);
    press(f, 'h'); /* the token before */
    draw(f, 12, 90);
    assert_greater(row_with(f, "39 .80  0 .20"), 0);
    press(f, 'c');
    draw(f, 12, 90);
    assert_contains(line(f, row_with(f, "3/40")), "0 20.0×");
    for (int rows = 1; rows < 14; rows++)
        for (int cols = 4; cols < 130; cols += 7)
            draw(f, rows, cols);
    press(f, 'E');
    draw(f, 16, 60);
    assert_contains(line(f, 0), "king");
}

PANEL_TEST(a_dense_model_has_no_experts_to_show)
{
    struct fixture *f = *state;
    f->info.experts = f->info.experts_used = 0;
    emit_a_round(f);
    use(f, "layers");
    press(f, 'E');
    assert_contains(f->said, "not known to be a mixture");
    draw(f, 16, 60);
    assert_contains(line(f, 0), "king");
}

PANEL_TEST(layers_give_their_room_away_if_the_only_one_has_few_predictions)
{
    struct fixture *f = *state;
    const struct panel_ops *layers = panel_named("layers"), *run = panel_named("run");
    see(f);
    assert_true(layers->active(&f->view));
    assert_true(run->active(&f->view));
    f->info.layers = 1; /* of a server, which tells its last layer's predictions at most */
    for (uint32_t i = 1; i <= 3; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, 2 + i, 1);
        say_round(&f->stream, 0, 0, 1);
        see(f);
        assert_false(layers->active(&f->view));
        assert_false(run->active(&f->view));
    }
    for (uint32_t i = 4; i <= 7; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, 2 + i, 1);
        say_layer(&f->stream, 2 + i, 1, 1, 0.5f);
        say_round(&f->stream, 0, 0, 1);
    }
    see(f);
    assert_true(layers->active(&f->view));
    assert_false(run->active(&f->view));
}
