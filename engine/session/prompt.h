/* Prompts: text and tokens. A text is tokenised once, on the thread that posts it. */
#pragma once

#include "engine/jinja/chat.h"
#include "engine/model/tokenizer/tokenizer.h"

struct chat_setting { /* how prompts become turns of a dialogue; pointers are borrowed until the session is closed */
    bool on;
    struct slice template;     /* data NULL: one of the model's own */
    const char *template_path; /* its file, for the description of the run; NULL: none */
    const char *name;   /* of the model's template; NULL: "tool_use" with tools if there is one, else "default" */
    const char *system; /* NULL: the template's own */
    const char *tools, *tools_path;        /* a JSON list and its file; NULL: none */
    const struct chat_variable *variables; /* (n_variables) */
    size_t n_variables;
    bool special;            /* control tokens in messages count as such */
    bool (*cancelled)(void); /* struct chat_dialogue */
    const struct tm *day;    /* the date for templates; NULL: of the opening */
};

struct prompt_format { /* how a session writes its prompts */
    const struct tokenizer *tokenizer;
    uint32_t ctx;                    /* a prompt must leave room in it for a token */
    bool special;                    /* struct chat_setting */
    struct chat *chat;               /* owned; writes prompts as turns; NULL: prompts stay as they are */
    struct chat_dialogue dialogue;   /* with all but the user's text */
    struct chat_variable *variables; /* owned; the dialogue's */
};

/* False: the template cannot be run (ERR_WORK). Without a template prompts stay as they are. */
bool prompt_format_open(struct prompt_format *, const struct tokenizer *, const struct chat_setting *, uint32_t ctx,
                        struct err *);
void prompt_format_close(struct prompt_format *);

struct prompt {
    char *text;   /* terminated; owned */
    char *before; /* the conversation before it, struct chat_dialogue; NULL: none; owned */
    token_t *ids; /* (n); owned */
    uint32_t n;
};

/* Fails if the text is empty, too long, cannot be tokenised, or the template refuses it. before: struct chat_dialogue;
 * may be NULL. */
bool prompt_read(struct prompt *, const struct prompt_format *, const char *text, size_t len, const char *before,
                 struct err *);
void prompt_free(struct prompt *); /* what it owns, not itself */
