/* What goes before and after a text (post_processor, tokenizer_config.json), BOS, EOS, and the chat template. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/tokenizer/tokenizer_json.h"

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

/* {"SpecialToken": {"id": "<s>"}}, whose ids stand in special_tokens. */
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
        return true; /* which only moves offsets */
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

/* A token as text, or as an object with its content; TOKEN_NONE if it isn't named or isn't there. */
static token_t
named_token(const struct tokenizer_json *j, const char *key)
{
    const cJSON *value = json_get(j->config, key);
    const struct slice text = json_text(cJSON_IsObject(value) ? json_get(value, "content") : value);
    token_t id;
    return text.len > 0 && json_find_token(j, text, &id) ? id : TOKEN_NONE;
}

/* These classes of transformers' take BOS and EOS from the configuration, whatever the template says. */
static bool
config_decides(const cJSON *config)
{
    static const char *const classes[] = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"};
    const struct slice name = json_text(json_get(config, "tokenizer_class"));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const size_t n = strlen(classes[i]);
        if (strncmp(name.data, classes[i], n) == 0 && (name.data[n] == '\0' || strcmp(name.data + n, "Fast") == 0))
            return true;
    }
    return false;
}

static bool
read_config(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    t->bos = named_token(j, "bos_token");
    t->eos = named_token(j, "eos_token");
    if (t->bos == TOKEN_NONE && t->before.n > 0)
        t->bos = t->before.ids[0];
    if (!config_decides(j->config))
        return true;
    t->before.n = t->after.n = 0;
    if (t->bos != TOKEN_NONE && !cJSON_IsFalse(json_get(j->config, "add_bos_token")))
        t->before.ids[t->before.n++] = t->bos;
    if (t->eos != TOKEN_NONE && cJSON_IsTrue(json_get(j->config, "add_eos_token")))
        t->after.ids[t->after.n++] = t->eos;
    return true;
}

static bool
add_chat_template(struct tokenizer_json *j, const char *name, const cJSON *template)
{
    const struct slice text = json_text(template);
    return text.len == 0 || tokenizer_add_chat_template(j->t, slice_of(name), text, j->err);
}

/* One template, or a list of named ones. */
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

bool
json_read_ends(struct tokenizer_json *j)
{
    return read_processor(j, json_get(j->root, "post_processor"), 0) && read_config(j) && json_read_chat_template(j);
}
