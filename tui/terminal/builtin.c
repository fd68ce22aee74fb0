#include "tui/terminal/builtin.h"

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/embedded.h"
#include "engine/base/file_replace.h"

bool
builtin_terminfo(const char *type)
{
    char name[160];
    const unsigned char *entry;
    size_t n;
    snprintf(name, sizeof name, "builtin:/terminfo/%.64s", type);
    return embedded_file(name, &entry, &n) && setenv("TERMINFO", (const char *)entry, 1) == 0; /* ends with a zero */
}

/* C.UTF-8 as it lies in this folder and not where locales usually are. */
static bool
locale_in(const char *folder)
{
    const char *before = getenv("LOCPATH");
    char *kept = before != NULL ? strdup(before) : NULL;
    if (before != NULL && kept == NULL)
        return false;
    const bool ok = setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_CTYPE, "C.UTF-8") != NULL;
    if (kept != NULL)
        setenv("LOCPATH", kept, 1);
    else
        unsetenv("LOCPATH");
    free(kept);
    return ok;
}

bool
locale_again(void)
{
    return locale_in("/usr/lib/locale/") || locale_in("/usr/share/locale/");
}

/* C.utf8/LC_CTYPE in a new folder. */
static bool
try_in(const char *parent, const unsigned char *bytes, size_t n)
{
    char folder[PATH_MAX - 64], name[PATH_MAX - 32], file[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s/specscope.XXXXXX", parent) >= sizeof folder ||
        mkdtemp(folder) == NULL)
        return false;
    snprintf(name, sizeof name, "%s/C.utf8", folder);
    snprintf(file, sizeof file, "%s/LC_CTYPE", name);
    const int fd = mkdir(name, 0700) == 0 ? open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool ok = fd >= 0 && file_put(fd, bytes, n);
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && locale_in(folder);
    unlink(file);
    rmdir(name);
    rmdir(folder);
    return ok;
}

bool
builtin_locale(void)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/dev/shm", "/tmp"};
    const unsigned char *bytes;
    size_t n;
    if (!embedded_file("builtin:/locale/LC_CTYPE", &bytes, &n))
        return false;
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (parents[i] != NULL && parents[i][0] != '\0' && try_in(parents[i], bytes, n))
            return true;
    return false;
}
