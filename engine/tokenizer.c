/* The vocabulary from GGUF metadata, and ids back to text. */
#include "engine/tokenizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer_internal.h"
#include "engine/utf8.h"

#define KEY(name) "tokenizer.ggml." name

/* Control tokens that end a turn or a text in models whose metadata does not say so. */
static const char *const end_names[] = {"</s>",    "<|endoftext|>",  "<|eot_id|>", "<|im_end|>",
                                        "<|end|>", "<end_of_turn>",  "<|eom_id|>", "<EOT>",
                                        "<|EOT|>", "<|end_of_text|>"};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD, for <unk> */

/* ---- opening ---- */

static bool
read_pieces(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *tokens = gguf_find(g, KEY("tokens"));
    if (tokens == NULL || tokens->type != GGUF_ARRAY || tokens->element != GGUF_STRING)
        return err_set(err, ERR_WORK,
                       "%s: has no vocabulary (metadata '" KEY("tokens") "'); convert the model with its tokenizer",
                       g->path);
    if (tokens->count == 0 || tokens->count > INT32_MAX / 4)
        return err_set(err, ERR_WORK, "%s: a vocabulary of %" PRIu64 " tokens cannot be used", g->path, tokens->count);
    t->n = (uint32_t)tokens->count;
    t->text = gguf_strings(tokens, err);
    return t->text != NULL;
}

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
        return err_set(err, ERR_WORK, "%s: out of memory for a vocabulary of %" PRIu32 " tokens", g->path, t->n);
    for (uint32_t id = 0; id < t->n; id++) {
        double score = gguf_number(scores, id);
        if (isnan(score))
            return err_set(err, ERR_WORK, "%s: the score of token %" PRIu32 " is not a number; convert the model again",
                           g->path, id);
        t->score[id] = (float)score;
    }
    return true;
}

static bool
read_kinds(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    t->kind = calloc(t->n, sizeof *t->kind);
    t->end = calloc(t->n, sizeof *t->end);
    if (t->kind == NULL || t->end == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for a vocabulary of %" PRIu32 " tokens", g->path, t->n);
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

/* A byte token is spelled <0x0A>. */
static int
byte_value(struct gguf_string s)
{
    static const char digits[] = "0123456789abcdef";
    if (s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>')
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
read_bytes(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    for (int i = 0; i < 256; i++)
        t->byte[i] = TOKEN_NONE;
    for (uint32_t id = 0; id < t->n; id++) {
        if (t->kind[id] != TOKEN_BYTE)
            continue;
        int value = byte_value(t->text[id]);
        char shown[32];
        if (value < 0)
            return err_set(err, ERR_WORK,
                           "%s: byte token %" PRIu32 " is spelled '%s', not like <0x0A>; convert the model again",
                           g->path, id, utf8_printable(shown, sizeof shown, t->text[id].data, t->text[id].len));
        if (t->byte[value] == TOKEN_NONE)
            t->byte[value] = (token_t)id;
    }
    return true;
}

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

static bool
read_ids(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    token_t eot, eom;
    if (!read_id(t, g, KEY("bos_token_id"), 1, TOKEN_CONTROL, &t->bos, err) ||
        !read_id(t, g, KEY("eos_token_id"), 2, TOKEN_CONTROL, &t->eos, err) ||
        !read_id(t, g, KEY("unknown_token_id"), 0, TOKEN_UNKNOWN, &t->unknown, err) ||
        !read_id(t, g, KEY("eot_token_id"), TOKEN_NONE, TOKEN_CONTROL, &eot, err) ||
        !read_id(t, g, KEY("eom_token_id"), TOKEN_NONE, TOKEN_CONTROL, &eom, err))
        return false;
    t->unknown = t->unknown == TOKEN_NONE ? 0 : t->unknown;
    const token_t named[] = {t->eos, eot, eom};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (named[i] != TOKEN_NONE)
            t->end[named[i]] = true;
    for (uint32_t id = 0; id < t->n; id++)
        for (size_t i = 0; t->kind[id] == TOKEN_CONTROL && i < sizeof end_names / sizeof end_names[0]; i++)
            if (t->text[id].len == strlen(end_names[i]) && memcmp(t->text[id].data, end_names[i], t->text[id].len) == 0)
                t->end[id] = true;
    return true;
}

static size_t
unmark_spaces(char *out, struct gguf_string piece)
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

/* What each token looks like in running text, worked out once. */
static bool
write_plain(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    size_t room = 1;
    for (uint32_t id = 0; id < t->n; id++)
        room += t->text[id].len + sizeof replacement;
    t->plain = calloc((size_t)t->n + 1, sizeof *t->plain);
    t->plain_bytes = malloc(room);
    if (t->plain == NULL || t->plain_bytes == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for a vocabulary of %" PRIu32 " tokens", g->path, t->n);
    char *at = t->plain_bytes;
    for (uint32_t id = 0; id < t->n; id++) {
        const struct gguf_string piece = t->text[id];
        size_t n = piece.len;
        if (t->kind[id] == TOKEN_BYTE) {
            *at = (char)byte_value(piece);
            n = 1;
        } else if (t->kind[id] == TOKEN_UNKNOWN) {
            n = sizeof replacement - 1;
            memcpy(at, replacement, n);
        } else if (t->kind[id] == TOKEN_CONTROL) {
            memcpy(at, piece.data, n);
        } else {
            n = unmark_spaces(at, piece);
        }
        t->plain[id] = (struct gguf_string){at, n};
        at += n;
    }
    return true;
}

static bool
check_model(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct gguf_string model;
    bool collapse;
    char shown[48];
    if (!gguf_get_string(g, KEY("model"), &model, err) ||
        !gguf_get_bool(g, KEY("add_bos_token"), true, &t->add_bos, err) ||
        !gguf_get_bool(g, KEY("add_space_prefix"), true, &t->add_space_prefix, err) ||
        !gguf_get_bool(g, KEY("remove_extra_whitespaces"), false, &collapse, err))
        return false;
    if (model.len == 0)
        return err_set(err, ERR_WORK,
                       "%s: does not name its tokenizer (metadata '" KEY("model") "'); convert the model "
                                                                                  "with its tokenizer",
                       g->path);
    if (model.len != 5 || memcmp(model.data, "llama", 5) != 0)
        return err_set(err, ERR_WORK, "%s: its tokenizer is '%s'; only 'llama' (SentencePiece BPE) is supported",
                       g->path, utf8_printable(shown, sizeof shown, model.data, model.len));
    if (collapse)
        return err_set(err, ERR_WORK, "%s: its tokenizer removes extra spaces, which is not supported", g->path);
    return true;
}

bool
tokenizer_open(struct tokenizer **out, const struct gguf *g, struct err *err)
{
    *out = NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", g->path);
    if (!check_model(t, g, err) || !read_pieces(t, g, err) || !read_scores(t, g, err) || !read_kinds(t, g, err) ||
        !read_bytes(t, g, err) || !read_ids(t, g, err) || !write_plain(t, g, err) || !tokenizer_index(t, err)) {
        tokenizer_close(t);
        return false;
    }
    *out = t;
    return true;
}

void
tokenizer_close(struct tokenizer *t)
{
    if (t == NULL)
        return;
    free(t->text);
    free(t->plain);
    free(t->score);
    free(t->kind);
    free(t->end);
    free(t->plain_bytes);
    free(t->slots);
    free(t->specials);
    free(t->special_bytes);
    free(t);
}

/* ---- looking ---- */

static bool
known(const struct tokenizer *t, token_t id)
{
    return id >= 0 && (uint32_t)id < t->n;
}

uint32_t
tokenizer_size(const struct tokenizer *t)
{
    return t->n;
}

enum token_kind
tokenizer_kind(const struct tokenizer *t, token_t id)
{
    return known(t, id) ? (enum token_kind)t->kind[id] : TOKEN_UNKNOWN;
}

token_t
tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

token_t
tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

bool
tokenizer_is_end(const struct tokenizer *t, token_t id)
{
    return known(t, id) && t->end[id];
}

void
tokenizer_add_end(struct tokenizer *t, token_t id)
{
    if (known(t, id))
        t->end[id] = true;
}

struct gguf_string
tokenizer_bytes(const struct tokenizer *t, token_t id, bool show_control)
{
    if (!known(t, id) || (t->kind[id] == TOKEN_CONTROL && !show_control))
        return (struct gguf_string){"", 0};
    return t->plain[id];
}

bool
tokenizer_decode(const struct tokenizer *t, const token_t *ids, size_t n, char **text, size_t *len, struct err *err)
{
    *text = NULL;
    *len = 0;
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += tokenizer_bytes(t, ids[i], false).len;
    char *out = malloc(room);
    if (out == NULL)
        return err_set(err, ERR_WORK, "out of memory decoding %zu tokens", n);
    size_t used = 0;
    bool first = t->add_space_prefix; /* the first text may begin with the dummy prefix */
    for (size_t i = 0; i < n; i++) {
        const struct gguf_string bytes = tokenizer_bytes(t, ids[i], false);
        const size_t dummy = first && bytes.len > 0 && bytes.data[0] == ' ' ? 1 : 0;
        first = first && bytes.len == 0;
        memcpy(out + used, bytes.data + dummy, bytes.len - dummy);
        used += bytes.len - dummy;
    }
    out[used] = '\0';
    *text = out;
    *len = used;
    return true;
}
