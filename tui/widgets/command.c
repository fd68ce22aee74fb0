#include "tui/widgets/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
command_split(const char *line, char verb[COMMAND_VERB], const char **rest)
{
    line += strspn(line, " \t:");
    const size_t n = strcspn(line, " \t\n");
    verb[0] = '\0';
    *rest = line + n + strspn(line + n, " \t");
    if (n == 0 || n >= COMMAND_VERB)
        return false;
    memcpy(verb, line, n);
    verb[n] = '\0';
    return true;
}

const struct verb *
command_find(const struct verb *table, const char *verb, bool *unknown, struct err *err)
{
    const size_t n = strlen(verb);
    const struct verb *found = NULL;
    char several[200] = "";
    int count = 0;
    for (const struct verb *v = table; v->name != NULL; v++) {
        if (strcmp(v->name, verb) == 0)
            return v;
        if (n == 0 || strncmp(v->name, verb, n) != 0)
            continue;
        const size_t used = strlen(several);
        snprintf(several + used, sizeof several - used, "%s%s", count == 0 ? "" : ", ", v->name);
        found = v;
        count++;
    }
    if (count == 1)
        return found;
    if (unknown != NULL)
        *unknown = count == 0;
    if (count > 1)
        err_set(err, ERR_USAGE, "\"%s\" could be %s; write more of it", verb, several);
    else
        err_set(err, ERR_USAGE, "there is no command \"%s\"; :help lists them all", verb);
    return NULL;
}

bool
command_run(const struct verb *table, struct app *app, const char *line, bool *unknown, struct err *err)
{
    char verb[COMMAND_VERB];
    const char *rest;
    *unknown = false;
    if (!command_split(line, verb, &rest)) {
        if (rest[0] == '\0' && line[strspn(line, " \t:")] == '\0')
            return true; /* an empty line asks for nothing */
        return err_set(err, ERR_USAGE, "there is no such command; :help lists them all");
    }
    const struct verb *v = command_find(table, verb, unknown, err);
    if (v == NULL)
        return false;
    if (v->arguments[0] == '\0' && rest[0] != '\0')
        return err_set(err, ERR_USAGE, ":%s takes no argument; leave \"%.40s\" out", v->name, rest);
    return v->run(app, rest, err);
}

bool
command_run_text(const struct verb *table, struct app *app, const char *line, struct err *err)
{
    char verb[COMMAND_VERB];
    const size_t n = strcspn(line, " ");
    snprintf(verb, sizeof verb, "%.*s", (int)n, line);
    const struct verb *v = command_find(table, verb, NULL, err);
    return v != NULL && v->run(app, line + n + (line[n] == ' '), err);
}

bool
command_number(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, struct err *err)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min || value > max)
        return err_set(err, ERR_USAGE, "%s must be a whole number from %llu to %llu, not \"%.40s\"", what,
                       (unsigned long long)min, (unsigned long long)max, text);
    *out = value;
    return true;
}

struct matches {
    const char *word; /* what is there of it */
    size_t length;
    char common[512];
    char *list;
    size_t list_size;
    int n;
};

static void
match(struct matches *m, const char *candidate)
{
    if (strncmp(candidate, m->word, m->length) != 0)
        return;
    if (m->n == 0) {
        snprintf(m->common, sizeof m->common, "%s", candidate);
    } else {
        size_t same = 0;
        while (m->common[same] != '\0' && m->common[same] == candidate[same])
            same++;
        m->common[same] = '\0';
    }
    const size_t used = strlen(m->list);
    if (used + strlen(candidate) + 2 < m->list_size)
        snprintf(m->list + used, m->list_size - used, "%s%s", used == 0 ? "" : "  ", candidate);
    m->n++;
}

int
command_complete(const struct verb *table, struct app *app, const char *line, char *out, size_t out_size, char *list,
                 size_t list_size)
{
    char verb[COMMAND_VERB];
    const char *rest;
    list[0] = '\0';
    snprintf(out, out_size, "%s", line);
    const char *space = strrchr(line, ' ');
    struct matches m = {.word = space == NULL ? line : space + 1, .list = list, .list_size = list_size};
    m.length = strlen(m.word);
    if (space == NULL) {
        for (const struct verb *v = table; v->name != NULL; v++)
            match(&m, v->name);
    } else if (command_split(line, verb, &rest) && rest == m.word) { /* only first arguments are known */
        const struct verb *v = command_find(table, verb, NULL, NULL);
        const char *candidate;
        for (int i = 0; v != NULL && v->offer != NULL && (candidate = v->offer(app, i)) != NULL; i++)
            match(&m, candidate);
    }
    if (m.n > 0)
        snprintf(out, out_size, "%.*s%s%s", (int)(m.word - line), line, m.common,
                 m.n == 1 && m.common[strlen(m.common) - 1] != '/' ? " " : ""); /* a folder has more in it */
    return m.n;
}
