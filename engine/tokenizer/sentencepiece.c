/* A vocabulary from SentencePiece's own file, tokenizer.model: a message of Protocol Buffers with pieces (field 1), how it was
 * trained (2) and how text is normalised (3). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/printable.h"
#include "engine/tokenizer/protobuf.h"
#include "engine/tokenizer/sentencepiece.h"

enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_KIND = 3 };
enum { TRAINER_MODEL = 3, TRAINER_SUFFIX = 24, TRAINER_BOS = 46, TRAINER_EOS = 47 };
enum { NORMALIZER_MAP = 2, NORMALIZER_PREFIX = 3, NORMALIZER_COLLAPSE = 4, NORMALIZER_MARK = 5 };
enum { UNIGRAM = 1, BPE = 2, WORD = 3, CHARACTER = 4 };

/* What the file says beside the pieces; first what it means not to say it. */
struct spec {
    uint64_t model, n_pieces;
    bool suffix;
    struct slice bos, eos;
    struct normal_step normal;
};

static bool
broken(const struct sentencepiece *s)
{
    return err_set(s->err, ERR_WORK, "%s: tokenizer.model is damaged or was cut short; fetch it again", s->where);
}

static bool
out_of_memory(const struct sentencepiece *s)
{
    return err_set(s->err, ERR_WORK, "%s: out of memory for the tokenizer", s->where);
}

/* ---- settings ---- */

static bool
read_trainer(const struct sentencepiece *s, struct slice message, struct spec *spec)
{
    struct protobuf p = {.rest = message};
    for (struct protobuf_field f; protobuf_next(&p, &f);) {
        if (f.number == TRAINER_MODEL && f.wire == PROTOBUF_VARINT)
            spec->model = f.value;
        else if (f.number == TRAINER_SUFFIX && f.wire == PROTOBUF_VARINT)
            spec->suffix = f.value != 0;
        else if (f.number == TRAINER_BOS && f.wire == PROTOBUF_BYTES)
            spec->bos = f.bytes;
        else if (f.number == TRAINER_EOS && f.wire == PROTOBUF_BYTES)
            spec->eos = f.bytes;
    }
    return !p.broken || broken(s);
}

static bool
read_normalizer(const struct sentencepiece *s, struct slice message, struct spec *spec)
{
    struct protobuf p = {.rest = message};
    struct slice map = {"", 0};
    for (struct protobuf_field f; protobuf_next(&p, &f);) {
        if (f.number == NORMALIZER_MAP && f.wire == PROTOBUF_BYTES)
            map = f.bytes;
        else if (f.number == NORMALIZER_PREFIX && f.wire == PROTOBUF_VARINT)
            spec->normal.prefix = f.value != 0;
        else if (f.number == NORMALIZER_COLLAPSE && f.wire == PROTOBUF_VARINT)
            spec->normal.collapse = f.value != 0;
        else if (f.number == NORMALIZER_MARK && f.wire == PROTOBUF_VARINT)
            spec->normal.mark = f.value != 0;
    }
    if (p.broken)
        return broken(s);
    if (!tokenizer_copy(s->t, map.data, map.len, &map))
        return out_of_memory(s);
    return charsmap_read(&spec->normal.map, map) || broken(s);
}

static bool
read_spec(const struct sentencepiece *s, struct slice model, struct spec *spec)
{
    struct protobuf p = {.rest = model};
    *spec = (struct spec){.model = UNIGRAM, .bos = slice_of("<s>"), .eos = slice_of("</s>")};
    spec->normal = (struct normal_step){
        .kind = NORMAL_SENTENCEPIECE, .map.texts = {"", 0}, .prefix = true, .collapse = true, .mark = true};
    for (struct protobuf_field f; protobuf_next(&p, &f);) {
        if (f.wire != PROTOBUF_BYTES)
            continue;
        spec->n_pieces += f.number == MODEL_PIECE;
        if ((f.number == MODEL_TRAINER && !read_trainer(s, f.bytes, spec)) ||
            (f.number == MODEL_NORMALIZER && !read_normalizer(s, f.bytes, spec)))
            return false;
    }
    if (p.broken)
        return broken(s);
    if (spec->n_pieces == 0 || spec->n_pieces > MOST_TOKENS)
        return err_set(s->err, ERR_WORK, "%s: tokenizer.model has %" PRIu64 " pieces, which cannot be used", s->where,
                       spec->n_pieces);
    if (spec->model != UNIGRAM && spec->model != BPE)
        return err_set(s->err, ERR_WORK,
                       "%s: tokenizer.model is SentencePiece's of %s; those of pieces (BPE, Unigram) are supported",
                       s->where,
                       spec->model == WORD        ? "whole words"
                       : spec->model == CHARACTER ? "characters"
                                                  : "another kind");
    return !spec->suffix ||
           err_set(s->err, ERR_WORK, "%s: its tokenizer puts spaces behind words, which is not supported", s->where);
}

/* ---- pieces ---- */

static bool
read_piece(const struct sentencepiece *s, struct slice message, uint32_t id)
{
    static const unsigned char kinds[] = {TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL,
                                          TOKEN_USER,   TOKEN_UNUSED, TOKEN_BYTE}; /* 1.. as listed */
    struct tokenizer *t = s->t;
    struct protobuf p = {.rest = message};
    struct slice text = {"", 0};
    uint64_t kind = 1;
    float score = 0;
    for (struct protobuf_field f; protobuf_next(&p, &f);) {
        if (f.number == PIECE_TEXT && f.wire == PROTOBUF_BYTES)
            text = f.bytes;
        else if (f.number == PIECE_SCORE && f.wire == PROTOBUF_32)
            score = protobuf_float(&f);
        else if (f.number == PIECE_KIND && f.wire == PROTOBUF_VARINT)
            kind = f.value;
    }
    if (p.broken)
        return broken(s);
    if (isnan(score) || kind == 0 || kind >= sizeof kinds)
        return err_set(s->err, ERR_WORK, "%s: piece %" PRIu32 " of tokenizer.model has no score or an unknown type",
                       s->where, id);
    t->kind[id] = kinds[kind];
    t->score[id] = (double)score;
    t->bonus[id] = t->unigram && t->kind[id] == TOKEN_USER;
    if (t->kind[id] == TOKEN_UNKNOWN && t->unknown == TOKEN_NONE)
        t->unknown = (token_t)id;
    return tokenizer_copy(t, text.data, text.len, &t->text[id]) || out_of_memory(s);
}

/* Control tokens are looked for in the input; those that a user defined stay as they are when it is normalised and are, but
 * for unigram models, which score them, looked for behind that. */
static bool
add_specials(const struct sentencepiece *s, uint32_t n)
{
    struct tokenizer *t = s->t;
    bool ok = true;
    for (uint32_t id = 0; ok && id < n; id++) {
        const struct special special = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        if (t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN)
            ok = tokenizer_add_special(&t->specials, special);
        else if (t->kind[id] == TOKEN_USER)
            ok = tokenizer_add_special(&t->symbols, special) &&
                 (t->unigram || tokenizer_add_special(&t->normal_specials, special));
    }
    return ok || out_of_memory(s);
}

static token_t
find_control(const struct tokenizer *t, uint32_t n, struct slice name)
{
    for (uint32_t id = 0; id < n; id++)
        if (t->kind[id] == TOKEN_CONTROL && slice_compare(t->text[id], name) == 0)
            return (token_t)id;
    return TOKEN_NONE;
}

static bool
read_pieces(const struct sentencepiece *s, struct slice model, const struct spec *spec)
{
    struct tokenizer *t = s->t;
    const uint32_t n = (uint32_t)spec->n_pieces, ids = s->added.ids > n ? s->added.ids : n;
    if (ids > 4 * n + 4096)
        return err_set(s->err, ERR_WORK, "%s: added ids go up to %" PRIu32 ", but there are only %" PRIu32 " pieces",
                       s->where, ids - 1, n);
    t->unigram = t->single_precision = spec->model == UNIGRAM;
    t->fuse_unknown = true;
    t->strips_space = spec->normal.prefix || spec->normal.collapse;
    if (!tokenizer_make_room(t, ids, s->where, s->err))
        return false;
    t->score = calloc(ids, sizeof *t->score);
    t->bonus = calloc(ids, sizeof *t->bonus);
    if (t->score == NULL || t->bonus == NULL)
        return out_of_memory(s);
    struct protobuf p = {.rest = model};
    uint32_t id = 0;
    for (struct protobuf_field f; protobuf_next(&p, &f);)
        if (f.number == MODEL_PIECE && f.wire == PROTOBUF_BYTES && !read_piece(s, f.bytes, id++))
            return false;
    for (; id < ids; id++)
        t->kind[id] = TOKEN_UNUSED;
    if (t->unknown == TOKEN_NONE)
        return err_set(s->err, ERR_WORK, "%s: tokenizer.model has no unknown token; fetch it again", s->where);
    t->bos = find_control(t, n, spec->bos);
    t->eos = find_control(t, n, spec->eos);
    snprintf(t->description, sizeof t->description, "SentencePiece %s", t->unigram ? "Unigram" : "BPE");
    return add_specials(s, n) && (tokenizer_add_normal_step(t, spec->normal) || out_of_memory(s));
}

/* ---- all of it ---- */

/* Llama 3 and others have a file of the same name: lines of base64 and a number. */
static bool
is_tiktoken(struct slice model)
{
    size_t n = 0;
    while (n < model.len && n < 400 && (unsigned char)model.data[n] > ' ' && (unsigned char)model.data[n] < 0x7f)
        n++;
    return n > 0 && n % 4 == 0 && n + 1 < model.len && model.data[n] == ' ' && model.data[n + 1] >= '0' &&
           model.data[n + 1] <= '9';
}

static bool
read_model(struct sentencepiece *s, const struct sentencepiece_files *files)
{
    struct spec spec;
    struct tokenizer *t = s->t;
    if (is_tiktoken(files->model))
        return err_set(
            s->err, ERR_WORK,
            "%s: tokenizer.model is tiktoken's list of tokens, which lacks how text is cut; save the model's "
            "tokenizer.json with the transformers package",
            s->where);
    if (!read_spec(s, files->model, &spec) || !sentencepiece_list_added(s, files->config, files->added) ||
        !read_pieces(s, files->model, &spec) || !sentencepiece_read_config(s, files->config))
        return false;
    const bool ok = t->unigram ? tokenizer_make_unigram(t) : tokenizer_index_pieces(t, NULL);
    return (ok || out_of_memory(s)) && tokenizer_finish(t, s->where, s->err);
}

bool
tokenizer_from_sentencepiece(struct tokenizer **out, const struct sentencepiece_files *files, const char *where,
                             struct err *err)
{
    struct sentencepiece s = {.t = calloc(1, sizeof *s.t), .where = where, .err = err};
    *out = NULL;
    const bool ok = s.t != NULL ? read_model(&s, files) : out_of_memory(&s);
    free(s.added.list);
    if (ok)
        *out = s.t;
    else
        tokenizer_close(s.t);
    return ok;
}
