/* What happens to a text before byte-pair merging: it is cut into words that no merge crosses. A pre-tokenizer is a list
 * of steps, each applied to every word that the steps before it left. */
#ifndef ENGINE_TOKENIZER_PRETOKENIZER_H
#define ENGINE_TOKENIZER_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/err.h"

struct pretokenizer;

/* What becomes of the places where a pattern matches (Hugging Face's names). */
enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT, SPLIT_CONTIGUOUS };

/* NULL: out of memory. */
struct pretokenizer *pretokenizer_new(void);
void pretokenizer_free(struct pretokenizer *);

/* Cuts where a regular expression (or, if `literal`, the text itself) matches; `invert`: where it doesn't. False with
 * what is wrong with the pattern. */
bool pretokenizer_add_split(struct pretokenizer *, const char *pattern, size_t len, bool literal, enum split_behavior,
                            bool invert, struct err *);
/* Puts `prefix` in front of each word (before any split that is the text) that doesn't begin with it; `only_first`: of one at
 * the input's beginning. Like the next, not behind pretokenizer_add_byte_chars(). */
bool pretokenizer_add_prefix(struct pretokenizer *, const char *prefix, size_t len, bool only_first, struct err *);
/* Every space in a word becomes `to`. */
bool pretokenizer_add_space_mark(struct pretokenizer *, const char *to, size_t len, struct err *);
/* The steps after this one see bytes as byte-level BPE writes them (tokenizer_normalize.h); words come out as the bytes. */
bool pretokenizer_add_byte_chars(struct pretokenizer *, struct err *);

/* How the pre-tokenizer that a GGUF file names does it. */
struct pre_family {
    const char *names;       /* of it, separated by spaces */
    const char *patterns[7]; /* regular expressions, each isolates its matches; PRE_BYTE_CHARS: that step */
    bool nfc;                /* text is normalised first */
    bool whole_words;        /* a word that is a token is not merged from its bytes */
    bool bos;                /* BOS goes in front if the file doesn't say */
};
/* NULL: there is none of this name. An empty name is the one that files without a name have. */
const struct pre_family *pre_family_find(const char *name, size_t len);
bool pretokenizer_of_family(struct pretokenizer **, const struct pre_family *, struct err *);
extern const char pre_gpt2_pattern[]; /* also what Hugging Face's ByteLevel cuts with */

/* Words, and the memory to find them in, which is used again for the next text: start from {0}. */
struct word {
    size_t at, len;
};
struct words {
    char *text;        /* what the words lie in */
    struct word *word; /* (n) in order, none empty */
    size_t len, n, room, word_room;
    struct words_scratch *scratch;
};
/* Any bytes are accepted; to the patterns, broken UTF-8 is U+FFFD. `first`: the text begins the input. */
bool pretokenizer_split(const struct pretokenizer *, const char *text, size_t len, bool first, struct words *,
                        struct err *);
void words_free(struct words *);

/* What the pre-tokenizer's files share: its steps. */

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
