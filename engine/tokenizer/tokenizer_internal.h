/* Pieces by their bytes, to find all that a text begins with. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_INTERNAL_H
#define ENGINE_TOKENIZER_TOKENIZER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/slice.h"
#include "engine/tokenizer/pretokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/tokenizer_normalize.h"
#include "kernels/backend.h"

struct piece {
    struct slice text;
    token_t id;
};

struct piece_node {
    uint32_t children; /* the first of them; they stand beside each other, by their bytes */
    token_t id;        /* TOKEN_NONE: no piece ends here */
    uint16_t n;
    unsigned char byte;
};

struct piece_trie {
    struct piece_node *nodes; /* the root is the first */
    uint32_t n, room;
};

/* Sorts the list. Of pieces with the same bytes the one that comes first in the list's order of ids counts. */
bool piece_trie_make(struct piece_trie *, struct piece *list, uint32_t n);

/* One byte further down from *node (0: the root). False: no piece goes on like that. */
static inline bool
piece_trie_step(const struct piece_trie *t, uint32_t *node, unsigned char byte)
{
    const struct piece_node *at = &t->nodes[*node];
    uint32_t low = at->children, high = at->children + at->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->nodes[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    *node = low;
    return low < at->children + at->n && t->nodes[low].byte == byte;
}

/* What the tokenizer's files share: the vocabulary's tables and the steps from text to pieces.
 *   input ─ special tokens cut it into sections ─ a section is normalised ─ special tokens of normalised text cut it
 *   ─ the pre-tokenizer cuts that into words ─ in a word, neighbours merge into pieces */

#define SPACE_MARK     "\xe2\x96\x81" /* ▁ U+2581, which stands for a space inside pieces */
#define SPACE_MARK_LEN 3

#define MOST_TOKENS       (INT32_MAX / 4)
#define MOST_END_TOKENS   8 /* before a text, and after it */
#define MOST_NORMAL_STEPS 8

/* ---- tables ---- */

/* A buffer of bytes that grows. */
struct bytes {
    char *at;
    size_t len, room;
    bool starved; /* there was no memory for something */
};

/* A user-defined or control token as it is looked for in text. */
struct special {
    struct slice text; /* not empty */
    token_t id;
    bool control;
    bool lstrip, rstrip, single_word; /* takes the white space on its left, right; stands between other than letters */
};

struct special_set {
    struct special *list; /* (n) sorted by their bytes once indexed */
    uint32_t n, room;
    bool starts[256]; /* whether one begins with this byte */
};

/* Two neighbours that become one piece, the lowest rank first. */
struct merge {
    token_t left, right, id; /* id: TOKEN_NONE in an empty slot */
    uint32_t rank;
};

struct merge_table {
    struct merge *slots; /* (mask + 1) */
    uint32_t mask;
    struct bytes buffer; /* to look up pieces in while merges are added */
};

/* What happens to a section before anything else looks at it. */
enum normal_kind {
    NORMAL_NFC,
    NORMAL_NFD,
    NORMAL_NFKC,
    NORMAL_NFKD,
    NORMAL_PREPEND,
    NORMAL_REPLACE,
    NORMAL_PATTERN,      /* a regular expression's matches are replaced */
    NORMAL_STRIP,        /* white space at the ends goes */
    NORMAL_CHARSMAP,     /* by clusters of characters, as Hugging Face's Precompiled */
    NORMAL_SENTENCEPIECE /* all that a SentencePiece model says of white space and characters */
};
struct pattern;
struct normal_step {
    enum normal_kind kind;
    struct slice from, to;   /* REPLACE; PATTERN: to; PREPEND (to a text that isn't empty): to */
    struct pattern *pattern; /* the tokenizer's */
    struct charsmap map;     /* in memory of the tokenizer's */
    bool left, right;        /* STRIP: which ends */
    bool prefix;             /* SENTENCEPIECE: a space goes in front; */
    bool collapse;           /* of several spaces one stays, and none at the ends; */
    bool mark;               /* spaces become marks */
};

struct end_tokens {
    token_t ids[MOST_END_TOKENS];
    unsigned n;
};

/* What models are called that are refused. */
#define WORDPIECE "its tokenizer is WordPiece, that of encoders like BERT, which write no text; give a model that does"

#define MOST_CHAT_TEMPLATES 16
struct chat_template {
    const char *name;
    struct slice text;
};

struct text_block; /* memory that texts lie in */

struct tokenizer {
    uint32_t n;          /* vocabulary */
    struct slice *text;  /* (n) as merging sees them: the file's, or bytes of byte-level BPE; empty: no such token */
    struct slice *plain; /* (n) as they read in running text: ▁ as a space, a byte token's byte, a control's name */
    unsigned char *kind; /* (n) enum token_kind */
    bool *end;           /* (n) generation stops after it */
    struct text_block *blocks;

    double *score;             /* (n) SentencePiece: the pair with the best merges first; NULL: merges have ranks */
    struct merge_table merges; /* by rank */
    bool unigram;              /* words are not merged but cut, by score: */
    struct piece_trie trie;    /* pieces that a text may be cut into, */
    bool *bonus;               /* (n) those that a user defined, which score better than all others, */
    double best_score, unknown_score;
    bool single_precision;     /* … and how scores are added */
    token_t byte[256];         /* the token of a byte; TOKEN_NONE where there is none */
    token_t bos, eos, unknown; /* TOKEN_NONE if there is none */
    bool byte_level;           /* symbols are bytes, not characters */
    bool fuse_unknown;         /* one <unk> for neighbours that are all unknown */
    bool whole_words;          /* a word that is a token is not merged from its symbols */
    bool strips_space;         /* a text's first space is the one that encoding put there */
    struct end_tokens before, after;

    uint32_t longest_piece; /* bytes */
    uint32_t mask;          /* of the hash table of pieces: slots - 1 */
    token_t *slots;         /* (mask + 1), TOKEN_NONE when empty */

    struct special_set specials;        /* looked for in the input */
    struct special_set normal_specials; /* looked for in normalised sections */
    struct special_set symbols;         /* that SentencePiece's normalisation leaves as they are */
    struct normal_step normal[MOST_NORMAL_STEPS];
    unsigned n_normal;
    struct pretokenizer *pre; /* NULL: a section is one word */

    struct chat_template chat_templates[MOST_CHAT_TEMPLATES];
    size_t n_chat_templates;
    char description[64];
    char note[160];
};

/* ---- memory ---- */

/* n bytes that go with the tokenizer; NULL: there is no more. */
char *tokenizer_take(struct tokenizer *, size_t n);
/* A copy of these bytes in such memory. */
bool tokenizer_copy(struct tokenizer *, const char *bytes, size_t n, struct slice *out);

/* ---- making one (tokenizer_make.c): n, text, kind and what belongs to the model are set ---- */

/* Arrays of n: text, plain, kind, end. */
bool tokenizer_make_room(struct tokenizer *, uint32_t n, const char *where, struct err *);
/* Byte tokens <0x0A>, or of byte-level BPE its 256 symbols; how all tokens read in running text; tokens that end a text
 * by their names; sorted specials. After this the tokenizer is complete. */
bool tokenizer_finish(struct tokenizer *, const char *where, struct err *);
/* The value of a byte token's name, <0x0A>; -1: it is none. */
int tokenizer_byte_value(struct slice);
/* Characters that stand for bytes become those bytes, in memory of the tokenizer's; another text stays as it is, and is no
 * *piece_of_text then: no text is ever cut into it (Command-R has emoji so). False: out of memory. */
bool tokenizer_decode_piece(struct tokenizer *, struct slice *piece, bool *piece_of_text);
/* A merge of two pieces as the vocabulary's file writes them, once pieces are indexed and merge_table_make() was called.
 * False: they aren't both tokens, or together they make none; or merges.buffer is starved. */
bool tokenizer_add_merge(struct tokenizer *, struct slice left, struct slice right, uint32_t rank);
bool tokenizer_add_special(struct special_set *, struct special);
bool tokenizer_add_normal(struct tokenizer *, enum normal_kind, struct slice from, struct slice to);
/* The same of any kind; its pattern becomes the tokenizer's, even when this fails. */
bool tokenizer_add_normal_step(struct tokenizer *, struct normal_step);

/* ---- looking up ---- */

/* Fills the hash table of pieces with the tokens that are set in `pieces` (n), or, if that is NULL, are normal. */
bool tokenizer_index_pieces(struct tokenizer *, const bool *pieces);
/* The piece with these bytes (the lowest id if there are several), or TOKEN_NONE. */
token_t tokenizer_find(const struct tokenizer *, const char *bytes, size_t len);
/* The longest special that `bytes` starts with, control tokens only if `control`; NULL if none does. */
const struct special *tokenizer_match_special(const struct special_set *, const char *bytes, size_t len, bool control);

bool merge_table_make(struct merge_table *, uint32_t n);
const struct merge *merge_table_find(const struct merge_table *, token_t left, token_t right); /* or NULL */

/* ---- text to pieces ---- */

bool bytes_append(struct bytes *, const char *, size_t n);

/* The trie of a unigram model, once text, kind, score and bonus are set. False: out of memory. */
bool tokenizer_make_unigram(struct tokenizer *);

/* A regular expression of Hugging Face's; NULL with what is wrong with it. */
struct pattern *pattern_open(const char *text, size_t len, struct err *);
void pattern_close(struct pattern *);

/* All normal steps on a text; *out is `text` itself or lies in one of the two buffers. Broken UTF-8 stays as it is. */
bool tokenizer_normalize(const struct tokenizer *, struct slice text, struct bytes buffers[2], struct slice *out);

struct ids {
    token_t *at;
    size_t n, room;
};

/* Merging: memory that is used again for the next word; start from {0}. */
struct merging {
    struct symbol *symbols;
    struct pair *heap;
    size_t room, n_heap;
    struct way *ways; /* (n_ways) of a unigram model */
    size_t n_ways;
};

#endif
