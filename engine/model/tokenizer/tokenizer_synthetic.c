/* The vocabulary of synthetic models, as SentencePiece BPE: ids <unk>, <s>, the 256 bytes, ▁, and words of
 * syllables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/tokenizer/tokenizer_internal.h"

#define FIRST_PIECE 258u /* <unk>, <s> and the bytes are before it */
#define WORD        16   /* bytes of a word */

/* Writes word i: ▁, then i in syllables, "ba" to "zu": first words of one syllable, then of two, then of three. */
static void
write_word(char out[WORD], uint32_t i)
{
    uint32_t syllables = 1, count = 105;
    for (; i >= count && syllables < 3; syllables++, count *= 105)
        i -= count;
    size_t used = (size_t)snprintf(out, WORD, "%s", SPACE_MARK);
    for (; syllables > 0; syllables--, i /= 105)
        used += (size_t)snprintf(out + used, WORD - used, "%c%c", "bcdfghjklmnpqrstvwxyz"[i % 105 / 5], "aeiou"[i % 5]);
}

static bool
add_piece(struct tokenizer *t, uint32_t id)
{
    char text[WORD] = SPACE_MARK;
    t->kind[id] = id == 0 ? TOKEN_UNKNOWN : id == 1 ? TOKEN_CONTROL : id < FIRST_PIECE ? TOKEN_BYTE : TOKEN_NORMAL;
    t->score[id] = id < FIRST_PIECE ? 0 : -(double)(id - FIRST_PIECE);
    if (id < FIRST_PIECE)
        snprintf(text, sizeof text, id == 0 ? "<unk>" : id == 1 ? "<s>" : "<0x%02X>", id < 2 ? 0u : (unsigned)id - 2);
    else if (id > FIRST_PIECE)
        write_word(text, id - FIRST_PIECE - 1);
    return tokenizer_copy(t, text, strlen(text), &t->text[id]) &&
           (id > 1 || tokenizer_add_special(&t->specials,
                                            (struct special){.text = t->text[id], .id = (token_t)id, .control = true}));
}

bool
tokenizer_synthetic(struct tokenizer **out, uint32_t n, const char *where, struct err *err)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    bool ok = t != NULL && tokenizer_make_room(t, n, where, err) && (t->score = calloc(n, sizeof *t->score)) != NULL;
    for (uint32_t id = 0; id < n && ok; id++)
        ok = add_piece(t, id);
    ok = ok && tokenizer_index_pieces(t, NULL) && tokenizer_mark_spaces(t, true);
    if (ok) {
        t->unknown = 0;
        t->bos = 1;
        t->before = (struct end_tokens){.ids = {1}, .n = 1};
        snprintf(t->description, sizeof t->description, "SentencePiece BPE");
    }
    if (!ok)
        err_set(err, ERR_WORK, "%s: out of memory for its vocabulary", where);
    *out = ok && tokenizer_finish(t, where, err) ? t : NULL;
    if (*out == NULL)
        tokenizer_close(t);
    return *out != NULL;
}
