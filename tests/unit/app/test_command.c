/* Tests ':' commands, scripts, key names, the line editor and its history without a terminal. */
#include "tests/rigs/test.h"
#include "tui/app/command.h"
#include "tui/app/line.h"
#include "tui/terminal/input.h"

#include <unistd.h>

struct app { /* records the command that was run, for the table below */
    char ran[200];
};

static bool
note(struct app *app, const char *verb, const char *rest)
{
    snprintf(app->ran, sizeof app->ran, "%s(%s)", verb, rest);
    return true;
}

static bool
run_set(struct app *app, const char *rest, struct err *err)
{
    (void)err;
    return note(app, "set", rest);
}

static bool
run_step(struct app *app, const char *rest, struct err *err)
{
    uint64_t n;
    return command_number(rest, "how many", 1, 100, &n, err) && note(app, "step", rest);
}

static bool
run_restart(struct app *app, const char *rest, struct err *err)
{
    (void)err;
    return note(app, "restart", rest);
}

static const char *
offer_knob(struct app *app, int i)
{
    static const char *const knobs[] = {"tau", "d_max", "d_min"};
    (void)app;
    return i < 3 ? knobs[i] : NULL;
}

static const char *
offer_folder(struct app *app, int i)
{
    (void)app;
    return i == 0 ? "traces/" : NULL;
}

static const struct verb table[] = {{"set", "KNOB VALUE", "", run_set, offer_knob},
                                    {"step", "[N | token] | tokens", "", run_step, NULL},
                                    {"restart", "", "", run_restart, NULL},
                                    {"rest", "[X]", "", run_set, NULL},
                                    {"export", "DIR", "", run_set, offer_folder},
                                    {"return", "", NULL, run_set, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};

static const char *
ran(const char *line)
{
    static struct app app;
    struct err err = {0};
    bool unknown;
    app.ran[0] = '\0';
    return command_run(table, &app, line, &unknown, &err) ? app.ran : "failed";
}

TEST(a_verb_gets_the_rest_of_its_line)
{
    assert_string_equal(ran("set tau 0.6"), "set(tau 0.6)");
    assert_string_equal(ran(":set   tau=0.6"), "set(tau=0.6)");
    assert_string_equal(ran("  step 4"), "step(4)");
    assert_string_equal(ran("restart"), "restart()");
    assert_string_equal(ran(""), "");
    assert_string_equal(ran("  : "), "");
}

TEST(a_verb_without_arguments_refuses_any)
{
    struct app app = {.ran = ""};
    struct err err = {0};
    bool unknown = false;
    assert_false(command_run(table, &app, "restart now", &unknown, &err));
    assert_false(unknown);
    assert_string_equal(app.ran, "");
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.text, ":restart takes no argument; leave \"now\" out");
    assert_string_equal(ran("restart  "), "restart()");
}

TEST(verbs_may_be_shortened_while_they_stay_the_only_one)
{
    struct err err = {0};
    assert_string_equal(ran("se x"), "set(x)");
    assert_string_equal(ran("rest x"), "set(x)"); /* a complete name does not abbreviate a longer one */
    assert_string_equal(ran("resta"), "restart()");
    assert_null(command_find(table, "s", NULL, &err));
    assert_contains(err.text, "set, step");
    assert_null(command_find(table, "frobnicate", NULL, &err));
    assert_contains(err.text, "frobnicate");
}

TEST(unknown_verbs_are_distinguished_from_failures)
{
    struct app app;
    struct err err = {0};
    bool unknown = false;
    assert_false(command_run(table, &app, "jump 3", &unknown, &err));
    assert_true(unknown);
    assert_false(command_run(table, &app, "step many", &unknown, &err));
    assert_false(unknown);
    assert_false(command_run(table, &app, "s 3", &unknown, &err)); /* several matches end the search */
    assert_false(unknown);
    assert_string_equal(err.text, "\"s\" could be set, step; write more of it");
    assert_false(command_run(table, &app, "averyveryveryverylongverbindeed", &unknown, &err));
    assert_int_equal(err.kind, ERR_USAGE);
}

TEST(numbers_are_whole_and_in_bounds)
{
    uint64_t n = 7;
    struct err err = {0};
    assert_ok(command_number("12", "it", 1, 100, &n, &err), err);
    assert_int_equal(n, 12);
    static const char *const bad[] = {"", "-1", "0", "101", "1.5", "1x", " 1", "+1", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(command_number(bad[i], "it", 1, 100, &n, &err));
        assert_contains(err.text, "from 1 to 100");
    }
    assert_int_equal(n, 12);
}

TEST(tab_completes_as_far_as_all_agree)
{
    struct app app;
    char out[64], list[64];
    assert_int_equal(command_complete(table, &app, "re", out, sizeof out, list, sizeof list), 2);
    assert_string_equal(out, "rest"); /* "return" is in the table of the panels */
    assert_int_equal(command_complete(table, &app, "ste", out, sizeof out, list, sizeof list), 1);
    assert_string_equal(out, "step ");
    assert_int_equal(command_complete(table, &app, "step t", out, sizeof out, list, sizeof list), 2);
    assert_string_equal(list, "token  tokens");
    assert_int_equal(command_complete(table, &app, "set d", out, sizeof out, list, sizeof list), 2);
    assert_string_equal(out, "set d_m");
    assert_string_equal(list, "d_max  d_min");
    assert_int_equal(command_complete(table, &app, "set d_ma", out, sizeof out, list, sizeof list), 1);
    assert_string_equal(out, "set d_max ");
    assert_int_equal(command_complete(table, &app, "set d_max 3", out, sizeof out, list, sizeof list), 0);
    assert_string_equal(out, "set d_max 3");
    assert_int_equal(command_complete(table, &app, "export tr", out, sizeof out, list, sizeof list), 1);
    assert_string_equal(out, "export traces/"); /* no blank is added, because the path continues */
}

TEST(a_script_is_its_lines_without_comments)
{
    struct script s;
    struct err err = {0};
    static const char text[] =
        "# first\n\n  :wait round 5  \r\nset tau 0.6\n\t# no\nprompt Es war einmal – 日本\n:quit";
    assert_ok(script_parse(&s, text, strlen(text), "my.script", &err), err);
    assert_string_equal(script_next(&s), "wait round 5");
    assert_int_equal(s.line, 3);
    assert_string_equal(script_next(&s), "set tau 0.6");
    assert_string_equal(script_next(&s), "prompt Es war einmal – 日本");
    assert_int_equal(s.line, 6);
    assert_string_equal(script_next(&s), "quit");
    assert_null(script_next(&s));
    assert_null(script_next(&s));
    script_close(&s);
}

TEST(a_bad_script_is_refused_with_its_line)
{
    struct script s;
    struct err err = {0};
    assert_false(script_parse(&s, "quit\n\033[2J\n", 10, "x", &err));
    assert_contains(err.text, "x:2:");
    assert_false(script_parse(&s, "a\nb\n\xff\n", 6, "x", &err));
    assert_contains(err.text, "x:3:");
    assert_false(script_parse(&s, "a\0b", 3, "x", &err));
    char *longest = malloc(70000);
    assert_non_null(longest);
    memset(longest, 'a', 70000);
    assert_false(script_parse(&s, longest, 70000, "x", &err));
    assert_contains(err.text, "64 KiB");
    for (int i = 1000; i < 70000; i += 1000)
        longest[i] = '\n';
    assert_ok(script_parse(&s, longest, 70000, "x", &err), err);
    script_close(&s);
    free(longest);
    assert_false(script_load(&s, "/nowhere/at/all", &err));
    assert_contains(err.text, "/nowhere/at/all");
    assert_false(script_load(&s, "/tmp", &err));
}

TEST(the_keys_of_a_script_have_names)
{
    assert_int_equal(input_named("x"), 'x');
    assert_int_equal(input_named("é"), 0xe9);
    assert_int_equal(input_named("Enter"), INPUT_ENTER);
    assert_int_equal(input_named("s-tab"), INPUT_SHIFT_TAB);
    assert_int_equal(input_named("F12"), INPUT_F12);
    assert_int_equal(input_named("F13"), INPUT_NONE);
    assert_int_equal(input_named("F01"), INPUT_NONE);
    assert_int_equal(input_named("F4294967297"), INPUT_NONE); /* 1 in 32 bits */
    assert_int_equal(input_named("C-l"), INPUT_CTRL('L'));
    assert_int_equal(input_named("Space"), ' ');
    assert_int_equal(input_named("Entre"), INPUT_NONE);
    assert_int_equal(input_named(""), INPUT_NONE);
    assert_int_equal(input_named("C-1"), INPUT_NONE);
}

/* ---- the line editor ---- */

static enum editor_result
type(struct editor *e, const struct history *h, const char *keys)
{
    enum editor_result result = EDITOR_OPEN;
    char name[32];
    for (const char *at = keys; *at != '\0'; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        result = editor_key(e, h, input_named(name));
        at += n;
    }
    return result;
}

TEST(the_editor_moves_by_whole_characters)
{
    struct editor e;
    assert_true(editor_open(&e, "aé日", false, NULL));
    type(&e, NULL, "Left Backspace x");
    assert_string_equal(e.text, "ax日");
    type(&e, NULL, "Home Delete End ü");
    assert_string_equal(e.text, "x日ü");
    type(&e, NULL, "Left C-k");
    assert_string_equal(e.text, "x日");
    type(&e, NULL, "C-u a Space b Space c C-w");
    assert_string_equal(e.text, "a b ");
    assert_int_equal(type(&e, NULL, "Enter"), EDITOR_DONE);
    assert_int_equal(type(&e, NULL, "Esc"), EDITOR_CANCELLED);
    editor_close(&e);
}

TEST(pasted_text_is_text)
{
    struct editor e;
    assert_true(editor_open(&e, "", true, NULL));
    editor_key(&e, NULL, INPUT_PASTE_BEGIN);
    assert_int_equal(editor_key(&e, NULL, 'a'), EDITOR_OPEN);
    assert_int_equal(editor_key(&e, NULL, INPUT_ENTER), EDITOR_OPEN);
    assert_int_equal(editor_key(&e, NULL, 0x202e), EDITOR_OPEN); /* the editor ignores a bidi override */
    assert_int_equal(editor_key(&e, NULL, 'b'), EDITOR_OPEN);
    editor_key(&e, NULL, INPUT_PASTE_END);
    assert_string_equal(e.text, "a\nb");
    assert_int_equal(editor_key(&e, NULL, INPUT_ENTER), EDITOR_DONE);
    editor_close(&e);
}

TEST(the_editor_never_overflows)
{
    struct editor e;
    assert_true(editor_open(&e, "", false, NULL));
    for (int i = 0; i < EDITOR_MAX + 100; i++)
        editor_key(&e, NULL, 0x65e5);
    assert_at_most(e.length, EDITOR_MAX);
    assert_int_equal(e.length % 3, 0);
    assert_int_equal(strlen(e.text), e.length);
    editor_close(&e);
}

TEST(a_history_that_cannot_be_read_is_left_alone)
{
    char folder[] = "/tmp/specscope-history-XXXXXX";
    assert_non_null(mkdtemp(folder)); /* a folder cannot be replaced by the history's file */
    struct history h;
    struct err err = {0};
    history_open(&h, folder);
    assert_int_equal(h.n, 0);
    history_add(&h, "one");
    assert_false(history_close(&h, &err));
    assert_contains(err.text, "is not a file");
    assert_int_equal(rmdir(folder), 0);
}

TEST(history_comes_back_after_a_restart)
{
    char path[] = "/tmp/specscope-history-XXXXXX";
    const int fd = mkstemp(path);
    assert_at_least(fd, 0);
    close(fd);
    struct history h;
    struct editor e;
    struct err err = {0};
    history_open(&h, path);
    history_add(&h, "one");
    history_add(&h, "two\nlines \\n");
    history_add(&h, "one"); /* a repeated line moves to the end */
    assert_int_equal(h.n, 2);
    assert_ok(history_close(&h, &err), err);
    history_open(&h, path);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.line[0], "two\nlines \\n");
    assert_true(editor_open(&e, "mine", true, &h));
    type(&e, &h, "Up Up");
    assert_string_equal(e.text, "two\nlines \\n");
    type(&e, &h, "Up Down Down Down");
    assert_string_equal(e.text, "mine");
    editor_close(&e);
    for (int i = 0; i < HISTORY_LINES + 10; i++) {
        char line[16];
        snprintf(line, sizeof line, "%d", i);
        history_add(&h, line);
    }
    assert_int_equal(h.n, HISTORY_LINES);
    assert_string_equal(h.line[HISTORY_LINES - 1], "309");
    assert_ok(history_close(&h, &err), err);
    unlink(path);
    history_open(&h, "/dev/null/history");
    history_add(&h, "x");
    assert_false(history_close(&h, &err));
    assert_contains(err.text, "/dev/null/history");
}

TEST(the_editor_draws_its_cursor_into_any_room)
{
    struct grid g = {.utf8 = true};
    struct editor e;
    assert_true(editor_open(&e, "Once upon a time\nthere was 日本 a king who had three daughters", true, NULL));
    for (int rows = 1; rows < 6; rows++)
        for (int cols = 2; cols < 70; cols++)
            for (e.at = 0; e.at <= e.length; e.at += 7) {
                assert_true(grid_open(&g, rows, cols));
                editor_draw(&e, &(struct canvas){.rows = rows, .cols = cols, .grid = &g}, ":");
                int cursors = 0;
                for (int i = 0; i < rows * cols; i++)
                    cursors += g.cells[i].role == ROLE_CURSOR && g.cells[i].columns > 0;
                assert_int_equal(cursors, 1);
                assert_at_least(editor_rows(&e, cols), 1);
            }
    editor_close(&e);
    grid_close(&g);
}
