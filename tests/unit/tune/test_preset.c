/* Presets: a written preset reads back equal, and a file that is not a preset is refused in one line. */
#include <cjson/cJSON.h>

#include "engine/tune/preset.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/test.h"

TEST_WITH(what_is_written_reads_back, folder_set_up, folder_tear_down)
{
    char folder[600];
    const struct preset p = {.policy = "specbound",
                             .head = "lens",
                             .set = {{"tau", "0.7"}, {"mode", "dynamic"}},
                             .n_set = 2,
                             .sampling = {"0.7", "0", "0.95", "18446744073709551615"}};
    struct preset got;
    struct err err = {0};
    snprintf(folder, sizeof folder, "%s/config/specscope/presets", (const char *)*state);
    assert_ok(preset_write(&p, folder, "quick-2.b_", &err), err);
    assert_ok(preset_read(&got, folder, "quick-2.b_", &err), err);
    assert_memory_equal(&got, &p, sizeof p);
    assert_ok(preset_write(&p, folder, "another", &err), err);
    struct preset_names names = {NULL, 0};
    assert_ok(preset_list(&names, folder, &err), err);
    assert_int_equal(names.n, 2);
    assert_string_equal(names.name[0], "another");
    assert_string_equal(names.name[1], "quick-2.b_");
    preset_names_free(&names);
    assert_false(preset_read(&got, folder, "slow", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, "there are another, quick-2.b_");
}

TEST(sampling_is_as_it_was_given)
{
    struct run_info info = {.n_policies = 1, .policies = &(struct policy_info){.name = "ar"}};
    const struct segment s = {.sampling = {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f}, .seed = UINT64_MAX};
    struct preset p;
    assert_true(preset_of_segment(&p, &s, &info));
    assert_string_equal(p.sampling[SAMPLING_TEMPERATURE], "0.7");
    assert_string_equal(p.sampling[SAMPLING_TOP_K], "40");
    assert_string_equal(p.sampling[SAMPLING_TOP_P], "0.95");
    assert_string_equal(p.sampling[SAMPLING_SEED], "18446744073709551615");
    /* An older preset has no sampling. */
    assert_true(preset_parse(&p, "x.json", "{\"policy\": \"ar\"}", 16, NULL));
    for (int i = 0; i < SAMPLING_KNOBS; i++)
        assert_string_equal(p.sampling[i], "");
}

TEST_WITH(what_is_no_name_is_refused, folder_set_up, folder_tear_down)
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

TEST(invalid_presets_are_refused_in_one_line)
{
    static const struct {
        const char *json, *why;
    } table[] = {
        {"", "not valid JSON in line 1"},
        {"[1]", "not a JSON object"},
        {"{\"policy\": \"ar\"", "not valid JSON in line 1"},
        {"{\"policy\": \"ar\"}\n, \"seed\": 1}", "not valid JSON in line 2"},
        {"{}", "names no \"policy\""},
        {"{\"policy\": 7}", "\"policy\" must be a name"},
        {"{\"policy\": \"a-name-that-is-too-long\"}", "\"policy\" must be a name"},
        {"{\"policy\": \"ar\", \"pace\": 1}", "\"pace\" is not known"},
        {"{\"policy\": \"ar\", \"temp\": [1]}", "\"temp\" must be a number"},
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
        assert_contains(err.text, table[i].why);
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

static int left; /* cJSON's allocations before one fails */

static void *
fails_once(size_t n)
{
    return left-- == 0 ? NULL : malloc(n);
}

TEST_WITH(what_memory_is_short_for_is_written_whole_or_not_at_all, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    const struct preset p = {.policy = "ar", .head = "lens", .set = {{"a", "1"}}, .n_set = 1, .sampling = {"0.7", "0"}};
    struct preset got;
    bool written = false;
    for (int n = 0; !written && n < 100; n++) {
        struct err err = {0};
        left = n;
        cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = fails_once, .free_fn = free});
        written = preset_write(&p, folder, "short", &err);
        cJSON_InitHooks(NULL);
        assert_int_equal(preset_read(&got, folder, "short", NULL), written);
        assert_true(written ? left >= 0 : strstr(err.text, "out of memory") != NULL);
    }
    assert_true(written);
    assert_memory_equal(&got, &p, sizeof p);
}
