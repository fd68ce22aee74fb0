/* Writes a user's turn as a model that was trained on dialogues expects it: runs the model's Jinja template. The text is
 * that of jinja2 as transformers sets it up (an immutable sandbox, trim_blocks, lstrip_blocks, break and continue,
 * `generation`, json.dumps() for `tojson`, raise_exception, strftime_now), byte for byte. It supports the part of
 * Jinja that models' templates use. Other statements, filters and methods are errors that contain the template's line and their name. */
#ifndef ENGINE_CHAT_CHAT_H
#define ENGINE_CHAT_CHAT_H

#include <stdint.h>
#include <time.h>

#include "engine/base/slice.h"
#include "kernels/base/err.h"

struct chat; /* a template, read; nothing in it changes, so threads may share it */

/* A template comes with a model and is not trusted. */
struct chat_bounds {
    uint64_t steps;        /* a part of an expression, a value visited, 64 bytes copied or compared, 16 bytes read as
                              characters: one each */
    size_t memory, output; /* bytes */
    unsigned depth;        /* of calls and expressions within each other */
};
extern const struct chat_bounds chat_bounds; /* the default: a second, 256 MiB */

/* Returns false (ERR_WORK) for a text that is no template, or uses a statement or operator that is not supported. Filters, tests and
 * methods are looked up when the rendering reaches them. */
bool chat_open(struct chat **, struct slice template, struct err *);
void chat_close(struct chat *); /* NULL is fine */

struct chat_variable {
    struct slice name;
    struct slice value; /* JSON; a text where it is none, or where `text` */
    bool text;
};

/* Control tokens that the text of messages spells are found again in the written text, so that they can be encoded as
 * plain text: a mark that no text has precedes each while the template runs. */
struct chat_guard {
    /* The first byte from `from` on at which a control token begins in a text; SIZE_MAX: there is none. */
    size_t (*next)(const void *of, struct slice text, size_t from);
    const void *of;
    size_t *at; /* (n) where they begin in the text written, ascending; memory that the caller frees */
    size_t n;
};

/* The input of a template, which writes a user's turn up to the place of the model's answer. */
struct chat_dialogue {
    const char *system; /* NULL: that of the template, if it has one */
    struct slice user;  /* data NULL: there is none, and `context` has the messages */
    const char *tools;  /* a JSON list of tools; NULL: none */
    const struct chat_variable
        *variables; /* (n_variables) bos_token, enable_thinking, …; of `messages` the user's is the next */
    size_t n_variables;
    struct slice context;             /* a JSON object of variables more; data NULL: none */
    struct tm now;                    /* of strftime_now() */
    const struct chat_bounds *bounds; /* NULL: chat_bounds */
    struct chat_guard *guard; /* of `system`, `user` and the variable `messages`; NULL: texts stay as they are */
    bool (*cancelled)(void);  /* asked now and then; true: the rendering fails; NULL: it never is */
};

/* *text is memory that the caller frees, a zero after its *len bytes. False: the template failed, refuses this dialogue
 * with words of its own, or is beyond its bounds (ERR_WORK); or tools or context are no JSON (ERR_USAGE). */
bool chat_render(const struct chat *, const struct chat_dialogue *, char **text, size_t *len, struct err *);

#endif
