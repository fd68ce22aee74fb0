/* What the pre-tokenizer's files share: its steps. */
#ifndef ENGINE_TOKENIZER_PRETOKENIZER_INTERNAL_H
#define ENGINE_TOKENIZER_PRETOKENIZER_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/tokenizer/pretokenizer.h"

#define MOST_STEPS      16
#define PRE_BYTE_CHARS  "\x01"
#define MATCH_LIMIT     10000000u /* backtracking of one match: ends what would take minutes */
#define MATCH_HEAP_KIB  (64u << 10)
#define LONGEST_PATTERN 65536u /* bytes */

enum pre_kind { PRE_SPLIT, PRE_PREFIX, PRE_SPACE_MARK, PRE_BYTES };

struct pre_step {
    enum pre_kind kind;
    pcre2_code *code; /* of a split */
    enum split_behavior behavior;
    bool invert, only_first;
    char *text; /* (n_text) a prefix, or what spaces become */
    size_t n_text;
};

struct pretokenizer {
    struct pre_step steps[MOST_STEPS];
    unsigned n_steps;
    bool byte_chars; /* words come out of the steps as characters for bytes */
    pcre2_match_context *limits;
};

/* A pattern of Hugging Face's (`literal`: the text itself) for PCRE2; NULL with what is wrong with it. */
pcre2_code *pretokenizer_compile(const char *pattern, size_t len, bool literal, struct err *);

#endif
