/* Reads vocabularies from GGUF metadata. Byte-level BPE ("gpt2") has pieces, merges and the name of a pre-tokenizer. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_files.h"

/* The part of the metadata that all kinds of vocabularies have. */

static bool
out_of_memory(const struct tokenizer *t, const struct gguf *g, struct err *err)
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
        return true; /* all tokens are normal */
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

/* Reads a token id from metadata. Without the key it is `usual` if that token is of this kind. An id of all ones is
 * TOKEN_NONE. */
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

/* Some converters mark end tokens as normal. A token that metadata names as an end token and that is in angle brackets
 * becomes a control token. */
static void
mark_control(struct tokenizer *t, token_t id)
{
    const struct slice s = id == TOKEN_NONE ? (struct slice){0} : t->text[id];
    if (s.len > 2 && s.data[0] == '<' && s.data[s.len - 1] == '>' && t->kind[id] == TOKEN_NORMAL)
        t->kind[id] = TOKEN_CONTROL;
}

/* SentencePiece's usual ids are 0 for <unk>, 1 for BOS, 2 for EOS; other vocabularies have no usual ids. */
static bool
read_ids(struct tokenizer *t, const struct gguf *g, const struct gguf_ends *ends, struct err *err)
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

/* As in SentencePiece, user-defined tokens are searched for after spaces have become ▁. Control tokens are searched for
 * in the input; the text after one is separate and gets its own dummy prefix. */
static bool
add_specials(struct tokenizer *t)
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

static bool
read_merges(struct tokenizer *t, const struct gguf *g, struct err *err)
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
    bool ok = merge_table_make(&t->merges, (uint32_t)merges->count) || out_of_memory(t, g, err);
    for (uint32_t i = 0; ok && i < merges->count; i++) {
        char shown[48];
        ok = read_merge(t, list[i], i);
        if (!ok && t->merges.buffer.starved)
            out_of_memory(t, g, err);
        else if (!ok)
            err_set(err, ERR_WORK,
                    "%s: merge %" PRIu32 " of " KEY("merges") ", '%s', does not join two tokens into a third; convert "
                                                              "the model again",
                    g->path, i, printable_line(shown, sizeof shown, list[i].data, list[i].len));
    }
    free(list);
    return ok;
}

/* ---- byte-level BPE ---- */

/* Sets `pieces` for the tokens that can result from merges or text. */
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

/* Some converters mark added tokens (StarCoder's <fim_prefix>, Falcon's <|endoftext|>) as normal. A normal token in
 * angle brackets that no merge produces is treated as a control token. */
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
    return !family->nfc || tokenizer_add_normal_step(t, (struct normal_step){.kind = NORMAL_NFC});
}

/* With `add_space_prefix` a space is prepended to a text that does not begin with one. */
static bool
add_prefix(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), false, &prefix, err))
        return false;
    tokenizer_trim_space(&t->trim, prefix);
    return !prefix || pretokenizer_add_prefix(t->pre, " ", 1, false, err);
}

/* Opens a byte-level vocabulary whose pieces, kinds and chat templates have been read. */
static bool
open_byte_level(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool bos = false;
    t->byte_level = true;
    if (!choose_pretokenizer(t, g, &bos, err) || !add_prefix(t, g, err) ||
        !read_ids(t, g, &(struct gguf_ends){.bos = bos}, err))
        return false;
    bool *pieces = malloc(t->n * sizeof *pieces);
    if (pieces == NULL || !decode_pieces(t, pieces)) {
        free(pieces);
        return out_of_memory(t, g, err);
    }
    const bool ok = (tokenizer_index_pieces(t, pieces) && add_specials(t)) || out_of_memory(t, g, err);
    free(pieces);
    return ok && read_merges(t, g, err) && (mark_added(t) || out_of_memory(t, g, err));
}

/* Vocabularies of text pieces in GGUF metadata: SentencePiece BPE, which merges by score ("llama"), Unigram, which cuts
 * by score ("t5"), and BPE that merges by rank ("gemma4"). */

static bool
read_scores(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *scores = gguf_find(g, KEY("scores"));
    if (scores == NULL || scores->type != GGUF_ARRAY || scores->element != GGUF_F32 || scores->count != t->n)
        return err_set(err, ERR_WORK,
                       "%s: metadata '" KEY("scores") "' should be %" PRIu32 " reals, one for each token; convert the "
                                                      "model again",
                       g->path, t->n);
    t->score = malloc(t->n * sizeof *t->score);
    if (t->score == NULL)
        return out_of_memory(t, g, err);
    for (uint32_t id = 0; id < t->n; id++) {
        double score = gguf_number(scores, id);
        if (isnan(score))
            return err_set(err, ERR_WORK, "%s: the score of token %" PRIu32 " is not a number; convert the model again",
                           g->path, id);
        t->score[id] = score;
    }
    return true;
}

/* "llama": SentencePiece BPE */
static bool
open_pieces(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool collapse, prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), true, &prefix, err) ||
        !gguf_get_bool(g, KEY("remove_extra_whitespaces"), false, &collapse, err))
        return false;
    if (collapse)
        return err_set(err, ERR_WORK, "%s: its tokenizer removes extra spaces, which is not supported", g->path);
    snprintf(t->description, sizeof t->description, "SentencePiece BPE");
    return read_scores(t, g, err) && read_ids(t, g, &(struct gguf_ends){.pieces = true, .bos = true}, err) &&
           ((tokenizer_index_pieces(t, NULL) && tokenizer_mark_spaces(t, prefix) && add_specials(t)) ||
            out_of_memory(t, g, err));
}

/* ---- by rank ---- */

/* "gemma4": text pieces with ranked merges. Before merging only spaces are replaced, by SPACE_MARK. */
static bool
open_ranked(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    bool prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), false, &prefix, err) ||
        !read_ids(t, g, &(struct gguf_ends){.bos = true}, err))
        return false;
    t->fuse_unknown = true;
    snprintf(t->description, sizeof t->description, "BPE of SentencePiece's");
    if (!tokenizer_index_pieces(t, NULL) || !tokenizer_mark_spaces(t, prefix))
        return out_of_memory(t, g, err);
    for (uint32_t id = 0; id < t->n; id++) { /* added tokens are searched for in the input */
        const struct special s = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        if ((t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN || t->kind[id] == TOKEN_USER) &&
            !tokenizer_add_special(&t->specials, s))
            return out_of_memory(t, g, err);
    }
    return read_merges(t, g, err);
}

/* ---- Unigram ---- */

static bool
read_normalizer(const struct gguf *g, struct normal_step *step, struct err *err)
{
    static const char key[] = KEY("precompiled_charsmap");
    const struct gguf_value *map = gguf_find(g, key);
    struct slice bytes = {"", 0};
    *step = (struct normal_step){.kind = NORMAL_SENTENCEPIECE, .to = {"", 0}, .mark = true};
    if (!gguf_get_bool(g, KEY("add_space_prefix"), true, &step->prefix, err) ||
        !gguf_get_bool(g, KEY("remove_extra_whitespaces"), true, &step->collapse, err))
        return false;
    if (map != NULL && map->type == GGUF_ARRAY && (map->element == GGUF_U8 || map->element == GGUF_I8))
        bytes = (struct slice){(const char *)map->at, (size_t)map->count};
    else if (map != NULL)
        return err_set(err, ERR_WORK, "%s: metadata '%s' should be bytes; convert the model again", g->path, key);
    return charsmap_read(&step->map, bytes) || /* the file outlives the tokenizer */
           err_set(err, ERR_WORK, "%s: metadata '%s' is damaged; convert the model again", g->path, key);
}

/* "t5" */
static bool
open_unigram(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct normal_step step;
    t->unigram = t->single_precision = true;
    if (!read_scores(t, g, err) || !read_normalizer(g, &step, err) ||
        !read_ids(t, g, &(struct gguf_ends){.eos = true}, err))
        return false;
    for (uint32_t id = 0; t->unknown == TOKEN_NONE && id < t->n; id++)
        if (t->kind[id] == TOKEN_UNKNOWN)
            t->unknown = (token_t)id;
    tokenizer_trim_space(&t->trim, step.prefix || step.collapse);
    t->bonus = calloc(t->n, sizeof *t->bonus);
    bool ok = t->bonus != NULL && tokenizer_add_normal_step(t, step);
    for (uint32_t id = 0; ok && id < t->n; id++) {
        const struct special s = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        t->bonus[id] = t->kind[id] == TOKEN_USER;
        if (t->bonus[id])
            ok = tokenizer_add_special(&t->symbols, s);
        else if (t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN)
            ok = tokenizer_add_special(&t->specials, s);
    }
    snprintf(t->description, sizeof t->description, "SentencePiece Unigram");
    return (ok && tokenizer_make_unigram(t)) || out_of_memory(t, g, err);
}

/* ---- the whole tokenizer ---- */

/* Reads the default chat template, tokenizer.chat_template, and the named ones, tokenizer.chat_template.NAME. */
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
} models[] = {{"llama", open_pieces}, {"gpt2", open_byte_level}, {"gemma4", open_ranked}, {"t5", open_unigram}};

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
