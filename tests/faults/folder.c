#include "tests/faults/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_folder(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void
folder_empty(const char *folder)
{
    char path[4096];
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (is_folder(path)) {
            folder_empty(path);
            rmdir(path);
        } else {
            unlink(path);
        }
    }
    if (d != NULL)
        closedir(d);
}

char *
whole_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat about;
    if (f == NULL)
        return NULL;
    if (fstat(fileno(f), &about) != 0 || !S_ISREG(about.st_mode)) {
        fclose(f);
        return NULL;
    }
    char *bytes = malloc((size_t)about.st_size + 1);
    *n = bytes == NULL ? 0 : fread(bytes, 1, (size_t)about.st_size, f);
    if (bytes != NULL)
        bytes[*n] = '\0';
    fclose(f);
    return bytes;
}

static void
read_below(struct left *l, const char *folder, const char *below)
{
    char path[4096], name[400];
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL && l->n < LEFT_MOST;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(name, sizeof name, "%s%s", below, e->d_name);
        if (is_folder(path)) {
            strcat(name, "/");
            read_below(l, path, name);
            continue;
        }
        struct left_file *f = &l->file[l->n];
        f->bytes = whole_file(path, &f->n_bytes);
        snprintf(f->name, sizeof f->name, "%.119s", name);
        l->n += f->bytes != NULL;
    }
    if (d != NULL)
        closedir(d);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct left_file *)a)->name, ((const struct left_file *)b)->name);
}

void
folder_read(struct left *l, const char *folder)
{
    l->n = 0;
    read_below(l, folder, "");
    qsort(l->file, l->n, sizeof l->file[0], by_name);
}

void
left_free(struct left *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->file[i].bytes);
    l->n = 0;
}

const struct left_file *
left_find(const struct left *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->file[i].name, name) == 0)
            return &l->file[i];
    return NULL;
}

char *
without_numbers(const char *text, size_t n)
{
    char *out = malloc(n + 1), *to = out;
    if (out == NULL)
        abort();
    /* Returns true for a line with the amount of memory left, or with a speed, whose digits decide what fits next to
     * it. */
    static const char memory[] = "available here", speed[] = "tok/s";
    for (size_t i = 0; i < n;) {
        const size_t line = strcspn(text + i, "\n");
        if ((i == 0 || text[i - 1] == '\n') && (memmem(text + i, line, memory, sizeof memory - 1) != NULL ||
                                                memmem(text + i, line, speed, sizeof speed - 1) != NULL))
            i += line;
        else if (isdigit((unsigned char)text[i])) {
            while (i < n && (isalnum((unsigned char)text[i]) || strchr(".+-", text[i]) != NULL) && text[i] != '\0')
                i++;
            *to++ = '#';
        } else if (text[i] == ' ') {
            i++;
        } else {
            *to++ = text[i++];
        }
    }
    *to = '\0';
    return out;
}
