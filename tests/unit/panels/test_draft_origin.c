/* The contents of panels depend on where a policy's drafts come from: on its declaration, and on the drafts so far. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

static void
declare_needs(struct fixture *f, const char *policy, unsigned needs)
{
    for (uint32_t i = 0; i < f->info.n_policies; i++)
        if (strcmp(f->info.policies[i].name, policy) == 0)
            f->info.policies[i].needs = needs;
}

PANEL_TEST(a_declaration_contains_the_origin_of_drafts)
{
    struct fixture *f = *state;
    see(f);
    assert_int_equal(scope_draft_origin(f->scope), DRAFTS_LAYERS);
    stream_control(&f->stream, "policy", "forms");
    see(f);
    assert_int_equal(scope_draft_origin(f->scope), DRAFTS_SUBLAYERS);
    stream_control(&f->stream, "policy", "ar");
    declare_needs(f, "ar", 0);
    see(f);
    assert_int_equal(scope_draft_origin(f->scope), DRAFTS_NONE);
    stream_control(&f->stream, "policy", "judges");
    declare_needs(f, "judges", NEEDS(AUX_DRAFT));
    see(f);
    assert_int_equal(scope_draft_origin(f->scope), DRAFTS_ELSEWHERE);
}

/* A round of one draft, which is accepted. */
static void
tell_draft(struct fixture *f, int exit_layer)
{
    static const char *const words[] = {"Once", " upon", " king"};
    prompt(f, words, 2);
    f->stream.round = 1;
    say_vocab(&f->stream, 2, words[2], strlen(words[2]));
    say_draft(&f->stream, 2, 1, 0, 2, exit_layer);
    say_verdict(&f->stream, 1, true, true);
    say_token(&f->stream, SOURCE_BONUS, 3, 1);
    say_round(&f->stream, 1, 1, 2);
}

PANEL_TEST(drafts_without_a_layer_show_where_they_come_from)
{
    struct fixture *f = *state;
    tell_draft(f, -1); /* as from an n-gram policy, whose drafts come from no layer */
    see(f);
    assert_int_equal(scope_draft_origin(f->scope), DRAFTS_ELSEWHERE);
}

static enum role
role_at(struct fixture *f, int x)
{
    return grid_at(&f->grid, 0, x)->role;
}

PANEL_TEST(text_without_exit_layers_is_coloured_by_source)
{
    struct fixture *f = *state;
    char note[160];
    stream_control(&f->stream, "policy", "judges");
    declare_needs(f, "judges", NEEDS(AUX_DRAFT));
    snprintf(f->info.aux[AUX_DRAFT].name, sizeof f->info.aux[AUX_DRAFT].name, "small-model-of-34-letters-for-drafts");
    tell_draft(f, -1);
    use(f, "text");
    draw(f, 3, 80);
    assert_string_equal(line(f, 0), "Once upon king upon");
    assert_int_equal(role_at(f, 0), ROLE_PROMPT);
    assert_int_equal(role_at(f, 10), ROLE_ACCEPTED);
    assert_int_equal(role_at(f, 15), ROLE_BONUS);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_contains(note, "source: ");
    assert_contains(note, "draft small-model-of-34-letters-for");
    assert_contains(note, "bonus");
    const char *draft = strstr(note, "draft");
    assert_int_equal(draft[-1] - 1, ROLE_ACCEPTED); /* each word of the legend has the colour that it names */
    press(f, 'c');
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "plain");
    press(f, 'c');
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_contains(note, "confidence"); /* there are no exit layers to show */
}

PANEL_TEST(text_with_exit_layers_is_coloured_by_them)
{
    struct fixture *f = *state;
    char note[160];
    tell_draft(f, 2);
    use(f, "text");
    draw(f, 3, 80);
    assert_greater(grid_at(&f->grid, 0, 10)->heat, 0.3f);
    f->ops->note(f->panel, &f->view, note, sizeof note);
    assert_string_equal(note, "exit layer early ▁▂▃▄▅▆▇█ late");
}

PANEL_TEST(a_box_draws_its_note_in_the_notes_colours)
{
    struct fixture *f = *state;
    char note[40];
    snprintf(note, sizeof note, "a " CANVAS_ROLE "%cbc", 1 + ROLE_OK);
    assert_true(grid_open(&f->grid, 3, 20));
    canvas_box(&(struct canvas){.rows = 3, .cols = 20, .grid = &f->grid}, "x", note, false);
    assert_contains(line(f, 0), "─ a bc ┐");
    assert_int_equal(role_at(f, 14), ROLE_DIM);
    assert_int_equal(role_at(f, 16), ROLE_OK);
}

PANEL_TEST(panels_without_meaning_give_their_room_away)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "ar");
    declare_needs(f, "ar", 0);
    see(f);
    assert_false(panel_named("exits")->active(&f->view));
    assert_false(panel_named("reliability")->active(&f->view));
    stream_control(&f->stream, "policy", "specbound");
    see(f);
    assert_true(panel_named("exits")->active(&f->view));
    assert_true(panel_named("reliability")->active(&f->view));
    assert_false(panel_named("positions")->active(&f->view));
    stream_control(&f->stream, "policy", "judges");
    declare_needs(f, "judges", NEEDS(AUX_DRAFT));
    see(f);
    assert_false(panel_named("exits")->active(&f->view)); /* exactly one of the two is active */
    assert_true(panel_named("positions")->active(&f->view));
}

PANEL_TEST(draft_positions_have_both_rates_and_the_ranks)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "judges");
    declare_needs(f, "judges", NEEDS(AUX_DRAFT));
    tell_draft(f, -1); /* accepted drafts: 1 of 1, then 1 of 2, 0 of 2, 0 of 2 */
    static const int32_t rank[] = {2, 2, 0};
    for (uint32_t i = 0; i < 3; i++) {
        f->stream.round++;
        say_token(&f->stream, SOURCE_CORRECTION, 4 + i, 1);
        say_round(&f->stream, 2, i == 0, i == 0 ? 2 : 1)->round_end.reject_rank = rank[i];
    }
    use(f, "positions");
    draw(f, 9, 30);
    assert_int_equal(row_with(f, "1.50 ±0.29 tokens/round"), 0);
    assert_int_equal(row_with(f, "  .50±.25  .00"), 3); /* draft 1 in half of four rounds, draft 2 in none of one */
    assert_int_equal(row_with(f, "  .50±.25  .00±.00"), 6);
    assert_int_equal(row_with(f, "rank 2nd 67%, later 33%"), 8);
    draw(f, 9, 80);
    assert_int_equal(row_with(f, "a after accepted  u of all"), 0);
    assert_int_equal(row_with(f, "rank at 3 rejections"), 0);
    assert_int_equal(row_with(f, "67% ±27"), 1);
}

/* Each number below the bars of 18 positions is whole or left out. */
PANEL_TEST(numbers_of_draft_positions_are_not_cut)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "policy", "judges");
    declare_needs(f, "judges", NEEDS(AUX_DRAFT));
    tell_draft(f, -1);
    f->stream.round++;
    for (uint32_t i = 0; i < 18; i++)
        say_token(&f->stream, SOURCE_CORRECTION, 4 + i, 1);
    say_round(&f->stream, 18, 17, 18);
    use(f, "positions");
    for (int cols = 30; cols < 64; cols++) {
        draw(f, 9, cols);
        const char *last = strrchr(line(f, 8), ' ');
        if (last != NULL && row_with(f, "10  12") == 8)
            assert_at_least(atoi(last), 12);
    }
}

PANEL_TEST(names_of_knobs_are_cut_before_sliders_go)
{
    struct fixture *f = *state;
    struct policy_info *policy = &f->info.policies[scope_policy(f->scope) - f->info.policies];
    snprintf(policy->knobs[0].name, sizeof policy->knobs[0].name, "a_long_name");
    use(f, "knobs");
    draw(f, 4, 24);
    assert_int_equal(row_with(f, "├"), 0);
    assert_contains(line(f, 0), "…");
    assert_contains(line(f, 0), "0.55");
}

PANEL_TEST(without_drafts_only_the_speed_is_charted)
{
    struct fixture *f = *state;
    declare_needs(f, "ar", 0);
    stream_control(&f->stream, "policy", "ar");
    for (uint32_t i = 1; i <= 9; i++) {
        f->stream.round = i;
        say_token(&f->stream, SOURCE_BONUS, i, 1);
        say_round(&f->stream, 0, 0, 1);
    }
    use(f, "series");
    draw(f, 12, 60);
    assert_int_equal(row_with(f, "tok/s"), 0);
    assert_int_equal(row_with(f, "acceptance"), -1);
    assert_int_equal(row_with(f, "drafted"), -1);
}
