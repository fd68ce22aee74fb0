/* What a tokenizer knows about its tokens, and ids back to text. */
#include "engine/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer_internal.h"

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

const char *
tokenizer_description(const struct tokenizer *t)
{
    return t->description;
}

const char *
tokenizer_note(const struct tokenizer *t)
{
    return t->note;
}

struct slice
tokenizer_chat_template(const struct tokenizer *t, const char *name)
{
    for (size_t i = 0; i < t->n_chat_templates; i++)
        if (strcmp(t->chat_templates[i].name, name) == 0)
            return t->chat_templates[i].text;
    return (struct slice){"", 0};
}

const char *
tokenizer_chat_template_name(const struct tokenizer *t, size_t i)
{
    return i < t->n_chat_templates ? t->chat_templates[i].name : NULL;
}

bool
tokenizer_add_chat_template(struct tokenizer *t, struct slice name, struct slice text, struct err *err)
{
    size_t i = 0;
    while (i < t->n_chat_templates && !slice_is(name, t->chat_templates[i].name))
        i++;
    if (i == MOST_CHAT_TEMPLATES)
        return err_set(err, ERR_WORK, "a model with more than %d chat templates is not supported", MOST_CHAT_TEMPLATES);
    char *kept = tokenizer_take(t, name.len + 1);
    if (kept == NULL || !tokenizer_copy(t, text.data, text.len, &t->chat_templates[i].text))
        return err_set(err, ERR_WORK, "out of memory for a chat template of %zu bytes", text.len);
    if (name.len > 0)
        memcpy(kept, name.data, name.len);
    kept[name.len] = '\0';
    t->chat_templates[i].name = kept;
    t->n_chat_templates += i == t->n_chat_templates;
    return true;
}

struct slice
tokenizer_bytes(const struct tokenizer *t, token_t id, bool show_control)
{
    if (!known(t, id) || (t->kind[id] == TOKEN_CONTROL && !show_control))
        return (struct slice){"", 0};
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
    bool first = t->strips_space; /* the first text may begin with the dummy prefix */
    for (size_t i = 0; i < n; i++) {
        const struct slice bytes = tokenizer_bytes(t, ids[i], false);
        const size_t dummy = first && bytes.len > 0 && bytes.data[0] == ' ' ? 1 : 0;
        first = first && bytes.len == 0;
        if (bytes.len > dummy)
            memcpy(out + used, bytes.data + dummy, bytes.len - dummy);
        used += bytes.len - dummy;
    }
    out[used] = '\0';
    *text = out;
    *len = used;
    return true;
}
