/* What the readers of tokenizer.json share. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_FILES_H
#define ENGINE_TOKENIZER_TOKENIZER_FILES_H

#include <cjson/cJSON.h>

#include "engine/files/gguf.h"
#include "engine/tokenizer/tokenizer_internal.h"

struct tokenizer_json {
    struct tokenizer *t;
    const char *where;          /* what errors call the place */
    const cJSON *root, *config; /* tokenizer.json; tokenizer_config.json or NULL */
    const cJSON *model, *vocab, *added;
    bool *pieces; /* (n) tokens of the model's vocabulary */
    struct err *err;
};

/* A member, NULL if there is none or it is null (or `object` is none). */
const cJSON *json_get(const cJSON *object, const char *key);
/* A string's bytes, "" if it is none. */
struct slice json_text(const cJSON *);
/* "…: the <what> '<name>' is not supported" */
bool json_unsupported(const struct tokenizer_json *, const char *what, const char *name);

/* normalizer and pre_tokenizer, after which it is known whether the model is byte-level. */
bool json_read_steps(struct tokenizer_json *);
/* The chat templates of tokenizer_config.json. */
bool json_read_chat_template(struct tokenizer_json *);

/* What the readers of a vocabulary in GGUF metadata share: gguf_read_*() read what the key names, check it, and leave an error
 * that names it. */

#define KEY(name) "tokenizer.ggml." name

/* BOS, EOS and their like, which go before and after a text unless the file says otherwise. `pieces`: where it names none
 * they have SentencePiece's usual ids. */
struct gguf_ends {
    bool pieces, bos, eos;
};

#endif
