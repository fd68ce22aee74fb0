/* Reads SentencePiece vocabularies: the Protocol Buffers wire format, tokenizer.model, and the JSON files in its
 * directory. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/little_endian.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_files.h"

struct added_tokens {
    struct special *list; /* (n) texts are in the tokenizer's memory */
    uint32_t n;
    size_t room;
    uint32_t ids; /* highest id + 1 */
};

struct sentencepiece {
    struct tokenizer_json j; /* without a tokenizer.json */
    struct added_tokens added;
};

/* A reader of the Protocol Buffers wire format without a schema. It returns the fields of a message in order and checks
 * every length. Callers skip unknown fields. */

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;     /* for VARINT, 64 and 32 */
    struct slice bytes; /* for BYTES: a text or a nested message */
};

struct protobuf {
    struct slice rest;
    bool broken; /* it is not a message, or it is truncated */
};

#define LONGEST_VARINT 10 /* bytes of seven bits */

static bool
break_off(struct protobuf *p)
{
    p->broken = true;
    return false;
}

static bool
take(struct protobuf *p, uint64_t n, struct slice *out)
{
    if (n > p->rest.len)
        return break_off(p);
    *out = (struct slice){p->rest.data, (size_t)n};
    p->rest = (struct slice){p->rest.data + n, p->rest.len - (size_t)n};
    return true;
}

/* Reads a varint: seven bits per byte, low bits first; the high bit is clear in the last byte. */
static bool
take_varint(struct protobuf *p, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < LONGEST_VARINT && i < p->rest.len; i++) {
        const unsigned char byte = (unsigned char)p->rest.data[i];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            p->rest = (struct slice){p->rest.data + i + 1, p->rest.len - i - 1};
            return true;
        }
    }
    return break_off(p);
}

static bool
take_fixed(struct protobuf *p, size_t n, uint64_t *value)
{
    struct slice bytes;
    if (!take(p, n, &bytes))
        return false;
    *value = little_endian((const unsigned char *)bytes.data, n);
    return true;
}

/* Reads the next field. Returns false at the end of the message or if the message is broken. */
static bool
protobuf_next(struct protobuf *p, struct protobuf_field *f)
{
    uint64_t key, n;
    if (p->broken || p->rest.len == 0 || !take_varint(p, &key))
        return false;
    *f = (struct protobuf_field){.number = (uint32_t)(key >> 3), .wire = (enum protobuf_wire)(key & 7)};
    if (key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return break_off(p);
    switch (f->wire) {
    case PROTOBUF_VARINT: return take_varint(p, &f->value);
    case PROTOBUF_64: return take_fixed(p, 8, &f->value);
    case PROTOBUF_32: return take_fixed(p, 4, &f->value);
    case PROTOBUF_BYTES: return take_varint(p, &n) && take(p, n, &f->bytes);
    }
    return break_off(p); /* groups are obsolete */
}

/* Returns the value of a PROTOBUF_32 field as a float. */
static float
protobuf_float(const struct protobuf_field *f)
{
    const uint32_t bits = (uint32_t)f->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads a vocabulary from SentencePiece's tokenizer.model: a Protocol Buffers message with the pieces (field 1), the
 * trainer's settings (2) and the normaliser's settings (3). */

enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_KIND = 3 };
enum { TRAINER_MODEL = 3, TRAINER_SUFFIX = 24, TRAINER_BOS = 46, TRAINER_EOS = 47 };
enum { NORMALIZER_MAP = 2, NORMALIZER_PREFIX = 3, NORMALIZER_COLLAPSE = 4, NORMALIZER_MARK = 5 };
enum { UNIGRAM = 1, BPE = 2, WORD = 3, CHARACTER = 4 };

/* The file's settings; they are initialised with the defaults of absent fields. */
struct spec {
    uint64_t model, n_pieces;
    bool suffix;
    struct slice bos, eos;
    struct normal_step normal;
};

static bool
broken(const struct sentencepiece *s)
{
    return err_set(s->j.err, ERR_WORK, "%s: tokenizer.model is damaged or was cut short; fetch it again", s->j.where);
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
    if (!tokenizer_copy(s->j.t, map.data, map.len, &map))
        return json_no_memory(&s->j);
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
        return err_set(s->j.err, ERR_WORK, "%s: tokenizer.model has %" PRIu64 " pieces, which cannot be used",
                       s->j.where, spec->n_pieces);
    if (spec->model != UNIGRAM && spec->model != BPE)
        return err_set(s->j.err, ERR_WORK,
                       "%s: tokenizer.model is SentencePiece's of %s; those of pieces (BPE, Unigram) are supported",
                       s->j.where,
                       spec->model == WORD        ? "whole words"
                       : spec->model == CHARACTER ? "characters"
                                                  : "another kind");
    return !spec->suffix || err_set(s->j.err, ERR_WORK,
                                    "%s: its tokenizer puts spaces behind words, which is not supported", s->j.where);
}

/* ---- pieces ---- */

static bool
read_piece(const struct sentencepiece *s, struct slice message, uint32_t id)
{
    static const unsigned char kinds[] = {TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL,
                                          TOKEN_USER,   TOKEN_UNUSED, TOKEN_BYTE}; /* 1.. as listed */
    struct tokenizer *t = s->j.t;
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
        return err_set(s->j.err, ERR_WORK, "%s: piece %" PRIu32 " of tokenizer.model has no score or an unknown type",
                       s->j.where, id);
    t->kind[id] = kinds[kind];
    t->score[id] = (double)score;
    t->bonus[id] = t->unigram && t->kind[id] == TOKEN_USER;
    if (t->kind[id] == TOKEN_UNKNOWN && t->unknown == TOKEN_NONE)
        t->unknown = (token_t)id;
    return tokenizer_copy(t, text.data, text.len, &t->text[id]) || json_no_memory(&s->j);
}

/* Control tokens are searched for in the input. User-defined tokens are not changed by normalisation and are searched
 * for after it, except in Unigram models, which score them. */
static bool
add_specials(const struct sentencepiece *s, uint32_t n)
{
    struct tokenizer *t = s->j.t;
    bool ok = true;
    for (uint32_t id = 0; ok && id < n; id++) {
        const struct special special = {.text = t->text[id], .id = (token_t)id, .control = t->kind[id] != TOKEN_USER};
        if (t->kind[id] == TOKEN_CONTROL || t->kind[id] == TOKEN_UNKNOWN)
            ok = tokenizer_add_special(&t->specials, special);
        else if (t->kind[id] == TOKEN_USER)
            ok = tokenizer_add_special(&t->symbols, special) &&
                 (t->unigram || tokenizer_add_special(&t->normal_specials, special));
    }
    return ok || json_no_memory(&s->j);
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
    struct tokenizer *t = s->j.t;
    const uint32_t n = (uint32_t)spec->n_pieces, ids = s->added.ids > n ? s->added.ids : n;
    if (ids > 4 * n + 4096)
        return err_set(s->j.err, ERR_WORK, "%s: added ids go up to %" PRIu32 ", but there are only %" PRIu32 " pieces",
                       s->j.where, ids - 1, n);
    t->unigram = t->single_precision = spec->model == UNIGRAM;
    t->fuse_unknown = true;
    tokenizer_trim_space(&t->trim, spec->normal.prefix || spec->normal.collapse);
    if (!tokenizer_make_room(t, ids, s->j.where, s->j.err))
        return false;
    t->score = calloc(ids, sizeof *t->score);
    t->bonus = calloc(ids, sizeof *t->bonus);
    if (t->score == NULL || t->bonus == NULL)
        return json_no_memory(&s->j);
    struct protobuf p = {.rest = model};
    uint32_t id = 0;
    for (struct protobuf_field f; protobuf_next(&p, &f);)
        if (f.number == MODEL_PIECE && f.wire == PROTOBUF_BYTES && !read_piece(s, f.bytes, id++))
            return false;
    for (; id < ids; id++)
        t->kind[id] = TOKEN_UNUSED;
    if (t->unknown == TOKEN_NONE)
        return err_set(s->j.err, ERR_WORK, "%s: tokenizer.model has no unknown token; fetch it again", s->j.where);
    t->bos = find_control(t, n, spec->bos);
    t->eos = find_control(t, n, spec->eos);
    snprintf(t->description, sizeof t->description, "SentencePiece %s", t->unigram ? "Unigram" : "BPE");
    return add_specials(s, n) && (tokenizer_add_normal_step(t, spec->normal) || json_no_memory(&s->j));
}

/* The JSON files in the directory of a tokenizer.model: added tokens, BOS and EOS, and the chat template. */

#define MOST_ADDED 20000

static bool
list_one(struct sentencepiece *s, struct special special, double id)
{
    struct added_tokens *a = &s->added;
    char shown[48];
    if (special.text.len == 0 || !(id >= 0 && id < MOST_TOKENS) || floor(id) < id)
        return err_set(s->j.err, ERR_WORK, "%s: the id of the added token '%s' cannot be used", s->j.where,
                       printable_line(shown, sizeof shown, special.text.data, special.text.len));
    if (a->n == MOST_ADDED)
        return err_set(s->j.err, ERR_WORK, "%s: more than %d added tokens beside a tokenizer.model are not supported",
                       s->j.where, MOST_ADDED);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->list[i].id == (token_t)id)
            return true; /* tokenizer_config.json is read first; its entry has more attributes */
    special.id = (token_t)id;
    if (!array_grow(&a->list, &a->room, a->n + 1, sizeof *a->list) ||
        !tokenizer_copy(s->j.t, special.text.data, special.text.len, &special.text))
        return json_no_memory(&s->j);
    a->list[a->n++] = special;
    a->ids = (uint32_t)id >= a->ids ? (uint32_t)id + 1 : a->ids;
    return true;
}

/* {"32000": {"content": "<|im_start|>", "special": true, …}} */
static bool
list_decoder(struct sentencepiece *s, const cJSON *decoder)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, decoder)
    {
        char *end;
        const double id = strtod(item->string, &end);
        if (!list_one(s, json_special(item), *end == '\0' && end != item->string ? id : -1))
            return false;
    }
    return true;
}

/* {"<|im_start|>": 32000}: a token in angle brackets is treated as a control token. */
static bool
list_plain(struct sentencepiece *s, const cJSON *added)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, added)
    {
        const struct slice text = slice_of(item->string);
        const bool bracketed = text.len > 2 && ((text.data[0] == '<' && text.data[text.len - 1] == '>') ||
                                                (text.data[0] == '[' && text.data[text.len - 1] == ']'));
        if (!list_one(s, (struct special){.text = text, .control = bracketed},
                      cJSON_IsNumber(item) ? item->valuedouble : -1))
            return false;
    }
    return true;
}

/* Reads the settings, and lists the tokens that were added to the vocabulary. */
static bool
list_added(struct sentencepiece *s, struct slice config, struct slice added)
{
    cJSON *list = NULL;
    const bool ok = json_parse(&s->j, config, "tokenizer_config.json", &s->j.config) &&
                    json_parse(&s->j, added, "added_tokens.json", &list) &&
                    list_decoder(s, json_get(s->j.config, "added_tokens_decoder")) && list_plain(s, list);
    cJSON_Delete(list);
    return ok;
}

/* ---- after the arrays are allocated ---- */

/* Removes a token's entry of the model file, which an added token replaces. */
static void
forget(struct special_set *set, token_t id)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->list[i].id != id)
            set->list[kept++] = set->list[i];
    set->n = kept;
}

static bool
add_tokens(struct sentencepiece *s)
{
    struct tokenizer *t = s->j.t;
    for (uint32_t i = 0; i < s->added.n; i++) {
        const struct special *a = &s->added.list[i];
        const uint32_t id = (uint32_t)a->id;
        forget(&t->specials, a->id);
        forget(&t->normal_specials, a->id);
        if (t->kind[id] != TOKEN_UNKNOWN && t->kind[id] != TOKEN_BYTE)
            t->kind[id] = a->control ? TOKEN_CONTROL : TOKEN_USER;
        t->bonus[id] = false;
        t->text[id] = t->plain[id] = a->text;
        if (t->kind[id] == TOKEN_UNKNOWN || t->kind[id] == TOKEN_BYTE)
            t->plain[id].data = NULL; /* tokenizer_finish() sets the text of these kinds */
        if (!tokenizer_add_special(&t->specials, *a))
            return json_no_memory(&s->j);
    }
    return true;
}

/* Returns the token that a key of tokenizer_config.json names; `usual` if the key is absent. */
static token_t
named(const struct tokenizer *t, const cJSON *config, const char *key, token_t usual)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(config, key);
    const struct slice text = json_text(cJSON_IsObject(value) ? json_get(value, "content") : value);
    if (value == NULL)
        return usual;
    for (uint32_t id = 0; text.len > 0 && id < t->n; id++)
        if (t->text[id].data != NULL && slice_compare(t->text[id], text) == 0)
            return (token_t)id;
    return TOKEN_NONE;
}

/* Reads BOS and EOS. As in transformers 5 they are added where the settings say so; T5 adds EOS, whatever they say. */
static void
read_ends(struct tokenizer *t, const cJSON *config)
{
    const struct slice name = json_text(json_get(config, "tokenizer_class"));
    const bool t5 = strncmp(name.data, "T5Tokenizer", 11) == 0;
    t->bos = named(t, config, "bos_token", t->bos);
    t->eos = named(t, config, "eos_token", t->eos);
    if (t->bos != TOKEN_NONE && !t5 && cJSON_IsTrue(json_get(config, "add_bos_token")))
        t->before.ids[t->before.n++] = t->bos;
    if (t->eos != TOKEN_NONE && (t5 || cJSON_IsTrue(json_get(config, "add_eos_token"))))
        t->after.ids[t->after.n++] = t->eos;
}

/* ---- the whole file ---- */

/* Returns whether the file is in tiktoken's format (lines of base64 and a number), which Llama 3 and others distribute
 * under the same name. */
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
read_model(struct sentencepiece *s, const struct tokenizer_files *files)
{
    struct spec spec;
    struct tokenizer *t = s->j.t;
    if (is_tiktoken(files->model))
        return err_set(s->j.err, ERR_WORK,
                       "%s: tokenizer.model is tiktoken's list of tokens, which lacks how text is cut; save the "
                       "model's tokenizer.json with the transformers package",
                       s->j.where);
    if (!read_spec(s, files->model, &spec) || !list_added(s, files->config, files->added) ||
        !read_pieces(s, files->model, &spec) || !add_tokens(s))
        return false;
    read_ends(t, s->j.config);
    if (!json_read_chat_template(&s->j))
        return false;
    const bool ok = t->unigram ? tokenizer_make_unigram(t) : tokenizer_index_pieces(t, NULL);
    return (ok || json_no_memory(&s->j)) && tokenizer_finish(t, s->j.where, s->j.err);
}

bool
tokenizer_from_sentencepiece(struct tokenizer **out, const struct tokenizer_files *files, const char *where,
                             struct err *err)
{
    struct sentencepiece s = {.j = {.t = calloc(1, sizeof *s.j.t), .where = where, .err = err}};
    *out = NULL;
    const bool ok = s.j.t != NULL ? read_model(&s, files) : json_no_memory(&s.j);
    cJSON_Delete(s.j.config);
    free(s.added.list);
    if (ok)
        *out = s.j.t;
    else
        tokenizer_close(s.j.t);
    return ok;
}
