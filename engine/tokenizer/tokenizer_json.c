/* A vocabulary from Hugging Face's tokenizer.json: the model (BPE, byte-level or with SentencePiece's pieces), the tokens
 * that were added to it, and what tokenizer_config.json says besides. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/printable.h"
#include "engine/tokenizer/tokenizer_json.h"

#define GAPS 4096u /* ids without a token: at most so many, and three for each that there is */

static bool
out_of_memory(const struct tokenizer_json *j)
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

/* ---- the vocabulary ---- */

/* An id below `limit`, or -1. */
static int64_t
id_of(const cJSON *value, double limit)
{
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0 && value->valuedouble < limit) ||
        floor(value->valuedouble) < value->valuedouble)
        return -1;
    return (int64_t)value->valuedouble;
}

/* How many ids there are, each checked. */
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
            return out_of_memory(j);
        t->kind[id] = byte_fallback && tokenizer_byte_value(t->text[id]) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        j->pieces[id] = piece_of_text;
    }
    return true;
}

/* A token that isn't `normalized` is looked for in the input, another one, in its normalised form, in normalised text. */
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
        struct special s = {.text = json_text(json_get(item, "content")),
                            .id = (token_t)id,
                            .control = cJSON_IsTrue(json_get(item, "special")),
                            .lstrip = cJSON_IsTrue(json_get(item, "lstrip")),
                            .rstrip = cJSON_IsTrue(json_get(item, "rstrip")),
                            .single_word = cJSON_IsTrue(json_get(item, "single_word"))};
        const bool normalized = cJSON_IsTrue(json_get(item, "normalized"));
        ok = tokenizer_copy(t, s.text.data, s.text.len, &t->plain[id]);
        t->kind[id] = s.control ? TOKEN_CONTROL : TOKEN_USER;
        if (ok && !j->pieces[id])
            t->text[id] = t->plain[id];
        s.text = t->plain[id];
        if (ok && normalized)
            ok = tokenizer_normalize(t, t->plain[id], buffers, &s.text) &&
                 tokenizer_copy(t, s.text.data, s.text.len, &s.text);
        ok = ok && tokenizer_add_special(normalized ? &t->normal_specials : &t->specials, s);
        if (!ok)
            break;
    }
    free(buffers[0].at);
    free(buffers[1].at);
    return ok || out_of_memory(j);
}

bool
json_find_token(const struct tokenizer_json *j, struct slice text, token_t *id)
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
        return out_of_memory(j);
    cJSON_ArrayForEach(merge, merges)
    {
        if (read_merge(j->t, merge, rank)) {
            rank++;
            continue;
        }
        if (j->t->merges.buffer.starved)
            return out_of_memory(j);
        return err_set(j->err, ERR_WORK, "%s: merge %" PRIu32 " of model.merges does not join two tokens into a third",
                       j->where, rank);
    }
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
    if (!json_find_token(j, name, &t->unknown))
        return err_set(j->err, ERR_WORK, "%s: the unknown token '%s' is not in the vocabulary", j->where,
                       printable_line(shown, sizeof shown, name.data, name.len));
    if (t->kind[t->unknown] == TOKEN_NORMAL)
        t->kind[t->unknown] = TOKEN_UNKNOWN;
    return true;
}

static bool
read_tokenizer(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    uint32_t n = 0;
    j->model = json_get(j->root, "model");
    j->vocab = json_get(j->model, "vocab");
    j->added = json_get(j->root, "added_tokens");
    if (!check_model(j) || !count_ids(j, &n) || n == 0 || !tokenizer_make_room(t, n, j->where, j->err) ||
        !json_read_steps(j))
        return false;
    if (t->unigram && t->byte_level)
        return json_unsupported(j, "pre-tokenizer of a Unigram model", "ByteLevel");
    snprintf(t->description, sizeof t->description, "%s",
             t->unigram      ? "Unigram"
             : t->byte_level ? "byte-level BPE"
                             : "BPE of SentencePiece's");
    j->pieces = calloc(n, sizeof *j->pieces);
    if (j->pieces == NULL)
        return out_of_memory(j);
    if (!(t->unigram ? json_read_unigram(j) : read_pieces(j)) || !read_added(j) ||
        !(tokenizer_index_pieces(t, j->pieces) || out_of_memory(j)))
        return false;
    if (t->unigram ? !tokenizer_make_unigram(t) : !read_merges(j) || !read_unknown(j))
        return t->unigram && out_of_memory(j);
    return json_read_ends(j) && tokenizer_finish(t, j->where, j->err);
}

static bool
parse(const char *json, size_t n, const char *file, struct tokenizer_json *j, cJSON **out)
{
    if (!json_read(out, json, n))
        return out_of_memory(j);
    return cJSON_IsObject(*out) ||
           err_set(j->err, ERR_WORK, "%s: %s is no JSON object; fetch or save it again", j->where, file);
}

bool
tokenizer_from_json(struct tokenizer **out, const char *json, size_t n, const char *config_json, size_t n_config,
                    const char *where, struct err *err)
{
    *out = NULL;
    struct tokenizer_json j = {.where = where, .err = err, .t = calloc(1, sizeof *j.t)};
    cJSON *root = NULL, *config = NULL;
    if (j.t == NULL)
        return out_of_memory(&j);
    bool ok = parse(json, n, "tokenizer.json", &j, &root) &&
              (config_json == NULL || parse(config_json, n_config, "tokenizer_config.json", &j, &config));
    j.root = root;
    j.config = config;
    ok = ok && read_tokenizer(&j);
    cJSON_Delete(root);
    cJSON_Delete(config);
    free(j.pieces);
    if (!ok) {
        tokenizer_close(j.t);
        return false;
    }
    *out = j.t;
    return true;
}
