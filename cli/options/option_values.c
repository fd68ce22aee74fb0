/* From text to the members of struct options, by type. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/options/option_setters.h"

static bool
set_whole(void *member, const struct option_row *row, const char *text, struct err *err)
{
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < row->least || v > row->most)
        return err_set(err, ERR_USAGE, "--%s %.40s: a whole number from %" PRIu64 " to %" PRIu64 " is wanted",
                       row->name, text, row->least, row->most);
    if (row->size == sizeof(uint32_t))
        *(uint32_t *)member = (uint32_t)v;
    else
        *(uint64_t *)member = v;
    return true;
}

static bool
set_real(void *member, const struct option_row *row, const char *text, struct err *err)
{
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= row->low && v <= row->high))
        return err_set(err, ERR_USAGE, "--%s %.40s: a number from %g to %g is wanted", row->name, text, row->low,
                       row->high);
    if (row->size == sizeof(float))
        *(float *)member = (float)v;
    else
        *(double *)member = v;
    return true;
}

const char *
option_words(const struct option_row *row, const char *before_last, char *out, size_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < row->n_words && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%s",
                                 i == 0                  ? ""
                                 : i + 1 == row->n_words ? before_last
                                                         : ", ",
                                 row->words[i]);
    return out;
}

bool
option_unknown_word(const struct option_row *row, const char *text, struct err *err)
{
    char words[160];
    return err_set(err, ERR_USAGE, "--%s %.32s is not known; there are %s", row->name, text,
                   option_words(row, " and ", words, sizeof words));
}

static bool
set_choice(void *member, const struct option_row *row, const char *text, struct err *err)
{
    for (size_t i = 0; i < row->n_words; i++)
        if (strcasecmp(row->words[i], text) == 0) {
            if (row->size == sizeof(bool))
                *(bool *)member = i > 0;
            else
                *(unsigned *)member = (unsigned)i;
            return true;
        }
    return option_unknown_word(row, text, err);
}

static bool
append(struct option_list *list, const struct option_row *row, const char *text, struct err *err)
{
    if (list->n == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--%s: more than %d of them", row->name, OPTIONS_MOST);
    list->at[list->n++] = text;
    return true;
}

bool
option_set(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    void *member = (char *)o + row->at;
    switch (row->type) {
    case OPTION_SWITCH: *(bool *)member = true; return true;
    case OPTION_TEXT: *(const char **)member = text; return true;
    case OPTION_LIST: return append(member, row, text, err);
    case OPTION_WHOLE: return set_whole(member, row, text, err);
    case OPTION_REAL: return set_real(member, row, text, err);
    case OPTION_CHOICE: return set_choice(member, row, text, err);
    case OPTION_CALL: return row->set(o, row, text, err);
    case OPTION_SAY:
        row->say(o->command);
        o->finished = true;
        return true;
    }
    return err_set(err, ERR_USAGE, "--%s: an option without a meaning", row->name);
}

const struct option_row *
option_find(const char *name, unsigned commands)
{
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & commands) != 0 && strcmp(option_rows[i].name, name) == 0)
            return &option_rows[i];
    return NULL;
}

void
options_init(struct options *o, enum command command)
{
    *o = (struct options){.command = command,
                          .pace = -1,
                          .backend_options = {.gpu = -1},
                          .plot = {.from = UINT64_MAX, .to = UINT64_MAX, .seq = UINT64_MAX}};
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & command) != 0 && option_rows[i].def != NULL)
            option_set(o, &option_rows[i], option_rows[i].def, NULL); /* a test sets them all */
}
