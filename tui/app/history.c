/* Lines that were entered before. In the file a line is a line; a line break within a prompt is written \n and a
 * backslash \\. */
#include "tui/app/prompt_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file_replace.h"
#include "engine/base/file_text.h"

#define HISTORY_MOST ((size_t)HISTORY_LINES * (2 * EDITOR_MAX + 2)) /* bytes: each may be escaped */

void
history_add(struct history *h, const char *text)
{
    if (text[0] == '\0')
        return;
    char *entry = NULL;
    for (int i = 0; i < h->n && entry == NULL; i++) {
        if (strcmp(h->line[i], text) != 0)
            continue;
        entry = h->line[i];
        memmove(&h->line[i], &h->line[i + 1], (size_t)(h->n - i - 1) * sizeof h->line[0]);
        h->n--;
    }
    if (entry == NULL && (entry = strdup(text)) == NULL)
        return; /* a history without it still works */
    if (h->n == HISTORY_LINES) {
        free(h->line[0]);
        memmove(&h->line[0], &h->line[1], (HISTORY_LINES - 1) * sizeof h->line[0]);
        h->n--;
    }
    h->line[h->n++] = entry;
}

/* Undoes the escapes, in place. */
static void
unescape(char *line)
{
    char *to = line;
    for (const char *from = line; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] != '\0') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

void
history_open(struct history *h, const char *path)
{
    *h = (struct history){0};
    if (path == NULL || (h->path = strdup(path)) == NULL)
        return;
    char *text;
    size_t n;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return; /* the first time there is none */
    if (!file_text(path, HISTORY_MOST, &text, &n, &h->unread))
        return;
    for (char *line = text; line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        end = end != NULL ? end : text + n;
        *end = '\0';
        if (end - line <= EDITOR_MAX) {
            unescape(line);
            history_add(h, line);
        }
        line = end + 1;
    }
    free(text);
}

static bool
save(const struct history *h, struct err *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *lines = open_memstream(&text, &n);
    if (lines == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", h->path);
    for (int i = 0; i < h->n; i++) {
        for (const char *c = h->line[i]; *c != '\0'; c++) {
            if (*c == '\n' || *c == '\\')
                fputc('\\', lines);
            fputc(*c == '\n' ? 'n' : *c, lines);
        }
        fputc('\n', lines);
    }
    bool fine = ferror(lines) == 0;
    fine = fclose(lines) == 0 && fine;
    fine = fine ? file_replace_text(AT_FDCWD, h->path, 0600, text, n, err) /* prompts are nobody else's business */
                : err_set(err, ERR_WORK, "%s: out of memory", h->path);
    free(text);
    return fine;
}

bool
history_close(struct history *h, struct err *err)
{
    struct err why;
    bool fine = true;
    if (h->path != NULL && h->n > 0 && h->unread.kind != ERR_NONE)
        fine = err_set(err, ERR_WORK, "the prompts of now are not added to the history: %s", h->unread.text);
    else if (h->path != NULL && h->n > 0 && !save(h, &why))
        fine = err_set(err, ERR_WORK, "the history of prompts is lost: %s", why.text);
    for (int i = 0; i < h->n; i++)
        free(h->line[i]);
    free(h->path);
    *h = (struct history){0};
    return fine;
}
