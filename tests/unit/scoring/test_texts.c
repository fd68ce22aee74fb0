/* Finished conversations from files: each form gives the same prompts and answers, and damage is refused in one line. */
#include <unistd.h>

#include "tests/rigs/folders.h"
#include "tests/rigs/saved_runs.h"
#include "tests/rigs/test.h"
#include "traces/text_source.h"

static struct texts
read_ok(const char *text)
{
    struct texts t;
    struct err err = {0};
    if (!texts_parse(&t, text, strlen(text), "t.jsonl", &err))
        fail_msg("%s: %s", text, err.text);
    return t;
}

/* Returns the error of a text that is refused; valid until the next call. */
static const char *
refusal(const char *text, size_t n)
{
    static struct err err;
    struct texts t;
    err = (struct err){0};
    if (texts_parse(&t, text, n, "t.jsonl", &err))
        fail_msg("'%.60s' was accepted", text);
    assert_null(t.at);
    assert_null(strchr(err.text, '\n'));
    return err.text;
}

/* Fails unless the text has one conversation, with one exchange. */
static void
expect_one(const char *text, bool messages, const char *before, const char *prompt, const char *answer)
{
    struct texts t = read_ok(text);
    if (t.n != 1 || t.at[0].n != 1)
        fail_msg("%s: %zu conversations, %u exchanges", text, t.n, t.n > 0 ? t.at[0].n : 0);
    const struct exchange *e = t.at[0].exchange;
    assert_string_equal(e->prompt, prompt);
    assert_string_equal(e->answer, answer);
    assert_int_equal(t.at[0].messages, messages);
    assert_int_equal(e->before == NULL, before == NULL);
    if (before != NULL)
        assert_string_equal(e->before, before);
    texts_free(&t);
}

#define USER "{\"role\": \"user\", \"content\": \"Why?\"}"

TEST(every_form_of_messages_gives_the_same_exchange)
{
    static const char *const forms[] = {
        "{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"So.\"}]}",
        "[" USER ", {\"role\": \"assistant\", \"content\": \"So.\"}]",
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"Why?\"}, {\"from\": \"gpt\", \"value\": \"So.\"}]}",
        "{\"conversation\": [{\"from\": \"user\", \"value\": \"Why?\"}, {\"from\": \"chatgpt\", \"value\": \"So.\"}]}",
        "{\"request\": {\"messages\": [" USER
        "]}, \"response\": {\"choices\": [{\"message\": {\"content\": \"So.\"}}]}}",
        "{\"request\": {\"body\": {\"messages\": [" USER
        "]}}, \"response\": {\"body\": {\"choices\": [{\"message\": {\"content\": \"So.\"}}]}}}",
        "{\"custom_id\": \"7\", \"body\": {\"messages\": [" USER
        "]}, \"response\": {\"body\": {\"choices\": [{\"message\": {\"content\": \"So.\"}}]}}}",
        "{\"messages\": [" USER "], \"choices\": [{\"message\": {\"role\": \"assistant\", \"content\": \"So.\"}}]}",
        "{\"messages\": [" USER "], \"response\": \"So.\"}",
        "{\"prompt\": [" USER "], \"completion\": [{\"role\": \"assistant\", \"content\": \"So.\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Wh\"}, {\"type\": "
        "\"image_url\", \"image_url\": {\"url\": \"x\"}}, {\"type\": \"text\", \"text\": \"y?\"}]}, "
        "{\"role\": \"assistant\", \"content\": \"So.\"}]}",
        "[{\"messages\": [" USER ",\n{\"role\": \"assistant\", \"content\": \"So.\"}]}\n]",
        "\xef\xbb\xbf\r\n\r\n[[" USER ", {\"role\": \"assistant\", \"content\": \"So.\"}]]\r\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        expect_one(forms[i], true, NULL, "Why?", "So.");
}

TEST(every_form_of_a_prompt_gives_the_same_exchange)
{
    static const char *const names[] = {"completion", "response", "output", "answer"};
    char text[200];
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "{\"prompt\": \"One\", \"%s\": \" two\"}", names[i]);
        expect_one(text, false, NULL, "One", " two");
    }
    expect_one("{\"prompt\": [\"One\"], \"choices\": [{\"text\": \" two\"}]}", false, NULL, "One", " two");
    expect_one("{\"request\": {\"prompt\": \"One\"}, \"response\": {\"choices\": [{\"text\": \" two\"}]}}", false, NULL,
               "One", " two");
    expect_one("{\"text\": \"\\nOne\\n two\"}", false, NULL, "One", "\n two");
}

TEST(each_answer_has_the_messages_before_its_prompt)
{
    struct texts t =
        read_ok("{\"category\": \"qa\\u001b[2J\", \"messages\": [{\"role\": \"system\", \"content\": \"Be.\"}, " USER
                ", {\"from\": \"bing\", \"value\": \"A\"}, " USER
                ", {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [1]}, {\"role\": \"tool\", "
                "\"content\": \"T\"}, "
                "{\"role\": \"assistant\", \"content\": \"after a tool\"}, " USER
                ", {\"role\": \"assistant\", \"content\": \"B\"}, {\"role\": \"assistant\", \"content\": \"again\"}]}");
    assert_int_equal(t.n, 1);
    assert_string_equal(t.at[0].category, "qa\\x1b[2J");
    assert_int_equal(t.at[0].n, 2); /* answers to a tool and to an answer are only context */
    const struct exchange *e = t.at[0].exchange;
    assert_string_equal(e[0].before, "[{\"role\":\"system\",\"content\":\"Be.\"}]");
    assert_string_equal(e[0].answer, "A");
    assert_string_equal(e[1].answer, "B");
    assert_contains(e[1].before,
                    "{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"user\",\"content\":\"Why?\"},");
    assert_contains(e[1].before, "{\"tool_calls\":[1],\"role\":\"assistant\",\"content\":\"\"},{\"role\":\"tool\"");
    assert_contains(e[1].before, "after a tool\"}]");
    texts_free(&t);
}

TEST(lines_without_an_answer_are_counted)
{
    struct texts t =
        read_ok("{\"messages\": [" USER "]}\n\n{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": "
                "\"\", \"completion\": \"b\"}\n{\"response\": {\"choices\": [{\"text\": \"b\"}]}}\n"
                "{\"messages\": [1, null, {\"role\": 3}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n");
    assert_int_equal(t.n, 1);
    assert_int_equal(t.skipped, 4);
    texts_free(&t);
}

TEST(plain_text_is_split_at_empty_lines)
{
    char text[4000] = "";
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 30; k++)
            strcat(text, k == 29 ? "end.\n\n" : k == 0 ? "\xc3\xa4\xc3\xb6 first" : " word");
    struct texts t = read_ok(text); /* 8 paragraphs of 161 bytes: every third one ends a conversation */
    assert_int_equal(t.n, 2);
    assert_true(strncmp(t.at[0].exchange[0].prompt, "\xc3\xa4\xc3\xb6 first word", 15) == 0);
    assert_int_equal(t.at[0].exchange[0].answer[0], ' ');
    assert_at_most(strlen(t.at[0].exchange[0].prompt), 64);
    texts_free(&t);
    memset(text, 0, sizeof text);
    for (int i = 0; i < 100; i++)
        strcat(text, "\xe4\xbd\xa0"); /* without spaces: never within a character */
    t = read_ok(text);
    assert_int_equal(strlen(t.at[0].exchange[0].prompt), 63);
    texts_free(&t);
}

TEST(damage_is_refused_with_its_line)
{
    static const char bad[] = "{\"prompt\": \"a\", \"completion\": \"b\"}\n\n{\"prompt\": \"a\n", binary[] = "GGUF\0\3";
    assert_contains(refusal(bad, sizeof bad - 1), "t.jsonl:3: not JSON");
    assert_contains(refusal("[\n{\"prompt\": 3},\n{\"a\" 4}]", 26), "t.jsonl:3: not JSON");
    assert_contains(refusal("{\"turns\": [\"a\"]}\n", 17), "conversation 1 has none of");
    assert_contains(refusal("[3]", 3), "conversation 1 has none of");
    assert_contains(refusal("{\"messages\": []}", 16), "no answer in it");
    assert_contains(refusal("[]", 2), "no answer in it");
    assert_contains(refusal("", 0), "no answer in it");
    assert_contains(refusal("word", 4), "no answer in it");
    assert_contains(refusal(binary, sizeof binary), "neither JSON nor text");
}

TEST(deep_nesting_and_broken_characters_do_no_harm)
{
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = '\0';
    assert_contains(refusal(deep, 200000), "t.jsonl:1: not JSON");
    deep[900] = '\0';
    assert_contains(refusal(deep, 900), "t.jsonl:1: not JSON");
    free(deep);
    expect_one("{\"prompt\": \"a\xff\xfe\", \"completion\": \"\xc3\"}", false, NULL, "a\xff\xfe", "\xc3");
    expect_one("\xff\xfe\xc3 \xe4\xbd", false, NULL, "\xff\xfe\xc3", " \xe4\xbd");
}

TEST(long_dialogues_do_not_use_unlimited_memory)
{
    static const char turn[] = USER ",{\"role\":\"assistant\",\"content\":\"b\"},";
    const size_t n = 10000, len = sizeof turn - 1;
    char *text = malloc(n * len + 16), *at = stpcpy(text, "[");
    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, turn);
    strcpy(at - 1, "]");
    assert_contains(refusal(text, strlen(text)), "too long dialogues");
    free(text);
}

TEST_WITH(files_and_their_absence, folder_set_up, folder_tear_down)
{
    char path[300];
    struct texts t;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/t.jsonl", (const char *)*state);
    assert_false(text_source_read(&t, path, &err));
    assert_contains(err.text, "No such file");
    assert_false(text_source_read(&t, *state, &err));
    assert_contains(err.text, "run.json");
    write_text(*state, "t.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}");
    assert_ok(text_source_read(&t, path, &err), err);
    assert_int_equal(t.n, 1);
    assert_null(t.piece);
    texts_free(&t);
}

TEST_WITH(a_trace_gives_each_text_once, saved_runs_open, saved_runs_close)
{
    const struct saved_runs *r = *state;
    struct texts both, bound;
    struct err err = {0};
    assert_ok(text_source_read(&both, r->both, &err) && text_source_read(&bound, r->bound, &err), err);
    assert_int_equal(both.n, 1); /* two settings generated the same text */
    assert_int_equal(both.skipped, 1);
    const struct exchange *e = both.at[0].exchange, *shorter = bound.at[0].exchange;
    assert_int_equal(e->n_ids - e->n_prompt, 60);
    assert_int_equal(shorter->n_ids - shorter->n_prompt, 40);
    assert_memory_equal(e->ids, shorter->ids, shorter->n_ids * sizeof *e->ids);
    for (uint32_t i = 0; i < e->n_ids; i++)
        assert_non_null(both.piece[e->ids[i]].data);
    texts_free(&both);
    texts_free(&bound);
}
