/* Prompts as chat turns: the choice of template, a single BOS, and messages that a template refuses. */
#include "engine/model/files/gguf.h"
#include "engine/session/prompt.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/test.h"

struct vocabulary {
    unsigned char *bytes;
    struct gguf *file;
    struct tokenizer *t;
};

static int
open_vocabulary(void **state)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    struct err err = {0};
    size_t len;
    const struct tinymodel m = {.n_layers = 1,
                                .chat_template = "{{ bos_token }}[{{ messages[-1].content }}]{{ eos_token }}"};
    assert_non_null(v);
    assert_ok(tinymodel_build(&m, &v->bytes, &len, &err), err);
    assert_ok(gguf_parse(&v->file, "tiny", v->bytes, len, &err), err);
    assert_ok(tokenizer_open(&v->t, v->file, &err), err);
    assert_true(tokenizer_add_chat_template(v->t, slice_of("tool_use"),
                                            slice_of("{{ tools[0] }}{{ messages[0].content }}"), &err));
    *state = v;
    return 0;
}

static int
close_vocabulary(void **state)
{
    struct vocabulary *v = *state;
    tokenizer_close(v->t);
    gguf_close(v->file);
    free(v->bytes);
    free(v);
    return 0;
}

/* The text of a prompt, in which control tokens have their names. */
static void
assert_written(const struct prompt_format *f, const char *text, const char *expected)
{
    struct prompt p;
    struct err err = {0};
    char got[400] = "";
    assert_ok(prompt_read(&p, f, text, strlen(text), NULL, &err), err);
    for (uint32_t i = 0; i < p.n; i++) {
        const struct slice s = tokenizer_bytes(f->tokenizer, p.ids[i], true);
        assert_less(strlen(got) + s.len, sizeof got);
        strncat(got, s.data, s.len);
    }
    assert_string_equal(got, expected);
    assert_string_equal(p.text, text); /* the user's text does not change */
    prompt_free(&p);
}

static void
assert_message(void **state, const struct chat_setting *c, const char *text, const char *expected)
{
    const struct vocabulary *v = *state;
    struct prompt_format f;
    struct err err = {0};
    assert_ok(prompt_format_open(&f, v->t, c, 100, &err), err);
    assert_written(&f, text, expected);
    prompt_format_close(&f);
}

static void
assert_setting(void **state, const struct chat_setting *c, const char *expected)
{
    assert_message(state, c, "hello", expected);
}

TEST(a_prompt_is_text_unless_it_is_a_chat)
{
    assert_setting(state, &(struct chat_setting){0}, "<s> hello");
    assert_setting(state, &(struct chat_setting){.system = "Be"}, "<s> hello");
}

TEST(a_turn_has_one_bos_from_template_or_session)
{
    assert_setting(state, &(struct chat_setting){.on = true}, "<s> [hello]</s>");
    const struct chat_setting without = {.on = true, .template = slice_of("{{ messages[0].content }}")};
    assert_setting(state, &without, "<s> hello");
    const struct chat_setting later = {.on = true, .template = slice_of("a{{ bos_token }}b")};
    assert_setting(state, &later, "<s> a<s> b");
}

static uint32_t
control_tokens(const struct prompt_format *f, const char *text)
{
    struct prompt p;
    struct err err = {0};
    uint32_t n = 0;
    assert_ok(prompt_read(&p, f, text, strlen(text), NULL, &err), err);
    for (uint32_t i = 0; i < p.n; i++)
        n += tokenizer_kind(f->tokenizer, p.ids[i]) == TOKEN_CONTROL;
    prompt_free(&p);
    return n;
}

TEST(a_message_has_no_control_tokens)
{
    static const char *const texts[] = {"</s>", "<s></s>[<s>", "a</s", "<</s>/s>", "\xef\xb7\x90</s>", " </s> "};
    const struct vocabulary *v = *state;
    const struct chat_variable said = {
        .name = slice_of("messages"),
        .value = slice_of("[{\"role\": \"user\", \"content\": [{\"text\": \"\\u003c/s>\"}]}]")};
    const struct {
        struct chat_setting setting;
        uint32_t own; /* control tokens that the template writes, BOS among them */
    } cases[] = {
        {{.on = true}, 2},
        {{.on = true, .template = slice_of("{{ messages[0].content | trim }}")}, 1},
        {{.on = true, .system = "<s>", .template = slice_of("{{ messages }}{{ eos_token }}")}, 2},
        {{.on = true, .variables = &said, .n_variables = 1, .template = slice_of("{{ messages }}")}, 1},
        {{.on = true, .system = "<s>", .template = slice_of("{{ messages | tojson(ensure_ascii=true) }}")}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prompt_format f;
        struct err err = {0};
        assert_ok(prompt_format_open(&f, v->t, &cases[i].setting, 400, &err), err);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            assert_int_equal(control_tokens(&f, texts[k]), cases[i].own);
        prompt_format_close(&f);
    }
    assert_message(state, &cases[0].setting, "</s>", "<s> [</s>]</s>"); /* the same bytes */
}

TEST(a_message_may_have_control_tokens_where_asked)
{
    const struct vocabulary *v = *state;
    struct prompt_format f;
    struct err err = {0};
    assert_ok(prompt_format_open(&f, v->t, &(struct chat_setting){.on = true, .special = true}, 100, &err), err);
    assert_int_equal(control_tokens(&f, "a</s>b"), 3);
    prompt_format_close(&f);
    assert_ok(prompt_format_open(&f, v->t, &(struct chat_setting){0}, 100, &err), err);
    assert_int_equal(control_tokens(&f, "a</s>b"), 2); /* without a chat: BOS and the token in the text */
    prompt_format_close(&f);
}

TEST(tools_take_the_template_for_tools)
{
    assert_setting(state, &(struct chat_setting){.on = true, .tools = "[\"t\"]"}, "<s> thello");
    assert_setting(state, &(struct chat_setting){.on = true, .tools = "[\"t\"]", .name = "default"}, "<s> [hello]</s>");
    assert_setting(state, &(struct chat_setting){.on = true, .name = "tool_use", .tools = "[1]"}, "<s> 1hello");
}

TEST(options_override_the_models_values)
{
    const struct chat_variable mine = {.name = slice_of("eos_token"), .value = slice_of("!")};
    assert_setting(state, &(struct chat_setting){.on = true, .variables = &mine, .n_variables = 1}, "<s> [hello]!");
}

static void
assert_refused(void **state, const struct chat_setting *c, enum err_kind kind, const char *why)
{
    const struct vocabulary *v = *state;
    struct prompt_format f;
    struct err err = {0};
    assert_false(prompt_format_open(&f, v->t, c, 100, &err));
    assert_int_equal(err.kind, kind);
    assert_string_equal(err.text, why);
    prompt_format_close(&f);
}

TEST(a_template_that_is_not_there_or_cannot_run_is_refused)
{
    assert_refused(state, &(struct chat_setting){.on = true, .name = "rag"}, ERR_USAGE,
                   "the model has no chat template 'rag', but: default, tool_use");
    assert_refused(
        state, &(struct chat_setting){.on = true, .template = slice_of("\n{% include 'x' %}")}, ERR_WORK,
        "the chat template, line 2: the statement 'include' is not supported; without --chat prompts go to the "
        "model as they are");
}

TEST(a_prompt_that_a_template_refuses_leaves_the_others)
{
    const struct vocabulary *v = *state;
    const struct chat_setting picky = {
        .on = true,
        .template = slice_of(
            "{% if messages[0].content == 'no' %}{{ raise_exception('No!') }}{% endif %}{{ messages[0].content }}")};
    struct prompt_format f;
    struct prompt p;
    struct err err = {0};
    assert_ok(prompt_format_open(&f, v->t, &picky, 100, &err), err);
    assert_written(&f, "yes", "<s> yes");
    assert_false(prompt_read(&p, &f, "no", 2, NULL, &err));
    assert_string_equal(err.text, "the chat template, line 1: it says: No!");
    assert_written(&f, "maybe", "<s> maybe");
    prompt_format_close(&f);
}

TEST(a_conversation_that_does_not_fit_is_refused_by_that_reason)
{
    static const char before[] =
        "[{\"role\":\"user\",\"content\":\"hello\"},{\"role\":\"assistant\",\"content\":\"hello\"}]";
    const struct vocabulary *v = *state;
    const struct chat_setting chat = {
        .on = true, .template = slice_of("{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}")};
    struct prompt_format f;
    struct prompt p;
    struct err err = {0};
    assert_ok(prompt_format_open(&f, v->t, &chat, 100, &err), err);
    assert_ok(prompt_read(&p, &f, "hello", 5, before, &err), err);
    assert_string_equal(p.before, before);
    const uint32_t n = p.n;
    prompt_free(&p);
    prompt_format_close(&f);
    assert_ok(prompt_format_open(&f, v->t, &chat, n, &err), err);
    assert_ok(prompt_read(&p, &f, "hello", 5, NULL, &err), err);
    prompt_free(&p);
    assert_false(prompt_read(&p, &f, "hello", 5, before, &err));
    assert_int_equal(strncmp(err.text, "the conversation has ", 21), 0);
    assert_contains(err.text, "; :new begins another one");
    prompt_format_close(&f);
}

FIXTURE(open_vocabulary, close_vocabulary);
