/* Vocabularies of pieces of text in GGUF metadata: SentencePiece's, which merge by score ("llama") or are cut by it ("t5"), and
 * those that merge by rank ("gemma4"). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "engine/tokenizer/tokenizer_gguf.h"

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
        return gguf_out_of_memory(t, g, err);
    for (uint32_t id = 0; id < t->n; id++) {
        double score = gguf_number(scores, id);
        if (isnan(score))
            return err_set(err, ERR_WORK, "%s: the score of token %" PRIu32 " is not a number; convert the model again",
                           g->path, id);
        t->score[id] = score;
    }
    return true;
}

bool
gguf_open_pieces(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct slice space = {" ", 1}, mark = {SPACE_MARK, SPACE_MARK_LEN};
    bool collapse, prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), true, &prefix, err) ||
        !gguf_get_bool(g, KEY("remove_extra_whitespaces"), false, &collapse, err))
        return false;
    if (collapse)
        return err_set(err, ERR_WORK, "%s: its tokenizer removes extra spaces, which is not supported", g->path);
    t->strips_space = prefix;
    snprintf(t->description, sizeof t->description, "SentencePiece BPE");
    return read_scores(t, g, err) && gguf_read_ids(t, g, &(struct gguf_ends){.pieces = true, .bos = true}, err) &&
           ((tokenizer_index_pieces(t, NULL) && tokenizer_add_normal(t, NORMAL_REPLACE, space, mark) &&
             (!prefix || tokenizer_add_normal(t, NORMAL_PREPEND, space, mark)) && gguf_add_specials(t)) ||
            gguf_out_of_memory(t, g, err));
}

/* ---- by rank ---- */

/* Gemma 4's: spaces are marked, nothing else happens to a text before its characters merge. */
bool
gguf_open_ranked(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct slice space = {" ", 1}, mark = {SPACE_MARK, SPACE_MARK_LEN};
    bool prefix;
    if (!gguf_get_bool(g, KEY("add_space_prefix"), false, &prefix, err) ||
        !gguf_read_ids(t, g, &(struct gguf_ends){.bos = true}, err))
        return false;
    t->fuse_unknown = true;
    t->strips_space = prefix;
    snprintf(t->description, sizeof t->description, "BPE of SentencePiece's");
    if (!tokenizer_index_pieces(t, NULL) || !tokenizer_add_normal(t, NORMAL_REPLACE, space, mark) ||
        (prefix && !tokenizer_add_normal(t, NORMAL_PREPEND, space, mark)))
        return gguf_out_of_memory(t, g, err);
    for (uint32_t id = 0; id < t->n; id++) { /* added tokens are looked for as they are written */
        const struct special s = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        if ((t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN || t->kind[id] == TOKEN_USER) &&
            !tokenizer_add_special(&t->specials, s))
            return gguf_out_of_memory(t, g, err);
    }
    return gguf_read_merges(t, g, err);
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

bool
gguf_open_unigram(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct normal_step step;
    t->unigram = t->single_precision = true;
    if (!read_scores(t, g, err) || !read_normalizer(g, &step, err) ||
        !gguf_read_ids(t, g, &(struct gguf_ends){.eos = true}, err))
        return false;
    for (uint32_t id = 0; t->unknown == TOKEN_NONE && id < t->n; id++)
        if (t->kind[id] == TOKEN_UNKNOWN)
            t->unknown = (token_t)id;
    t->strips_space = step.prefix || step.collapse;
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
    return (ok && tokenizer_make_unigram(t)) || gguf_out_of_memory(t, g, err);
}
