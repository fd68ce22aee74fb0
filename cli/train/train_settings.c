#include "cli/train/train_settings.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void
train_settings_add(struct train_settings *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(s->text + s->n, sizeof s->text - s->n, format, args);
    va_end(args);
    if (n >= 0 && s->n + (size_t)n + 1 < sizeof s->text) {
        s->n += (size_t)n;
        s->text[s->n++] = '\n';
    }
    s->text[s->n] = '\0';
}

bool
train_settings_same(const struct train_settings *s, const char *path, const char *was, struct err *err)
{
    for (const char *now = s->text; *was != '\0' || *now != '\0';) {
        const size_t a = strcspn(was, "\n"), b = strcspn(now, "\n");
        if (a != b || memcmp(was, now, a) != 0)
            return err_set(
                err, ERR_USAGE,
                "%.120s was begun with '%.*s', not '%.*s'; give what it was begun with to go on, or remove the "
                "file to start anew",
                path, (int)(a < 90 ? a : 90), was, (int)(b < 90 ? b : 90), now);
        was += a + (was[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return true;
}

char *
train_beside(const char *out, const char *ending)
{
    const size_t room = strlen(out) + strlen(ending) + 1;
    char *path = malloc(room);
    if (path != NULL)
        snprintf(path, room, "%s%s", out, ending);
    return path;
}

bool
train_can_write(const char *command, const char *out, const struct file_kind *kind, struct err *err)
{
    struct stat about;
    if (out == NULL)
        return err_set(err, ERR_USAGE, "train %s: --out FILE is missing: what to write", command);
    if (stat(out, &about) == 0 && !S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a regular file; choose another --out", out);
    return file_replaceable(AT_FDCWD, out, kind, err);
}
