/* The order in which a draft vocabulary takes tokens (docs/methods.md): the tokens that text has most often first.
 *
 * Without counts the order is that of the ids, because the merges of BPE vocabularies are learned in order of
 * frequency. Tokens that ordinary text never has are last: control tokens, unused ids, and ids that only pad the
 * model's head.
 *
 * A file of counts is text: the line "specscope token counts 1", the line "vocabulary N", and one line "ID COUNT" for
 * each token that was counted, in any order. `specscope train heads` writes one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/file_replace.h"
#include "kernels/backend.h"

struct tokenizer;

/* Returns whether a token is one of the last by rank. tokenizer NULL: none is. */
bool token_ranks_last(const struct tokenizer *, token_t);

/* Writes the ids 0..vocab-1 to `ids` (vocab) by descending count; tokens of equal counts, or all of them if `counts` is
 * NULL, are in the order of their ids, those that rank last after all others. counts: (vocab). Fails on lack of
 * memory. */
bool token_rank(const struct tokenizer *, uint32_t vocab, const uint64_t *counts, token_t *ids, struct err *);

extern const struct file_kind token_counts_file;
/* Writes the counts (vocab) that are above 0, in descending order. Replaces an earlier file completely or not at
 * all. */
bool token_counts_write(const char *path, const uint64_t *counts, uint32_t vocab, struct err *);
/* Reads counts (vocab); tokens that the file does not list have 0. Fails with one line if the file is for a vocabulary
 * of another size, lists a token twice or is no file of counts. */
bool token_counts_read(const char *path, uint64_t *counts, uint32_t vocab, struct err *);
/* The same for n bytes in memory, followed by a zero byte; `path` is for messages. */
bool token_counts_parse(const char *path, const char *text, size_t n, uint64_t *counts, uint32_t vocab, struct err *);
