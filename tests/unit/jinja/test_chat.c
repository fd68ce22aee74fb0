/* Chat templates: the variables that a template gets, the place and text of its errors, and its limits. */
/* cmocka.h needs these headers before it */
#include "engine/jinja/chat.h"
#include "tests/rigs/test.h"

static bool
render(const char *template, const struct chat_dialogue *dialogue, char **text, struct err *err)
{
    struct chat *chat;
    size_t len = 0;
    *text = NULL;
    *err = (struct err){0};
    const bool ok = chat_open(&chat, slice_of(template), err) && chat_render(chat, dialogue, text, &len, err);
    if (ok)
        assert_int_equal(strlen(*text), len);
    chat_close(chat);
    return ok;
}

static void
assert_renders(const char *template, const struct chat_dialogue *dialogue, const char *expected)
{
    char *text;
    struct err err;
    if (!render(template, dialogue, &text, &err))
        fail_msg("%s: %s", template, err.text);
    assert_string_equal(text, expected);
    free(text);
}

static void
assert_fails(const char *template, const struct chat_dialogue *dialogue, enum err_kind kind, const char *why)
{
    char *text;
    struct err err;
    assert_false(render(template, dialogue, &text, &err));
    assert_null(text);
    assert_int_equal(err.kind, kind);
    assert_string_equal(err.text, why);
}

#define USER(words) .user = {words, sizeof words - 1}
static const struct chat_dialogue plain = {USER("Hi")};

TEST(a_turn_is_a_message_after_the_systems)
{
    static const char all[] = "{{ messages }}{{ add_generation_prompt }}{{ tools }}{{ documents }}";
    assert_renders(all, &plain, "[{'role': 'user', 'content': 'Hi'}]TrueNoneNone");
    assert_renders(all, &(struct chat_dialogue){.system = "Be kind.", USER("Hi")},
                   "[{'role': 'system', 'content': 'Be kind.'}, {'role': 'user', 'content': 'Hi'}]TrueNoneNone");
    assert_renders("{{ messages[0].content | length }}", &(struct chat_dialogue){USER("")}, "0");
    assert_renders("{{ tools[0].name }}{{ tools | tojson }}",
                   &(struct chat_dialogue){USER("Hi"), .tools = "[{\"name\": \"f\", \"x\": 1.0, \"y\": 10}]"},
                   "f[{\"name\": \"f\", \"x\": 1.0, \"y\": 10}]");
}

TEST(variables_are_json_or_else_text)
{
    const struct chat_variable variables[] = {
        {.name = slice_of("bos_token"), .value = slice_of("1"), .text = true},
        {.name = slice_of("thinking"), .value = slice_of("false")},
        {.name = slice_of("n"), .value = slice_of("12")},
        {.name = slice_of("effort"), .value = slice_of("low")},
        {.name = slice_of("l"), .value = slice_of("[1, {\"a\": null}]")},
        {.name = slice_of("broken"), .value = slice_of("[1, ")},
        {.name = slice_of("thinking"), .value = slice_of("true")},
        {.name = slice_of("tools"), .value = slice_of("[1]")},
    };
    assert_renders("{{ [bos_token, thinking, n, effort, l, broken, tools] }}",
                   &(struct chat_dialogue){USER("Hi"), .variables = variables,
                                           .n_variables = sizeof variables / sizeof *variables},
                   "['1', True, 12, 'low', [1, {'a': None}], '[1, ', [1]]");
}

TEST(the_users_turn_is_the_next_after_what_was_said_before)
{
    static const char turns[] = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
    struct chat_variable said = {.name = slice_of("messages"),
                                 .value = slice_of("[{\"role\": \"user\", \"content\": \"Knock\"}, "
                                                   "{\"role\": \"assistant\", \"content\": \"Who?\"}]")};
    struct chat_dialogue dialogue = {.system = "S", USER("Me"), .variables = &said, .n_variables = 1};
    assert_renders(turns, &dialogue, "system:S;user:Knock;assistant:Who?;user:Me;");
    dialogue.system = NULL;
    assert_renders(turns, &dialogue, "user:Knock;assistant:Who?;user:Me;");
    said.value = slice_of("{}");
    assert_fails(turns, &dialogue, ERR_USAGE, "messages: a JSON list is needed");
}

TEST(earlier_messages_precede_the_users_and_replace_the_system_message)
{
    static const char turns[] = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
    const struct chat_variable said = {.name = slice_of("messages"),
                                       .value = slice_of("[{\"role\": \"user\", \"content\": \"Knock\"}]")};
    struct chat_dialogue dialogue = {
        .system = "S", USER("Me"), .before = "[{\"role\": \"assistant\", \"content\": \"Who?\"}]"};
    assert_renders(turns, &dialogue, "system:S;assistant:Who?;user:Me;");
    dialogue.variables = &said;
    dialogue.n_variables = 1;
    assert_renders(turns, &dialogue, "system:S;user:Knock;assistant:Who?;user:Me;");
    dialogue.before = "[{\"role\": \"system\", \"content\": \"T\"}, {\"role\": \"assistant\", \"content\": \"Who?\"}]";
    assert_renders(turns, &dialogue, "system:T;user:Knock;assistant:Who?;user:Me;");
    dialogue.before = "{}";
    assert_fails(turns, &dialogue, ERR_USAGE, "the messages before a prompt: a JSON list is needed");
}

TEST(the_day_is_the_callers_and_english)
{
    const struct chat_dialogue dated = {
        USER("Hi"), .now = {.tm_year = 124, .tm_mon = 1, .tm_mday = 29, .tm_hour = 7, .tm_wday = 4, .tm_yday = 59}};
    assert_renders("{{ strftime_now('%d %b %Y %A %H:%M') }}", &dated, "29 Feb 2024 Thursday 07:00");
    assert_renders("{{ strftime_now('%H:%M:%S.%f|%z|%:z|%Z|%%f%%%Z') }}", &dated, "07:00:00.000000||||%f%");
    assert_renders("[{{ strftime_now('%Z') }}{{ strftime_now('') }}]", &dated, "[]");
}

TEST(failures_name_the_line_and_the_reason)
{
    static const struct {
        const char *template, *why;
    } failing[] = {
        {"\n\n{{ x | nope }}", "line 3: the filter 'nope' is not supported"},
        {"{{ x is\n nope }}", "line 1: the test 'nope' is not supported"},
        {"a\n{{ messages.foo.bar }}", "line 2: the list has no 'foo'"},
        {"{{ foo.bar }}", "line 1: 'foo' is undefined"},
        {"{{ 'a' + 1 }}", "line 1: a str + a int makes no sense"},
        {"{% if 1 %}\n", "line 1: {% endif %} is missing"},
        {"{{ 1 + }}", "line 1: an expression is expected, not '}}'"},
        {"{% set 1 = 2 %}", "line 1: only a name can be assigned to, not '='"},
        {"\n{{ 'a }}", "line 2: a string, ', has no end"},
        {"{{ a ? b }}", "line 1: '?' is not understood"},
        {"{{ (1] }}", "line 1: ')' is expected, not ']'"},
        {"{# a", "line 1: a comment, {#, has no end"},
        {"{{ messages.append(1) }}", "line 1: the list has no 'append'"},
        {"\n{{ raise_exception('No\n\x1b[31m!') }}", "line 2: it says: No\\x0a\\x1b[31m!"},
        {"{{ '\xff' }}", "line 1: it is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        char why[200];
        snprintf(why, sizeof why, "the chat template, %s", failing[i].why);
        assert_fails(failing[i].template, &plain, ERR_WORK, why);
    }
}

/* jinja2 has all of these; no template of a model uses them. */
static const struct {
    const char *template, *what;
} refused[] = {
    {"{{ messages | groupby('role') }}", "the filter 'groupby'"},
    {"{{ messages | batch(2) }}", "the filter 'batch'"},
    {"{{ 'a' | center(9) }}", "the filter 'center'"},
    {"{{ 2.5 | round }}", "the filter 'round'"},
    {"{{ 1 | abs }}", "the filter 'abs'"},
    {"{{ 'a' | e }}", "the filter 'e'"},
    {"{{ '1' | float }}", "the filter 'float'"},
    {"{{ [1] | sum }}", "the filter 'sum'"},
    {"{{ 'a' | truncate(1) }}", "the filter 'truncate'"},
    {"{{ '%s' | format(1) }}", "the filter 'format'"},
    {"{{ messages | attr('count') }}", "the filter 'attr'"},
    {"{{ 'a' | forceescape }}", "the filter 'forceescape'"},
    {"{{ ['a'] | map('center') | list }}", "the filter 'center'"},
    {"{{ 9 is divisibleby 3 }}", "the test 'divisibleby'"},
    {"{{ 'a' is upper }}", "the test 'upper'"},
    {"{{ none is sameas none }}", "the test 'sameas'"},
    {"{{ ['a'] | select('lower') | list }}", "the test 'lower'"},
    {"{{ [0] * 3 }}", "repeating a list by '*'"},
    {"{{ '{:>5}'.format(1) }}", "a format other than {}"},
    {"{{ '%d' % 5 }}", "formatting a text by '%'"},
    {"{{ 2 ** 3 }}", "the operator '**'"},
    {"{{ 0x1F }}", "a number that begins with '0x'"},
    {"{{ 1_000 }}", "a number that begins with '1_'"},
    {"{{ '\\U0001F600' }}", "a string's \\U…"},
    {"{{ 'Straße' | upper }}", "'ß' in upper case"},
    {"{{ 'ΑΣ'.lower() }}", "'Σ' in lower case"},
    {"{% for x in messages recursive %}{% endfor %}", "a recursive loop"},
    {"{% for x in messages %}{{ loop(messages) }}{% endfor %}", "calling a loop"},
    {"{% macro m() %}{{ caller() }}{% endmacro %}", "a macro's 'caller'"},
    {"{% macro m() %}{{ varargs }}{% endmacro %}", "a macro's 'varargs'"},
    {"{{ dict(*messages) }}", "an argument with '*'"},
    {"{% call m() %}{% endcall %}", "the statement 'call'"},
    {"{% with a = 1 %}{% endwith %}", "the statement 'with'"},
    {"{% print 1 %}", "the statement 'print'"},
    {"{% raw %}{{ x }}{% endraw %}", "the statement 'raw'"},
    {"{% do x %}", "the statement 'do'"},
};

TEST(unsupported_features_are_refused_by_name)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char why[200];
        snprintf(why, sizeof why, "the chat template, line 1: %s is not supported", refused[i].what);
        assert_fails(refused[i].template, &plain, ERR_WORK, why);
    }
    assert_renders("{% if false %}{{ x | groupby('a') }}{% endif %}ok", &plain, "ok");
}

TEST(tools_and_context_are_json)
{
    assert_fails("", &(struct chat_dialogue){USER("Hi"), .tools = "[1,, 2]"}, ERR_USAGE, "tools: line 1 is not JSON");
    assert_fails("", &(struct chat_dialogue){USER("Hi"), .tools = "{}"}, ERR_USAGE, "tools: a JSON list is needed");
    static const char *const broken[] = {
        "",
        "{",
        "{\"a\"}",
        "{a: 1}",
        "{} {}",
        "{\"a\": \"\\ud800\"}",
        "{\"a\": nul}",
        "{\"a\": 99999999999999999999}",
        "{\"a\": 0.1234567890123456789012345678901234567890123456789012345678901234567, \"b\": 1}",
        "[]",
        "{\"a\": \"\xff\"}",
        "{\"a\": -}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char *text;
        struct err err;
        assert_false(render("", &(struct chat_dialogue){.context = slice_of(broken[i])}, &text, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_memory_equal(err.text, "the context: ", 13);
    }
    assert_renders("{{ a }}",
                   &(struct chat_dialogue){.context = slice_of(" {\"a\" : [ 1e2, -0.5, 9007199254740993,"
                                                               " \"\\u00e9\\ud83d\\ude00\\/\", {} ] } ")},
                   "[100.0, -0.5, 9007199254740993, 'é😀/', {}]");
}

TEST(a_template_is_stopped_at_its_bounds)
{
    static const struct chat_bounds small = {.steps = 10000, .memory = 1u << 20, .output = 2000, .depth = 60};
    const struct chat_dialogue bounded = {USER("Hi"), .bounds = &small};
    static const struct {
        const char *template, *word;
    } greedy[] = {
        {"{% for a in range(9999) %}{% for b in range(3) %}{% endfor %}{% endfor %}", ""},
        {"{{ 'aaaaaaaaaa' * 500 }}", "writes more than"},
        {"{% for a in range(99) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}", "writes more than"},
        {"{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "nested too deeply"},
        {"{% set ns = namespace(l=[0]) %}{% for i in range(40) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", ""},
        {"{{ range(99999) | list | length }}", ""},
    };
    for (size_t i = 0; i < sizeof greedy / sizeof *greedy; i++) {
        char *text;
        struct err err;
        assert_false(render(greedy[i].template, &bounded, &text, &err));
        assert_contains(err.text, greedy[i].word);
    }
    char *text, deep[1200] = "{{ ";
    struct err err;
    memset(deep + 3, '(', 150);
    memset(deep + 153, '1', 1);
    memset(deep + 154, ')', 150);
    strcpy(deep + 304, "}}");
    assert_false(render(deep, &plain, &text, &err));
    assert_contains(err.text, "nested too deeply");
    memset(deep + 3, '[', 1000);
    assert_false(render(deep, &plain, &text, &err));
    assert_contains(err.text, "has no end");
}

/* Each expression reads 100,000 bytes, forty times. */
TEST(work_is_charged_by_the_bytes_that_it_reads)
{
    static const struct chat_bounds small = {.steps = 20000, .memory = 64u << 20, .output = 1u << 20, .depth = 100};
    static const char *const parts[] = {
        "x == y",
        "x != y",
        "x < y",
        "x in [y]",
        "'q' in x",
        "x | length",
        "x[49999]",
        "x[-1]",
        "x[-3:]",
        "x.startswith('q')",
        "x.endswith('q')",
        "x.endswith((y, y))",
        "x.strip('q')",
        "x.split('q') | length",
        "x | lower | length",
        "x | int",
        "x.format() | length",
        "x | title | length",
        "x | tojson | length",
        "[x] | string | length",
        "[x, y] | sort | length",
        "[x, y] | unique | list | length",
        "[{}] | map(attribute=x) | list",
        "d[y]",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char template[400], *text;
        struct err err;
        snprintf(template, sizeof template,
                 "{%% set x = '\xc3\xa9' * 50000 %%}{%% set y = x[1:] + '\xc3\xa9' %%}{%% set d = {x: 1} %%}"
                 "{%% for i in range(40) %%}{%% set z = %s %%}{%% endfor %%}",
                 parts[i]);
        if (render(template, &(struct chat_dialogue){USER("Hi"), .bounds = &small}, &text, &err))
            fail_msg("%s costs nothing", parts[i]);
        if (strstr(err.text, "too many steps") == NULL)
            fail_msg("%s: %s", parts[i], err.text);
    }
}

TEST(names_and_parameters_are_charged_by_their_number)
{
    static const struct chat_bounds small = {.steps = 100000, .memory = 64u << 20, .output = 1u << 20, .depth = 100};
    enum { PARAMETERS = 3000 };
    char *template = malloc(PARAMETERS * 8 + 100), *text, *at = template;
    struct err err;
    assert_non_null(template);
    at += sprintf(template, "{%% macro m(");
    for (int i = 0; i < PARAMETERS; i++)
        at += sprintf(at, "%sp%d", i > 0 ? "," : "", i);
    sprintf(at, ") %%}{%% endmacro %%}{{ m() }}");
    assert_false(render(template, &(struct chat_dialogue){USER("Hi"), .bounds = &small}, &text, &err));
    assert_contains(err.text, "too many steps");
    free(template);
}

TEST(values_in_values_end)
{
    char *text;
    struct err err;
    char chain[5000] = "{{ 1";
    for (size_t i = 4; i < 4004; i += 2)
        memcpy(chain + i, "+1", 2);
    strcpy(chain + 4004, "}}");
    assert_false(render(chain, &plain, &text, &err));
    assert_contains(err.text, "nested too deeply");
}

static int looks;

static bool
third_look(void)
{
    return ++looks == 3;
}

TEST(a_rendering_can_be_cancelled)
{
    char *text;
    struct err err;
    const struct chat_dialogue dialogue = {USER("Hi"), .cancelled = third_look};
    looks = 0;
    assert_false(render("{% for i in range(99999) %}{% endfor %}", &dialogue, &text, &err));
    assert_string_equal(err.text, "the chat template, line 1: it was interrupted");
    assert_int_equal(looks, 3);
}

TEST(a_template_renders_again_and_the_same)
{
    struct chat *chat;
    struct err err;
    assert_true(chat_open(&chat,
                          slice_of("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                                   "{% endfor %}{{ ns.n }}{{ messages[0].content }}"),
                          &err));
    for (int i = 0; i < 3; i++) {
        char *text;
        size_t len;
        const struct chat_dialogue dialogue = {USER("Hi"), .system = i == 1 ? "Be" : NULL};
        assert_ok(chat_render(chat, &dialogue, &text, &len, &err), err);
        assert_string_equal(text, i == 1 ? "2Be" : "1Hi");
        free(text);
    }
    chat_close(chat);
    chat_close(NULL);
}
