/* The text panel drawn into a grid. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

PANEL_TEST(text_breaks_lines_between_words)
{
    struct fixture *f = *state;
    static const char *const words[] = {"The", " king", " had", " three", " daugh", "ters", ".", "\n", "\nNow"};
    prompt(f, words, 9);
    use(f, "text");
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

PANEL_TEST(halves_of_a_character_are_joined)
{
    struct fixture *f = *state;
    static const char *const words[] = {"K\xc3", "\xa4se", " \xf0\x9f", "\x91\x91", " \xc3", "x", "\x1b[2J"};
    prompt(f, words, 7);
    use(f, "text");
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "K\xc3\xa4se \xf0\x9f\x91\x91 \\xc3x\\x1b[2J");
}

PANEL_TEST(a_draft_completes_half_a_character)
{
    struct fixture *f = *state;
    static const char *const words[] = {"K\xc3"};
    prompt(f, words, 1);
    use(f, "text");
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "K\\xc3"); /* nobody knows what will come */
    say_vocab(&f->stream, 1, "\xa4se", 3);
    say_draft(&f->stream, 1, 1, 0, 1, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "K\xc3\xa4se");
    assert_int_equal(grid_at(&f->grid, 0, 2)->role, ROLE_DRAFT);
}

PANEL_TEST(rejected_drafts_are_struck_until_the_next_round)
{
    struct fixture *f = *state;
    static const char *const words[] = {"a", " b", " c", " d", " e"};
    prompt(f, words, 1);
    for (token_t t = 1; t < 5; t++)
        say_vocab(&f->stream, t, words[t], 2);
    use(f, "text");
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

PANEL_TEST(text_is_found_and_pointed_at)
{
    struct fixture *f = *state;
    static const char *const words[] = {"one", " two", " three", " four", " One"};
    prompt(f, words, 5);
    use(f, "text");
    draw(f, 2, 10);
    f->view.search = "one";
    assert_true(f->ops->command(f->panel, &f->view, "search", "one"));
    const uint32_t first = f->selection.pos;
    assert_true(f->ops->command(f->panel, &f->view, "search", "one"));
    assert_int_equal(first + f->selection.pos, 4); /* both places, 0 and 4 */
    assert_false(f->selection.follow);
    const uint32_t second = f->selection.pos;
    assert_true(f->ops->command(f->panel, &f->view, "search-back", "one"));
    assert_int_equal(f->selection.pos, first);
    assert_true(f->ops->command(f->panel, &f->view, "search-back", "one")); /* round the beginning */
    assert_int_equal(f->selection.pos, second);
    f->ops->command(f->panel, &f->view, "search", "dragon");
    assert_non_null(strstr(f->said, "dragon"));
    assert_false(f->ops->command(f->panel, &f->view, "panel", "one"));
    draw(f, 4, 10);
    const int y = row_with(f, "One");
    assert_true(y >= 0);
    assert_int_equal(grid_at(&f->grid, y, (int)(strstr(line(f, y), "One") - f->line))->role, ROLE_WARN);
}
