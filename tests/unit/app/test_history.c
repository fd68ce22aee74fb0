/* The file of lines that were entered before, when the disk lets it down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tui/app/prompt_editor.h"

static void
test_a_history_that_cannot_be_written_leaves_the_one_before(void **state)
{
    (void)state;
    char path[] = "/tmp/specscope-history-XXXXXX";
    static char line[EDITOR_MAX / 2];
    struct history h;
    struct err err = {0};
    struct rlimit before;
    const int fd = mkstemp(path);
    assert_true(write(fd, "one\ntwo\n", 8) == 8);
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
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    history_open(&h, path);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.line[1], "two");
    assert_true(history_close(&h, &err));
    unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_history_that_cannot_be_written_leaves_the_one_before),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
