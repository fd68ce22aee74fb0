/* Converts text to token ids and back: SentencePiece BPE, Unigram and byte-level BPE. The vocabulary is read from GGUF
 * metadata, Hugging Face's tokenizer.json or SentencePiece's tokenizer.model. */
#pragma once

#include "base/slice.h"
#include "kernels/backend.h"

struct gguf;

struct tokenizer;

enum token_kind { TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };

/* Opens the tokenizer of a GGUF file, which must outlive the tokenizer. An unsupported tokenizer model or an unknown
 * pre-tokenizer is an error that contains its name. */
bool tokenizer_open(struct tokenizer **, const struct gguf *, struct err *);
/* The bytes of a tokenizer.json or of SentencePiece's tokenizer.model, and of the files in its directory (data NULL:
 * there is none). */
struct tokenizer_files {
    struct slice model;
    struct slice config, added, special_map; /* tokenizer_config.json, added_tokens.json, special_tokens_map.json */
};
/* Opens a tokenizer from a tokenizer.json. The caller may free the bytes afterwards. Error messages begin with `where`,
 * a directory or a file. */
bool tokenizer_from_json(struct tokenizer **, const struct tokenizer_files *, const char *where, struct err *);
/* The same from SentencePiece's tokenizer.model. */
bool tokenizer_from_sentencepiece(struct tokenizer **, const struct tokenizer_files *, const char *where, struct err *);
/* Opens the vocabulary of a synthetic model of n tokens: <unk>, <s>, the 256 bytes, ▁, and words of syllables. No token
 * ends a text. */
bool tokenizer_synthetic(struct tokenizer **, uint32_t n, const char *where, struct err *);
void tokenizer_close(struct tokenizer *);

uint32_t tokenizer_size(const struct tokenizer *);
enum token_kind tokenizer_kind(const struct tokenizer *, token_t);
token_t tokenizer_unknown(const struct tokenizer *); /* the first TOKEN_UNKNOWN; 0 if there is none */
token_t tokenizer_bos(const struct tokenizer *);     /* TOKEN_NONE if the model has none */
token_t tokenizer_eos(const struct tokenizer *);
bool tokenizer_is_end(const struct tokenizer *, token_t); /* EOS, EOT and their like: generation stops after one */
void tokenizer_add_end(struct tokenizer *,
                       token_t); /* adds an end token from a model's other files; ignores unknown ids */

const char *tokenizer_description(const struct tokenizer *); /* "byte-level BPE, llama-bpe" */
/* A note for the user ("the model does not say how …"), or "". */
const char *tokenizer_note(const struct tokenizer *);
/* Returns the model's Jinja chat template of that name ("default", "tool_use"); len is 0 if there is none. */
struct slice tokenizer_chat_template(const struct tokenizer *, const char *name);
/* Returns the name of chat template i; NULL after the last one. */
const char *tokenizer_chat_template_name(const struct tokenizer *, size_t i);
/* Adds a chat template; copies name and text. A later template replaces an earlier one of the same name. Fails if there
 * are too many. */
bool tokenizer_add_chat_template(struct tokenizer *, struct slice name, struct slice text, struct err *);

struct tokenize_options {
    bool bos;     /* prepend BOS if the model uses it */
    bool special; /* recognise control tokens that occur in the text */
    bool eos;     /* append EOS if the model uses it */
    const size_t
        *plain; /* (n_plain) byte positions, ascending, where a control token is plain text even with `special` */
    size_t n_plain;
};
/* Encodes a text as *n ids in memory that the caller frees. Any bytes are accepted; bytes that no piece covers become
 * byte tokens. */
bool tokenizer_encode(const struct tokenizer *, const char *text, size_t len, struct tokenize_options, token_t **ids,
                      size_t *n, struct err *);

/* Returns the first byte at or after `from` at which a control token occurs in a text; SIZE_MAX if there is none.
 * `tokenizer` is a struct tokenizer; the type fits struct chat_guard. */
size_t tokenizer_next_control(const void *tokenizer, struct slice text, size_t from);

/* Returns the bytes of a token in decoded text, in the tokenizer's memory: '▁' is a space, a byte token is its byte,
 * and a control token is empty or, with `show_control`, its name. The bytes may be part of a character. */
struct slice tokenizer_bytes(const struct tokenizer *, token_t, bool show_control);

/* Decodes a whole sequence and removes the space that encoding has added before it. The caller frees *text. */
bool tokenizer_decode(const struct tokenizer *, const token_t *, size_t n, char **text, size_t *len, struct err *);

/* Incremental UTF-8 decoder: converts the bytes of tokens to complete characters and holds an incomplete character
 * until its remaining bytes arrive. */
struct utf8_stream {
    unsigned char held[4];
    unsigned n_held;
};
/* Writes at most 3 * len + 3 bytes to out; invalid bytes become U+FFFD. Returns the number of bytes written. */
size_t utf8_stream_feed(struct utf8_stream *, const char *bytes, size_t len, char *out);
size_t utf8_stream_end(struct utf8_stream *, char *out); /* writes held bytes as U+FFFD, at most 3 bytes */

/* Compatibility of vocabularies: a draft model's token ids must have the same meaning for the target. */

/* Returns whether every id that both vocabularies contain has the same kind and the same bytes. One vocabulary may have
 * further ids (padding, added tokens), which have probability 0 for the other model. If not, *err is one line with the
 * first id that differs. */
bool vocabularies_match(const struct tokenizer *target, const char *target_name, const struct tokenizer *other,
                        const char *other_name, struct err *);
