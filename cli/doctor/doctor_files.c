/* Files of the user's: what is read at the start, what is remembered, where traces would go. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/doctor/doctor.h"
#include "cli/options/option_config.h"
#include "engine/base/file_text.h"
#include "engine/base/plural.h"
#include "engine/model/memory.h"

static void
say_config(struct findings *f)
{
    char path[1024];
    struct options o;
    struct err err = {0};
    if (config_path(path, sizeof path, "config.json") == NULL) {
        doctor_say(f, FINDING_NOTE, "config", "set HOME", "neither HOME nor XDG_CONFIG_HOME says where it would be");
        return;
    }
    if (!file_exists(path)) {
        doctor_say(f, FINDING_OK, "config", NULL, "none; it would be %s", path);
        return;
    }
    options_init(&o, COMMAND_SCOPE);
    if (options_config_file(&o, &err))
        doctor_say(f, FINDING_OK, "config", NULL, "%s is read", path);
    else
        doctor_say(f, FINDING_BAD, "config", "correct it, or move it away", "%s", err.text);
    options_free(&o);
}

/* Can a file be made at `path`, whose folders may have to be made first? False: errno says why not. */
static bool
can_make(const char *path)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return false;
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        slash[slash == folder ? 1 : 0] = '\0';
        if (access(folder, F_OK) == 0 || strcmp(folder, "/") == 0)
            return access(folder, W_OK | X_OK) == 0;
    }
    return false;
}

/* Prompts that the scope remembers from one start to the next, a line each. */
static void
say_history(struct findings *f)
{
    static const char topic[] = "history";
    char path[1024], *text = NULL;
    size_t n = 0, lines = 0;
    struct err err = {0};
    if (state_place(path, sizeof path, "prompts") == NULL) {
        doctor_say(f, FINDING_NOTE, topic, "set HOME", "nothing is remembered: neither HOME nor XDG_STATE_HOME is set");
        return;
    }
    if (!file_exists(path)) {
        if (can_make(path))
            doctor_say(f, FINDING_OK, topic, NULL, "no prompts yet; they will be in %s", path);
        else
            doctor_say(f, FINDING_NOTE, topic, "make its folder writable, or set XDG_STATE_HOME",
                       "%s cannot be made: %s", path, strerror(errno));
        return;
    }
    if (!file_text(path, (size_t)64 << 20, &text, &n, &err)) {
        doctor_say(f, FINDING_NOTE, topic, "move it away", "%s", err.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    free(text);
    if (access(path, W_OK) == 0)
        doctor_say(f, FINDING_OK, topic, NULL, "%zu prompt%s in %s", lines, plural(lines), path);
    else
        doctor_say(f, FINDING_NOTE, topic, "make it writable", "%s: nothing new is remembered: %s", path,
                   strerror(errno));
}

#define LITTLE ((uint64_t)200 << 20) /* bytes: three minutes with every layer looked at, at full speed */

static void
say_traces(struct findings *f)
{
    char folder[PATH_MAX], size[24];
    struct statvfs about;
    if (getcwd(folder, sizeof folder) == NULL)
        snprintf(folder, sizeof folder, ".");
    if (access(".", W_OK | X_OK) != 0) {
        doctor_say(f, FINDING_NOTE, "traces", "name another folder: --trace /tmp/NAME",
                   "%s, this folder, cannot be written: %s", folder, strerror(errno));
        return;
    }
    if (statvfs(".", &about) != 0)
        return;
    const uint64_t room = (uint64_t)about.f_bavail * about.f_frsize;
    doctor_say(f, room < LITTLE ? FINDING_NOTE : FINDING_OK, "traces",
               room < LITTLE ? "a trace of all layers grows by a megabyte a second: name another disk's folder" : NULL,
               "%s in this folder", memory_text(size, room));
}

void
doctor_files(struct findings *f)
{
    say_config(f);
    say_history(f);
    say_traces(f);
}
