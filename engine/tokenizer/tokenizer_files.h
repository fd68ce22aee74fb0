/* Internal to the readers of tokenizer.json and of GGUF vocabularies. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_FILES_H
#define ENGINE_TOKENIZER_TOKENIZER_FILES_H

#include <cjson/cJSON.h>

#include "engine/files/gguf.h"
#include "engine/tokenizer/tokenizer_internal.h"

struct tokenizer_json {
    struct tokenizer *t;
    const char *where;          /* directory or file, for error messages */
    const cJSON *root, *config; /* tokenizer.json; tokenizer_config.json or NULL */
    const cJSON *model, *vocab, *added;
    bool *pieces; /* (n) whether the token is in the model's vocabulary */
    struct err *err;
};

/* Returns a member of an object; NULL if there is none, if it is null, or if `object` is not an object. */
const cJSON *json_get(const cJSON *object, const char *key);
/* Returns the bytes of a string; "" if the value is not a string. */
struct slice json_text(const cJSON *);
/* Fails with "…: the <what> '<name>' is not supported". */
bool json_unsupported(const struct tokenizer_json *, const char *what, const char *name);

/* Reads normalizer and pre_tokenizer and sets whether the tokenizer is byte-level. */
bool json_read_steps(struct tokenizer_json *);
/* Reads the chat templates of tokenizer_config.json. */
bool json_read_chat_template(struct tokenizer_json *);

/* The readers of a vocabulary in GGUF metadata: each gguf_read_*() reads and checks the value of a key; on failure *err
 * contains the key. */

#define KEY(name) "tokenizer.ggml." name

/* Defaults for BOS and EOS: whether they are added before and after a text if the file does not specify it. `pieces`: if
 * the file does not specify their ids, they are SentencePiece's usual ids. */
struct gguf_ends {
    bool pieces, bos, eos;
};

#endif
