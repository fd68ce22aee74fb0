/* specscope replay: the scope on a saved trace. */
#include "cli/replay.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/program.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "tui/app/app.h"

#define WAIT_MS 200

/* Waits until a trace is written there; run.json is the last of its files. */
static bool
wait_for_trace(const char *folder, struct err *err)
{
    char name[4096];
    if ((size_t)snprintf(name, sizeof name, "%s/run.json", folder) >= sizeof name)
        return err_set(err, ERR_USAGE, "the name of the trace to follow is too long");
    bool printed = false;
    while (access(name, F_OK) != 0) {
        if (!printed)
            fprintf(stderr, "specscope: waiting for %s (Ctrl-C ends it)\n", name);
        printed = true;
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    return true;
}

bool
replay_has_terminal(struct err *err)
{
    return (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) || err_set(err, ERR_USAGE, "a replay needs a terminal");
}

int
replay_show(const struct options *o, const struct source *source, struct err *err)
{
    char presets[1024], command[1024];
    const struct app_options app = {.theme = o->theme,
                                    .script = o->script,
                                    .presets = config_path(presets, sizeof presets, "presets"),
                                    .command_path = state_path(command, sizeof command, "command"),
                                    .data_dir = data_dir()};
    const int status = app_run(source, &app, err);
    if (status == 1 || status == 2)
        command_failed(err);
    return status;
}

bool
replay_main(struct options *o, int *status, struct err *err)
{
    struct replay *replay = NULL;
    bool ok = o->model != NULL || err_set(err, ERR_USAGE, "which trace? %s replay FOLDER", program_name());
    ok = ok && replay_has_terminal(err) && (!o->follow || wait_for_trace(o->model, err)) &&
         replay_open(&replay, o->model, o->follow, err);
    if (ok) {
        const struct source source = {.replay = replay, .trace = o->model, .saved = true};
        *status = replay_show(o, &source, err);
    }
    if (replay != NULL)
        replay_close(replay);
    return ok;
}
