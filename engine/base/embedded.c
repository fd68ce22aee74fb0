#include "engine/base/embedded.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct embedded {
    const char *name;
    const unsigned char *bytes;
    uint64_t n;
};

#ifdef SPECSCOPE_STATIC
extern const struct embedded embedded_files[]; /* made by the Makefile; ends with a name NULL */
#else
static const struct embedded embedded_files[] = {{0}};
#endif

bool
embedded_file(const char *path, const unsigned char **bytes, size_t *n)
{
    for (const struct embedded *e = embedded_files; e->name != NULL; e++)
        if (strcmp(e->name, path) == 0) {
            *bytes = e->bytes;
            *n = (size_t)e->n;
            return true;
        }
    return false;
}

const char *
embedded_name(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (embedded_files[k].name == NULL)
            return NULL;
    return embedded_files[i].name;
}

bool
embedded_at(const unsigned char *bytes)
{
    for (const struct embedded *e = embedded_files; e->name != NULL; e++)
        if (e->bytes == bytes)
            return true;
    return false;
}

bool
embedded_or_there(const char *path)
{
    const unsigned char *bytes;
    size_t n;
    return embedded_file(path, &bytes, &n) || access(path, F_OK) == 0;
}
