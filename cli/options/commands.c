/* Folders of data and of the user's files, and the message and exit status of a failed command. */
#include "cli/options/commands.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/platform.h"
#include "base/utf8.h"

/* Finds the tree that contains themes/ and models/: build/specscope is one or two folders below it. */
static bool
beside_program(char *out, size_t n)
{
    char exe[PATH_MAX];
    if (!platform_program(exe, sizeof exe))
        return false;
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

/* Writes a path below the folder that a variable names, or below a folder in $HOME. */
static const char *
user_path(char *out, size_t n, const char *variable, const char *in_home, const char *name)
{
    const char *home = getenv("HOME"), *given = getenv(variable);
    const int len = given != NULL && given[0] == '/' ? snprintf(out, n, "%s/specscope/%s", given, name)
                    : home != NULL && home[0] == '/' ? snprintf(out, n, "%s/%s/specscope/%s", home, in_home, name)
                                                     : -1;
    return len < 0 || (size_t)len >= n ? NULL : out;
}

const char *
config_path(char *out, size_t n, const char *name)
{
    return user_path(out, n, "XDG_CONFIG_HOME", ".config", name);
}

const char *
state_path(char *out, size_t n, const char *name)
{
    return user_path(out, n, "XDG_STATE_HOME", ".local/state", name);
}

static atomic_int interrupted_by = SIGINT; /* lock-free on all platforms, so a signal handler may change it */

void
command_interrupt(int number)
{
    atomic_store(&interrupted_by, number);
}

int
command_interrupted(void)
{
    return 128 + atomic_load(&interrupted_by);
}

int
command_failed(const struct err *e)
{
    char safe[4 * sizeof e->text + 1]; /* e->text may contain C1 control characters and broken UTF-8 */
    const char *text = e->kind != ERR_NONE ? e->text : "failed without a word";
    printable_text(text, strlen(text), safe, sizeof safe);
    fprintf(stderr, "specscope: %s\n", safe);
    return e->kind == ERR_USAGE ? 2 : e->kind == ERR_CANCELLED ? command_interrupted() : 1;
}
