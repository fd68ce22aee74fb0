/* A prompt as the engine takes it. Text becomes tokens once, on the thread that brings it. */
#ifndef ENGINE_SESSION_PROMPT_H
#define ENGINE_SESSION_PROMPT_H

#include "engine/tokenizer/chat.h"
#include "engine/tokenizer/tokenizer.h"

struct prompt_format { /* how a session writes its prompts */
    const struct tokenizer *tokenizer;
    struct chat chat;   /* prompts are turns in this format; CHAT_NONE: they stay as they are */
    const char *system; /* … under this system text; NULL: the template's own */
    uint32_t ctx;       /* a prompt must leave room in it for a token */
};

struct prompt {
    char *text;   /* terminated; owned */
    token_t *ids; /* (n); owned */
    uint32_t n;
};

/* False, with a line for the user: it is empty, too long, or cannot be tokenised. */
bool prompt_read(struct prompt *, const struct prompt_format *, const char *text, size_t len, struct err *);
void prompt_free(struct prompt *); /* what it owns, not itself */

#endif
