/* A prompt as the engine takes it. Text becomes tokens once, on the thread that brings it. */
#ifndef ENGINE_SESSION_PROMPT_H
#define ENGINE_SESSION_PROMPT_H

#include "engine/chat/chat.h"
#include "engine/tokenizer/tokenizer.h"

struct
    chat_setting { /* how prompts become turns of a dialogue; what it points to is borrowed as long as the session lives */
    bool on;
    struct slice template;     /* data NULL: the model's own … */
    const char *template_path; /* … which is said of the run; NULL: none */
    const char *name;          /* … of this name; NULL: "tool_use" with tools where there is one, else "default" */
    const char *system;        /* NULL: the template's own */
    const char *tools, *tools_path;        /* a JSON list, and the file it is from; NULL: none */
    const struct chat_variable *variables; /* (n_variables) */
    size_t n_variables;
    bool special;            /* control tokens that messages spell count as such */
    bool (*cancelled)(void); /* struct chat_dialogue */
    const struct tm *day;    /* the date that templates are told; NULL: when the session is opened */
};

struct prompt_format { /* how a session writes its prompts */
    const struct tokenizer *tokenizer;
    uint32_t ctx;                    /* a prompt must leave room in it for a token */
    bool special;                    /* struct chat_setting */
    struct chat *chat;               /* owned; prompts are turns as it writes them; NULL: they stay as they are */
    struct chat_dialogue dialogue;   /* … with all but the user's words */
    struct chat_variable *variables; /* owned; the dialogue's */
};

/* The template that a setting means, of those that came with the model: len 0 where it came with none. False: it has none
 * of that name (ERR_USAGE). */
bool chat_setting_template(const struct chat_setting *, const struct tokenizer *, struct slice *, struct err *);

/* False: the template can't be run (ERR_WORK). A model without one has its prompts as they are. */
bool prompt_format_open(struct prompt_format *, const struct tokenizer *, const struct chat_setting *, uint32_t ctx,
                        struct err *);
void prompt_format_close(struct prompt_format *);

struct prompt {
    char *text;   /* terminated; owned */
    token_t *ids; /* (n); owned */
    uint32_t n;
};

/* False, with a line for the user: it is empty, too long, cannot be tokenised, or the template won't have it. */
bool prompt_read(struct prompt *, const struct prompt_format *, const char *text, size_t len, struct err *);
void prompt_free(struct prompt *); /* what it owns, not itself */

#endif
