/* What the readers of a vocabulary in GGUF metadata share: gguf_read_*() read what the key names, check it, and leave an error
 * that names it. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_GGUF_H
#define ENGINE_TOKENIZER_TOKENIZER_GGUF_H

#include "engine/files/gguf.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define KEY(name) "tokenizer.ggml." name

bool gguf_out_of_memory(const struct tokenizer *, const struct gguf *, struct err *);

/* BOS, EOS and their like, which go before and after a text unless the file says otherwise. `pieces`: where it names none
 * they have SentencePiece's usual ids. */
struct gguf_ends {
    bool pieces, bos, eos;
};
bool gguf_read_ids(struct tokenizer *, const struct gguf *, const struct gguf_ends *, struct err *);
bool gguf_read_merges(struct tokenizer *, const struct gguf *, struct err *);
/* User-defined tokens are looked for after spaces became ▁, as SentencePiece does; control tokens in the input, and what
 * follows one is a text of its own with its own dummy prefix. */
bool gguf_add_specials(struct tokenizer *);

/* The kinds of vocabularies; pieces, kinds and chat templates are read. */
bool gguf_open_byte_level(struct tokenizer *, const struct gguf *, struct err *); /* "gpt2" */
bool gguf_open_pieces(struct tokenizer *, const struct gguf *, struct err *);     /* "llama": SentencePiece BPE */
bool gguf_open_ranked(struct tokenizer *, const struct gguf *, struct err *);     /* "gemma4": such pieces, but ranks */
bool gguf_open_unigram(struct tokenizer *, const struct gguf *, struct err *);    /* "t5" */

#endif
