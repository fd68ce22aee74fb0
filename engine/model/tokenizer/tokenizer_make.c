/* Constructs a tokenizer's tables: the trie of pieces, the hash tables of pieces and merges, the sorted specials, and
 * the text of each token. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_internal.h"
#include "engine/model/tokenizer/tokenizer_normalize.h"

/* The pieces [low, high) of the sorted list whose path contains a node. */
struct range {
    uint32_t low, high, depth;
};

struct making {
    struct piece_trie *trie;
    struct range *ranges; /* (room) one for each node */
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

/* Adds the children of a node, one for each next byte of its pieces. */
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

static void
piece_trie_free(struct piece_trie *t)
{
    free(t->nodes);
    *t = (struct piece_trie){0};
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

/* Lookup: hash tables find pieces by their bytes and merges by their halves; a trie finds the longest special token at
 * a position. */

static uint64_t
hash_bytes(const char *bytes, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, its high bits folded in since the table uses the low ones */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

token_t
tokenizer_find(const struct tokenizer *t, const char *bytes, size_t len)
{
    if (len == 0 || len > t->longest_piece)
        return TOKEN_NONE;
    for (uint32_t i = (uint32_t)hash_bytes(bytes, len) & t->mask;; i = (i + 1) & t->mask) {
        token_t id = t->slots[i];
        if (id == TOKEN_NONE)
            return TOKEN_NONE;
        if (t->text[id].len == len && memcmp(t->text[id].data, bytes, len) == 0)
            return id;
    }
}

bool
tokenizer_index_pieces(struct tokenizer *t, const bool *pieces)
{
    uint64_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)t->n)
        n_slots *= 2;
    t->slots = malloc((size_t)n_slots * sizeof *t->slots);
    if (t->slots == NULL)
        return false;
    t->mask = (uint32_t)(n_slots - 1);
    for (uint64_t i = 0; i < n_slots; i++)
        t->slots[i] = TOKEN_NONE;
    for (uint32_t id = 0; id < t->n; id++) {
        const struct slice piece = t->text[id];
        const bool wanted = pieces != NULL ? pieces[id] : t->kind[id] == TOKEN_NORMAL;
        if (!wanted || piece.len == 0 || piece.len > UINT32_MAX)
            continue;
        if (piece.len > t->longest_piece)
            t->longest_piece = (uint32_t)piece.len;
        if (tokenizer_find(t, piece.data, piece.len) != TOKEN_NONE)
            continue;
        uint32_t i = (uint32_t)hash_bytes(piece.data, piece.len) & t->mask;
        while (t->slots[i] != TOKEN_NONE)
            i = (i + 1) & t->mask;
        t->slots[i] = (token_t)id;
    }
    return true;
}

/* ---- merges ---- */

static uint32_t
hash_pair(token_t left, token_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

bool
merge_table_make(struct merge_table *m, uint32_t n)
{
    uint64_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)n)
        n_slots *= 2;
    m->slots = malloc((size_t)n_slots * sizeof *m->slots);
    if (m->slots == NULL)
        return false;
    m->mask = (uint32_t)(n_slots - 1);
    for (uint64_t i = 0; i < n_slots; i++)
        m->slots[i] = (struct merge){.id = TOKEN_NONE};
    return true;
}

/* Adds a merge; of merges of the same pair the first is kept. */
static void
merge_table_add(struct merge_table *m, token_t left, token_t right, uint32_t rank, token_t id)
{
    uint32_t i = hash_pair(left, right) & m->mask;
    for (; m->slots[i].id != TOKEN_NONE; i = (i + 1) & m->mask)
        if (m->slots[i].left == left && m->slots[i].right == right)
            return;
    m->slots[i] = (struct merge){left, right, id, rank};
}

const struct merge *
merge_table_find(const struct merge_table *m, token_t left, token_t right)
{
    for (uint32_t i = hash_pair(left, right) & m->mask; m->slots[i].id != TOKEN_NONE; i = (i + 1) & m->mask)
        if (m->slots[i].left == left && m->slots[i].right == right)
            return &m->slots[i];
    return NULL;
}

/* ---- specials ---- */

static bool
tokenizer_index_specials(struct special_set *set)
{
    struct piece *list = malloc((set->n + 1) * sizeof *list);
    for (uint32_t i = 0; list != NULL && i < set->n; i++)
        list[i] = (struct piece){set->list[i].text, (token_t)i};
    const bool ok = list != NULL && piece_trie_make(&set->trie, list, set->n);
    free(list);
    return ok;
}

const struct special *
tokenizer_match_special(const struct special_set *set, const char *bytes, size_t len, bool control)
{
    const struct special *longest = NULL;
    uint32_t node = 0;
    for (size_t i = 0; i < len && set->n > 0 && piece_trie_step(&set->trie, &node, (unsigned char)bytes[i]); i++) {
        const token_t at = set->trie.nodes[node].id;
        if (at != TOKEN_NONE && (!set->list[at].control || control))
            longest = &set->list[at];
    }
    return longest;
}

/* Construction steps shared by all vocabulary formats. */

#define KEPT_BLOCK (64u << 10)

/* Control tokens that end a turn or a text in models whose metadata does not declare them. */
static const char *const end_names[] = {"</s>",    "<|endoftext|>", "<|eot_id|>",     "<|im_end|>",
                                        "<|end|>", "<end_of_turn>", "<turn|>",        "<|eom_id|>",
                                        "<EOT>",   "<|EOT|>",       "<|end_of_text|>"};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD, for <unk> */

/* ---- memory ---- */

struct text_block {
    struct text_block *next;
    size_t used, room;
    char bytes[];
};

char *
tokenizer_take(struct tokenizer *t, size_t n)
{
    struct text_block *block = t->blocks;
    if (block == NULL || n > block->room - block->used) {
        const size_t room = n > KEPT_BLOCK ? n : KEPT_BLOCK;
        block = room > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + room);
        if (block == NULL)
            return NULL;
        *block = (struct text_block){.next = t->blocks, .room = room};
        t->blocks = block;
    }
    block->used += n;
    return block->bytes + block->used - n;
}

bool
tokenizer_copy(struct tokenizer *t, const char *bytes, size_t n, struct slice *out)
{
    char *copy = tokenizer_take(t, n);
    if (copy == NULL)
        return false;
    if (n > 0)
        memcpy(copy, bytes, n);
    *out = (struct slice){copy, n};
    return true;
}

void
tokenizer_close(struct tokenizer *t)
{
    if (t == NULL)
        return;
    for (struct text_block *next; t->blocks != NULL; t->blocks = next) {
        next = t->blocks->next;
        free(t->blocks);
    }
    free(t->text);
    free(t->plain);
    free(t->kind);
    free(t->end);
    free(t->score);
    free(t->bonus);
    piece_trie_free(&t->trie);
    for (unsigned i = 0; i < t->n_normal; i++)
        pattern_close(t->normal[i].pattern);
    free(t->slots);
    free(t->merges.slots);
    free(t->merges.buffer.at);
    struct special_set *const sets[] = {&t->specials, &t->normal_specials, &t->symbols};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        free(sets[i]->list);
        piece_trie_free(&sets[i]->trie);
    }
    pretokenizer_free(t->pre);
    free(t);
}

static bool
out_of_memory(const char *where, uint32_t n, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: out of memory for a vocabulary of %" PRIu32 " tokens", where, n);
}

bool
tokenizer_make_room(struct tokenizer *t, uint32_t n, const char *where, struct err *err)
{
    t->n = n;
    if (t->text == NULL)
        t->text = calloc(n, sizeof *t->text);
    t->plain = calloc(n, sizeof *t->plain);
    t->kind = calloc(n, sizeof *t->kind);
    t->end = calloc(n, sizeof *t->end);
    t->bos = t->eos = t->unknown = TOKEN_NONE;
    for (int i = 0; i < 256; i++)
        t->byte[i] = TOKEN_NONE;
    return (t->text != NULL && t->plain != NULL && t->kind != NULL && t->end != NULL) || out_of_memory(where, n, err);
}

/* ---- bytes ---- */

int
tokenizer_byte_value(struct slice s)
{
    if (s.data == NULL || s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>')
        return -1;
    const int high = hex_digit(s.data[3]), low = hex_digit(s.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

static bool
find_bytes(struct tokenizer *t, const char *where, struct err *err)
{
    for (uint32_t byte = 0; t->byte_level && byte < 256; byte++) {
        const char c = (char)byte;
        t->byte[byte] = tokenizer_find(t, &c, 1);
    }
    for (uint32_t id = 0; id < t->n && !t->byte_level; id++) {
        if (t->kind[id] != TOKEN_BYTE)
            continue;
        const int value = tokenizer_byte_value(t->text[id]);
        char shown[32];
        if (value < 0)
            return err_set(err, ERR_WORK,
                           "%s: byte token %" PRIu32 " is spelled '%s', not like <0x0A>; convert the model again",
                           where, id, printable_line(shown, sizeof shown, t->text[id].data, t->text[id].len));
        if (t->byte[value] == TOKEN_NONE)
            t->byte[value] = (token_t)id;
    }
    return true;
}

/* ---- decoded text ---- */

static size_t
unmark_spaces(char *out, struct slice piece)
{
    size_t n = 0;
    for (size_t i = 0; i < piece.len;) {
        if (piece.len - i >= SPACE_MARK_LEN && memcmp(piece.data + i, SPACE_MARK, SPACE_MARK_LEN) == 0) {
            out[n++] = ' ';
            i += SPACE_MARK_LEN;
        } else {
            out[n++] = piece.data[i++];
        }
    }
    return n;
}

/* Sets a token's text in decoded output, unless its loader has set it. */
static bool
write_plain(struct tokenizer *t, uint32_t id)
{
    const struct slice piece = t->text[id];
    if (t->plain[id].data != NULL)
        return true;
    if (t->kind[id] == TOKEN_UNKNOWN) {
        t->plain[id] = (struct slice){replacement, sizeof replacement - 1};
        return true;
    }
    if (piece.data == NULL) { /* no such token */
        t->plain[id].data = "";
        return true;
    }
    t->plain[id] = piece;
    if (t->kind[id] == TOKEN_CONTROL || t->byte_level)
        return true;
    char *at = tokenizer_take(t, piece.len);
    if (at == NULL)
        return false;
    t->plain[id].data = at;
    if (t->kind[id] == TOKEN_BYTE) { /* its name is longer than one byte */
        *at = (char)tokenizer_byte_value(piece);
        t->plain[id].len = 1;
    } else {
        t->plain[id].len = unmark_spaces(at, piece);
    }
    return true;
}

static void
mark_ends(struct tokenizer *t)
{
    if (t->eos != TOKEN_NONE)
        t->end[t->eos] = true;
    for (uint32_t id = 0; id < t->n; id++)
        for (size_t i = 0; t->kind[id] == TOKEN_CONTROL && i < sizeof end_names / sizeof end_names[0]; i++)
            if (slice_is(t->plain[id], end_names[i]))
                t->end[id] = true;
}

bool
tokenizer_finish(struct tokenizer *t, const char *where, struct err *err)
{
    if (!find_bytes(t, where, err))
        return false;
    for (uint32_t id = 0; id < t->n; id++)
        if (!write_plain(t, id))
            return out_of_memory(where, t->n, err);
    mark_ends(t);
    return (tokenizer_index_specials(&t->specials) && tokenizer_index_specials(&t->normal_specials) &&
            tokenizer_index_specials(&t->symbols)) ||
           out_of_memory(where, t->n, err);
}

/* ---- parts ---- */

bool
tokenizer_decode_piece(struct tokenizer *t, struct slice *piece, bool *piece_of_text)
{
    *piece_of_text = true;
    if (piece->len == 0)
        return true;
    char *bytes = tokenizer_take(t, piece->len);
    const size_t n = bytes == NULL ? SIZE_MAX : byte_chars_read(bytes, piece->data, piece->len);
    *piece_of_text = n != SIZE_MAX;
    if (n != SIZE_MAX)
        *piece = (struct slice){bytes, n};
    return bytes != NULL;
}

/* Returns the piece with this text; in byte-level BPE the file's characters represent bytes. */
static token_t
find_written(const struct tokenizer *t, struct slice text, struct bytes *buffer)
{
    buffer->len = 0;
    if (!t->byte_level)
        return tokenizer_find(t, text.data, text.len);
    if (!bytes_append(buffer, text.data, text.len))
        return TOKEN_NONE;
    const size_t n = byte_chars_read(buffer->at, text.data, text.len);
    return n == SIZE_MAX ? tokenizer_find(t, text.data, text.len) : tokenizer_find(t, buffer->at, n);
}

bool
tokenizer_add_merge(struct tokenizer *t, struct slice left, struct slice right, uint32_t rank)
{
    struct bytes *buffer = &t->merges.buffer;
    const token_t l = find_written(t, left, buffer), r = find_written(t, right, buffer);
    if (l == TOKEN_NONE || r == TOKEN_NONE)
        return false;
    buffer->len = 0;
    if (!bytes_append(buffer, t->text[l].data, t->text[l].len) ||
        !bytes_append(buffer, t->text[r].data, t->text[r].len))
        return false;
    const token_t id = tokenizer_find(t, buffer->at, buffer->len);
    if (id != TOKEN_NONE)
        merge_table_add(&t->merges, l, r, rank, id);
    return id != TOKEN_NONE;
}

bool
tokenizer_add_special(struct special_set *set, struct special special)
{
    if (special.text.len == 0)
        return true;
    if (!array_grow(&set->list, &set->room, set->n + 1, sizeof *set->list))
        return false;
    set->list[set->n++] = special;
    return true;
}

bool
tokenizer_mark_spaces(struct tokenizer *t, bool prefix)
{
    const struct slice mark = {SPACE_MARK, SPACE_MARK_LEN};
    tokenizer_trim_space(&t->trim, prefix);
    return tokenizer_add_normal_step(t, (struct normal_step){.kind = NORMAL_REPLACE, .from = {" ", 1}, .to = mark}) &&
           (!prefix || tokenizer_add_normal_step(t, (struct normal_step){.kind = NORMAL_PREPEND, .to = mark}));
}

bool
tokenizer_add_normal_step(struct tokenizer *t, struct normal_step step)
{
    if (t->n_normal == MOST_NORMAL_STEPS) {
        pattern_close(step.pattern);
        return false;
    }
    t->normal[t->n_normal++] = step;
    return true;
}
