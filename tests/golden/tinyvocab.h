/* The vocabulary of a tiny model: a valid SentencePiece BPE one, of any size.
 *
 * ids   0..2     <unk> <s> </s>
 *       3..258   byte tokens
 *       259..    nasty pieces if wanted, then ▁, letters, punctuation, ▁a.., syllables, ▁syllables, words of 2 and 3
 *       last two <|end|>, a control token (the EOT), and <|note|>, a user-defined one
 */
#pragma once

#include "tests/rigs/gguf_bytes.h"

#define TINYVOCAB_MAX  (1u << 20)
#define TINYVOCAB_KEYS 11u /* number of metadata entries */

/* `padding` unused tokens follow the `vocab` tokens. */
void tinyvocab_put(struct gguf_bytes *, uint32_t vocab, uint32_t padding, bool nasty, bool space_prefix);
/* Returns whether the token is a piece or </s>, not a byte or control token. */
bool tinyvocab_is_text(uint32_t vocab, uint32_t id);
