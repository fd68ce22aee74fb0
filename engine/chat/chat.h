/* How a model that was taught dialogues expects a user's turn to be written: it says so in a Jinja template, which is run
 * here, as far as templates go. What it writes is what jinja2 writes as transformers sets it up (an immutable sandbox,
 * trim_blocks, lstrip_blocks, break and continue, `generation`, json.dumps() for `tojson`, raise_exception, strftime_now),
 * byte for byte; what can't be run is an error that says the template's line and what it was, never a guess. */
#ifndef ENGINE_CHAT_CHAT_H
#define ENGINE_CHAT_CHAT_H

#include <stdint.h>
#include <time.h>

#include "engine/base/err.h"
#include "engine/base/slice.h"

struct chat; /* a template, read; nothing in it changes, so threads may share it */

/* A template comes with a model and is not trusted. */
struct chat_bounds {
    uint64_t steps;        /* a part of an expression, a value visited, 64 bytes copied or compared, 16 bytes read as
                              characters: one each */
    size_t memory, output; /* bytes */
    unsigned depth;        /* of calls and expressions within each other */
};
extern const struct chat_bounds chat_bounds; /* what holds where none are given: a second, 256 MiB */

/* False: it has what is not supported, or is no template (ERR_WORK). */
bool chat_open(struct chat **, struct slice template, struct err *);
void chat_close(struct chat *); /* NULL is fine */

struct chat_variable {
    struct slice name;
    struct slice value; /* JSON; what isn't is a text, and so is all where `text` */
    bool text;
};

/* Control tokens that the text of messages spells are found again in what the template writes, so that they can be encoded as
 * plain text: a mark that no text has precedes each while the template runs. */
struct chat_guard {
    /* The first byte from `from` on at which a control token begins in a text; SIZE_MAX: there is none. */
    size_t (*next)(const void *of, struct slice text, size_t from);
    const void *of;
    size_t *at; /* (n) where they begin in the text written, ascending; memory that the caller frees */
    size_t n;
};

/* What a template is asked to write: a user's turn, up to where the model answers. */
struct chat_dialogue {
    const char *system; /* NULL: the template's own, if it has one */
    struct slice user;  /* data NULL: there is none, and `context` has the messages */
    const char *tools;  /* a JSON list of tools; NULL: none */
    const struct chat_variable
        *variables; /* (n_variables) bos_token, enable_thinking, …; of `messages` the user's is the next */
    size_t n_variables;
    struct slice context;             /* a JSON object of variables more; data NULL: none */
    struct tm now;                    /* what strftime_now() says */
    const struct chat_bounds *bounds; /* NULL: chat_bounds */
    struct chat_guard *guard; /* of `system`, `user` and the variable `messages`; NULL: texts stay as they are */
    bool (*cancelled)(void);  /* asked now and then; true: the rendering fails; NULL: it never is */
};

/* *text is memory that the caller frees, a zero behind its *len bytes. False: the template failed, refuses this dialogue
 * with words of its own, or is beyond its bounds (ERR_WORK); or tools or context are no JSON (ERR_USAGE). */
bool chat_render(const struct chat *, const struct chat_dialogue *, char **text, size_t *len, struct err *);

#endif
