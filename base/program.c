#include "base/program.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static char name[128] = "specscope";

void
program_called(const char *argv0)
{
    char path[sizeof name];
    if (argv0 == NULL || strchr(argv0, '/') == NULL || strchr(argv0, '\'') != NULL)
        return;
    const char *quote = shell_word_plain(argv0) ? "" : "'";
    if (snprintf(path, sizeof path, "%s%s%s", quote, argv0, quote) < (int)sizeof path)
        memcpy(name, path, sizeof name);
}

const char *
program_name(void)
{
    return name;
}
