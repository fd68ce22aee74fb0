/* Every feature of templates, and small templates with many dialogues, compared with jinja2's output
 * (tests/golden/chat.json, made by tests/jinja/make_chat_golden.py on the 5th of March 2025). */
/* cmocka.h needs these headers before it */
#include <cjson/cJSON.h>

#include "base/file_read.h"
#include "engine/jinja/chat.h"
#include "tests/rigs/test.h"

static struct slice
text_of(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    assert_non_null(text);
    return slice_of(text);
}

/* Returns whether the template renders the expected text, and prints the difference if not. */
static bool
renders(const cJSON *golden)
{
    const cJSON *expected = cJSON_GetObjectItemCaseSensitive(golden, "text");
    const struct chat_dialogue dialogue = {
        .context = text_of(golden, "context"),
        .now = {.tm_year = 125, .tm_mon = 2, .tm_mday = 5, .tm_wday = 3, .tm_yday = 63}};
    struct chat *chat = NULL;
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;
    const bool ok =
        chat_open(&chat, text_of(golden, "template"), &err) && chat_render(chat, &dialogue, &text, &len, &err);
    const bool same = ok ? cJSON_IsString(expected) && strcmp(text, expected->valuestring) == 0
                         : cJSON_IsNull(expected) && strncmp(err.text, "the chat template, line ", 24) == 0;
    if (!same)
        print_error("%s\n  expected %s\n  was      %s %s\n", text_of(golden, "template").data,
                    cJSON_IsString(expected) ? expected->valuestring : "a refusal", ok ? text : "", err.text);
    free(text);
    chat_close(chat);
    return same;
}

TEST(templates_render_as_in_jinja2)
{
    struct err err;
    char *json;
    size_t n, compared = 0, differ = 0, refused = 0;
    assert_ok(file_text("tests/golden/chat.json", 1u << 24, &json, &n, &err), err);
    cJSON *all = cJSON_ParseWithLength(json, n);
    const cJSON *golden;
    cJSON_ArrayForEach(golden, all)
    {
        compared++;
        refused += cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(golden, "text")) ? 1 : 0;
        differ += !renders(golden);
    }
    assert_at_least(compared, 250);
    assert_at_least(refused, 40);
    assert_less(refused, compared / 2);
    assert_int_equal(differ, 0);
    cJSON_Delete(all);
    free(json);
}
