/* Pieces by their bytes, to find all that a text begins with. */
#ifndef ENGINE_TOKENIZER_PIECE_TRIE_H
#define ENGINE_TOKENIZER_PIECE_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/slice.h"
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
void piece_trie_free(struct piece_trie *);

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

#endif
