/* What making a tokenizer has in common, wherever its vocabulary comes from. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/tokenizer/byte_chars.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define KEPT_BLOCK (64u << 10)

/* Control tokens that end a turn or a text in models whose metadata does not say so. */
static const char *const end_names[] = {"</s>",    "<|endoftext|>",  "<|eot_id|>", "<|im_end|>",
                                        "<|end|>", "<end_of_turn>",  "<|eom_id|>", "<EOT>",
                                        "<|EOT|>", "<|end_of_text|>"};

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
    free(t->specials.list);
    free(t->normal_specials.list);
    free(t->symbols.list);
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
    static const char digits[] = "0123456789abcdef";
    if (s.data == NULL || s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>')
        return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        const char lower = s.data[i] >= 'A' && s.data[i] <= 'F' ? (char)(s.data[i] + 32) : s.data[i];
        const char *digit = lower == '\0' ? NULL : strchr(digits, lower);
        if (digit == NULL)
            return -1;
        value = 16 * value + (int)(digit - digits);
    }
    return value;
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

/* ---- running text ---- */

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

/* What a token looks like in running text, where its loader hasn't said. */
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
    tokenizer_index_specials(&t->specials);
    tokenizer_index_specials(&t->normal_specials);
    tokenizer_index_specials(&t->symbols);
    return true;
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

/* The piece of this text, which the file may write in characters for bytes. */
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
    if (set->n == set->room) {
        const uint32_t room = 2 * set->room + 64;
        struct special *grown = realloc(set->list, room * sizeof *grown);
        if (grown == NULL)
            return false;
        set->list = grown;
        set->room = room;
    }
    set->list[set->n++] = special;
    return true;
}

bool
tokenizer_add_normal(struct tokenizer *t, enum normal_kind kind, struct slice from, struct slice to)
{
    return tokenizer_add_normal_step(t, (struct normal_step){.kind = kind, .from = from, .to = to});
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
