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
tokenizer_chat_template(const struct tokenizer *t)
{
    return t->chat_template;
}

bool
tokenizer_set_chat_template(struct tokenizer *t, const char *text, size_t len, struct err *err)
{
    return tokenizer_copy(t, text, len, &t->chat_template) ||
           err_set(err, ERR_WORK, "out of memory for a chat template of %zu bytes", len);
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
