/* tokenizer.model: a tokenizer that opens encodes any bytes to ids of its own, and decodes them. Input is the JSON of
 * the files beside it (one text for tokenizer_config.json and added_tokens.json) up to a byte 0xff, then the model. */

#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char usual[] = "Hello  the w\xc3\xb6rld's 123 <s>x</s>\n\n \xe6\x97\xa5\xff A\xcc\x8a \xe3\x80\x80"
                                "don't\0 ";
    const char *config = (const char *)data, *model = size == 0 ? NULL : memchr(config, 0xff, size);
    const struct slice beside = {model == NULL || model == config ? NULL : config,
                                 model == NULL ? 0 : (size_t)(model - config)};
    const struct tokenizer_files files = {.model = model == NULL ? (struct slice){config, size}
                                                                 : (struct slice){model + 1, size - beside.len - 1},
                                          .config = beside,
                                          .added = beside};
    struct tokenizer *t;
    struct err err = {0};
    if (!tokenizer_from_sentencepiece(&t, &files, "fuzz", &err)) {
        MUST(t == NULL && err.kind == ERR_WORK && err.text[0] != '\0');
        return 0;
    }
    MUST(tokenizer_size(t) > 0);
    MUST(use_tokenizer(t, usual, sizeof usual - 1));
    MUST(use_tokenizer(t, (const char *)data, size < 200 ? size : 200));
    tokenizer_close(t);
    return 0;
}
