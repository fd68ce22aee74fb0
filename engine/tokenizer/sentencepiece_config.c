/* What lies beside a tokenizer.model: tokens that were added to it, BOS and EOS, and the chat template. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/json_read.h"
#include "engine/base/printable.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tokenizer_json.h"

#define MOST_ADDED 20000

static bool
out_of_memory(const struct sentencepiece *s)
{
    return err_set(s->err, ERR_WORK, "%s: out of memory for the tokenizer", s->where);
}

/* No file is no object, and fine. */
static bool
parse(const struct sentencepiece *s, struct slice text, const char *file, cJSON **out)
{
    *out = NULL;
    if (text.data != NULL && !json_read(out, text.data, text.len))
        return out_of_memory(s);
    return text.data == NULL || cJSON_IsObject(*out) ||
           err_set(s->err, ERR_WORK, "%s: %s is no JSON object; fetch or save it again", s->where, file);
}

static bool
list_one(struct sentencepiece *s, struct special special, double id)
{
    struct added_tokens *a = &s->added;
    char shown[48];
    if (special.text.len == 0 || !(id >= 0 && id < MOST_TOKENS) || floor(id) < id)
        return err_set(s->err, ERR_WORK, "%s: the id of the added token '%s' cannot be used", s->where,
                       printable_line(shown, sizeof shown, special.text.data, special.text.len));
    if (a->n == MOST_ADDED)
        return err_set(s->err, ERR_WORK, "%s: more than %d added tokens beside a tokenizer.model are not supported",
                       s->where, MOST_ADDED);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->list[i].id == (token_t)id)
            return true; /* tokenizer_config.json, which says more, comes first */
    if (a->n == a->room) {
        const uint32_t room = 2 * a->room + 64;
        struct special *grown = realloc(a->list, room * sizeof *grown);
        if (grown == NULL)
            return out_of_memory(s);
        a->list = grown;
        a->room = room;
    }
    special.id = (token_t)id;
    if (!tokenizer_copy(s->t, special.text.data, special.text.len, &special.text))
        return out_of_memory(s);
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
        const struct special special = {.text = json_text(json_get(item, "content")),
                                        .control = cJSON_IsTrue(json_get(item, "special")),
                                        .lstrip = cJSON_IsTrue(json_get(item, "lstrip")),
                                        .rstrip = cJSON_IsTrue(json_get(item, "rstrip")),
                                        .single_word = cJSON_IsTrue(json_get(item, "single_word"))};
        if (!list_one(s, special, *end == '\0' && end != item->string ? id : -1))
            return false;
    }
    return true;
}

/* {"<|im_start|>": 32000}: what is written in brackets is taken for a control token. */
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

bool
sentencepiece_list_added(struct sentencepiece *s, struct slice config, struct slice added)
{
    cJSON *said = NULL, *list = NULL;
    const bool ok = parse(s, config, "tokenizer_config.json", &said) && parse(s, added, "added_tokens.json", &list) &&
                    list_decoder(s, json_get(said, "added_tokens_decoder")) && list_plain(s, list);
    cJSON_Delete(said);
    cJSON_Delete(list);
    return ok;
}

/* ---- once there is room ---- */

/* What was a special of the model's own is looked for as it is said here. */
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
    struct tokenizer *t = s->t;
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
            t->plain[id].data = NULL; /* it reads as such a token does */
        if (!tokenizer_add_special(&t->specials, *a))
            return out_of_memory(s);
    }
    return true;
}

/* The token that a name of tokenizer_config.json means; `usual` where it says nothing. */
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

static void
read_ends(struct tokenizer *t, const cJSON *config)
{
    const struct slice name = json_text(json_get(config, "tokenizer_class"));
    const bool t5 = strncmp(name.data, "T5Tokenizer", 11) == 0; /* which ends texts, and begins none */
    const cJSON *bos = json_get(config, "add_bos_token"), *eos = json_get(config, "add_eos_token");
    t->bos = named(t, config, "bos_token", t->bos);
    t->eos = named(t, config, "eos_token", t->eos);
    if (t->bos != TOKEN_NONE && (bos != NULL ? cJSON_IsTrue(bos) : !t5))
        t->before.ids[t->before.n++] = t->bos;
    if (t->eos != TOKEN_NONE && (eos != NULL ? cJSON_IsTrue(eos) : t5))
        t->after.ids[t->after.n++] = t->eos;
}

bool
sentencepiece_read_config(struct sentencepiece *s, struct slice config)
{
    struct tokenizer_json j = {.t = s->t, .where = s->where, .err = s->err};
    cJSON *said = NULL;
    bool ok = add_tokens(s) && parse(s, config, "tokenizer_config.json", &said);
    j.config = said;
    if (ok) {
        read_ends(s->t, said);
        ok = json_read_chat_template(&j);
    }
    cJSON_Delete(said);
    return ok;
}
