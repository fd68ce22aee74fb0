/* tokenizer.json: a tokenizer that opens encodes any bytes to ids of its own, and decodes them. Input is the JSON and,
 * each after a byte 0xff (which JSON never contains), optionally tokenizer_config.json, a text, added_tokens.json and
 * special_tokens_map.json. */

#include "tests/fuzz/fuzz.h"

static void
use_templates(const struct tokenizer *t)
{
    const char *name;
    for (size_t i = 0; (name = tokenizer_chat_template_name(t, i)) != NULL; i++)
        MUST(tokenizer_chat_template(t, name).len > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char usual[] = "Hello  the w\xc3\xb6rld's 123 <s>x</s>\n\n \xe6\x97\xa5\xff don't ";
    const char *at = (const char *)data, *end = at + size;
    struct slice part[5] = {{0}};
    for (int i = 0; i < 5 && at != NULL; i++) {
        const char *next = at == end ? NULL : memchr(at, 0xff, (size_t)(end - at));
        const size_t n = (size_t)((next == NULL ? end : next) - at);
        if (n > 0 || i == 0)
            part[i] = (struct slice){at, n};
        at = next == NULL ? NULL : next + 1;
    }
    const struct tokenizer_files files = {
        .model = part[0], .config = part[1], .added = part[3], .special_map = part[4]};
    struct tokenizer *t;
    struct err err = {0};
    if (!tokenizer_from_json(&t, &files, "fuzz", &err)) {
        MUST(t == NULL && err.kind != ERR_NONE && err.text[0] != '\0');
        return 0;
    }
    MUST(tokenizer_size(t) > 0);
    use_tokenizer(t, usual, sizeof usual - 1);
    if (part[2].data != NULL)
        use_tokenizer(t, part[2].data, part[2].len);
    use_templates(t);
    tokenizer_close(t);
    return 0;
}

MUTATOR(mutate_json_part(data, size, max_size, seed, 0));
