/* The input line: rows of a prompt, pasted tabs, an empty search, and paths that Tab completes. */
#include "tests/rigs/test.h"
#include "tui/app/command.h"
#include "tui/app/line.h"
#include "tui/terminal/input.h"

#include <sys/stat.h>
#include <unistd.h>

static char *offered[] = {"offered one", "offered two"};

static void
draw(struct line *l, int rows, int cols)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, rows, cols));
    line_draw_prompt(l, "prompt", &(struct canvas){.rows = rows, .cols = cols, .grid = &g});
    grid_close(&g);
}

static void
open_prompt(struct line *l, const char *text)
{
    line_begin(l, NULL, offered, 2);
    history_add(&l->history[LINE_PROMPT], "an earlier one");
    assert_true(line_open(l, LINE_PROMPT, text));
    draw(l, 40, 50); /* 40 columns for the text */
}

TEST(up_goes_up_a_line_before_it_goes_into_the_history)
{
    struct line l;
    open_prompt(&l, "first line\nsecond\nthe third");
    line_key(&l, INPUT_UP);
    assert_int_equal(l.editor.at, strlen("first line\nsecond")); /* the cursor is at the end of a shorter row */
    line_key(&l, INPUT_UP);
    assert_int_equal(l.editor.at, strlen("second"));
    line_key(&l, INPUT_DOWN);
    line_key(&l, INPUT_DOWN);
    assert_int_equal(l.editor.at, strlen("first line\nsecond\nthe th"));
    for (int i = 0; i < 3; i++)
        line_key(&l, INPUT_UP);
    assert_string_equal(l.editor.text, "an earlier one");
    line_key(&l, INPUT_DOWN);
    assert_string_equal(l.editor.text, "first line\nsecond\nthe third");
    line_end(&l, NULL);
}

TEST(rows_that_only_wrap_are_rows_too)
{
    struct line l;
    char text[101];
    memset(text, 'x', 100);
    text[100] = '\0';
    open_prompt(&l, text);
    l.editor.at = 95; /* the third row's column 15 */
    line_key(&l, INPUT_UP);
    assert_int_equal(l.editor.at, 55);
    line_key(&l, INPUT_UP);
    assert_int_equal(l.editor.at, 15);
    line_key(&l, INPUT_DOWN);
    assert_int_equal(l.editor.at, 55);
    line_key(&l, INPUT_UP);
    line_key(&l, INPUT_UP);
    assert_string_equal(l.editor.text, "an earlier one");
    line_end(&l, NULL);
}

TEST(a_line_of_one_row_has_its_history_at_once)
{
    struct line l;
    line_begin(&l, NULL, NULL, 0);
    history_add(&l.history[LINE_COMMAND], "set tau 0.6");
    assert_true(line_open(&l, LINE_COMMAND, ""));
    line_key(&l, INPUT_UP);
    assert_string_equal(l.editor.text, "set tau 0.6");
    line_end(&l, NULL);
}

TEST(a_pasted_tab_is_text)
{
    struct line l;
    open_prompt(&l, "");
    line_key(&l, INPUT_PASTE_BEGIN);
    static const char pasted[] = "a\tb";
    for (const char *c = pasted; *c != '\0'; c++)
        assert_int_equal(line_key(&l, *c), EDITOR_OPEN);
    line_key(&l, INPUT_PASTE_END);
    assert_string_equal(l.editor.text, "a\tb");
    assert_int_equal(editor_rows(&l.editor, 40), 1);
    line_key(&l, INPUT_TAB); /* a typed tab completes a prompt */
    assert_string_equal(l.editor.text, "offered one");
    line_end(&l, NULL);
}

TEST(enter_on_an_empty_search_goes_to_the_next_place)
{
    struct line l;
    line_begin(&l, NULL, NULL, 0);
    assert_true(line_open(&l, LINE_SEARCH, ""));
    char *command = line_command(&l);
    assert_string_equal(command, "search-next");
    free(command);
    line_key(&l, 'x');
    command = line_command(&l);
    assert_string_equal(command, "search x");
    free(command);
    line_end(&l, NULL);
}

TEST(blanks_at_the_ends_are_part_of_a_text_but_not_of_a_command)
{
    static const struct {
        enum line_use use;
        const char *written, *command;
    } lines[] = {{LINE_COMMAND, "policy dv ", "policy dv"},
                 {LINE_COMMAND, "   ", NULL},
                 {LINE_EXPORT, "traces/a ", "export traces/a"},
                 {LINE_PROMPT, "  and then ", "prompt   and then "},
                 {LINE_SEARCH, " a ", "search  a "}};
    struct line l;
    line_begin(&l, NULL, NULL, 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_true(line_open(&l, lines[i].use, lines[i].written));
        char *command = line_command(&l);
        if (lines[i].command == NULL)
            assert_null(command);
        else
            assert_string_equal(command, lines[i].command);
        free(command);
    }
    assert_int_equal(l.history[LINE_COMMAND].n, 1);
    assert_string_equal(l.history[LINE_COMMAND].line[0], "policy dv");
    line_end(&l, NULL);
}

TEST(a_line_becomes_a_command_whole)
{
    struct line l;
    line_begin(&l, NULL, NULL, 0);
    assert_true(line_open(&l, LINE_PROMPT, ""));
    assert_null(line_command(&l));
    for (int i = 0; i < EDITOR_MAX; i++) /* fill the editor */
        line_key(&l, 0x20ac);
    char *command = line_command(&l);
    assert_non_null(command);
    assert_memory_equal(command, "prompt €", strlen("prompt €"));
    assert_string_equal(command + strlen("prompt "), l.editor.text);
    assert_int_equal(text_incomplete(command, strlen(command)), 0);
    assert_string_equal(l.history[LINE_PROMPT].line[0], l.editor.text);
    free(command);
    line_end(&l, NULL);
}

static void
make(const char *root, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (name[strlen(name) - 1] == '/')
        assert_int_equal(mkdir(path, 0700), 0);
    else
        fclose(fopen(path, "w"));
}

TEST(paths_are_offered_from_where_the_word_points)
{
    static const char *const made[] = {"traces/", "tracks.csv", ".hidden", "traces/del", "traces/deeper/"};
    char root[] = "/tmp/specscope-paths-XXXXXX", word[200], want[200];
    glob_t o = {0};
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        make(root, made[i]);
    snprintf(word, sizeof word, "%s/tra", root);
    path_offers_find(&o, word);
    assert_int_equal(o.gl_pathc, 2);
    snprintf(want, sizeof want, "%s/traces/", root); /* a folder ends in a slash */
    assert_string_equal(o.gl_pathv[0], want);
    snprintf(want, sizeof want, "%s/tracks.csv", root);
    assert_string_equal(o.gl_pathv[1], want);
    snprintf(word, sizeof word, "%s/", root);
    path_offers_find(&o, word);
    assert_int_equal(o.gl_pathc, 2); /* hidden files are not offered */
    snprintf(word, sizeof word, "%s/.h", root);
    path_offers_find(&o, word);
    assert_int_equal(o.gl_pathc, 1);
    snprintf(word, sizeof word, "%s/traces/de", root);
    path_offers_find(&o, word);
    assert_int_equal(o.gl_pathc, 2);
    path_offers_find(&o, "/nowhere/at/all");
    assert_int_equal(o.gl_pathc, 0);
    globfree(&o);
    for (size_t i = sizeof made / sizeof made[0]; i-- > 0;) {
        snprintf(word, sizeof word, "%s/%s", root, made[i]);
        remove(word);
    }
    assert_int_equal(rmdir(root), 0);
}
