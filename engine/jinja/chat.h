/* Runs a chat model's Jinja template, which formats a dialogue as the prompt that the model was trained on. The output
 * equals, byte for byte, that of jinja2 as transformers configures it (an immutable sandbox, trim_blocks,
 * lstrip_blocks, break and continue, `generation`, json.dumps() for `tojson`, raise_exception, strftime_now). Only the
 * part of Jinja that models' templates use is supported. An unsupported statement, filter or method is an error that
 * contains its name and the template's line. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/slice.h"

struct chat; /* a parsed template; immutable, so threads may share it */

/* Limits of one rendering. A template comes with a model and is not trusted. */
struct chat_bounds {
    uint64_t steps;        /* one for each part of an expression, value visited, 64 bytes copied or compared, 16
                              bytes read as characters */
    size_t memory, output; /* bytes */
    unsigned depth;        /* of nested calls and expressions */
};
extern const struct chat_bounds chat_bounds; /* the default: about a second, 256 MiB */

/* Parses a template. Returns false (ERR_WORK) if the text is not a template or uses an unsupported statement or
 * operator. Filters, tests and methods are looked up during rendering. */
bool chat_open(struct chat **, struct slice template, struct err *);
void chat_close(struct chat *); /* accepts NULL */

struct chat_variable {
    struct slice name;
    struct slice value; /* JSON; used as plain text if it is not JSON or if `text` is set */
    bool text;
};

/* Finds the control tokens that occur in the text of messages, so that the caller can encode them as plain text. While
 * the template runs, a mark that occurs in no text precedes each of them. chat_render() removes the marks and returns
 * their positions. */
struct chat_guard {
    /* Returns the first byte at or after `from` at which a control token begins; SIZE_MAX if there is none. */
    size_t (*next)(const void *of, struct slice text, size_t from);
    const void *of;
    size_t *at; /* (n) positions of these tokens in the output, ascending; the caller frees the memory */
    size_t n;
};

/* The input of a template. The output ends where the model's answer begins. */
struct chat_dialogue {
    const char *system; /* system message; NULL: the template's default, if it has one */
    struct slice user;  /* data NULL: no user message; `context` contains the messages */
    const char *
        before; /* a JSON list of the messages before the user's; a system message at its beginning replaces `system`. NULL:
                           none */
    const char *tools; /* a JSON list of tools; NULL: none */
    const struct chat_variable *
        variables; /* (n_variables) bos_token, enable_thinking, …; `before` and the user's message are appended to `messages` */
    size_t n_variables;
    struct slice context;             /* a JSON object of further variables; data NULL: none */
    struct tm now;                    /* the time that strftime_now() formats */
    const struct chat_bounds *bounds; /* NULL: chat_bounds */
    struct chat_guard *guard; /* applies to `system`, `before`, `user` and the variable `messages`; NULL: no guard */
    bool (*cancelled)(void);  /* called regularly; the rendering fails if it returns true; may be NULL */
};

/* Renders the dialogue. *text is memory that the caller frees; a zero byte follows its *len bytes. Returns false if the
 * template fails, rejects the dialogue with raise_exception() or exceeds its bounds (ERR_WORK), or if tools or context
 * are not JSON (ERR_USAGE). */
bool chat_render(const struct chat *, const struct chat_dialogue *, char **text, size_t *len, struct err *);
