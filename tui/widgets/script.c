#include "tui/widgets/script.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/file_text.h"
#include "engine/base/printable.h"
#include "engine/base/utf8.h"

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
