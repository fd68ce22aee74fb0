/* Presets: what is written reads back, and what is no preset is refused in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/preset.h"
#include "tests/rigs/folders.h"

static void
test_what_is_written_reads_back(void **state)
{
    char folder[600];
    const struct preset p = {
        .policy = "specbound", .head = "lens", .set = {{"tau", "0.7"}, {"mode", "dynamic"}}, .n_set = 2};
    struct preset got;
    struct err err = {0};
    snprintf(folder, sizeof folder, "%s/config/specscope/presets", (const char *)*state);
    assert_true(preset_write(&p, folder, "quick-2.b_", &err));
    assert_true(preset_read(&got, folder, "quick-2.b_", &err));
    assert_memory_equal(&got, &p, sizeof p);
    assert_true(preset_write(&p, folder, "another", &err));
    struct preset_names names = {NULL, 0};
    assert_true(preset_list(&names, folder, &err));
    assert_int_equal(names.n, 2);
    assert_string_equal(names.name[0], "another");
    assert_string_equal(names.name[1], "quick-2.b_");
    preset_names_free(&names);
    assert_false(preset_read(&got, folder, "slow", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "there are another, quick-2.b_"));
}

static void
test_what_is_no_name_is_refused(void **state)
{
    static const char *const bad[] = {
        "",     ".",   "..", ".hidden", "a/b",
        "../x", "a b", "ä",  "x\n",     "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"};
    const struct preset p = {.policy = "ar"};
    struct preset got;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = {0};
        assert_false(preset_write(&p, *state, bad[i], &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_false(preset_read(&got, *state, bad[i], &err));
    }
    struct preset_names names = {NULL, 0};
    assert_true(preset_list(&names, *state, NULL));
    assert_int_equal(names.n, 0);
}

static void
test_what_is_no_preset_is_refused_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *json, *why;
    } table[] = {
        {"", "not a JSON object"},
        {"[1]", "not a JSON object"},
        {"{\"policy\": \"ar\"", "not a JSON object"},
        {"{}", "names no \"policy\""},
        {"{\"policy\": 7}", "\"policy\" must be a name"},
        {"{\"policy\": \"a-name-that-is-too-long\"}", "\"policy\" must be a name"},
        {"{\"policy\": \"ar\", \"temp\": 1}", "\"temp\" is not known"},
        {"{\"policy\": \"ar\", \"set\": \"tau=1\"}", "must be a list"},
        {"{\"policy\": \"ar\", \"set\": [\"tau\"]}", "must be a list of"},
        {"{\"policy\": \"ar\", \"set\": [\"=1\"]}", "must be a list of"},
        {"{\"policy\": \"ar\", \"set\": [3]}", "must be a list of"},
        {"{\"policy\": \"ar\", \"head\": \"\"}", "\"head\" must be a name"},
    };
    struct preset p;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct err err = {0};
        assert_false(preset_parse(&p, "x.json", table[i].json, strlen(table[i].json), &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, table[i].why));
        assert_ptr_equal(strstr(err.text, "x.json: "), err.text);
        assert_null(strchr(err.text, '\n'));
    }
    char many[1024];
    size_t n = (size_t)snprintf(many, sizeof many, "{\"policy\": \"ar\", \"set\": [\"a=1\"");
    for (int i = 0; i < POLICY_KNOBS; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, ", \"a=1\"");
    n += (size_t)snprintf(many + n, sizeof many - n, "]}");
    assert_false(preset_parse(&p, "x.json", many, n, NULL));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written_reads_back, folder_set_up, folder_tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_name_is_refused, folder_set_up, folder_tear_down),
        cmocka_unit_test(test_what_is_no_preset_is_refused_in_one_line),
    };
    return cmocka_run_group_tests_name("preset", tests, NULL, NULL);
}
