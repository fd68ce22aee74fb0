/* Byte-level BPE in GGUF metadata ("gpt2"): pieces and merges, and the name of a pre-tokenizer. */
#include <stdlib.h>

#include "engine/base/printable.h"
#include "engine/tokenizer/tokenizer_gguf.h"

/* Fills `pieces` with the tokens that merges and texts may come to. */
static bool
decode_pieces(struct tokenizer *t, bool *pieces)
{
    for (uint32_t id = 0; id < t->n; id++) {
        pieces[id] = t->kind[id] != TOKEN_UNUSED;
        if (t->kind[id] == TOKEN_NORMAL && !tokenizer_decode_piece(t, &t->text[id], &pieces[id]))
            return false;
    }
    return true;
}

/* Some converters leave tokens that were added (StarCoder's <fim_prefix>, Falcon's <|endoftext|>) among the normal ones: what is
 * written in angle brackets and no merge comes to. Such a token is one of control. */
static bool
mark_added(struct tokenizer *t)
{
    bool *made = calloc(t->n, sizeof *made), ok = made != NULL;
    for (uint64_t i = 0; ok && i <= t->merges.mask; i++)
        if (t->merges.slots[i].id != TOKEN_NONE)
            made[t->merges.slots[i].id] = true;
    for (uint32_t id = 0; ok && id < t->n; id++) {
        const struct slice s = t->text[id];
        if (t->kind[id] != TOKEN_NORMAL || s.len < 4 || s.data[0] != '<' || s.data[s.len - 1] != '>' || made[id])
            continue;
        t->kind[id] = TOKEN_CONTROL;
        ok = tokenizer_add_special(&t->specials, (struct special){.text = s, .id = (token_t)id, .control = true});
    }
    free(made);
    return ok;
}

static bool
choose_pretokenizer(struct tokenizer *t, const struct gguf *g, bool *bos, struct err *err)
{
    struct slice name;
    char shown[40];
    if (!gguf_get_string(g, KEY("pre"), &name, err))
        return false;
    const struct pre_family *family = pre_family_find(name.data, name.len);
    printable_line(shown, sizeof shown, name.data, name.len);
    if (family == NULL)
        return err_set(err, ERR_WORK, "%s: the pre-tokenizer '%s' (metadata '" KEY("pre") "') is not supported",
                       g->path, shown);
    if (name.len == 0 || strcmp(shown, "default") == 0)
        snprintf(t->note, sizeof t->note,
                 "the model does not say how its tokenizer cuts words: ids may differ from its own; convert it again");
    snprintf(t->description, sizeof t->description, "byte-level BPE, %s", name.len > 0 ? shown : "default");
    *bos = family->bos;
    t->whole_words = family->whole_words;
    struct err why = {0};
    if (!pretokenizer_of_family(&t->pre, family, &why))
        return err_set(err, why.kind, "%s: %.300s", g->path, why.text);
    const struct slice none = {"", 0};
    return !family->nfc || tokenizer_add_normal(t, NORMAL_NFC, none, none);
}

/* With `add_space_prefix` a text that doesn't begin with a space gets one. */
static bool
add_prefix(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), false, &prefix, err))
        return false;
    t->strips_space = prefix;
    return !prefix || pretokenizer_add_prefix(t->pre, " ", 1, false, err);
}

bool
gguf_open_byte_level(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool bos = false;
    t->byte_level = true;
    if (!choose_pretokenizer(t, g, &bos, err) || !add_prefix(t, g, err) ||
        !gguf_read_ids(t, g, &(struct gguf_ends){.bos = bos}, err))
        return false;
    bool *pieces = malloc(t->n * sizeof *pieces);
    if (pieces == NULL || !decode_pieces(t, pieces)) {
        free(pieces);
        return gguf_out_of_memory(t, g, err);
    }
    const bool ok = (tokenizer_index_pieces(t, pieces) && gguf_add_specials(t)) || gguf_out_of_memory(t, g, err);
    free(pieces);
    return ok && gguf_read_merges(t, g, err) && (mark_added(t) || gguf_out_of_memory(t, g, err));
}
