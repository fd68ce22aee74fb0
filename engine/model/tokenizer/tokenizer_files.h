/* Internal to the readers of tokenizer.json and of GGUF vocabularies. */
#pragma once

#include <cjson/cJSON.h>

#include "engine/model/files/gguf.h"
#include "engine/model/tokenizer/tokenizer_internal.h"

struct tokenizer_json {
    struct tokenizer *t;
    const char *where; /* directory or file, for error messages */
    cJSON *root;       /* tokenizer.json */
    cJSON *config; /* tokenizer_config.json, an object; with a tokenizer.json also what other files beside it declare */
    const cJSON *model, *vocab, *added;
    bool decodes; /* the decoder's steps are known, so that `plain` is what they make of a token's text */
    struct normal_step decoder[MOST_NORMAL_STEPS];
    unsigned n_decoder;
    bool *pieces; /* (n) whether the token is in the model's vocabulary */
    struct err *err;
};

/* Returns a member of an object; NULL if there is none, if it is null, or if `object` is not an object. */
const cJSON *json_get(const cJSON *object, const char *key);
/* Returns the bytes of a string; "" if the value is not a string. */
struct slice json_text(const cJSON *);
/* Fails with "…: the <what> '<name>' is not supported". */
bool json_unsupported(const struct tokenizer_json *, const char *what, const char *name);

/* Fails because memory ran out. */
bool json_no_memory(const struct tokenizer_json *);
/* Parses a file, which must be a JSON object; without a file (text.data NULL) *out is an empty object. The caller frees
 * *out, also after a failure. */
bool json_parse(const struct tokenizer_json *, struct slice text, const char *file, cJSON **out);
/* Returns the text and the attributes of an added token. */
struct special json_special(const cJSON *token);

/* Returns whether the tokenizer's class in transformers is this one. */
bool json_is_class(const struct tokenizer_json *, const char *name);
/* Adds the tokens that the files beside tokenizer.json declare to its added_tokens. `added` (added_tokens.json) and
 * `map` (special_tokens_map.json) may be NULL; entries of `map` are moved to the config. */
bool json_declare_tokens(struct tokenizer_json *, const cJSON *added, cJSON *map);
/* Reads normalizer, pre_tokenizer and decoder, and sets whether the tokenizer is byte-level. */
bool json_read_steps(struct tokenizer_json *);
/* Reads the chat templates of tokenizer_config.json. */
bool json_read_chat_template(struct tokenizer_json *);

/* The readers of a vocabulary in GGUF metadata: each gguf_read_*() reads and checks the value of a key; on failure *err
 * contains the key. */

#define KEY(name) "tokenizer.ggml." name

/* Defaults for BOS and EOS: whether they are added before and after a text if the file does not specify it. `pieces`:
 * if the file does not specify their ids, they are SentencePiece's usual ids. */
struct gguf_ends {
    bool pieces, bos, eos;
};
