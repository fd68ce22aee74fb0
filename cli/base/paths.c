#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"

/* build/specscope lies one or two folders below the tree that holds themes/ and models/. */
static bool
beside_program(char *out, size_t n)
{
    char exe[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (len <= 0)
        return false;
    exe[len] = '\0';
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(exe, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        if (up == 0)
            continue;
        char probe[PATH_MAX + 64];
        snprintf(probe, sizeof probe, "%s/themes/dark.json", exe);
        if (file_exists(probe) && (size_t)snprintf(out, n, "%s", exe) < n)
            return true;
        snprintf(probe, sizeof probe, "%s/share/specscope/themes/dark.json", exe); /* a moved prefix */
        if (file_exists(probe) && (size_t)snprintf(out, n, "%s/share/specscope", exe) < n)
            return true;
    }
    return false;
}

const char *
data_dir(void)
{
    static char dir[PATH_MAX]; /* found once, constant afterwards */
    if (dir[0] == '\0' && !beside_program(dir, sizeof dir))
        snprintf(dir, sizeof dir, "%s", SPECSCOPE_DATADIR);
    return dir;
}

const char *
bundled_model_path(void)
{
    static char path[PATH_MAX + 64];
    if (path[0] == '\0')
        snprintf(path, sizeof path, "%s/models/fables-q8_0.gguf", data_dir());
    return path;
}
