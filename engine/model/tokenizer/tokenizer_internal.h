/* Internal to the tokenizer's files: the trie of pieces, the tables of the vocabulary, and the steps from text to
 * pieces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/model/tokenizer/pretokenizer.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/model/tokenizer/tokenizer_normalize.h"
#include "kernels/backend.h"

struct piece {
    struct slice text;
    token_t id;
};

struct piece_node {
    uint32_t children; /* index of the first child; children are adjacent and sorted by byte */
    token_t id;        /* the piece that ends at this node, or TOKEN_NONE */
    uint16_t n;
    unsigned char byte;
};

struct piece_trie {
    struct piece_node *nodes; /* the root is the first */
    uint32_t n, room;
};

/* Builds the trie; sorts the list. Of pieces with the same bytes the one with the lowest id is used. */
bool piece_trie_make(struct piece_trie *, struct piece *list, uint32_t n);

/* Moves *node (0: the root) to its child for this byte. Returns false if no piece continues with the byte. */
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

/* The vocabulary's tables and the steps from text to pieces:
 *   input ─ special tokens cut it into sections ─ a section is normalised ─ special tokens of normalised text cut it
 *   ─ the pre-tokenizer cuts that into words ─ in a word, neighbours merge into pieces */

#define SPACE_MARK     "\xe2\x96\x81" /* ▁ U+2581, which represents a space in pieces */
#define SPACE_MARK_LEN 3

#define MOST_TOKENS       (INT32_MAX / 4)
#define MOST_END_TOKENS   8 /* before a text, and after it */
#define MOST_NORMAL_STEPS 8

/* ---- tables ---- */

/* A growing byte buffer. */
struct bytes {
    char *at;
    size_t len, room;
    bool starved; /* an append failed for lack of memory */
};

/* A user-defined or control token that is searched for in text. */
struct special {
    struct slice text; /* not empty */
    token_t id;
    bool control;
    bool lstrip, rstrip,
        single_word; /* also match white space on the left, on the right; match only between non-letters */
};

struct special_set {
    struct special *list; /* (n) */
    uint32_t n;
    size_t room;
    struct piece_trie trie; /* of the indexes in the list */
};

/* Two neighbours that become one piece; the lowest rank is applied first. */
struct merge {
    token_t left, right, id; /* id: TOKEN_NONE in an empty slot */
    uint32_t rank;
};

struct merge_table {
    struct merge *slots; /* (mask + 1) */
    uint32_t mask;
    struct bytes buffer; /* scratch for looking up pieces while merges are added */
};

/* The steps that normalise a section. */
enum normal_kind {
    NORMAL_NFC,
    NORMAL_NFD,
    NORMAL_NFKC,
    NORMAL_NFKD,
    NORMAL_PREPEND,
    NORMAL_REPLACE,
    NORMAL_PATTERN,      /* replaces the matches of a regular expression */
    NORMAL_STRIP,        /* removes white space at the ends */
    NORMAL_TRIM,         /* removes a text at the ends, up to a number of times */
    NORMAL_CHARSMAP,     /* maps clusters of characters like Hugging Face's Precompiled */
    NORMAL_SENTENCEPIECE /* a SentencePiece model's rules for white space and characters */
};
struct pattern;
struct normal_step {
    enum normal_kind kind;
    struct slice from, to;   /* REPLACE; PATTERN: to; PREPEND (to a text that is not empty): to; TRIM: from */
    uint32_t first, last;    /* TRIM: how often at the beginning and at the end */
    struct pattern *pattern; /* owned by the tokenizer */
    struct charsmap map;     /* in the tokenizer's memory */
    bool left, right;        /* STRIP: which ends */
    bool prefix;             /* SENTENCEPIECE: prepend a space */
    bool collapse;           /* SENTENCEPIECE: reduce several spaces to one, and remove those at the ends */
    bool mark;               /* SENTENCEPIECE: replace spaces by SPACE_MARK */
};

struct end_tokens {
    token_t ids[MOST_END_TOKENS];
    unsigned n;
};

/* The error message for WordPiece models. */
#define WORDPIECE "its tokenizer is WordPiece, that of encoders like BERT, which write no text; give a model that does"

#define MOST_CHAT_TEMPLATES 16
struct chat_template {
    const char *name;
    struct slice text;
};

struct text_block; /* a block of memory for texts */

struct tokenizer {
    uint32_t n; /* vocabulary */
    struct slice
        *text; /* (n) as used by merging: the file's text, or the bytes of byte-level BPE; empty: no such token */
    struct slice *plain; /* (n) as in decoded text: ▁ as a space, a byte token's byte, a control token's name */
    unsigned char *kind; /* (n) enum token_kind */
    bool *end;           /* (n) generation stops after it */
    struct text_block *blocks;

    double *score; /* (n) SentencePiece: the pair with the highest score merges first; NULL: merges have ranks */
    struct merge_table merges; /* by rank */
    bool unigram;              /* Unigram model: words are cut by score instead of merged */
    struct piece_trie trie;    /* Unigram: the pieces that words may be cut into */
    bool *bonus;               /* (n) Unigram: user-defined pieces, which score higher than all others */
    double best_score, unknown_score;
    bool single_precision;     /* Unigram: scores are added in single precision */
    token_t byte[256];         /* the token of a byte; TOKEN_NONE where there is none */
    token_t bos, eos, unknown; /* TOKEN_NONE if there is none */
    bool byte_level;           /* symbols are bytes, not characters */
    bool fuse_unknown;         /* adjacent unknown symbols become one <unk> */
    bool whole_words;          /* a word that is itself a token is not merged from its symbols */
    struct normal_step trim;   /* decoding removes the spaces that encoding has added, or what the decoder says */
    bool splits_specials;      /* control tokens in a text are always plain text */
    struct end_tokens before, after;

    uint32_t longest_piece; /* bytes */
    uint32_t mask;          /* of the hash table of pieces: slots - 1 */
    token_t *slots;         /* (mask + 1), TOKEN_NONE when empty */

    struct special_set specials;        /* searched for in the input */
    struct special_set normal_specials; /* searched for in normalised sections */
    struct special_set symbols;         /* unchanged by SentencePiece's normalisation */
    struct normal_step normal[MOST_NORMAL_STEPS];
    unsigned n_normal;
    struct pretokenizer *pre; /* NULL: a section is one word */

    struct chat_template chat_templates[MOST_CHAT_TEMPLATES];
    size_t n_chat_templates;
    char description[64];
    char note[160];
};

/* ---- memory ---- */

/* Returns n bytes that are freed with the tokenizer; NULL if out of memory. */
char *tokenizer_take(struct tokenizer *, size_t n);
/* Copies bytes to memory that is freed with the tokenizer. */
bool tokenizer_copy(struct tokenizer *, const char *bytes, size_t n, struct slice *out);

/* ---- construction (tokenizer_make.c): the caller sets n, text, kind and the fields of its model ---- */

/* Allocates the arrays text, plain, kind and end of n elements. */
bool tokenizer_make_room(struct tokenizer *, uint32_t n, const char *where, struct err *);
/* Completes the tokenizer: finds the byte tokens (<0x0A>, or the 256 symbols of byte-level BPE), fills `plain`, marks
 * end tokens by their names and sorts the specials. */
bool tokenizer_finish(struct tokenizer *, const char *where, struct err *);
/* Returns the value of a byte token's name such as <0x0A>; -1 if it is not such a name. */
int tokenizer_byte_value(struct slice);
/* Replaces a byte-level piece's characters by the bytes that they represent, in the tokenizer's memory. If a character
 * represents no byte, the piece is unchanged and *piece_of_text is false: no text is ever cut into it (Command-R has
 * such emoji). Returns false if out of memory. */
bool tokenizer_decode_piece(struct tokenizer *, struct slice *piece, bool *piece_of_text);
/* Adds a merge of two pieces in the vocabulary file's spelling. Pieces must be indexed and merge_table_make() called
 * before. Returns false if one of the pieces or their concatenation is not a token, or if merges.buffer is starved. */
bool tokenizer_add_merge(struct tokenizer *, struct slice left, struct slice right, uint32_t rank);
bool tokenizer_add_special(struct special_set *, struct special);
/* Adds a normal step of any kind. The tokenizer takes ownership of its pattern, even on failure. */
bool tokenizer_add_normal_step(struct tokenizer *, struct normal_step);
/* Adds the steps that replace spaces by SPACE_MARK and, with `prefix`, prepend another one, which decoding removes. */
bool tokenizer_mark_spaces(struct tokenizer *, bool prefix);

/* ---- looking up ---- */

/* Fills the hash table of pieces with the tokens that are set in `pieces` (n) or, if that is NULL, with the normal
 * tokens. */
bool tokenizer_index_pieces(struct tokenizer *, const bool *pieces);
/* Returns the piece with these bytes (the lowest id if there are several), or TOKEN_NONE. */
token_t tokenizer_find(const struct tokenizer *, const char *bytes, size_t len);
/* Returns the longest special that is a prefix of `bytes`; considers control tokens only if `control`. NULL if there is
 * none. */
const struct special *tokenizer_match_special(const struct special_set *, const char *bytes, size_t len, bool control);

bool merge_table_make(struct merge_table *, uint32_t n);
const struct merge *merge_table_find(const struct merge_table *, token_t left, token_t right); /* or NULL */

/* ---- text to pieces ---- */

bool bytes_append(struct bytes *, const char *, size_t n);

/* Builds the trie of a Unigram model from text, kind, score and bonus. Returns false if out of memory. */
bool tokenizer_make_unigram(struct tokenizer *);

/* Compiles a regular expression in Hugging Face's syntax; returns NULL and sets *err if it is invalid. */
struct pattern *pattern_open(const char *text, size_t len, struct err *);
void pattern_close(struct pattern *);

/* Applies n steps to a text. *out is `text` itself or is in one of the two buffers. Invalid UTF-8 is not changed. */
bool tokenizer_apply(const struct tokenizer *, const struct normal_step *, unsigned n, struct slice text,
                     struct bytes buffers[2], struct slice *out);
/* Applies the steps of the normalizer. */
bool tokenizer_normalize(const struct tokenizer *, struct slice text, struct bytes buffers[2], struct slice *out);
/* Removes what a TRIM step removes. */
struct slice tokenizer_trim(const struct normal_step *, struct slice text);
/* Sets decoding to remove a space that encoding adds before a text. */
static inline void
tokenizer_trim_space(struct normal_step *trim, bool prefix)
{
    *trim = (struct normal_step){.kind = NORMAL_TRIM, .from = {" ", 1}, .first = prefix};
}

struct ids {
    token_t *at;
    size_t n, room;
};

/* Scratch memory for merging, reused for the next word. Initialise with {0}. */
struct merging {
    struct symbol *symbols;
    struct pair *heap;
    size_t room, n_heap;
    struct way *ways; /* (n_ways) for a Unigram model */
    size_t n_ways;
};
