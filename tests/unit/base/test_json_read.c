/* JSON as Python's json module reads it: NaN and Infinity, and the last of several members with one key. */
#include <math.h>

#include "base/json_read.h"
#include "tests/rigs/test.h"

static cJSON *
parsed(const char *text)
{
    cJSON *json;
    assert_true(json_read_python(&json, text, strlen(text)));
    return json;
}

static double
number(const cJSON *array, int i)
{
    const cJSON *item = cJSON_GetArrayItem(array, i);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

TEST(infinity_and_nan_are_numbers_as_in_python)
{
    cJSON *json = parsed("[0.0, Infinity, -Infinity, NaN, -1.5e3, [NaN, 7], {\"NaN\": NaN, \"x\": -Infinity}, true]");
    assert_number_equal(number(json, 0), 0);
    assert_number_equal(number(json, 1), HUGE_VAL);
    assert_number_equal(number(json, 2), -HUGE_VAL);
    assert_true(isnan(number(json, 3)));
    assert_number_equal(number(json, 4), -1500);
    assert_true(isnan(number(cJSON_GetArrayItem(json, 5), 0)));
    assert_number_equal(number(cJSON_GetArrayItem(json, 5), 1), 7);
    assert_true(isnan(number(cJSON_GetArrayItem(json, 6), 0)));
    assert_number_equal(number(cJSON_GetArrayItem(json, 6), 1), -HUGE_VAL);
    cJSON_Delete(json);
}

TEST(strings_with_the_names_of_these_numbers_are_unchanged)
{
    cJSON *json = parsed("{\"a\": \"NaN, Infinity\", \"\\\\\": \"\\\" NaN\", \"b\": [\"-Infinity\\\\\", 3]}");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "a")->valuestring, "NaN, Infinity");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "\\")->valuestring, "\" NaN");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "b")->child->valuestring, "-Infinity\\");
    cJSON_Delete(json);
}

TEST(what_python_refuses_is_refused)
{
    const char *const texts[] = {"[nan]", "[inf]",     "[infinity]", "[+Infinity]", "[-NaN]",      "[Nan]",  "[NaN",
                                 "[I]",   "[Infinit]", "{\"a\": N}", "NaN x]",      "[1Infinity]", "\"open", "[\"\\"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cJSON *json = parsed(texts[i]);
        if (cJSON_IsArray(json) || cJSON_IsObject(json))
            fail_msg("'%s' was accepted", texts[i]);
        cJSON_Delete(json);
    }
}

TEST(the_last_of_members_with_one_key_counts)
{
    cJSON *json =
        parsed("{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2, \"x\": [3]}, \"a\": 2, \"A\": 5, \"a\": 3, \"c\": NaN}");
    assert_int_equal(cJSON_GetArraySize(json), 4);
    assert_number_equal(cJSON_GetObjectItemCaseSensitive(json, "a")->valuedouble, 3);
    assert_true(cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "b"), "x")));
    assert_true(isnan(cJSON_GetObjectItemCaseSensitive(json, "c")->valuedouble));
    cJSON_Delete(json);
}
