/* tokenizer.json: whatever it says, a tokenizer that opens gives ids of its own for any bytes, and text back. Input is the
 * JSON, and behind bytes 0xff (which no JSON has) tokenizer_config.json and a text, where they are. */

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
    const char *json = (const char *)data, *end = json + size;
    const char *config = size == 0 ? NULL : memchr(json, 0xff, size);
    const char *text =
        config == NULL || config + 1 == end ? NULL : memchr(config + 1, 0xff, (size_t)(end - config - 1));
    const size_t n_json = config == NULL ? size : (size_t)(config - json);
    const size_t n_config = config == NULL ? 0 : (size_t)((text == NULL ? end : text) - config - 1);
    struct tokenizer *t;
    struct err err = {0};
    if (!tokenizer_from_json(&t, json, n_json, n_config > 0 ? config + 1 : NULL, n_config, "fuzz", &err)) {
        MUST(t == NULL && err.kind != ERR_NONE && err.text[0] != '\0');
        return 0;
    }
    MUST(tokenizer_size(t) > 0);
    use_tokenizer(t, usual, sizeof usual - 1);
    if (text != NULL)
        use_tokenizer(t, text + 1, (size_t)(end - text - 1));
    use_templates(t);
    tokenizer_close(t);
    return 0;
}

MUTATOR(mutate_json_part(data, size, max_size, seed, 0));
