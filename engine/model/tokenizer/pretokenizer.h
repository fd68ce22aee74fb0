/* The pre-tokenizer splits a text into words before byte-pair merging; no merge crosses a word boundary. It is a list
 * of steps, each of which is applied to every word that the previous step produced. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct pretokenizer;

/* What a split does with the matches of its pattern (Hugging Face's names). */
enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT, SPLIT_CONTIGUOUS };

/* Returns a pre-tokenizer without steps; NULL if out of memory. */
struct pretokenizer *pretokenizer_new(void);
void pretokenizer_free(struct pretokenizer *);

/* Adds a step that splits at the matches of a regular expression or, if `literal`, of the text itself; with `invert`,
 * at the text between the matches. Returns false and sets *err if the pattern is invalid. */
bool pretokenizer_add_split(struct pretokenizer *, const char *pattern, size_t len, bool literal, enum split_behavior,
                            bool invert, struct err *);
/* Adds a step that prepends `prefix` to each word that does not begin with it (before any split the text is one word);
 * with `only_first`, only to a word at the beginning of the input. Fails after pretokenizer_add_byte_chars(), as does
 * pretokenizer_add_space_mark(). */
bool pretokenizer_add_prefix(struct pretokenizer *, const char *prefix, size_t len, bool only_first, struct err *);
/* Adds a step that replaces every space in a word by `to`. */
bool pretokenizer_add_space_mark(struct pretokenizer *, const char *to, size_t len, struct err *);
/* Adds a step after which patterns see each byte as the character that byte-level BPE writes for it
 * (tokenizer_normalize.h). The resulting words contain the original bytes. */
bool pretokenizer_add_byte_chars(struct pretokenizer *, struct err *);

/* A pre-tokenizer that GGUF files refer to by name. */
struct pre_family {
    const char *names;       /* its names, separated by spaces */
    const char *patterns[7]; /* regular expressions, each isolates its matches; PRE_BYTE_CHARS: the step of
                                pretokenizer_add_byte_chars() */
    bool nfc;                /* text is first normalised to NFC */
    bool whole_words;        /* a word that is itself a token is not merged from its bytes */
    bool bos;                /* BOS is prepended unless the file specifies otherwise */
};
/* Finds a family by name; NULL if the name is unknown. The empty name is for files without a name. */
const struct pre_family *pre_family_find(const char *name, size_t len);
bool pretokenizer_of_family(struct pretokenizer **, const struct pre_family *, struct err *);
extern const char pre_gpt2_pattern[]; /* also the pattern of Hugging Face's ByteLevel */

/* The words of a text, with buffers that are reused for the next text. Initialise with {0}. */
struct word {
    size_t at, len;
};
struct words {
    char *text;        /* the text that contains the words */
    struct word *word; /* (n) in order, none empty */
    size_t len, n, room, word_room;
    struct words_scratch *scratch;
};
/* Splits a text into words. Any bytes are accepted; patterns see invalid UTF-8 as U+FFFD. `first`: the text is the
 * beginning of the input. */
bool pretokenizer_split(const struct pretokenizer *, const char *text, size_t len, bool first, struct words *,
                        struct err *);
void words_free(struct words *);

/* Internal to the pre-tokenizer's files: its steps. */

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/model/tokenizer/pretokenizer.h"

#define MOST_STEPS      16
#define PRE_BYTE_CHARS  "\x01"
#define MATCH_LIMIT     10000000u /* backtracking steps of one match: stops patterns that would run for minutes */
#define MATCH_HEAP_KIB  (64u << 10)
#define LONGEST_PATTERN 65536u /* bytes */

enum pre_kind { PRE_SPLIT, PRE_PREFIX, PRE_SPACE_MARK, PRE_BYTES };

struct pre_step {
    enum pre_kind kind;
    pcre2_code *code; /* of a split */
    enum split_behavior behavior;
    bool invert, only_first;
    char *text; /* (n_text) the prefix, or the replacement of spaces */
    size_t n_text;
};

struct pretokenizer {
    struct pre_step steps[MOST_STEPS];
    unsigned n_steps;
    bool byte_chars; /* after the steps, words consist of characters that represent bytes */
    pcre2_match_context *limits;
};

/* Compiles a pattern in Hugging Face's syntax (`literal`: the text itself) with PCRE2. Returns NULL and sets *err if
 * the pattern is invalid. */
pcre2_code *pretokenizer_compile(const char *pattern, size_t len, bool literal, struct err *);
