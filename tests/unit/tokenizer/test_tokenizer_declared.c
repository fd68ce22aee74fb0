/* Special tokens that files next to tokenizer.json declare, decoders and other settings, against goldens from
 * transformers (make_declared_golden.py). */
#include <cjson/cJSON.h>

#include "base/file_read.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tokenizer_rig.h"

#define GOLDEN "tests/golden/declared.json"

static cJSON *golden;

static int
open_golden(void **state)
{
    (void)state;
    char *text;
    size_t n;
    struct err err;
    assert_ok(file_text(GOLDEN, 4 << 20, &text, &n, &err), err);
    golden = cJSON_ParseWithLength(text, n);
    free(text);
    return golden == NULL;
}

static int
close_golden(void **state)
{
    (void)state;
    cJSON_Delete(golden);
    return 0;
}

FIXTURE(open_golden, close_golden);

static const cJSON *
member(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(value);
    return value;
}

/* Returns a slice of printed JSON, which the caller frees; of NULL, an empty one. */
static struct slice
printed(const cJSON *value)
{
    char *text = value == NULL ? NULL : cJSON_PrintUnformatted(value);
    return (struct slice){text, text == NULL ? 0 : strlen(text)};
}

static struct tokenizer *
open_case(const cJSON *c)
{
    const cJSON *files = member(c, "files"), *one;
    cJSON *json = cJSON_Duplicate(member(member(golden, "tokenizers"), member(c, "tokenizer")->valuestring), true);
    cJSON_ArrayForEach(one, member(c, "change"))
    {
        assert_true(cJSON_ReplaceItemInObjectCaseSensitive(json, one->string, cJSON_Duplicate(one, true)));
    }
    struct slice text[] = {printed(json), printed(member(c, "config")),
                           printed(cJSON_GetObjectItemCaseSensitive(files, "added_tokens")),
                           printed(cJSON_GetObjectItemCaseSensitive(files, "special_tokens_map"))};
    const struct tokenizer_files all = {text[0], text[1], text[2], text[3]};
    struct tokenizer *t;
    struct err err = {0};
    assert_ok(tokenizer_from_json(&t, &all, member(c, "name")->valuestring, &err), err);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        cJSON_free((void *)(uintptr_t)text[i].data);
    cJSON_Delete(json);
    return t;
}

static bool
same_ids(const token_t *ids, size_t n, const cJSON *expected)
{
    if (n != (size_t)cJSON_GetArraySize(expected))
        return false;
    size_t i = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, expected)
    {
        if (one->valueint != ids[i++])
            return false;
    }
    return true;
}

static void
check_ids(const struct tokenizer *t, const cJSON *c, const char *text, bool ends, const cJSON *expected)
{
    size_t n;
    token_t *ids =
        encode(t, text, strlen(text), (struct tokenize_options){.special = true, .bos = ends, .eos = ends}, &n);
    if (!same_ids(ids, n, expected)) {
        printf("%s:", text);
        for (size_t i = 0; i < n; i++)
            printf(" %d", ids[i]);
        char *right = cJSON_PrintUnformatted(expected);
        printf("\n  should be %s\n", right);
        cJSON_free(right);
        fail_msg("%s", member(c, "name")->valuestring);
    }
    free(ids);
}

static void
check_text(const struct tokenizer *t, const cJSON *c, const cJSON *ids, const char *expected)
{
    token_t list[200];
    size_t n = 0, len;
    const cJSON *one;
    char *text;
    struct err err;
    cJSON_ArrayForEach(one, ids)
    {
        assert_less(n, sizeof list / sizeof *list);
        list[n++] = one->valueint;
    }
    assert_ok(tokenizer_decode(t, list, n, &text, &len, &err), err);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: '%s' should be '%s'", member(c, "name")->valuestring, text, expected);
    free(text);
}

static void
check_case(const cJSON *c)
{
    const cJSON *decoded = cJSON_GetObjectItemCaseSensitive(c, "decoded"),
                *size = cJSON_GetObjectItemCaseSensitive(c, "size");
    struct tokenizer *t = open_case(c);
    for (int i = 0; i < cJSON_GetArraySize(member(c, "texts")); i++) {
        const char *text = cJSON_GetArrayItem(member(c, "texts"), i)->valuestring;
        const cJSON *ids = cJSON_GetArrayItem(member(c, "ids"), i);
        check_ids(t, c, text, false, ids);
        check_ids(t, c, text, true, cJSON_GetArrayItem(member(c, "whole"), i));
        if (decoded != NULL)
            check_text(t, c, ids, cJSON_GetArrayItem(decoded, i)->valuestring);
    }
    const token_t bos = member(c, "bos")->valueint;
    if ((size != NULL && tokenizer_size(t) != (uint32_t)size->valueint) ||
        tokenizer_eos(t) != member(c, "eos")->valueint ||
        (bos >= 0 && tokenizer_bos(t) != bos)) /* BOS without a name is the first token of the post-processor */
        fail_msg("%s: size %u, EOS %d, BOS %d", member(c, "name")->valuestring, tokenizer_size(t), tokenizer_eos(t),
                 tokenizer_bos(t));
    tokenizer_close(t);
}

TEST(ids_and_texts_are_those_of_transformers)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, member(golden, "cases"))
    {
        check_case(c);
    }
}
