/* A stretch as a command line: a shell takes every word of it as it was meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/trace_events.h"
#include "tui/app/shell_command.h"
#include "tui/terminal/clipboard.h"

static void
test_a_shell_takes_every_word_as_it_was_meant(void **state)
{
    (void)state;
    struct run_info info;
    fake_run(&info);
    static const char prompt[] = "It's \"so\" $HOME `ls` \\\n* end";
    struct stretch s = {.policy = 1, .head = "trained", .sampling = info.sampling, .seed = info.seed};
    for (uint32_t k = 0; k < info.policies[1].n_knobs; k++)
        s.value[k] = info.policies[1].knobs[k].def;
    s.value[0] = 0.7;
    char *command = shell_command(&s, &info, prompt);
    assert_non_null(command);
    char line[4096], got[4096];
    const char *end = strstr(command, "specscope run ");
    assert_ptr_equal(end, command);
    assert_true((size_t)snprintf(line, sizeof line, "printf '[%%s]' %s", command + 10) < sizeof line);
    FILE *shell = popen(line, "r");
    assert_non_null(shell);
    got[fread(got, 1, sizeof got - 1, shell)] = '\0';
    assert_int_equal(pclose(shell), 0);
    char expected[4096];
    snprintf(expected, sizeof expected,
             "[run][--policy][specbound][--set][tau=0.7][--head][trained][--draft][%s][--profile][%s][--temp]"
             "[0.699999988][--top-k][40][--top-p][0.949999988][--seed][18446744073709551615][-c][%u][-n][128][--exact]["
             "-p][%s]"
             "[--][%s]",
             info.helpers[HELPER_DRAFT].path, info.profile.path, (unsigned)info.ctx, prompt, info.model_path);
    assert_string_equal(got, expected);
    free(command);
    run_info_free(&info);
}

static void
test_what_a_clipboard_gets_is_base64(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code;
    } table[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar\xff", "Zm9vYmFy/w=="}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *got = clipboard_sequence(table[i].text, strlen(table[i].text)), expected[64];
        snprintf(expected, sizeof expected, "\033]52;c;%s\a", table[i].code);
        assert_non_null(got);
        assert_string_equal(got, expected);
        free(got);
    }
    char *large = calloc(1, CLIPBOARD_MOST + 1);
    assert_non_null(large);
    assert_null(clipboard_sequence(large, CLIPBOARD_MOST + 1));
    char *most = clipboard_sequence(large, CLIPBOARD_MOST);
    assert_non_null(most);
    free(most);
    free(large);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shell_takes_every_word_as_it_was_meant),
        cmocka_unit_test(test_what_a_clipboard_gets_is_base64),
    };
    return cmocka_run_group_tests_name("shell_command", tests, NULL, NULL);
}
