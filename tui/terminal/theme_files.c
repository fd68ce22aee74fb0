/* Where themes come from: files, and the default that is compiled in. */
#include "tui/terminal/theme.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/embedded.h"
#include "engine/base/file_text.h"

#define THEME_FILE_MAX (256 * 1024) /* bytes; the bundled ones have two thousand */

/* themes/dark.json as a list of byte values, made by the Makefile. Built without it, the default has no colours. */
#if defined(__has_include)
#if __has_include("theme_dark.inc")
#define THEME_DARK_BYTES 1
#endif
#endif

bool
theme_builtin(struct theme *t, struct err *err)
{
    bool fine = true;
#ifdef THEME_DARK_BYTES
    static const unsigned char dark[] = {
#include "theme_dark.inc"
    };
    fine = theme_parse(t, (const char *)dark, sizeof dark, THEME_DEFAULT, err);
    if (fine)
        return true;
#endif
    (void)err;
    theme_mono(t);
    return fine;
}

static bool
load_file(struct theme *t, const char *path, const char *name, struct err *err)
{
    char *json;
    size_t n;
    if (!file_text(path, THEME_FILE_MAX, &json, &n, err)) {
        if (err != NULL)
            err->kind = ERR_USAGE;
        return false;
    }
    const bool fine = theme_parse(t, json, n, name, err);
    free(json);
    return fine;
}

/* The i-th folder that themes are looked for in; false: there is no such. */
static bool
folder(int i, const char *data_dir, char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = -1;
    if (i == 0 && config != NULL && config[0] == '/')
        n = snprintf(out, size, "%s/specscope/themes", config);
    else if (i == 0 && home != NULL && home[0] == '/')
        n = snprintf(out, size, "%s/.config/specscope/themes", home);
    else if (i == 1 && data_dir != NULL)
        n = snprintf(out, size, "%s/themes", data_dir);
    return n >= 0 && (size_t)n < size;
}

bool
theme_load(struct theme *t, const char *name, const char *data_dir, struct err *err)
{
    char path[4096], dir[4000];
    if (strchr(name, '/') != NULL) {
        const char *base = strrchr(name, '/') + 1;
        char stem[32];
        snprintf(stem, sizeof stem, "%.31s", base);
        char *dot = strstr(stem, ".json");
        if (dot != NULL)
            *dot = '\0';
        return load_file(t, name, stem, err);
    }
    for (int i = 0; i < 2; i++) {
        if (!folder(i, data_dir, dir, sizeof dir))
            continue;
        const int n = snprintf(path, sizeof path, "%s/%.64s.json", dir, name);
        struct err why = {0};
        if (n <= 0 || (size_t)n >= sizeof path || !embedded_or_there(path))
            continue;
        if (load_file(t, path, name, &why))
            return true;
        if (i == 1 && why.kind == ERR_USAGE && strcmp(name, THEME_DEFAULT) == 0)
            break; /* the program has the same one in it */
        if (err != NULL)
            *err = why;
        return false;
    }
    if (strcmp(name, THEME_DEFAULT) == 0) {
        struct theme own; /* *t stays what it is on a failure */
        const bool fine = theme_builtin(&own, err);
        *t = fine ? own : *t;
        return fine;
    }
    if (strcmp(name, "mono") == 0) {
        theme_mono(t);
        return true;
    }
    return err_set(err, ERR_USAGE, "there is no theme \"%.40s\"; `t` lists those that there are", name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int
add_name(char (*names)[32], int n, int max, const char *name, size_t length)
{
    if (n >= max || length == 0 || length > 31)
        return n;
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return n;
    memcpy(names[n], name, length);
    names[n][length] = '\0';
    return n + 1;
}

/* The length of NAME.json without its ending; 0: it is no such name. */
static size_t
stem_of(const char *name)
{
    const size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0 && name[0] != '.' ? length - 5 : 0;
}

static int
add_embedded(char (*names)[32], int n, int max, const char *data_dir)
{
    char dir[4000];
    const char *path;
    const size_t length = folder(1, data_dir, dir, sizeof dir) ? strlen(dir) : 0;
    for (size_t i = 0; length > 0 && (path = embedded_name(i)) != NULL; i++)
        if (strncmp(path, dir, length) == 0 && path[length] == '/')
            n = add_name(names, n, max, path + length + 1, stem_of(path + length + 1));
    return n;
}

int
theme_list(char (*names)[32], int max, const char *data_dir)
{
    int n = add_name(names, 0, max, THEME_DEFAULT, strlen(THEME_DEFAULT));
    n = add_name(names, n, max, "mono", 4);
    n = add_embedded(names, n, max, data_dir);
    for (int i = 0; i < 2; i++) {
        char dir[4000];
        DIR *open_dir = folder(i, data_dir, dir, sizeof dir) ? opendir(dir) : NULL;
        if (open_dir == NULL)
            continue;
        for (const struct dirent *entry; (entry = readdir(open_dir)) != NULL;)
            n = add_name(names, n, max, entry->d_name, stem_of(entry->d_name));
        closedir(open_dir);
    }
    qsort(names, (size_t)n, sizeof names[0], by_name);
    return n;
}
