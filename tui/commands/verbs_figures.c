/* :plot, a figure of what was run so far. */
#include <string.h>

#include "tui/commands/verbs.h"
#include "tui/figures/figure.h"
#include "tui/scope/batch.h"

/* A number with nothing after it, stored from 0. */
static bool
take_number(const char *text, const char *name, uint32_t least, int64_t *out, struct err *err)
{
    uint64_t value;
    if (!command_number(text, name, least, UINT32_MAX, &value, err))
        return false;
    *out = (int64_t)(value - least);
    return true;
}

/* "width=85mm" */
static bool
take_setting(struct figure_options *o, char *word, struct err *err)
{
    char *equals = strchr(word, '=');
    if (equals == NULL)
        return err_set(err, ERR_USAGE, "\"%.40s\": NAME=VALUE is wanted, of from, to, width, axes, seq", word);
    const char *text = equals + 1;
    *equals = '\0';
    if (strcmp(word, "from") == 0)
        return take_number(text, word, 0, &o->from, err);
    if (strcmp(word, "to") == 0)
        return take_number(text, word, 0, &o->to, err);
    if (strcmp(word, "seq") == 0)
        return take_number(text, word, 1, &o->seq, err);
    if (strcmp(word, "width") == 0)
        return figure_length(text, &o->width, err);
    if (strcmp(word, "axes") == 0) {
        o->axes = text;
        return true;
    }
    return err_set(err, ERR_USAGE, "a figure has no %.40s; there are from, to, width, axes, seq", word);
}

/* The trace of what is on the screen. */
static const char *
trace_of(const struct app *app, struct err *err)
{
    const struct source *source = app->run.source;
    if (!follow_live(&app->run))
        return source->trace;
    if (source->trace_now != NULL)
        return source->trace_now(source->user, err);
    err_set(err, ERR_USAGE, "no trace of this run is kept, so there is nothing to draw; start with --trace DIR");
    return NULL;
}

bool
run_plot(struct app *app, const char *rest, struct err *err)
{
    struct figure_options o = FIGURE_OPTIONS;
    o.focus = scope_is_batch(app->run.scope) ? scope_focus(app->run.scope) : 0;
    char words[1024], *save = NULL;
    snprintf(words, sizeof words, "%s", rest);
    const char *kind = strtok_r(words, " \t", &save), *file = strtok_r(NULL, " \t", &save);
    if (kind == NULL)
        return err_set(err, ERR_USAGE, "which figure, into which file? for example :plot layers layers.pdf");
    if (file == NULL && figure_kind_what(kind) != NULL)
        return err_set(err, ERR_USAGE, "into which file? for example :plot %s %s.pdf", kind, kind);
    for (char *word; (word = strtok_r(NULL, " \t", &save)) != NULL;)
        if (!take_setting(&o, word, err))
            return false;
    const char *trace = trace_of(app, err);
    char note[FIGURE_NOTE];
    if (trace == NULL || !figure_make(file != NULL ? file : ".svg", kind, &trace, 1, &o, note, err))
        return false;
    message_say(&app->message, "%s drawn into %.300s%s%s", kind, file, note[0] != '\0' ? "; " : "", note);
    return true;
}
