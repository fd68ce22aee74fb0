/* A vocabulary from GGUF metadata: what all kinds of them have. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/tokenizer/tokenizer_gguf.h"

bool
gguf_out_of_memory(const struct tokenizer *t, const struct gguf *g, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: out of memory for a vocabulary of %" PRIu32 " tokens", g->path, t->n);
}

/* ---- pieces ---- */

static bool
read_pieces(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *tokens = gguf_find(g, KEY("tokens"));
    if (tokens == NULL || tokens->type != GGUF_ARRAY || tokens->element != GGUF_STRING)
        return err_set(err, ERR_WORK,
                       "%s: has no vocabulary (metadata '" KEY("tokens") "'); convert the model with its tokenizer",
                       g->path);
    if (tokens->count == 0 || tokens->count > MOST_TOKENS)
        return err_set(err, ERR_WORK, "%s: a vocabulary of %" PRIu64 " tokens cannot be used", g->path, tokens->count);
    t->text = gguf_strings(tokens, err);
    return t->text != NULL && tokenizer_make_room(t, (uint32_t)tokens->count, g->path, err);
}

static bool
read_kinds(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *types = gguf_find(g, KEY("token_type"));
    if (types == NULL)
        return true; /* all of them normal */
    if (types->type != GGUF_ARRAY || (types->element != GGUF_I32 && types->element != GGUF_U32) || types->count != t->n)
        return err_set(err, ERR_WORK,
                       "%s: metadata '" KEY("token_type") "' should be %" PRIu32 " 32-bit numbers, one for each token; "
                                                          "convert the model again",
                       g->path, t->n);
    static const unsigned char kinds[] = {TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL,
                                          TOKEN_USER,   TOKEN_UNUSED, TOKEN_BYTE}; /* 0 is undefined, 1.. as listed */
    for (uint32_t id = 0; id < t->n; id++) {
        double type = gguf_number(types, id);
        if (type < 0 || type >= (double)sizeof kinds)
            return err_set(err, ERR_WORK, "%s: token %" PRIu32 " is of the unknown type %.0f; convert the model again",
                           g->path, id, type);
        t->kind[id] = kinds[(int)type];
    }
    return true;
}

/* ---- ids ---- */

/* A token named in metadata; without the key it is `usual` if that is a token of this kind. All ones means none. */
static bool
read_id(const struct tokenizer *t, const struct gguf *g, const char *key, token_t usual, enum token_kind kind,
        token_t *out, struct err *err)
{
    uint32_t id;
    *out = TOKEN_NONE;
    if (gguf_find(g, key) == NULL) {
        if (usual >= 0 && (uint32_t)usual < t->n && t->kind[usual] == kind)
            *out = usual;
        return true;
    }
    if (!gguf_get_u32(g, key, 0, &id, err))
        return false;
    if (id >= t->n && id != UINT32_MAX)
        return err_set(err, ERR_WORK,
                       "%s: metadata '%s' is %" PRIu32 ", but there are only %" PRIu32 " tokens; convert "
                       "the model again",
                       g->path, key, id, t->n);
    if (id != UINT32_MAX)
        *out = (token_t)id;
    return true;
}

/* Some converters leave a text's end among the normal tokens. What is named so, and written in angle brackets, is none. */
static void
mark_control(struct tokenizer *t, token_t id)
{
    const struct slice s = id == TOKEN_NONE ? (struct slice){0} : t->text[id];
    if (s.len > 2 && s.data[0] == '<' && s.data[s.len - 1] == '>' && t->kind[id] == TOKEN_NORMAL)
        t->kind[id] = TOKEN_CONTROL;
}

/* SentencePiece's usual ids are 0 for <unk>, 1 for BOS, 2 for EOS; others have none. */
bool
gguf_read_ids(struct tokenizer *t, const struct gguf *g, const struct gguf_ends *ends, struct err *err)
{
    token_t eot, eom;
    const bool pieces = ends->pieces;
    bool add_bos, add_eos;
    if (!read_id(t, g, KEY("bos_token_id"), pieces ? 1 : TOKEN_NONE, TOKEN_CONTROL, &t->bos, err) ||
        !read_id(t, g, KEY("eos_token_id"), pieces ? 2 : TOKEN_NONE, TOKEN_CONTROL, &t->eos, err) ||
        !read_id(t, g, KEY("unknown_token_id"), pieces ? 0 : TOKEN_NONE, TOKEN_UNKNOWN, &t->unknown, err) ||
        !read_id(t, g, KEY("eot_token_id"), TOKEN_NONE, TOKEN_CONTROL, &eot, err) ||
        !read_id(t, g, KEY("eom_token_id"), TOKEN_NONE, TOKEN_CONTROL, &eom, err) ||
        !gguf_get_bool(g, KEY("add_bos_token"), ends->bos, &add_bos, err) ||
        !gguf_get_bool(g, KEY("add_eos_token"), ends->eos, &add_eos, err))
        return false;
    const token_t named[] = {t->bos, t->eos, eot, eom};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        mark_control(t, named[i]);
    if (pieces && t->unknown == TOKEN_NONE)
        t->unknown = 0;
    if (eot != TOKEN_NONE)
        t->end[eot] = true;
    if (eom != TOKEN_NONE)
        t->end[eom] = true;
    if (add_bos && t->bos != TOKEN_NONE)
        t->before.ids[t->before.n++] = t->bos;
    if (add_eos && t->eos != TOKEN_NONE)
        t->after.ids[t->after.n++] = t->eos;
    return true;
}

bool
gguf_add_specials(struct tokenizer *t)
{
    const struct normal_step mark = {.kind = NORMAL_REPLACE, .from = {" ", 1}, .to = {SPACE_MARK, SPACE_MARK_LEN}};
    const struct tokenizer marking = {.normal = {mark}, .n_normal = 1};
    bool ok = true;
    struct bytes buffers[2] = {0};
    for (uint32_t id = 0; ok && id < t->n; id++) {
        struct special s = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        if (t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN ||
            (t->kind[id] == TOKEN_USER && t->byte_level))
            ok = tokenizer_add_special(&t->specials, s);
        else if (t->kind[id] == TOKEN_USER)
            ok = tokenizer_normalize(&marking, t->text[id], buffers, &s.text) &&
                 tokenizer_copy(t, s.text.data, s.text.len, &s.text) && tokenizer_add_special(&t->normal_specials, s);
    }
    free(buffers[0].at);
    free(buffers[1].at);
    return ok;
}

/* ---- merges ---- */

static bool
read_merge(struct tokenizer *t, struct slice merge, uint32_t rank)
{
    const char *space = merge.len < 3 ? NULL : memchr(merge.data + 1, ' ', merge.len - 1);
    if (space == NULL)
        return false;
    const size_t n_left = (size_t)(space - merge.data);
    return tokenizer_add_merge(t, (struct slice){merge.data, n_left}, (struct slice){space + 1, merge.len - n_left - 1},
                               rank);
}

bool
gguf_read_merges(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *merges = gguf_find(g, KEY("merges"));
    if (merges == NULL || merges->type != GGUF_ARRAY || merges->element != GGUF_STRING || merges->count > MOST_TOKENS)
        return err_set(
            err, ERR_WORK,
            "%s: has no merges (metadata '" KEY("merges") "'), which byte-level BPE needs; convert the model "
                                                          "again",
            g->path);
    struct slice *list = merges->count == 0 ? NULL : gguf_strings(merges, err);
    if (list == NULL && merges->count > 0)
        return false;
    bool ok = merge_table_make(&t->merges, (uint32_t)merges->count) || gguf_out_of_memory(t, g, err);
    for (uint32_t i = 0; ok && i < merges->count; i++) {
        char shown[48];
        ok = read_merge(t, list[i], i);
        if (!ok && t->merges.buffer.starved)
            gguf_out_of_memory(t, g, err);
        else if (!ok)
            err_set(err, ERR_WORK,
                    "%s: merge %" PRIu32 " of " KEY("merges") ", '%s', does not join two tokens into a third; convert "
                                                              "the model again",
                    g->path, i, printable_line(shown, sizeof shown, list[i].data, list[i].len));
    }
    free(list);
    return ok;
}

/* ---- all of it ---- */

/* tokenizer.chat_template is the default, tokenizer.chat_template.NAME another one. */
static bool
read_chat_templates(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    static const char key[] = "tokenizer.chat_template";
    const size_t n = sizeof key - 1;
    for (uint64_t i = 0; i < g->n_values; i++) {
        const struct gguf_value *v = &g->values[i];
        char whole[128];
        struct slice text, name = slice_of("default");
        if (v->key.len < n || v->key.len >= sizeof whole || memcmp(v->key.data, key, n) != 0)
            continue;
        if (v->key.len > n && v->key.data[n] == '.')
            name = (struct slice){v->key.data + n + 1, v->key.len - n - 1};
        else if (v->key.len > n)
            continue; /* the list of names */
        memcpy(whole, v->key.data, v->key.len);
        whole[v->key.len] = '\0';
        if (!gguf_get_string(g, whole, &text, err) ||
            (text.len > 0 && !tokenizer_add_chat_template(t, name, text, err)))
            return false;
    }
    return true;
}

static const struct {
    const char *name;
    bool (*open)(struct tokenizer *, const struct gguf *, struct err *);
} models[] = {{"llama", gguf_open_pieces},
              {"gpt2", gguf_open_byte_level},
              {"gemma4", gguf_open_ranked},
              {"t5", gguf_open_unigram}};

static bool
read_model(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct slice model;
    char shown[48];
    if (!gguf_get_string(g, KEY("model"), &model, err))
        return false;
    if (model.len == 0)
        return err_set(err, ERR_WORK,
                       "%s: does not name its tokenizer (metadata '" KEY("model") "'); convert the model "
                                                                                  "with its tokenizer",
                       g->path);
    if (slice_is(model, "bert"))
        return err_set(err, ERR_WORK, "%s: " WORDPIECE, g->path);
    bool (*open)(struct tokenizer *, const struct gguf *, struct err *) = NULL;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (slice_is(model, models[i].name))
            open = models[i].open;
    if (open == NULL)
        return err_set(err, ERR_WORK,
                       "%s: its tokenizer is '%s'; 'llama' (SentencePiece BPE), 'gpt2' (byte-level BPE), 'gemma4' and "
                       "'t5' (Unigram) are supported",
                       g->path, printable_line(shown, sizeof shown, model.data, model.len));
    return read_chat_templates(t, g, err) && read_pieces(t, g, err) && read_kinds(t, g, err) && open(t, g, err) &&
           tokenizer_finish(t, g->path, err);
}

bool
tokenizer_open(struct tokenizer **out, const struct gguf *g, struct err *err)
{
    *out = NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", g->path);
    if (!read_model(t, g, err)) {
        tokenizer_close(t);
        return false;
    }
    *out = t;
    return true;
}
