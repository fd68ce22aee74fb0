/* Reads Hugging Face's tokenizer.json and tokenizer_config.json: the model (BPE, byte-level or with SentencePiece's
 * pieces, or Unigram), the added tokens, the tokens before and after a text (post_processor), BOS, EOS and the chat
 * template. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_files.h"

#define GAPS 4096u /* most unused ids: this number plus three per token */

bool
json_no_memory(const struct tokenizer_json *j)
{
    return err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
}

struct slice
json_text(const cJSON *value)
{
    return slice_of(cJSON_IsString(value) && value->valuestring != NULL ? value->valuestring : "");
}

const cJSON *
json_get(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    return cJSON_IsNull(value) ? NULL : value;
}

bool
json_unsupported(const struct tokenizer_json *j, const char *what, const char *name)
{
    char shown[80];
    return err_set(j->err, ERR_WORK, "%s: the %s '%s' is not supported", j->where, what,
                   printable_line(shown, sizeof shown, name, strlen(name)));
}

bool
json_parse(const struct tokenizer_json *j, struct slice text, const char *file, cJSON **out)
{
    if (text.data == NULL)
        *out = cJSON_CreateObject();
    if (text.data == NULL ? *out == NULL : !json_read_python(out, text.data, text.len))
        return json_no_memory(j);
    return cJSON_IsObject(*out) ||
           err_set(j->err, ERR_WORK, "%s: %s is no JSON object; fetch or save it again", j->where, file);
}

struct special
json_special(const cJSON *token)
{
    return (struct special){.text = json_text(json_get(token, "content")),
                            .control = cJSON_IsTrue(json_get(token, "special")),
                            .lstrip = cJSON_IsTrue(json_get(token, "lstrip")),
                            .rstrip = cJSON_IsTrue(json_get(token, "rstrip")),
                            .single_word = cJSON_IsTrue(json_get(token, "single_word"))};
}

/* ---- the vocabulary ---- */

/* Returns an id below `limit`; -1 if the value is not one. */
static int64_t
id_of(const cJSON *value, double limit)
{
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0 && value->valuedouble < limit) ||
        floor(value->valuedouble) < value->valuedouble)
        return -1;
    return (int64_t)value->valuedouble;
}

/* Checks all ids and sets *n to the number of ids. */
static bool
count_ids(struct tokenizer_json *j, uint32_t *n)
{
    const cJSON *item;
    int64_t highest = -1;
    uint64_t tokens = 0;
    cJSON_ArrayForEach(item, j->vocab)
    {
        const int64_t id = j->t->unigram ? highest + 1 : id_of(item, MOST_TOKENS);
        char shown[48];
        if (id < 0)
            return err_set(j->err, ERR_WORK, "%s: the id of token '%s' in model.vocab cannot be used", j->where,
                           printable_line(shown, sizeof shown, item->string, strlen(item->string)));
        highest = id > highest ? id : highest;
        tokens++;
    }
    cJSON_ArrayForEach(item, j->added)
    {
        const int64_t id = id_of(json_get(item, "id"), MOST_TOKENS);
        if (id < 0 || !cJSON_IsString(json_get(item, "content")))
            return err_set(j->err, ERR_WORK, "%s: entry %" PRIu64 " of added_tokens lacks an id or its content",
                           j->where, tokens - (uint64_t)cJSON_GetArraySize(j->vocab));
        highest = id > highest ? id : highest;
        tokens++;
    }
    if (tokens == 0)
        return err_set(j->err, ERR_WORK, "%s: there are no tokens in model.vocab", j->where);
    if ((uint64_t)highest >= 4 * tokens + GAPS)
        return err_set(j->err, ERR_WORK, "%s: ids go up to %" PRId64 ", but there are only %" PRIu64 " tokens",
                       j->where, highest, tokens);
    *n = (uint32_t)highest + 1;
    return true;
}

static bool
read_pieces(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    const bool byte_fallback = cJSON_IsTrue(json_get(j->model, "byte_fallback"));
    const cJSON *item;
    memset(t->kind, TOKEN_UNUSED, t->n);
    cJSON_ArrayForEach(item, j->vocab)
    {
        const uint32_t id = (uint32_t)item->valuedouble;
        bool piece_of_text = true;
        if (!tokenizer_copy(t, item->string, strlen(item->string), &t->text[id]) ||
            (t->byte_level && !tokenizer_decode_piece(t, &t->text[id], &piece_of_text)))
            return json_no_memory(j);
        t->kind[id] = byte_fallback && tokenizer_byte_value(t->text[id]) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        j->pieces[id] = piece_of_text;
    }
    return true;
}

/* Reads added_tokens. A token with `normalized` is searched for, in its normalised form, in normalised text; other
 * tokens are searched for in the input. A byte of the vocabulary (<0x0A>) remains one. */
static bool
read_added(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    struct bytes buffers[2] = {0};
    const cJSON *item;
    bool ok = true;
    cJSON_ArrayForEach(item, j->added)
    {
        const uint32_t id = (uint32_t)json_get(item, "id")->valuedouble;
        struct special s = json_special(item);
        s.id = (token_t)id;
        const bool normalized = cJSON_IsTrue(json_get(item, "normalized"));
        ok = tokenizer_copy(t, s.text.data, s.text.len, &s.text);
        if (t->kind[id] != TOKEN_BYTE) {
            t->kind[id] = s.control ? TOKEN_CONTROL : TOKEN_USER;
            t->plain[id] = s.text;
            if (ok && !j->pieces[id])
                t->text[id] = s.text;
        }
        if (ok && normalized)
            ok =
                tokenizer_normalize(t, s.text, buffers, &s.text) && tokenizer_copy(t, s.text.data, s.text.len, &s.text);
        ok = ok && tokenizer_add_special(normalized ? &t->normal_specials : &t->specials, s);
        if (!ok)
            break;
    }
    free(buffers[0].at);
    free(buffers[1].at);
    return ok || json_no_memory(j);
}

/* Sets the text that a token has in decoded text, as the decoder's steps make it. */
static bool
decode_pieces(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    struct bytes buffers[2] = {0};
    bool ok = true;
    for (uint32_t id = 0; ok && j->decodes && id < t->n; id++) {
        struct slice text = t->plain[id].data != NULL ? t->plain[id] : t->text[id];
        if (text.data == NULL || t->kind[id] == TOKEN_BYTE)
            continue;
        ok = tokenizer_apply(t, j->decoder, j->n_decoder, text, buffers, &text) &&
             tokenizer_copy(t, text.data, text.len, &t->plain[id]);
    }
    free(buffers[0].at);
    free(buffers[1].at);
    return ok || json_no_memory(j);
}

/* Finds a token by its text; added tokens have precedence. */
static bool
find_token(const struct tokenizer_json *j, struct slice text, token_t *id)
{
    const struct tokenizer *t = j->t;
    *id = TOKEN_NONE;
    const cJSON *item;
    cJSON_ArrayForEach(item, j->added)
    {
        const struct slice content = json_text(json_get(item, "content"));
        if (slice_compare(content, text) == 0) {
            *id = (token_t)json_get(item, "id")->valuedouble;
            return true;
        }
    }
    *id = tokenizer_find(t, text.data, text.len);
    return *id != TOKEN_NONE;
}

/* ---- merges ---- */

/* "left right", or ["left", "right"]. */
static bool
read_merge(struct tokenizer *t, const cJSON *merge, uint32_t rank)
{
    struct slice left = json_text(merge), right;
    if (cJSON_IsArray(merge) && cJSON_GetArraySize(merge) == 2) {
        left = json_text(merge->child);
        right = json_text(merge->child->next);
    } else {
        const char *space = memchr(left.data, ' ', left.len);
        if (space == NULL)
            return false;
        right = (struct slice){space + 1, left.len - (size_t)(space - left.data) - 1};
        left.len = (size_t)(space - left.data);
    }
    return left.len > 0 && right.len > 0 && tokenizer_add_merge(t, left, right, rank);
}

static bool
read_merges(struct tokenizer_json *j)
{
    const cJSON *merges = json_get(j->model, "merges"), *merge;
    uint32_t rank = 0;
    if (!cJSON_IsArray(merges))
        return err_set(j->err, ERR_WORK, "%s: tokenizer.json has no merges (model.merges)", j->where);
    if (!merge_table_make(&j->t->merges, (uint32_t)cJSON_GetArraySize(merges)))
        return json_no_memory(j);
    cJSON_ArrayForEach(merge, merges)
    {
        if (read_merge(j->t, merge, rank)) {
            rank++;
            continue;
        }
        if (j->t->merges.buffer.starved)
            return json_no_memory(j);
        return err_set(j->err, ERR_WORK, "%s: merge %" PRIu32 " of model.merges does not join two tokens into a third",
                       j->where, rank);
    }
    return true;
}

static bool
add_end_token(struct tokenizer_json *j, struct end_tokens *ends, token_t id)
{
    if (ends->n == MOST_END_TOKENS)
        return err_set(j->err, ERR_WORK, "%s: more than %d tokens before or after a text are not supported", j->where,
                       MOST_END_TOKENS);
    ends->ids[ends->n++] = id;
    return true;
}

/* ---- post_processor ---- */

/* Adds the token of {"SpecialToken": {"id": "<s>"}}; its ids are in special_tokens. */
static bool
add_template_token(struct tokenizer_json *j, const cJSON *template, const cJSON *token, struct end_tokens *ends)
{
    const struct slice name = json_text(json_get(token, "id"));
    const cJSON *ids = json_get(json_get(json_get(template, "special_tokens"), name.data), "ids"), *id;
    char shown[48];
    cJSON_ArrayForEach(id, ids)
    {
        if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < j->t->n))
            return err_set(j->err, ERR_WORK, "%s: the template's token '%s' is not in the vocabulary", j->where,
                           printable_line(shown, sizeof shown, name.data, name.len));
        if (!add_end_token(j, ends, (token_t)id->valuedouble))
            return false;
    }
    return true;
}

static bool
read_template(struct tokenizer_json *j, const cJSON *template)
{
    struct end_tokens *ends = &j->t->before;
    const cJSON *item;
    cJSON_ArrayForEach(item, json_get(template, "single"))
    {
        const cJSON *token = json_get(item, "SpecialToken");
        if (token == NULL)
            ends = &j->t->after; /* the text itself */
        else if (!add_template_token(j, template, token, ends))
            return false;
    }
    return true;
}

static bool
read_processor(struct tokenizer_json *j, const cJSON *processor, int depth)
{
    const struct slice type = json_text(json_get(processor, "type"));
    const cJSON *one;
    if (processor == NULL || strcmp(type.data, "ByteLevel") == 0)
        return true; /* it only changes offsets */
    if (strcmp(type.data, "TemplateProcessing") == 0)
        return read_template(j, processor);
    if (strcmp(type.data, "Sequence") != 0 || depth > 0)
        return json_unsupported(j, "post-processor", type.data);
    cJSON_ArrayForEach(one, json_get(processor, "processors"))
    {
        if (!read_processor(j, one, depth + 1))
            return false;
    }
    return true;
}

/* ---- tokenizer_config.json ---- */

/* Returns the token that a key names by text or by an object with `content`; TOKEN_NONE if the key or the token does
 * not exist. */
static token_t
named_token(const struct tokenizer_json *j, const char *key)
{
    const cJSON *value = json_get(j->config, key);
    const struct slice text = json_text(cJSON_IsObject(value) ? json_get(value, "content") : value);
    token_t id;
    return text.len > 0 && find_token(j, text, &id) ? id : TOKEN_NONE;
}

bool
json_is_class(const struct tokenizer_json *j, const char *name)
{
    const char *declared = json_text(json_get(j->config, "tokenizer_class")).data;
    const size_t n = strlen(name);
    return strncmp(declared, name, n) == 0 && (declared[n] == '\0' || strcmp(declared + n, "Fast") == 0);
}

/* Reads BOS and EOS. Whether they are added is the post-processor's decision: transformers 5 ignores add_bos_token and
 * add_eos_token beside a tokenizer.json, and only CodeLlama's class has a rule of its own. */
static bool
read_config(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    t->bos = named_token(j, "bos_token");
    t->eos = named_token(j, "eos_token");
    if (t->bos == TOKEN_NONE && t->before.n > 0)
        t->bos = t->before.ids[0];
    t->splits_specials = cJSON_IsTrue(json_get(j->config, "split_special_tokens"));
    if (!json_is_class(j, "CodeLlamaTokenizer"))
        return true;
    t->after.n = 0;
    t->before = (struct end_tokens){.ids = {t->bos}, .n = t->bos != TOKEN_NONE};
    return true;
}

static bool
add_chat_template(struct tokenizer_json *j, const char *name, const cJSON *template)
{
    const struct slice text = json_text(template);
    return text.len == 0 || tokenizer_add_chat_template(j->t, slice_of(name), text, j->err);
}

/* The value is one template or a list of named templates. */
bool
json_read_chat_template(struct tokenizer_json *j)
{
    const cJSON *given = json_get(j->config, "chat_template"), *one;
    if (!cJSON_IsArray(given))
        return add_chat_template(j, "default", given);
    cJSON_ArrayForEach(one, given)
    {
        if (!add_chat_template(j, json_text(json_get(one, "name")).data, json_get(one, "template")))
            return false;
    }
    return true;
}

/* Reads the tokens before and after a text (post_processor, tokenizer_config.json), BOS, EOS and the chat template. */
static bool
read_ends(struct tokenizer_json *j)
{
    return read_processor(j, json_get(j->root, "post_processor"), 0) && read_config(j) && json_read_chat_template(j);
}

/* The vocabulary of a Unigram model in a tokenizer.json: [["<unk>", 0.0], ["▁the", -3.2], …]. */

static bool
bad_piece(const struct tokenizer_json *j, uint32_t id)
{
    return err_set(j->err, ERR_WORK, "%s: piece %" PRIu32 " of model.vocab is no text with a score", j->where, id);
}

/* Reads the pieces of a Unigram model and its unknown token. */
static bool
read_unigram(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    const bool byte_fallback = cJSON_IsTrue(json_get(j->model, "byte_fallback"));
    const cJSON *item, *unknown = json_get(j->model, "unk_id");
    uint32_t id = 0;
    t->unigram = true;
    t->score = calloc(t->n, sizeof *t->score);
    t->bonus = calloc(t->n, sizeof *t->bonus);
    if (t->score == NULL || t->bonus == NULL)
        return json_no_memory(j);
    memset(t->kind, TOKEN_UNUSED, t->n);
    cJSON_ArrayForEach(item, j->vocab)
    {
        const cJSON *text = cJSON_IsArray(item) ? item->child : NULL, *score = text == NULL ? NULL : text->next;
        if (!cJSON_IsString(text) || !cJSON_IsNumber(score) || !isfinite(score->valuedouble))
            return bad_piece(j, id);
        if (!tokenizer_copy(t, text->valuestring, strlen(text->valuestring), &t->text[id]))
            return json_no_memory(j);
        t->score[id] = score->valuedouble;
        t->kind[id] = byte_fallback && tokenizer_byte_value(t->text[id]) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        j->pieces[id++] = true;
    }
    if (unknown == NULL)
        return true;
    if (!cJSON_IsNumber(unknown) || !(unknown->valuedouble >= 0 && unknown->valuedouble < id))
        return err_set(j->err, ERR_WORK, "%s: the unknown token's id (model.unk_id) is not in the vocabulary",
                       j->where);
    t->unknown = (token_t)unknown->valuedouble;
    if (t->kind[t->unknown] == TOKEN_NORMAL)
        t->kind[t->unknown] = TOKEN_UNKNOWN;
    return true;
}

/* ---- the model ---- */

static bool
check_model(struct tokenizer_json *j)
{
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const cJSON *type = json_get(j->model, "type"), *dropout = json_get(j->model, "dropout");
    if (strcmp(json_text(type).data, "WordPiece") == 0)
        return err_set(j->err, ERR_WORK, "%s: " WORDPIECE, j->where);
    j->t->unigram = strcmp(json_text(type).data, "Unigram") == 0;
    if (type != NULL && !j->t->unigram && strcmp(json_text(type).data, "BPE") != 0)
        return json_unsupported(j, "tokenizer model", json_text(type).data);
    if (!(j->t->unigram ? cJSON_IsArray(j->vocab) : cJSON_IsObject(j->vocab)))
        return err_set(j->err, ERR_WORK, "%s: tokenizer.json holds no model with a vocabulary (model.vocab)", j->where);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        if (json_text(json_get(j->model, empty[i])).len > 0)
            return json_unsupported(j, "tokenizer's setting", empty[i]);
    if (cJSON_IsNumber(dropout) && dropout->valuedouble > 0)
        return json_unsupported(j, "tokenizer's setting", "dropout");
    j->t->fuse_unknown = cJSON_IsTrue(json_get(j->model, "fuse_unk"));
    j->t->whole_words = cJSON_IsTrue(json_get(j->model, "ignore_merges"));
    return true;
}

static bool
read_unknown(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    const struct slice name = json_text(json_get(j->model, "unk_token"));
    char shown[48];
    if (name.len == 0)
        return true;
    if (!find_token(j, name, &t->unknown))
        return err_set(j->err, ERR_WORK, "%s: the unknown token '%s' is not in the vocabulary", j->where,
                       printable_line(shown, sizeof shown, name.data, name.len));
    if (t->kind[t->unknown] == TOKEN_NORMAL)
        t->kind[t->unknown] = TOKEN_UNKNOWN;
    return true;
}

static bool
read_tokenizer(struct tokenizer_json *j, const cJSON *added, cJSON *map)
{
    struct tokenizer *t = j->t;
    uint32_t n = 0;
    j->model = json_get(j->root, "model");
    j->vocab = json_get(j->model, "vocab");
    if (!check_model(j) || !json_declare_tokens(j, added, map))
        return false;
    j->added = json_get(j->root, "added_tokens");
    if (!count_ids(j, &n) || n == 0 || !tokenizer_make_room(t, n, j->where, j->err) || !json_read_steps(j))
        return false;
    if (t->unigram && t->byte_level)
        return json_unsupported(j, "pre-tokenizer of a Unigram model", "ByteLevel");
    snprintf(t->description, sizeof t->description, "%s",
             t->unigram      ? "Unigram"
             : t->byte_level ? "byte-level BPE"
                             : "BPE of SentencePiece's");
    j->pieces = calloc(n, sizeof *j->pieces);
    if (j->pieces == NULL)
        return json_no_memory(j);
    if (!(t->unigram ? read_unigram(j) : read_pieces(j)) || !read_added(j) || !decode_pieces(j) ||
        !(tokenizer_index_pieces(t, j->pieces) || json_no_memory(j)))
        return false;
    if (t->unigram ? !tokenizer_make_unigram(t) : !read_merges(j) || !read_unknown(j))
        return t->unigram && json_no_memory(j);
    return read_ends(j) && tokenizer_finish(t, j->where, j->err);
}

bool
tokenizer_from_json(struct tokenizer **out, const struct tokenizer_files *files, const char *where, struct err *err)
{
    *out = NULL;
    struct tokenizer_json j = {.where = where, .err = err, .t = calloc(1, sizeof *j.t)};
    cJSON *added = NULL, *map = NULL;
    if (j.t == NULL)
        return json_no_memory(&j);
    const bool ok = json_parse(&j, files->model, "tokenizer.json", &j.root) &&
                    json_parse(&j, files->config, "tokenizer_config.json", &j.config) &&
                    json_parse(&j, files->added, "added_tokens.json", &added) &&
                    json_parse(&j, files->special_map, "special_tokens_map.json", &map) &&
                    read_tokenizer(&j, added, map);
    cJSON *const parsed[] = {j.root, j.config, added, map};
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++)
        cJSON_Delete(parsed[i]);
    for (unsigned i = 0; i < j.n_decoder; i++)
        pattern_close(j.decoder[i].pattern);
    free(j.pieces);
    if (!ok) {
        tokenizer_close(j.t);
        return false;
    }
    *out = j.t;
    return true;
}
