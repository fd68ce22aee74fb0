/* Lines that were entered before. In the file a line is a line; a line break within a prompt is written \n and a
 * backslash \\. */
#include "tui/widgets/prompt_editor.h"

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
        h->fresh -= i >= h->n - h->fresh;
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
    h->fresh += h->fresh < HISTORY_LINES;
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

static void
load(struct history *h)
{
    char *text;
    size_t n;
    if (access(h->path, F_OK) != 0 && errno == ENOENT)
        return; /* the first time there is none */
    if (!file_text(h->path, HISTORY_MOST, &text, &n, &h->unread))
        return;
    for (char *line = text; line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        end = end != NULL ? end : text + n;
        *end = '\0';
        unescape(line);
        if (strlen(line) <= EDITOR_MAX)
            history_add(h, line);
        line = end + 1;
    }
    free(text);
}

void
history_open(struct history *h, const char *path)
{
    *h = (struct history){0};
    if (path == NULL || (h->path = strdup(path)) == NULL)
        return;
    load(h);
    h->fresh = 0;
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

static void
forget(struct history *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->line[i]);
    *h = (struct history){0};
}

/* Another program may have written since this one read: what is fresh here comes behind what is there now. */
static bool
keep(const struct history *h, struct err *err)
{
    struct err why;
    struct history now = {.path = h->path};
    load(&now);
    for (int i = h->n - h->fresh; i < h->n; i++)
        history_add(&now, h->line[i]);
    bool fine = true;
    if (h->unread.kind != ERR_NONE || now.unread.kind != ERR_NONE)
        fine = err_set(err, ERR_WORK, "the prompts of now are not added to the history: %s",
                       h->unread.kind != ERR_NONE ? h->unread.text : now.unread.text);
    else if (!save(&now, &why))
        fine = err_set(err, ERR_WORK, "the history of prompts is lost: %s", why.text);
    forget(&now);
    return fine;
}

bool
history_close(struct history *h, struct err *err)
{
    const bool fine = h->path == NULL || h->fresh == 0 || keep(h, err);
    free(h->path);
    forget(h);
    return fine;
}
