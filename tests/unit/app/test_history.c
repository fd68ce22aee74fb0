/* The file of earlier input lines, also when the disk fails. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tui/app/line.h"

TEST(a_history_that_cannot_be_written_leaves_the_one_before)
{
    char path[] = "/tmp/specscope-history-XXXXXX";
    static char line[EDITOR_MAX / 2];
    struct history h;
    struct err err = {0};
    struct rlimit before;
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "one\ntwo\n", 8), 8);
    close(fd);
    history_open(&h, path);
    memset(line, 'x', sizeof line - 1);
    history_add(&h, line);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max});
    const bool ok = history_close(&h, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, strerror(EFBIG));
    history_open(&h, path);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.line[1], "two");
    assert_ok(history_close(&h, &err), err);
    unlink(path);
}

TEST(two_programs_at_once_keep_the_history_of_both)
{
    char path[] = "/tmp/specscope-history-XXXXXX";
    struct history a, b;
    struct err err = {0};
    close(mkstemp(path));
    history_open(&a, path);
    history_add(&a, "old");
    history_add(&a, "older");
    assert_ok(history_close(&a, &err), err);
    history_open(&a, path);
    history_open(&b, path);
    history_add(&b, "of b");
    history_add(&a, "of a");
    history_add(&a, "old"); /* a repeated line becomes the newest */
    assert_ok(history_close(&b, &err), err);
    assert_ok(history_close(&a, &err), err);
    history_open(&b, path);
    static const char *const kept[] = {"older", "of b", "of a", "old"};
    assert_int_equal(b.n, 4);
    for (int i = 0; i < b.n; i++)
        assert_string_equal(b.line[i], kept[i]);
    unlink(path);
    assert_ok(history_close(&b, &err), err); /* b has no new lines, so it writes no file */
    assert_int_equal(access(path, F_OK), -1);
}

TEST(a_long_prompt_of_many_lines_comes_back)
{
    char path[] = "/tmp/specscope-history-XXXXXX";
    static char line[EDITOR_MAX + 1];
    struct history h;
    struct err err = {0};
    close(mkstemp(path));
    memset(line, '\n', EDITOR_MAX); /* each line feed takes two bytes in the file */
    history_open(&h, path);
    history_add(&h, line);
    assert_ok(history_close(&h, &err), err);
    history_open(&h, path);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.line[0], line);
    assert_ok(history_close(&h, &err), err);
    unlink(path);
}
