/* Reading whole files, replacing a file completely or not at all, and files that are embedded in the program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/file_replace.h"
#include "tests/rigs/folders.h"
#include "tui/terminal/terminal.h"
#include "tui/terminal/theme.h"

#define SPECSCOPE_STATIC /* this program has embedded files, like that of `make static` */
#include "base/file_read.c"
#include "tests/rigs/test.h"

static const char note[] = "inside", theme[] = "{\"roles\": {\"text\": {\"bold\": true}}}", entry[] = "b64:AAAA";
const struct embedded embedded_files[] = {
    {"builtin:/note", (const unsigned char *)note, sizeof note - 1},
    {"builtin:/themes/inner.json", (const unsigned char *)theme, sizeof theme - 1},
    {"builtin:/terminfo/odd", (const unsigned char *)entry, sizeof entry - 1},
    {0},
};

static void
assert_holds(const char *path, const char *expected)
{
    char *text;
    size_t n;
    struct err err;
    assert_ok(file_text(path, 100, &text, &n, &err), err);
    assert_int_equal(n, strlen(expected));
    assert_string_equal(text, expected);
    free(text);
}

static void
assert_refused(const char *path, size_t most, const char *why)
{
    char *text = (char *)path;
    size_t n = 1;
    struct err err = {0};
    assert_false(file_text(path, most, &text, &n, &err));
    assert_null(text);
    assert_int_equal(n, 0);
    if (strstr(err.text, path) == NULL || strstr(err.text, why) == NULL)
        fail_msg("%s", err.text);
}

TEST_WITH(a_file_is_read_up_to_its_bound_and_not_beyond, folder_set_up, folder_tear_down)
{
    char path[300];
    snprintf(path, sizeof path, "%s/f", (const char *)*state);
    write_text(*state, "f", "twelve bytes");
    assert_holds(path, "twelve bytes");
    char *text;
    size_t n;
    assert_true(file_text(path, 12, &text, &n, NULL));
    assert_int_equal(n, 12);
    free(text);
    assert_refused(path, 11, "larger than it can be (11 bytes)");
    write_text(*state, "f", "");
    assert_holds(path, "");
}

TEST_WITH(what_is_no_file_is_refused_without_waiting_for_it, folder_set_up, folder_tear_down)
{
    char path[300];
    snprintf(path, sizeof path, "%s/pipe", (const char *)*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, 100, "is not a file");
    assert_refused(*state, 100, "is not a file");
    assert_refused("/nowhere/f", 100, strerror(ENOENT));
}

TEST_WITH(only_pipes_that_a_shell_made_are_read_by_their_path, folder_set_up, folder_tear_down)
{
    char path[300], *text;
    size_t n;
    int ends[2];
    snprintf(path, sizeof path, "%s/named", (const char *)*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(file_text_or_pipe(path, 100, &text, &n, NULL)); /* a FIFO is refused without waiting for a writer */
    assert_false(file_text_or_pipe("/dev/zero", 100, &text, &n, NULL));
    assert_true(file_text_or_pipe("/dev/null", 100, &text, &n, NULL));
    assert_int_equal(n, 0);
    free(text);
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_true(file_put(ends[1], "mice", 4));
    close(ends[1]);
    assert_false(file_text(path, 100, &text, &n, NULL));
    assert_true(file_text_or_pipe(path, 100, &text, &n, NULL));
    assert_string_equal(text, "mice");
    free(text);
    close(ends[0]);
}

TEST_WITH(a_pipe_is_read_to_its_end_in_whatever_portions, folder_set_up, folder_tear_down)
{
    static char sent[50000];
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7);
    int ends[2];
    assert_int_equal(pipe(ends), 0); /* a pipe holds 64 KiB, so writing does not block */
    for (size_t at = 0; at < sizeof sent; at += 1000)
        assert_true(file_put(ends[1], sent + at, 1000));
    close(ends[1]);
    char *text;
    size_t n;
    assert_true(file_text_from(ends[0], "pipe", 1 << 20, &text, &n, NULL));
    assert_int_equal(n, sizeof sent);
    assert_memory_equal(text, sent, n);
    assert_int_equal(text[n], '\0');
    free(text);
    close(ends[0]);
}

TEST_WITH(a_replacement_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it, folder_set_up, folder_tear_down)
{
    char path[300], big[8000] = {0};
    struct err err;
    struct rlimit before;
    snprintf(path, sizeof path, "%s/f", (const char *)*state);
    assert_ok(file_replace_text(AT_FDCWD, path, 0600, "first", 5, &err), err);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 4000, .rlim_max = before.rlim_max});
    const bool ok = file_replace_text(AT_FDCWD, path, 0600, big, sizeof big, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, path);
    assert_contains(err.text, strerror(EFBIG));
    assert_holds(path, "first");

    struct file_replace r; /* the caller's error is kept when it cancels */
    err_set(&err, ERR_CANCELLED, "enough");
    assert_ok(file_replace_begin(&r, AT_FDCWD, path, 0600, &err), err);
    assert_ok(file_replace_put(&r, "second", 6, &err), err);
    assert_holds(path, "first");
    assert_false(file_replace_end(&r, false, &err));
    assert_string_equal(err.text, "enough");
    assert_holds(path, "first");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(*state), 0); /* fails if temporary files are left */
    assert_int_equal(mkdir(*state, 0700), 0);
}

TEST_WITH(a_replaced_link_stays_a_link_and_a_device_is_left_alone, folder_set_up, folder_tear_down)
{
    char path[300], link[300];
    struct err err;
    snprintf(path, sizeof path, "%s/f", (const char *)*state);
    snprintf(link, sizeof link, "%s/link", (const char *)*state);
    write_text(*state, "f", "first");
    assert_int_equal(symlink("f", link), 0);
    assert_ok(file_replace_text(AT_FDCWD, link, 0666, "second", 6, &err), err);
    struct stat about;
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_holds(path, "second");
    assert_int_equal(unlink(path), 0); /* the link's target does not exist yet */
    assert_ok(file_replace_text(AT_FDCWD, link, 0666, "third", 5, &err), err);
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_holds(path, "third");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("link", link), 0);
    assert_false(file_replace_text(AT_FDCWD, link, 0666, "x", 1, &err));
    assert_contains(err.text, strerror(ELOOP));
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(file_replace_text(AT_FDCWD, path, 0666, "fourth", 6, &err), err);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600); /* the permissions of a private file are kept */
    assert_false(file_replace_text(AT_FDCWD, "/dev/null", 0666, "x", 1, &err));
    assert_contains(err.text, "is not a regular file");
    assert_false(file_replace_text(AT_FDCWD, "/nowhere/f", 0666, "x", 1, &err));
    assert_contains(err.text, "cannot be created");
}

TEST_WITH(files_in_the_program_are_read_as_others_are, folder_set_up, folder_tear_down)
{
    const unsigned char *map;
    uint64_t bytes;
    struct err err = {0};
    assert_holds("builtin:/note", "inside");
    assert_true(file_exists("builtin:/note"));
    assert_false(file_exists("builtin:/notes"));
    assert_refused("builtin:/notes", 100, "No such file");
    assert_ok(file_map("builtin:/note", "", &map, &bytes, &err), err);
    assert_int_equal(bytes, 6);
    file_unmap(map, bytes);
    assert_memory_equal(map, "inside", 6); /* unmapping does not remove an embedded file */
    assert_string_equal(embedded_name(1), "builtin:/themes/inner.json");
    assert_null(embedded_name(3));
    assert_null(embedded_name(4));
}

TEST_WITH(themes_and_terminal_types_in_the_program_are_found, folder_set_up, folder_tear_down)
{
    char names[32][32];
    struct theme t;
    struct err err = {0};
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/nowhere", 1);
    const int n = theme_list(names, 32, "builtin:");
    bool listed = false;
    for (int i = 0; i < n; i++)
        listed = listed || strcmp(names[i], "inner") == 0;
    assert_true(listed);
    assert_ok(theme_load(&t, "inner", "builtin:", &err), err);
    assert_string_equal(t.name, "inner");
    assert_false(theme_load(&t, "outer", "builtin:", &err));
    assert_false(builtin_terminfo("even"));
    assert_true(builtin_terminfo("odd"));
    assert_string_equal(getenv("TERMINFO"), "b64:AAAA");
    unsetenv("TERMINFO");
    assert_false(builtin_locale()); /* no locale is embedded */
    setenv("LOCPATH", "/mine", 1);
    locale_again();
    assert_string_equal(getenv("LOCPATH"), "/mine");
    unsetenv("LOCPATH");
}

TEST_WITH(an_output_takes_the_place_of_its_own_kind_only, folder_set_up, folder_tear_down)
{
    static const struct file_kind kind = {
        .what = "a test's output", .skipped = 2, .begins = "{\"a b\":", .holds = {"one", "two"}};
    static const struct {
        const char *text;
        bool fits;
    } files[] = {{"", true},
                 {"xx{\"a b\":two", true},
                 {"xx { \n\"a b\" : one", true},
                 {"xx{\"a b\":three", false},
                 {"{\"a b\":one", false},
                 {"xx{\"a  ", false},
                 {"x", false}};
    char path[300];
    struct err err;
    snprintf(path, sizeof path, "%s/f", (const char *)*state);
    assert_ok(file_replaceable(AT_FDCWD, path, &kind, &err), err);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_text(*state, "f", files[i].text);
        assert_int_equal(file_replaceable(AT_FDCWD, path, &kind, &err), files[i].fits);
        assert_holds(path, files[i].text);
    }
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, "a test's output");
    assert_ok(file_replaceable(AT_FDCWD, "/dev/null", &kind, &err), err);
}

static const struct file_kind any_text = {.what = "a text", .begins = ""};

TEST_WITH(an_output_that_fails_leaves_the_file_as_it_was, folder_set_up, folder_tear_down)
{
    char path[300];
    struct err err = {0};
    struct output o;
    struct rlimit before;
    snprintf(path, sizeof path, "%s/f", (const char *)*state);
    assert_ok(output_open(&o, path, &any_text, &err), err);
    fputs("first", o.f);
    assert_ok(output_close(&o, true, &err), err);
    assert_ok(output_possible(path, &any_text, &err), err);
    assert_holds(path, "first");

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    assert_ok(output_open(&o, path, &any_text, &err), err);
    for (int i = 0; i < 20000; i++)
        fputc('x', o.f);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 4000, .rlim_max = before.rlim_max});
    for (int i = 0; i < 20000; i++)
        fputc('x', o.f);
    const bool ok = output_close(&o, true, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, path);
    assert_holds(path, "first");

    err_set(&err, ERR_CANCELLED, "enough"); /* the caller's error is kept when it cancels */
    assert_ok(output_open(&o, path, &any_text, &err), err);
    fputs("second", o.f);
    assert_false(output_close(&o, false, &err));
    assert_string_equal(err.text, "enough");
    assert_holds(path, "first");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(*state), 0); /* fails if temporary files are left */
    assert_int_equal(mkdir(*state, 0700), 0);
}

TEST_WITH(names_of_the_same_output_are_recognised, folder_set_up, folder_tear_down)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {{"f", "f", true},
                 {"f", "./f", true},
                 {"f", "new/../f", true},
                 {"f", "link", true},
                 {"f", "g", false},
                 {"f", "new/f", false},
                 {"new/f", "deep/f", true},
                 {"absent", "./absent", true},
                 {"absent", "dangling", true},
                 {"-", "-", true},
                 {"-", "f", false},
                 {"/dev/null", "/dev/null", false},
                 {"nowhere/f", "nowhere/f", false}};
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(*state), 0);
    write_text(".", "f", "text");
    assert_true(mkdir("new", 0700) == 0 && symlink("new", "deep") == 0 && symlink("f", "link") == 0 &&
                symlink("absent", "dangling") == 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (output_same(pairs[i].a, pairs[i].b) != pairs[i].same)
            fail_msg("%s, %s", pairs[i].a, pairs[i].b);
    assert_false(output_same("f", NULL));
    assert_false(output_same(NULL, NULL));
    assert_int_equal(chdir(before), 0);
}
