/* specscope replay: the scope on a saved trace. */
#include "traces/replay.h"

#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/options/options.h"
#include "tui/app/app.h"

int
replay_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    struct replay *replay = NULL;
    int status = 0;
    if (!options_begin(&o, COMMAND_REPLAY, argc, argv, &status))
        return status;
    bool ok = o.model != NULL || err_set(&err, ERR_USAGE, "which trace? specscope replay FOLDER");
    if (ok && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        ok = err_set(&err, ERR_USAGE, "a replay needs a terminal");
    if (ok && (ok = replay_open(&replay, o.model, &err))) {
        const struct source source = {.replay = replay, .trace = o.model, .saved = true};
        char presets[1024], command[1024];
        const struct app_options app = {.theme = o.theme,
                                        .script = o.script,
                                        .presets = config_path(presets, sizeof presets, "presets"),
                                        .command_path = state_path(command, sizeof command, "command"),
                                        .data_dir = data_dir()};
        status = app_run(&source, &app, &err);
        if (status == 1 || status == 2)
            command_failed(&err);
    }
    if (replay != NULL)
        replay_close(replay);
    options_free(&o);
    return ok ? status : command_failed(&err);
}
