#include "tui/app/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/utf8.h"

bool
command_split(const char *line, char verb[COMMAND_VERB], const char **rest)
{
    line += strspn(line, " \t:");
    const size_t n = strcspn(line, " \t\n");
    verb[0] = '\0';
    *rest = line + n + strspn(line + n, " \t");
    if (n == 0 || n >= COMMAND_VERB)
        return false;
    snprintf(verb, COMMAND_VERB, "%.*s", (int)n, line);
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
            return true;
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
    const char *word; /* its beginning */
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

/* Matches the words of a verb's arguments: "next" and "previous" of "next | previous [WHAT]". */
static void
match_words(struct matches *m, const char *arguments)
{
    for (const char *at = arguments; at[0] != '\0'; at += strcspn(at, "|")) {
        char word[24];
        at += strspn(at, "[| ");
        const size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz-");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (n > 0 && (at[n] == '\0' || strchr(" ]|", at[n]) != NULL))
            match(m, word);
    }
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
            if (v->what != NULL) /* neither aliases nor the panels' own */
                match(&m, v->name);
    } else if (command_split(line, verb, &rest) && rest == m.word) { /* only first arguments have completions */
        const struct verb *v = command_find(table, verb, NULL, NULL);
        const char *candidate;
        if (v != NULL)
            match_words(&m, v->arguments);
        for (int i = 0; v != NULL && v->offer != NULL && (candidate = v->offer(app, i)) != NULL; i++)
            match(&m, candidate);
    }
    if (m.n > 0)
        snprintf(out, out_size, "%.*s%s%s", (int)(m.word - line), line, m.common,
                 m.n == 1 && m.common[strlen(m.common) - 1] != '/' ? " " : ""); /* a folder's name continues */
    return m.n;
}

/* ---- paths ---- */

void
path_offers_find(glob_t *paths, const char *word)
{
    char pattern[2 * PATH_MAX];
    size_t n = 0;
    for (; *word != '\0' && n + 4 < sizeof pattern; word++) {
        if (strchr("*?[]\\", *word) != NULL)
            pattern[n++] = '\\';
        pattern[n++] = *word;
    }
    memcpy(pattern + n, "*", 2);
    globfree(paths);
    if (glob(pattern, GLOB_MARK, NULL, paths) != 0)
        paths->gl_pathc = 0;
}

/* ---- scripts ---- */

#define LINE_MAX_BYTES (64 * 1024)

static bool
check(const struct script *s, struct err *err)
{
    unsigned line = 1;
    size_t start = 0;
    for (size_t i = 0; i < s->length;) {
        uint32_t code;
        const size_t used = utf8_character(s->text + i, s->length - i, &code);
        if (used == 0)
            return err_set(err, ERR_USAGE, "%s:%u: not UTF-8; save the script as UTF-8", s->name, line);
        if (code == '\n') {
            line++;
            start = i + 1;
        } else if (code != '\t' && code != '\r' && !printable_code((int32_t)code)) {
            return err_set(err, ERR_USAGE, "%s:%u: a control character (U+%04X); scripts are plain text", s->name, line,
                           (unsigned)code);
        }
        if (i + 1 - start > LINE_MAX_BYTES)
            return err_set(err, ERR_USAGE, "%s:%u: the line is longer than 64 KiB; shorten it", s->name, line);
        i += used;
    }
    return true;
}

bool
script_parse(struct script *s, const char *text, size_t n, const char *name, struct err *err)
{
    *s = (struct script){0};
    snprintf(s->name, sizeof s->name, "%s", name);
    if (n > SCRIPT_MAX)
        return err_set(err, ERR_USAGE, "%s: longer than a script can be (1 MiB)", s->name);
    s->text = malloc(n + 1);
    if (s->text == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", s->name);
    if (n > 0)
        memcpy(s->text, text, n);
    s->text[n] = '\0';
    s->length = n;
    if (check(s, err))
        return true;
    script_close(s);
    return false;
}

bool
script_load(struct script *s, const char *path, struct err *err)
{
    *s = (struct script){0};
    char *text;
    size_t n;
    const bool read = file_text_or_pipe(path, SCRIPT_MAX, &text, &n, err);
    if (!read && err != NULL)
        err->kind = ERR_USAGE;
    const bool fine = read && script_parse(s, text, n, path, err);
    free(text);
    return fine;
}

void
script_close(struct script *s)
{
    free(s->text);
    s->text = NULL;
    s->length = s->at = 0;
}

const char *
script_next(struct script *s)
{
    while (s->text != NULL && s->at < s->length) {
        char *line = s->text + s->at;
        char *end = memchr(line, '\n', s->length - s->at);
        if (end == NULL)
            end = s->text + s->length;
        s->at = (size_t)(end - s->text) + 1;
        s->line++;
        while (end > line && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
            end--;
        *end = '\0';
        line += strspn(line, " \t\r");
        if (line[0] == ':')
            line += 1 + strspn(line + 1, " \t");
        if (line[0] != '\0' && line[0] != '#')
            return line;
    }
    return NULL;
}

bool
script_running(const struct script *s)
{
    return s->text != NULL;
}
