/* The table of architectures: its words are valid, docs/models.md lists its lines, and each line has a golden model.
 * Run from the repository's root. */
#include <glob.h>

#include "base/file_read.h"
#include "engine/model/arch/arch_hf.h"
#include "tests/rigs/test.h"

static char *
read_file(const char *path)
{
    struct err err = {.kind = ERR_NONE};
    char *text;
    size_t n;
    assert_ok(file_text(path, 1 << 20, &text, &n, &err), err);
    return text;
}

/* Returns the next word, or NULL, and moves *at past it. */
static const char *
next_word(const char **at, char out[400])
{
    *at += strspn(*at, " ");
    const size_t n = strcspn(*at, " ");
    assert_in_range(n, 0, 399);
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return n > 0 ? out : NULL;
}

TEST(no_two_lines_have_the_same_model_type)
{
    for (size_t i = 0; i < n_architectures; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(architectures[i].hf, architectures[k].hf);
}

TEST(words_of_config_json_are_names_with_defaults_that_can_be_parsed)
{
    for (size_t i = 0; i < n_architectures; i++) {
        const struct arch *a = &architectures[i];
        char word[400];
        for (const char *at = a->config; next_word(&at, word) != NULL;) {
            const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzLC_0123456789");
            char *value = word + n;
            if (*value == ':') {
                char *end;
                (void)strtod(value + 1, &end);
                if (value[1] == '\0' || *end != '\0')
                    fail_msg("%s: '%s' has no number", a->hf, word);
            } else if (*value == '=') {
                for (char *c = value; *c != '\0'; c++)
                    *c = *c == '\'' ? '"' : *c;
                cJSON *v = cJSON_ParseWithOpts(value + 1, NULL, true);
                if (v == NULL)
                    fail_msg("%s: '%s' has no value", a->hf, word);
                cJSON_Delete(v);
            } else if (n == 0 || *value != '\0') {
                fail_msg("%s: '%s' is not a word", a->hf, word);
            }
        }
    }
}

static bool
is_tensor(const char *name)
{
    static const char *const others[] = {"token_embd",  "position_embd", "token_embd_norm",
                                         "output_norm", "output",        "blk"};
    bool is = false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        is = is || strcmp(others[i], name) == 0;
    for (size_t i = 0; i < LAYER_TENSORS; i++)
        is = is || strcmp(layer_tensors[i].names[LAYER_NAMED_GGUF], name) == 0;
    return is;
}

TEST(names_of_tensors_are_given_for_tensors_that_exist)
{
    for (size_t i = 0; i < 2 * n_architectures; i++) {
        const struct arch *a = &architectures[i / 2];
        const char *at = i % 2 == 0 ? a->hf_names : a->gguf_names;
        char word[400];
        while (at != NULL && next_word(&at, word) != NULL) {
            char *colon = strchr(word, ':');
            if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) >= LAYER_NAME_SIZE - 8)
                fail_msg("%s: '%s' has no name, or a long one", a->hf, word);
            *colon = '\0';
            if (!is_tensor(word))
                fail_msg("%s: there is no tensor '%s'", a->hf, word);
        }
    }
}

TEST(each_line_has_a_golden_model)
{
    glob_t found = {0};
    static bool has[200];
    assert_in_range(n_architectures, 1, 200);
    assert_int_equal(glob("tests/golden/*/*/config.json", 0, NULL, &found), 0);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        char *text = read_file(found.gl_pathv[f]);
        for (size_t i = 0; i < n_architectures; i++) {
            char entry[80];
            snprintf(entry, sizeof entry, "\"model_type\": \"%s\"", architectures[i].hf);
            has[i] = has[i] || strstr(text, entry) != NULL;
        }
        free(text);
    }
    globfree(&found);
    for (size_t i = 0; i < n_architectures; i++)
        if (!has[i])
            fail_msg("no golden model in tests/golden has the model_type '%s'", architectures[i].hf);
}

/* ---- docs/models.md ---- */

/* Finds the column of a row of a Markdown table, from 1. */
static struct slice
column(struct slice row, size_t n)
{
    const char *at = row.data, *end = row.data + row.len;
    for (; n > 0 && at < end; n--)
        at = (const char *)memchr(at, '|', (size_t)(end - at)) + 1;
    return (struct slice){at, (size_t)((const char *)memchr(at, '|', (size_t)(end - at)) - at)};
}

static bool documented[2][200]; /* a line's name in config.json, in GGUF files */

static void
find_line(const char *name, size_t format)
{
    bool known = false;
    for (size_t i = 0; i < n_architectures; i++) {
        const char *own = format == 0 ? architectures[i].hf : architectures[i].gguf;
        if (own == NULL || strcmp(own, name) != 0)
            continue;
        documented[format][i] = known = true;
    }
    if (!known)
        fail_msg("docs/models.md lists '%s', which is not in the table", name);
}

static void
find_lines(struct slice cell, size_t format)
{
    for (const char *at = cell.data, *end = cell.data + cell.len, *close;
         (at = memchr(at, '`', (size_t)(end - at))) != NULL; at = close + 1) {
        char name[64];
        close = memchr(at + 1, '`', (size_t)(end - at - 1));
        assert_non_null(close);
        snprintf(name, sizeof name, "%.*s", (int)(close - at - 1), at + 1);
        find_line(name, format);
    }
}

TEST(docs_models_md_lists_the_names_of_all_lines_and_no_others)
{
    char *text = read_file("docs/models.md");
    const char *at = strstr(text, "| family | folder (`model_type`)"), *end;
    assert_non_null(at);
    at = strchr(strchr(at, '\n') + 1, '\n') + 1;
    for (; *at == '|'; at = end + 1) {
        end = strchr(at, '\n');
        const struct slice row = {at, (size_t)(end - at)};
        for (size_t format = 0; format < 2; format++)
            find_lines(column(row, 2 + format), format);
    }
    for (size_t i = 0; i < n_architectures; i++)
        if (!documented[0][i] || (architectures[i].gguf != NULL && !documented[1][i]))
            fail_msg("docs/models.md does not list '%s' with its GGUF name", architectures[i].hf);
    free(text);
}

TEST(documents_tell_how_many_lines_the_table_has)
{
    static const struct {
        const char *path, *text;
    } places[] = {{"docs/models.md", "specscope runs %zu of them"}, {"README.md", "It runs %zu architectures"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, places[i].text, n_architectures);
        char *text = read_file(places[i].path);
        if (strstr(text, wanted) == NULL)
            fail_msg("%s lacks: %s", places[i].path, wanted);
        free(text);
    }
}
