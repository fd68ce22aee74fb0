/* Errors: one sentence for the user with what happened, where, and what to do about it. */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum err_kind {
    ERR_NONE,
    ERR_WORK,     /* the work failed: exit status 1 */
    ERR_USAGE,    /* a bad argument, knob, command: exit status 2 */
    ERR_CANCELLED /* cancelled by the user; nothing to report */
};

struct err {
    enum err_kind kind;
    char text[400]; /* one line, UTF-8, no final newline, safe to print on a terminal */
};

__attribute__((format(printf, 3, 4))) static inline void
err_fill(struct err *e, enum err_kind kind, const char *format, ...)
{
    if (e == NULL)
        return;
    va_list args;
    va_start(args, format);
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    for (char *c = e->text; *c != '\0'; c++) /* file names and model data may contain control characters */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static inline bool
err_false(void)
{
    return false;
}

/* Copies an error to e (which may be NULL) and returns false. */
static inline bool
err_copy(struct err *e, const struct err *from)
{
    if (e != NULL)
        *e = *from;
    return false;
}

/* Returns whether the reason is that the machine's memory ran out. Messages for that contain one of these phrases;
 * those for a GPU's memory do not. */
static inline bool
err_is_memory(const struct err *e)
{
    return e->kind == ERR_WORK &&
           (strstr(e->text, "out of memory") != NULL || strstr(e->text, "not enough memory") != NULL ||
            strstr(e->text, strerror(ENOMEM)) != NULL);
}

/* Fills e (which may be NULL) and returns false, so that a failing function can `return err_set(e, kind, format, …)`.
 * It is a macro because clang's analyzer does not follow functions with variable arguments. */
#define err_set(...) (err_fill(__VA_ARGS__), err_false())
