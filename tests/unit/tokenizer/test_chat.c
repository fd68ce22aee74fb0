/* Chat formats: recognised by what is particular to a template (excerpts of the usual ones), and written as they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/chat.h"

#define GOLDEN_BYTES ((size_t)1 << 20)

static const struct known {
    enum chat_format format;
    const char *template;
    const char *with, *without; /* a turn "Hi " under the system text "Be kind.", and under none */
} known[] = {
    {CHAT_LLAMA2,
     "{% if '<<SYS>>' in m %}{% set system_message = 'not this' %}{% endif %}{{ bos_token + '[INST] ' + "
     "content.strip() + ' "
     "[/INST]' }}",
     "[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST]", "[INST] Hi [/INST]"},
    {CHAT_LLAMA3, "{{ '<|start_header_id|>' + role + '<|end_header_id|>\n\n' + content | trim + '<|eot_id|>' }}",
     "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
     "Hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {CHAT_VICUNA, "{{ system_message + ' USER: ' + content + ' ASSISTANT:' }}",
     "Be kind. USER: Hi  ASSISTANT:", "USER: Hi  ASSISTANT:"},
    {CHAT_CHATML, "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}",
     "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\n",
     "<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\n"},
    {CHAT_MISTRAL, "{{ '[INST] ' + message['content'] + ' [/INST]' }}", "[INST] Be kind.\n\nHi  [/INST]",
     "[INST] Hi  [/INST]"},
    {CHAT_MISTRAL, "{{ '[INST] ' + message['content'] + '[/INST]' }}", "[INST] Be kind.\n\nHi [/INST]",
     "[INST] Hi [/INST]"},
    {CHAT_MISTRAL, "{{ '[INST]' + message['content'] + '[/INST]' }}", "[INST]Be kind.\n\nHi [/INST]",
     "[INST]Hi [/INST]"},
    {CHAT_MISTRAL, "{{ '[SYSTEM_PROMPT]' + s + '[/SYSTEM_PROMPT]' }}{{ '[INST]' + m + '[/INST]' }}",
     "[SYSTEM_PROMPT]Be kind.[/SYSTEM_PROMPT][INST]Hi [/INST]", "[INST]Hi [/INST]"},
    {CHAT_ZEPHYR, "{{ '<|user|>\n' + content + eos_token }}{{ '<|assistant|>' }}",
     "<|system|>\nBe kind.</s>\n<|user|>\nHi </s>\n<|assistant|>\n", "<|user|>\nHi </s>\n<|assistant|>\n"},
};
#define N_KNOWN (sizeof known / sizeof *known)

static struct chat
recognise(const char *template)
{
    struct chat chat;
    chat_recognise(&chat, template, strlen(template));
    snprintf(chat.eos, sizeof chat.eos, "</s>");
    return chat;
}

static void
assert_turn(const struct chat *chat, const char *system, const char *user, const char *expected)
{
    char *text;
    size_t len;
    struct err err = {0};
    assert_true(chat_prompt(chat, system, user, strlen(user), &text, &len, &err));
    assert_int_equal(len, strlen(text));
    assert_string_equal(text, expected);
    free(text);
}

static void
test_templates_are_recognised_by_what_is_particular_to_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        const struct chat chat = recognise(known[i].template);
        assert_int_equal(chat.format, known[i].format);
        assert_true(strlen(chat_names[chat.format]) > 0);
    }
}

static void
test_turns_are_written_as_the_template_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        const struct chat chat = recognise(known[i].template);
        assert_turn(&chat, "Be kind.", "Hi ", known[i].with);
        assert_turn(&chat, "", "Hi ", known[i].without);
        assert_turn(&chat, NULL, "Hi ", known[i].without);
    }
}

static void
test_other_templates_leave_the_prompt_as_it_is(void **state)
{
    (void)state;
    static const char *const others[] = {"",         "{{ messages }}", "<start_of_turn>user",
                                         "[ INST ]", "USER: only",     "<|user|><|assistant|><|end|>"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct chat chat;
        assert_false(chat_recognise(&chat, others[i], strlen(others[i])));
        assert_int_equal(chat.format, CHAT_NONE);
        assert_turn(&chat, "ignored", " as it is\n", " as it is\n");
    }
}

static void
test_the_template_s_own_system_text_stands_where_none_is_given(void **state)
{
    (void)state;
    const struct chat qwen =
        recognise("{%- if tools %}{{- '<|im_start|>system\\n' }}{{- m.content }}{{- '<|im_end|>' }}{%- else %}"
                  "{{- '<|im_start|>system\\nYou are a lamp, it\\'s lit.<|im_end|>\\n' }}{%- endif %}");
    assert_string_equal(qwen.system, "You are a lamp, it's lit.");
    assert_turn(&qwen, NULL, "Hi",
                "<|im_start|>system\nYou are a lamp, it's lit.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                "<|im_start|>assistant\n");
    const struct chat vicuna =
        recognise("{% set system_message = messages[0] %}{% set system_message = \"A \\\"chat\\\".\" %}"
                  "{{ 'USER: ' }}{{ 'ASSISTANT:' }}");
    assert_turn(&vicuna, NULL, "Hi", "A \"chat\". USER: Hi ASSISTANT:");
    assert_turn(&vicuna, "", "Hi", "USER: Hi ASSISTANT:");
    assert_string_equal(recognise("<|im_start|>system\n{{ system }}<|im_end|>").system, "");
    assert_string_equal(recognise("<|im_start|>{% set system_message = 'never closed").system, "");
}

static void
test_a_system_text_that_is_too_long_is_left_out_whole(void **state)
{
    (void)state;
    char template[2000] = "<|im_start|>system\n";
    memset(template + strlen(template), 'x', 1000);
    strncat(template, "<|im_end|>", 16);
    assert_string_equal(recognise(template).system, "");
}

static void
test_blank_turns_are_trimmed_to_nothing(void **state)
{
    (void)state;
    const struct chat chat = recognise(known[0].template);
    assert_turn(&chat, NULL, " \n\t ", "[INST]  [/INST]");
    assert_turn(&chat, NULL, "", "[INST]  [/INST]");
    assert_turn(&chat, NULL, "\n a b \n", "[INST] a b [/INST]");
}

/* ---- against transformers ---- */

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, GOLDEN_BYTES);
    if (f == NULL || text == NULL || fread(text, 1, GOLDEN_BYTES - 1, f) == 0)
        fail_msg("%s: cannot be read", path);
    fclose(f);
    return text;
}

static const char *
text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key)); /* NULL: null */
}

/* Made by tests/golden/make_chat_golden.py with transformers, on the 5th of March 2025. */
static void
test_llama_3_turns_are_those_of_transformers_dates_included(void **state)
{
    (void)state;
    const char *path = getenv("SPECSCOPE_CHAT_GOLDEN");
    char *json = read_file(path != NULL ? path : "tests/golden/chat.json");
    cJSON *list = cJSON_Parse(json);
    assert_true(cJSON_GetArraySize(list) >= 5);
    int dated = 0;
    const cJSON *turn;
    cJSON_ArrayForEach(turn, list)
    {
        struct chat chat = recognise(text_of(turn, "template"));
        assert_int_equal(chat.format, CHAT_LLAMA3);
        chat_set_day(&chat, &(struct tm){.tm_mday = 5, .tm_mon = 2, .tm_year = 2025 - 1900});
        dated += chat.date[0] != '\0';
        assert_turn(&chat, text_of(turn, "system"), text_of(turn, "user"), text_of(turn, "text"));
    }
    assert_true(dated > 0);
    cJSON_Delete(list);
    free(json);
}

static void
test_only_a_template_that_asks_for_the_day_is_given_it(void **state)
{
    (void)state;
    static const char fixed[] =
        "<|start_header_id|>{% set date_string = \"26 Jul 2024\" %}Cutting Knowledge Date: May 2023\\n"
        "Today Date: ",
                      today[] = "<|start_header_id|>{{ strftime_now(\"%d %b %Y\") }}Cutting Knowledge Date: May 2023\\n"
                                "Today Date: ",
                      undated[] = "<|start_header_id|>{% set date_string = \"26 Jul 2024\" %}";
    const struct tm day = {.tm_mday = 31, .tm_mon = 11, .tm_year = 130};
    struct chat chat = recognise(fixed);
    chat_set_day(&chat, &day);
    assert_string_equal(chat.date, "26 Jul 2024");
    assert_string_equal(chat.cutting, "May 2023");
    chat = recognise(today);
    assert_int_equal(strlen(chat.date), 11); /* today's */
    chat_set_day(&chat, &day);
    assert_string_equal(chat.date, "31 Dec 2030");
    chat = recognise(undated);
    chat_set_day(&chat, &day);
    assert_string_equal(chat.date, "");
}

static void
test_dates_that_are_no_dates_are_left_out(void **state)
{
    (void)state;
#define SET "<|start_header_id|>Today Date: {% set date_string = "
#define CUT " %}Cutting Knowledge Date: "
    static const char no_month[] = SET "\"26 Jul 2024\"" CUT,
                      long_month[] = SET "\"26 Jul 2024\"" CUT "a month that is much too long",
                      long_date[] = SET "\"the day after the other one\"" CUT "May", no_date[] = SET "\"" CUT "May";
    static const char *const odd[] = {no_month, long_month, long_date, no_date};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const struct chat chat = recognise(odd[i]);
        assert_string_equal(chat.date, "");
        assert_turn(
            &chat, NULL, "Hi",
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
            "\n\n");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates_are_recognised_by_what_is_particular_to_them),
        cmocka_unit_test(test_turns_are_written_as_the_template_does),
        cmocka_unit_test(test_other_templates_leave_the_prompt_as_it_is),
        cmocka_unit_test(test_the_template_s_own_system_text_stands_where_none_is_given),
        cmocka_unit_test(test_a_system_text_that_is_too_long_is_left_out_whole),
        cmocka_unit_test(test_blank_turns_are_trimmed_to_nothing),
        cmocka_unit_test(test_llama_3_turns_are_those_of_transformers_dates_included),
        cmocka_unit_test(test_only_a_template_that_asks_for_the_day_is_given_it),
        cmocka_unit_test(test_dates_that_are_no_dates_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
