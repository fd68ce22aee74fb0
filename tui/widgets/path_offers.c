#include "tui/widgets/path_offers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATHS   1000
#define LONGEST 4096

void
path_offers_close(struct path_offers *o)
{
    for (size_t i = 0; i < o->n; i++)
        free(o->path[i]);
    free(o->path);
    *o = (struct path_offers){0};
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One of the folder's, with the folder as it was written before it. */
static char *
offer(const char *folder, size_t length, const char *name)
{
    char path[LONGEST];
    struct stat about;
    const int n = snprintf(path, sizeof path - 1, "%.*s%s", (int)length, folder, name);
    if (n < 0 || (size_t)n >= sizeof path - 1)
        return NULL;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        memcpy(path + n, "/", 2);
    return strdup(path);
}

void
path_offers_find(struct path_offers *o, const char *word)
{
    path_offers_close(o);
    const char *slash = strrchr(word, '/'), *begin = slash == NULL ? word : slash + 1;
    const size_t length = (size_t)(begin - word), wanted = strlen(begin);
    char folder[LONGEST];
    if (length >= sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)length, word);
    DIR *dir = opendir(length > 0 ? folder : ".");
    o->path = dir == NULL ? NULL : calloc(PATHS, sizeof *o->path);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; o->path != NULL && o->n < PATHS && (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (strncmp(name, begin, wanted) != 0 || (name[0] == '.' && begin[0] != '.') || strcmp(name, ".") == 0 ||
            strcmp(name, "..") == 0 || (o->path[o->n] = offer(folder, length, name)) == NULL)
            continue;
        o->n++;
    }
    closedir(dir);
    if (o->path != NULL && o->n > 0)
        qsort(o->path, o->n, sizeof *o->path, by_name);
}
