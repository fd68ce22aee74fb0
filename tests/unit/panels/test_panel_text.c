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
    assert_int_equal(row_with(f, "The"), -1); /* the end of the text is shown, */
    assert_string_equal(line(f, 4), "Now");
    assert_string_equal(line(f, 5), ""); /* with a row for drafts */
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
    assert_string_equal(line(f, 0), "K\\xc3"); /* the next bytes are not known */
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
    assert_string_equal(line(f, 0), "a b d c"); /* the drafts follow the text, whose tokens stay in place */
    assert_false(grid_at(&f->grid, 0, 4)->marks & MARK_STRUCK);
    assert_true(grid_at(&f->grid, 0, 6)->marks & MARK_STRUCK);
    f->stream.round = 2;
    say_draft(&f->stream, 3, 1, 0, 4, 2);
    draw(f, 1, 20);
    assert_string_equal(line(f, 0), "a b d e");
    assert_int_equal(grid_at(&f->grid, 0, 6)->role, ROLE_DRAFT);
}

/* Emits draft tokens from id `first` on, after token `pos` - 1. */
static void
draft(struct fixture *f, uint32_t pos, token_t first, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        say_draft(&f->stream, pos + (uint32_t)i, i + 1, i, first + i, 2);
}

PANEL_TEST(drafted_blanks_have_signs)
{
    struct fixture *f = *state;
    static const char *const words[] = {"a", "\n", "\n\n", " b", "\t", " ", "   ", "\n    c"};
    prompt(f, words, 1);
    for (token_t t = 1; t < 8; t++)
        say_vocab(&f->stream, t, words[t], (uint32_t)strlen(words[t]));
    use(f, "text");
    f->stream.round = 1;
    draft(f, 1, 1, 7);
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "a⏎⏎⏎ b→␣␣␣␣⏎␣␣␣ c");
    assert_string_equal(line(f, 1), "");
    for (int32_t i = 1; i < 8; i++)
        say_verdict(&f->stream, i, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 1, 3);
    say_round(&f->stream, 7, 0, 1);
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "a b⏎⏎⏎ b→␣␣␣␣⏎␣␣␣ c");
    assert_true(grid_at(&f->grid, 0, 3)->marks & MARK_STRUCK);
}

PANEL_TEST(drafts_never_move_committed_text)
{
    struct fixture *f = *state;
    static const char *const words[] = {"one", " two", " three", " four", " five", " si", "x", " seven", "\n"};
    prompt(f, words, 6);
    for (token_t t = 6; t < 9; t++)
        say_vocab(&f->stream, t, words[t], (uint32_t)strlen(words[t]));
    use(f, "text");
    for (int rows = 1; rows < 8; rows++)
        for (int cols = 3; cols < 40; cols++) {
            char before[8][64];
            draw(f, rows, cols);
            for (int y = 0; y < rows; y++)
                snprintf(before[y], sizeof before[y], "%s", line(f, y));
            f->stream.round++;
            draft(f, 6, 6, 3);
            say_draft(&f->stream, 9, 4, 3, 7, 2);
            draw(f, rows, cols);
            for (int y = 0; y < rows; y++) {
                const size_t n = strlen(before[y]),
                             end = n == (size_t)cols && n > 0 ? n - 1 : n; /* "…" takes one column */
                assert_int_equal(strncmp(line(f, y), before[y], end), 0);
            }
            f->view.no_drafts = true;
            draw(f, rows > 4 ? rows : 4, cols);
            assert_int_equal(row_with(f, "seven"), -1);
            f->view.no_drafts = false;
            scope_lost(f->scope, 1); /* drops the open round */
        }
}

PANEL_TEST(drafts_that_have_no_room_end_in_an_ellipsis)
{
    struct fixture *f = *state;
    static const char *const words[] = {"one", " two", " three"};
    prompt(f, words, 1);
    for (token_t t = 1; t < 3; t++)
        say_vocab(&f->stream, t, words[t], (uint32_t)strlen(words[t]));
    use(f, "text");
    f->stream.round = 1;
    draft(f, 1, 1, 2);
    draw(f, 1, 8);
    assert_string_equal(line(f, 0), "one two…");
}

/* A chat's run with these messages before its prompt. */
static void
converse(struct fixture *f, const char *before, const char *text)
{
    f->info.asked.chat = true;
    f->stream.run++;
    stream_control(&f->stream, "run", "prompt");
    stream_control(&f->stream, "prompt", text);
    f->stream.events[f->stream.n - 1].control.old_text = before;
}

PANEL_TEST(a_conversation_has_its_turns)
{
    struct fixture *f = *state;
    static const char *const words[] = {"[S]",  "Be",  " kind", "[U]", "Be", " kind", "[M]", "<think>", "Be",
                                        "\n\n", "Yes", ".",     "[U]", "[",  "U",     "]",   " ?\n",    "[M]"};
    converse(f,
             "[{\"role\":\"user\",\"content\":\" Be kind\"},"
             "{\"role\":\"assistant\",\"content\":\"a thought\\n\\nBe\\n\\nYes.\\n\"}]",
             "[U] ?");
    prompt(f, words, 18);
    use(f, "text");
    draw(f, 9, 40);
    assert_string_equal(line(f, 0), "[S]Be kind[U]");
    assert_string_equal(line(f, 1), "you › Be kind");
    assert_string_equal(line(f, 2), "model › Be");
    assert_string_equal(line(f, 3), "");
    assert_string_equal(line(f, 4), "Yes.");
    assert_string_equal(line(f, 5), "you › [U] ?");
    say_token(&f->stream, SOURCE_PREFILL, 18, 10);
    draw(f, 9, 40);
    assert_string_equal(line(f, 5), "you › [U] ?");
    assert_string_equal(line(f, 6), "model › Yes");
    for (int i = 0, seen = 0; i < 20; i++, seen = f->selection.pos == 12 ? 1 : seen) {
        press(f, INPUT_LEFT);
        assert_false(seen && f->selection.pos > 12); /* the cursor skips the markup and the labels */
    }
    assert_int_equal(f->selection.pos, 0);
}

PANEL_TEST(a_prompt_without_turns_is_shown_as_it_is)
{
    struct fixture *f = *state;
    static const char *const words[] = {"[S]", "Hello", "[U]", "hi", "[M]"};
    converse(f, "[{\"role\":\"user\",\"content\":\"Hi\"}]", "hi"); /* the template changes a message */
    prompt(f, words, 5);
    use(f, "text");
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "[S]Hello[U]hi[M]");
    converse(f, "", "hi"); /* no template: no text follows the prompt */
    prompt(f, words, 4);
    draw(f, 2, 40);
    assert_string_equal(line(f, 0), "[S]Hello[U]hi");
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
    assert_int_equal(first + f->selection.pos, 4); /* both matches, 0 and 4, were visited */
    assert_false(f->selection.follow);
    const uint32_t second = f->selection.pos;
    assert_true(f->ops->command(f->panel, &f->view, "search-back", "one"));
    assert_int_equal(f->selection.pos, first);
    assert_true(f->ops->command(f->panel, &f->view, "search-back", "one")); /* the search wraps at the beginning */
    assert_int_equal(f->selection.pos, second);
    f->ops->command(f->panel, &f->view, "search", "dragon");
    assert_contains(f->said, "dragon");
    assert_false(f->ops->command(f->panel, &f->view, "panel", "one"));
    draw(f, 4, 10);
    const int y = row_with(f, "One");
    assert_at_least(y, 0);
    assert_int_equal(grid_at(&f->grid, y, (int)(strstr(line(f, y), "One") - f->line))->role, ROLE_WARN);
}
