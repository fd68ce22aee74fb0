#include "engine/tokenizer/piece_trie.h"

#include <stdlib.h>
#include <string.h>

/* The pieces that go through a node. */
struct range {
    uint32_t low, high, depth;
};

struct making {
    struct piece_trie *trie;
    struct range *ranges; /* (room) of the nodes */
};

static int
compare(const void *a, const void *b)
{
    const struct piece *p = a, *q = b;
    const int order = slice_compare(p->text, q->text);
    return order != 0 ? order : (p->id > q->id) - (p->id < q->id);
}

static bool
add_node(struct making *m, unsigned char byte, struct range range)
{
    struct piece_trie *t = m->trie;
    if (t->n == t->room) {
        const uint32_t room = t->room + t->room / 2 + 1024;
        struct piece_node *nodes = room < t->room ? NULL : realloc(t->nodes, room * sizeof *nodes);
        if (nodes == NULL)
            return false;
        t->nodes = nodes;
        struct range *ranges = realloc(m->ranges, room * sizeof *ranges);
        if (ranges == NULL)
            return false;
        m->ranges = ranges;
        t->room = room;
    }
    m->ranges[t->n] = range;
    t->nodes[t->n++] = (struct piece_node){.id = TOKEN_NONE, .byte = byte};
    return true;
}

/* The children of one node: its pieces by their next byte. */
static bool
add_children(struct making *m, const struct piece *list, uint32_t node)
{
    struct range r = m->ranges[node];
    for (; r.low < r.high && list[r.low].text.len == r.depth; r.low++)
        if (m->trie->nodes[node].id == TOKEN_NONE)
            m->trie->nodes[node].id = list[r.low].id;
    const uint32_t first = m->trie->n;
    while (r.low < r.high) {
        const unsigned char byte = (unsigned char)list[r.low].text.data[r.depth];
        struct range child = {r.low, r.low, r.depth + 1};
        while (child.high < r.high && (unsigned char)list[child.high].text.data[r.depth] == byte)
            child.high++;
        if (!add_node(m, byte, child))
            return false;
        r.low = child.high;
    }
    m->trie->nodes[node].children = first;
    m->trie->nodes[node].n = (uint16_t)(m->trie->n - first);
    return true;
}

bool
piece_trie_make(struct piece_trie *t, struct piece *list, uint32_t n)
{
    struct making m = {.trie = t};
    *t = (struct piece_trie){0};
    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    bool ok = add_node(&m, 0, (struct range){0, n, 0});
    for (uint32_t i = 0; ok && i < t->n; i++)
        ok = add_children(&m, list, i);
    free(m.ranges);
    if (!ok)
        piece_trie_free(t);
    return ok;
}

void
piece_trie_free(struct piece_trie *t)
{
    free(t->nodes);
    *t = (struct piece_trie){0};
}
