/* Adds to the added_tokens of a tokenizer.json the tokens that only the files beside it declare: added_tokens_decoder
 * and the special tokens of tokenizer_config.json, special_tokens_map.json, added_tokens.json. Ids and attributes are
 * those of transformers 5.24 (PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "engine/model/tokenizer/tokenizer_files.h"

#define MOST_DECLARED 20000 /* tokens */
#define DECODER       "added_tokens_decoder"
#define EXTRA         "extra_special_tokens"
#define ADDITIONAL    "additional_special_tokens" /* the older name of EXTRA */

static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
#define N_NAMES (sizeof names / sizeof *names)

struct entry {
    struct slice text;
    int64_t id;
    cJSON *token; /* its entry of added_tokens; NULL: it is in the vocabulary only */
};

struct index {
    struct entry *at; /* (n) sorted by text */
    size_t n;
};

struct declaring {
    struct tokenizer_json *j;
    cJSON *added;               /* the array added_tokens, which is extended */
    struct index listed, vocab; /* added_tokens of tokenizer.json; the vocabulary, from the first search in it */
    struct index fresh;         /* tokens with new ids, in the order of ids */
    size_t fresh_room;
    int64_t n_vocab, highest; /* tokens in the vocabulary; the highest id of added_tokens, or -1 */
    bool starved;
};

/* Returns the text of a token, which is a string or an object with `content`. */
static struct slice
content_of(const cJSON *token)
{
    return json_text(cJSON_IsObject(token) ? json_get(token, "content") : token);
}

static bool
flag(const cJSON *token, const char *name)
{
    return cJSON_IsTrue(json_get(token, name));
}

/* ---- the tokens that there are ---- */

static int
by_text(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;
    return slice_compare(p->text, q->text);
}

/* Lists the elements of added_tokens or of a vocabulary, which is {"text": id} or, of a Unigram model, [["text",
 * score], …]. Elements that cannot be used are refused when they are read. */
static bool
make_index(struct index *index, const cJSON *list, bool added)
{
    cJSON *item;
    index->at = malloc(((size_t)cJSON_GetArraySize(list) + 1) * sizeof *index->at);
    if (index->at == NULL)
        return false;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *id = added ? json_get(item, "id") : item;
        const bool numbered = added || cJSON_IsObject(list);
        index->at[index->n] = (struct entry){
            .text = added      ? content_of(item)
                    : numbered ? slice_of(item->string)
                               : json_text(item->child),
            .id = numbered ? (cJSON_IsNumber(id) ? id->valueint : -1) : (int64_t)index->n,
            .token = added ? item : NULL,
        };
        index->n++;
    }
    qsort(index->at, index->n, sizeof *index->at, by_text);
    return true;
}

static struct entry *
search(const struct index *index, struct slice text)
{
    const struct entry key = {.text = text};
    return index->n == 0 ? NULL : bsearch(&key, index->at, index->n, sizeof *index->at, by_text);
}

/* Returns the token with this text among those that were looked at so far, which include all added ones. */
static struct entry *
find_known(const struct declaring *d, struct slice text)
{
    struct entry *e = search(&d->listed, text);
    for (size_t i = 0; e == NULL && i < d->fresh.n; i++)
        if (slice_compare(d->fresh.at[i].text, text) == 0)
            e = &d->fresh.at[i];
    return e != NULL ? e : search(&d->vocab, text);
}

/* Returns the token with this text. Added tokens have precedence. */
static struct entry *
find(struct declaring *d, struct slice text)
{
    struct entry *e = find_known(d, text);
    if (e != NULL || d->vocab.at != NULL)
        return e;
    d->starved = !make_index(&d->vocab, d->j->vocab, false);
    return search(&d->vocab, text);
}

/* ---- one token ---- */

static bool
normalized(const cJSON *token, bool special)
{
    const cJSON *given = json_get(token, "normalized");
    return given != NULL ? cJSON_IsTrue(given) : !special;
}

static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
#define N_FLAGS (sizeof flags / sizeof *flags)

static bool
same_attributes(const cJSON *a, const cJSON *b)
{
    for (size_t i = 0; i < N_FLAGS; i++)
        if (flag(a, flags[i]) != flag(b, flags[i]))
            return false;
    return flag(a, "special") == flag(b, "special") &&
           normalized(a, flag(a, "special")) == normalized(b, flag(b, "special"));
}

static cJSON *
make_token(struct slice text, const cJSON *attributes, bool special, int64_t id)
{
    cJSON *token = cJSON_CreateObject();
    bool ok = cJSON_AddNumberToObject(token, "id", (double)id) != NULL &&
              cJSON_AddStringToObject(token, "content", text.data) != NULL &&
              cJSON_AddBoolToObject(token, "special", special) != NULL &&
              cJSON_AddBoolToObject(token, "normalized", normalized(attributes, special)) != NULL;
    for (size_t i = 0; i < N_FLAGS; i++)
        ok = ok && cJSON_AddBoolToObject(token, flags[i], flag(attributes, flags[i])) != NULL;
    if (ok)
        return token;
    cJSON_Delete(token);
    return NULL;
}

static struct entry *
add_fresh(struct declaring *d)
{
    if (!array_grow(&d->fresh.at, &d->fresh_room, d->fresh.n + 1, sizeof *d->fresh.at))
        return NULL;
    d->fresh.at[d->fresh.n] = (struct entry){.id = d->highest >= d->n_vocab ? d->highest + 1 : d->n_vocab};
    return &d->fresh.at[d->fresh.n++];
}

/* Adds a token to added_tokens, or replaces the one with this text; a special token remains one. A token that is
 * nowhere gets the next id. */
static bool
declare(struct declaring *d, const cJSON *declared, bool special)
{
    const struct slice text = content_of(declared);
    if (text.len == 0)
        return true;
    if (d->fresh.n == MOST_DECLARED)
        return err_set(d->j->err, ERR_WORK, "%s: more than %d tokens that tokenizer.json lacks are not supported",
                       d->j->where, MOST_DECLARED);
    struct entry *e = find(d, text);
    e = e != NULL || d->starved ? e : add_fresh(d);
    special = special || (e != NULL && flag(e->token, "special"));
    cJSON *token = e == NULL ? NULL : make_token(text, declared, special, e->id);
    if (token == NULL)
        return json_no_memory(d->j);
    if (e->token != NULL)
        (void)cJSON_ReplaceItemViaPointer(d->added, e->token, token);
    else
        (void)cJSON_AddItemToArray(d->added, token);
    *e = (struct entry){content_of(token), e->id, token};
    d->highest = e->id > d->highest ? e->id : d->highest;
    return true;
}

static bool
is_added(const struct declaring *d, struct slice text)
{
    const struct entry *e = find_known(d, text);
    return e != NULL && e->token != NULL;
}

static bool
declare_special(struct declaring *d, const cJSON *token)
{
    return is_added(d, content_of(token)) || declare(d, token, true);
}

/* ---- special tokens ---- */

/* Returns whether an entry of the settings is a token with a name: one that all tokenizers have, or a model's own. */
static bool
is_named(const cJSON *entry)
{
    static const char ending[] = "_token";
    const size_t n = strlen(entry->string), n_ending = sizeof ending - 1;
    return n > n_ending && strcmp(entry->string + n - n_ending, ending) == 0 && content_of(entry).len > 0;
}

/* Returns whether the text is that of a token with a name or, if `extra`, of an extra special token. */
static bool
is_special(const struct declaring *d, struct slice text, bool extra)
{
    const cJSON *one, *more = json_get(d->j->config, EXTRA);
    cJSON_ArrayForEach(one, d->j->config)
    {
        if (is_named(one) && slice_compare(content_of(one), text) == 0)
            return true;
    }
    cJSON_ArrayForEach(one, more)
    {
        if ((extra || cJSON_IsObject(more)) && slice_compare(content_of(one), text) == 0)
            return true;
    }
    return false;
}

static bool
declare_specials(struct declaring *d)
{
    const cJSON *one, *more = json_get(d->j->config, EXTRA);
    for (size_t i = 0; i < N_NAMES; i++)
        if (!declare_special(d, json_get(d->j->config, names[i])))
            return false;
    cJSON_ArrayForEach(one, d->j->config)
    {
        if (is_named(one) && !declare_special(d, one))
            return false;
    }
    cJSON_ArrayForEach(one, more) /* a list, or names and tokens */
    {
        if (!declare_special(d, one))
            return false;
    }
    return true;
}

/* ---- added_tokens_decoder ---- */

/* {"32000": {"content": "<|im_start|>", "special": true, …}} */
struct numbered {
    double id;
    const cJSON *token;
};

static int
by_id(const void *a, const void *b)
{
    const double p = ((const struct numbered *)a)->id, q = ((const struct numbered *)b)->id;
    return (p > q) - (p < q);
}

static bool
declare_decoder(struct declaring *d)
{
    const cJSON *decoder = json_get(d->j->config, DECODER), *one;
    size_t n = 0;
    struct numbered *list = malloc(((size_t)cJSON_GetArraySize(decoder) + 1) * sizeof *list);
    bool ok = list != NULL || json_no_memory(d->j);
    cJSON_ArrayForEach(one, decoder)
    {
        if (ok && one->string != NULL)
            list[n++] = (struct numbered){strtod(one->string, NULL), one};
    }
    if (ok && n > 0)
        qsort(list, n, sizeof *list, by_id);
    for (size_t i = 0; ok && i < n; i++) {
        const struct slice text = content_of(list[i].token);
        const struct entry *e = find_known(d, text);
        if (e == NULL || e->token == NULL || !same_attributes(e->token, list[i].token))
            ok = declare(d, list[i].token, flag(list[i].token, "special") || is_special(d, text, false));
    }
    free(list);
    return ok;
}

/* ---- one set of settings from all files ---- */

/* Makes added_tokens.json ({"<|im_start|>": 32000}) an added_tokens_decoder. */
static bool
convert_added(struct declaring *d, const cJSON *file)
{
    cJSON *decoder = cJSON_AddObjectToObject(d->j->config, DECODER);
    const cJSON *one;
    cJSON_ArrayForEach(one, file)
    {
        char id[32];
        const struct slice text = slice_of(one->string);
        if (is_added(d, text) || !cJSON_IsNumber(one))
            continue;
        snprintf(id, sizeof id, "%.0f", one->valuedouble);
        cJSON *token = make_token(text, NULL, is_special(d, text, true), one->valueint);
        if (token == NULL || !cJSON_AddItemToObject(decoder, id, token)) {
            cJSON_Delete(token);
            return json_no_memory(d->j);
        }
    }
    return decoder != NULL || json_no_memory(d->j);
}

static bool
rename_additional(struct tokenizer_json *j)
{
    cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(j->config, ADDITIONAL);
    cJSON_DeleteItemFromObjectCaseSensitive(j->config, EXTRA);
    return list == NULL || cJSON_AddItemToObject(j->config, EXTRA, list);
}

/* Moves the entries of special_tokens_map.json to the settings, where they replace those of the same name. Lists of
 * extra tokens are joined. */
static bool
merge_map(struct tokenizer_json *j, cJSON *map)
{
    bool ok = true;
    for (cJSON *one; ok && map != NULL && (one = map->child) != NULL;) {
        cJSON *there = cJSON_GetObjectItemCaseSensitive(j->config, one->string);
        (void)cJSON_DetachItemViaPointer(map, one);
        if (strcmp(one->string, EXTRA) == 0 && cJSON_IsArray(one) && cJSON_IsArray(there)) {
            while (one->child != NULL)
                (void)cJSON_AddItemToArray(there, cJSON_DetachItemViaPointer(one, one->child));
            cJSON_Delete(one);
        } else if (there != NULL) {
            (void)cJSON_ReplaceItemViaPointer(j->config, there, one);
        } else {
            ok = cJSON_AddItemToObject(j->config, one->string, one);
            if (!ok)
                cJSON_Delete(one);
        }
    }
    return ok;
}

/* Adds the special tokens that transformers' classes have where no file names them and the vocabulary has them. */
static bool
add_usual(struct declaring *d)
{
    static const struct {
        const char *class, *text[N_NAMES];
    } usual[] = {
        {"LlamaTokenizer", {"<s>", "</s>", "<unk>"}},
        {"CodeLlamaTokenizer", {"<s>", "</s>", "<unk>"}},
        {"GemmaTokenizer", {"<bos>", "<eos>", "<unk>", NULL, "<pad>"}},
        {"CohereTokenizer", {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", NULL, "<PAD>"}},
        {"GPT2Tokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}},
        {"GPTNeoXTokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, "<|padding|>"}},
        {"Qwen2Tokenizer", {NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>"}},
    };
    cJSON *config = d->j->config;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        for (size_t k = 0; k < N_NAMES && json_is_class(d->j, usual[i].class); k++)
            if (usual[i].text[k] != NULL && cJSON_GetObjectItemCaseSensitive(config, names[k]) == NULL &&
                find(d, slice_of(usual[i].text[k])) != NULL &&
                cJSON_AddStringToObject(config, names[k], usual[i].text[k]) == NULL)
                return json_no_memory(d->j);
    return true;
}

static bool
declare_all(struct declaring *d, const cJSON *added, cJSON *map)
{
    struct tokenizer_json *j = d->j;
    const bool decoder = cJSON_GetObjectItemCaseSensitive(j->config, DECODER) != NULL; /* then neither file counts */
    if (cJSON_GetArraySize(json_get(j->config, EXTRA)) == 0 && json_get(j->config, ADDITIONAL) != NULL &&
        !rename_additional(j))
        return json_no_memory(d->j);
    if (!decoder && !merge_map(j, map))
        return json_no_memory(d->j);
    if (cJSON_GetObjectItemCaseSensitive(j->config, EXTRA) == NULL && !rename_additional(j))
        return json_no_memory(d->j);
    const cJSON *token;
    d->n_vocab = cJSON_GetArraySize(j->vocab);
    d->highest = -1;
    if (!make_index(&d->listed, d->added, true))
        return json_no_memory(d->j);
    cJSON_ArrayForEach(token, d->added)
    {
        const cJSON *id = json_get(token, "id");
        if (cJSON_IsNumber(id) && id->valueint > d->highest)
            d->highest = id->valueint;
    }
    return add_usual(d) && (decoder || convert_added(d, added)) && declare_decoder(d) && declare_specials(d);
}

bool
json_declare_tokens(struct tokenizer_json *j, const cJSON *added, cJSON *map)
{
    struct declaring d = {.j = j, .added = cJSON_GetObjectItemCaseSensitive(j->root, "added_tokens")};
    if (!cJSON_IsArray(d.added)) {
        cJSON_DeleteItemFromObjectCaseSensitive(j->root, "added_tokens");
        d.added = cJSON_AddArrayToObject(j->root, "added_tokens");
    }
    const bool ok = d.added != NULL ? declare_all(&d, added, map) : json_no_memory(j);
    free(d.listed.at);
    free(d.vocab.at);
    free(d.fresh.at);
    return ok;
}
