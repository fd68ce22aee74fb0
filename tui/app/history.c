/* Lines that were entered before. In the file a line is a line; a line break within a prompt is written \n and a
 * backslash \\. */
#include "tui/app/prompt_editor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file_replace.h"

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
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    while ((n = getline(&line, &size, file)) > 0) {
        if (line[n - 1] == '\n')
            line[--n] = '\0';
        unescape(line);
        if (n <= EDITOR_MAX)
            history_add(h, line);
    }
    free(line);
    fclose(file);
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
    if (h->path != NULL && h->n > 0 && !save(h, &why))
        fine = err_set(err, ERR_WORK, "the history of prompts is lost: %s", why.text);
    for (int i = 0; i < h->n; i++)
        free(h->line[i]);
    free(h->path);
    *h = (struct history){0};
    return fine;
}
