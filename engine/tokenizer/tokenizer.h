/* Text to token ids and back: SentencePiece BPE, Unigram and byte-level BPE, from GGUF metadata, Hugging Face's tokenizer.json
 * or SentencePiece's tokenizer.model. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_H
#define ENGINE_TOKENIZER_TOKENIZER_H

#include "engine/base/slice.h"
#include "kernels/backend.h"

struct gguf;

struct tokenizer;

enum token_kind { TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };

/* The file must outlive the tokenizer. What is not supported (another model, an unknown pre-tokenizer) is an error that
 * names it. */
bool tokenizer_open(struct tokenizer **, const struct gguf *, struct err *);
/* The same from the bytes of a tokenizer.json and its tokenizer_config.json (NULL: there is none), which are not needed
 * afterwards; `where` is what errors call the place, a folder or a file. */
bool tokenizer_from_json(struct tokenizer **, const char *json, size_t n, const char *config_json, size_t n_config,
                         const char *where, struct err *);
/* The same from a tokenizer.model, SentencePiece's, with what lies beside it: tokenizer_config.json and added_tokens.json
 * (data NULL: there is none). */
struct sentencepiece_files {
    struct slice model, config, added;
};
bool tokenizer_from_sentencepiece(struct tokenizer **, const struct sentencepiece_files *, const char *where,
                                  struct err *);
void tokenizer_close(struct tokenizer *);

uint32_t tokenizer_size(const struct tokenizer *);
enum token_kind tokenizer_kind(const struct tokenizer *, token_t);
token_t tokenizer_bos(const struct tokenizer *); /* TOKEN_NONE if the model has none */
token_t tokenizer_eos(const struct tokenizer *);
bool tokenizer_is_end(const struct tokenizer *, token_t); /* EOS, EOT and their like: generation stops after one */
void tokenizer_add_end(struct tokenizer *, token_t); /* what a model's files say besides; an unknown id is ignored */

const char *tokenizer_description(const struct tokenizer *); /* "byte-level BPE, llama-bpe" */
/* Something the user should know ("the model does not say how …"), or "". */
const char *tokenizer_note(const struct tokenizer *);
/* The Jinja texts that came with the model, by name ("default", "tool_use"). len 0: there is none of that name. */
struct slice tokenizer_chat_template(const struct tokenizer *, const char *name);
/* The names, one after another; NULL behind the last one. */
const char *tokenizer_chat_template_name(const struct tokenizer *, size_t i);
/* Copies both; the last one of a name counts. More than a few are an error. */
bool tokenizer_add_chat_template(struct tokenizer *, struct slice name, struct slice text, struct err *);

struct tokenize_options {
    bool bos;            /* put BOS in front if the model wants one */
    bool special;        /* recognise control tokens written out in the text */
    bool eos;            /* put EOS behind if the model wants one */
    const size_t *plain; /* (n_plain) bytes, ascending, at which no control token begins, `special` or not */
    size_t n_plain;
};
/* Ids in memory that the caller frees; *n of them. Any bytes are accepted: what no piece covers becomes byte tokens. */
bool tokenizer_encode(const struct tokenizer *, const char *text, size_t len, struct tokenize_options, token_t **ids,
                      size_t *n, struct err *);

/* The first byte from `from` on at which a control token is written out in a text; SIZE_MAX: there is none. `tokenizer` is a
 * struct tokenizer (struct chat_guard). */
size_t tokenizer_next_control(const void *tokenizer, struct slice text, size_t from);

/* The bytes a token stands for in running text, in the tokenizer's own memory ('▁' already a space; a byte token is
 * that byte; a control token is empty unless `show_control`, then its name). May be half a character. */
struct slice tokenizer_bytes(const struct tokenizer *, token_t, bool show_control);

/* Decodes a whole sequence; the space that the dummy prefix added is taken off again. Memory is the caller's. */
bool tokenizer_decode(const struct tokenizer *, const token_t *, size_t n, char **text, size_t *len, struct err *);

/* Incremental UTF-8: feed token bytes, get whole characters; a character cut in two waits for its rest. */
struct utf8_stream {
    unsigned char held[4];
    unsigned n_held;
};
/* Writes at most 3 * len + 3 bytes to out; broken bytes become U+FFFD. Returns the number written. */
size_t utf8_stream_feed(struct utf8_stream *, const char *bytes, size_t len, char *out);
size_t utf8_stream_end(struct utf8_stream *, char *out); /* what is still held, as U+FFFD; at most 3 bytes */

/* Whether two models speak of the same tokens: what a draft model says must mean the same to the target. */

/* Every id that both have is of the same kind and stands for the same bytes. One may have more (padding, added tokens): to
 * the other these have probability 0. False: one line that names the first id which differs. */
bool vocabularies_match(const struct tokenizer *target, const char *target_name, const struct tokenizer *other,
                        const char *other_name, struct err *);

#endif
