#include "engine/session/prompt.h"

#include <stdlib.h>
#include <string.h>

static bool
tokenise(const struct prompt_format *f, const char *text, size_t len, token_t **ids, size_t *n, struct err *err)
{
    const struct tokenize_options options = {.bos = true, .special = true};
    *ids = NULL;
    if (f->chat.format == CHAT_NONE)
        return tokenizer_encode(f->tokenizer, text, len, options, ids, n, err);
    char *turn = NULL;
    size_t n_turn;
    const bool ok = chat_prompt(&f->chat, f->system, text, len, &turn, &n_turn, err) &&
                    tokenizer_encode(f->tokenizer, turn, n_turn, options, ids, n, err);
    free(turn);
    return ok;
}

bool
prompt_read(struct prompt *p, const struct prompt_format *f, const char *text, size_t len, struct err *err)
{
    *p = (struct prompt){0};
    size_t n;
    if (!tokenise(f, text, len, &p->ids, &n, err))
        return false;
    p->text = strndup(text, len);
    p->n = (uint32_t)n;
    if (p->text != NULL && n > 0 && n < f->ctx)
        return true;
    const bool memory = p->text != NULL;
    prompt_free(p);
    if (!memory)
        return err_set(err, ERR_WORK, "out of memory for the prompt");
    if (n == 0)
        return err_set(err, ERR_USAGE, "the prompt is empty and this model has no token to begin with; give some text");
    return err_set(err, ERR_USAGE, "the prompt has %zu tokens, the context holds %u; shorten it or raise --ctx", n,
                   (unsigned)f->ctx);
}

void
prompt_free(struct prompt *p)
{
    free(p->text);
    free(p->ids);
    *p = (struct prompt){0};
}
