#include "cli/options/chat_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/files.h"

bool
set_chat_variable(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    (void)row;
    if (equals == NULL || equals == text)
        return err_set(err, ERR_USAGE, "--chat-var %.40s: NAME=VALUE is wanted, as in --chat-var enable_thinking=false",
                       text);
    const struct slice name = {text, (size_t)(equals - text)};
    size_t i = 0;
    while (i < o->chat.n_variables && slice_compare(o->chat_variables[i].name, name) != 0)
        i++;
    if (i == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--chat-var: more than %d variables", OPTIONS_MOST);
    size_t all = strlen(text) + 1;
    for (size_t k = 0; k < o->chat.n_variables; k++)
        all += k == i ? 0 : o->chat_variables[k].name.len + o->chat_variables[k].value.len + 2;
    if (all > ASKED_VARS || strchr(text, '\n') != NULL) /* a run says what it was asked for */
        return err_set(err, ERR_USAGE, "--chat-var %.*s: %s", (int)name.len, text,
                       all > ASKED_VARS ? "variables of more than 4000 bytes are not supported"
                                        : "a line break in a value is written \\n, in a JSON string");
    o->chat_variables[i] =
        (struct chat_variable){.name = name, .value = slice_of(equals + 1)}; /* the last one counts */
    o->chat.n_variables += i == o->chat.n_variables;
    return true;
}

/* The file's text, which goes with the options. */
static bool
read_owned(struct options *o, const char *option, const char *path, char **text, size_t *len, struct err *err)
{
    if (o->n_owned == sizeof o->owned / sizeof *o->owned)
        return err_set(err, ERR_USAGE, "--%s is given too often", option);
    if (!file_read(path, text, len, err))
        return false;
    o->owned[o->n_owned++] = *text;
    return true;
}

bool
set_tools(struct options *o, const struct option_row *row, const char *path, struct err *err)
{
    char *text;
    size_t len;
    if (!read_owned(o, row->name, path, &text, &len, err))
        return false;
    o->chat.tools = text;
    o->chat.tools_path = path;
    return true;
}

bool
set_chat_template(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    char *template;
    size_t len;
    o->chat.name = o->chat.template_path = NULL;
    o->chat.template = (struct slice){0};
    if (strpbrk(text, "/.") == NULL) {
        o->chat.name = text;
        return true;
    }
    if (!read_owned(o, row->name, text, &template, &len, err))
        return false;
    o->chat.template = (struct slice){template, len};
    o->chat.template_path = text;
    return true;
}

bool
set_chat_date(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    struct tm day = {.tm_isdst = -1}, whole;
    (void)row;
    const char *end = strptime(text, "%Y-%m-%d", &day);
    const char *behind = end == NULL || *end == '\0' ? end : strptime(end, " %H:%M", &day);
    whole = day;
    if (behind == NULL || *behind != '\0' || timegm(&whole) == (time_t)-1 || whole.tm_mday != day.tm_mday)
        return err_set(err, ERR_USAGE, "--chat-date %.40s: a day is wanted, as in 2026-03-05, or \"2026-03-05 14:30\"",
                       text);
    o->chat_day = whole;
    o->chat.day = &o->chat_day;
    return true;
}
