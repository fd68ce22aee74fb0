/* What the readers of tokenizer.json share. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_JSON_H
#define ENGINE_TOKENIZER_TOKENIZER_JSON_H

#include <cjson/cJSON.h>

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
/* The token written so, of the added ones first. */
bool json_find_token(const struct tokenizer_json *, struct slice, token_t *);

/* normalizer and pre_tokenizer, after which it is known whether the model is byte-level. */
bool json_read_steps(struct tokenizer_json *);
/* The pieces of a Unigram model, and which of them is unknown. */
bool json_read_unigram(struct tokenizer_json *);
/* What goes before and after a text (post_processor, tokenizer_config.json), BOS, EOS, the chat template. */
bool json_read_ends(struct tokenizer_json *);
/* The chat templates of tokenizer_config.json. */
bool json_read_chat_template(struct tokenizer_json *);

#endif
