/* specscope: the scope on a live model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/generation/generation.h"
#include "cli/recording.h"
#include "tui/app/app.h"

#define WATCHABLE     25.0  /* tokens a second */
#define WHAT_IF_SHARE 0.005 /* of the time of an engine that has work; its rests are taken besides */

static int
show(const struct source *source, const struct options *o, char *const *prompts, size_t n_prompts, double pace,
     struct err *err)
{
    char history[1024], presets[1024], command[1024];
    const struct app_options app = {.theme = o->theme,
                                    .script = o->script,
                                    .history_path = state_path(history, sizeof history, "prompts"),
                                    .prompts = prompts,
                                    .n_prompts = n_prompts,
                                    .presets = config_path(presets, sizeof presets, "presets"),
                                    .command_path = state_path(command, sizeof command, "command"),
                                    .data_dir = data_dir(),
                                    .pace = pace,
                                    .quit_at_end = o->quit_at_end,
                                    .once = o->once};
    const int status = app_run(source, &app, err);
    if (status == 1 || status == 2)
        command_failed(err);
    return status;
}

static int
scope_run_live(const struct options *o, struct engine *engine, char *const *prompts, size_t n_prompts, struct err *err)
{
    struct session_options so = generation_options(o);
    so.stay = true;
    so.what_if = WHAT_IF_SHARE;
    so.paused = o->script != NULL;
    bool slowed = o->pace < 0 && o->model == NULL && o->synth == NULL &&
                  o->script == NULL; /* the bundled model is over in a blink */
    so.pace = slowed ? WATCHABLE : o->pace > 0 ? (double)o->pace : 0;
    struct prompt_text *batch = NULL; /* (n_prompts) */
    if (o->prompts_file != NULL) {
        so.prompt = prompts[0];
        so.prompt_len = strlen(prompts[0]);
    }
    if (o->prompts_file != NULL && o->batch > 0) {
        if ((batch = generation_prompts(prompts, n_prompts, err)) == NULL)
            return command_failed(err);
        so.prompts = batch;
        so.n_prompts = n_prompts;
        so.prompts_path = o->prompts_file;
    }
    struct policy_memory memory = {.folder = o->policy_state, .model_hash = engine->model->hash};
    so.memory = &memory;
    struct session *s;
    const bool open = session_open(&s, engine, &so, err);
    free(batch);
    if (!open) {
        policy_memory_close(&memory, NULL);
        return command_failed(err);
    }
    struct recording *recording = NULL;
    int status = 1;
    if (recording_open(&recording, o->trace, s, err)) {
        const struct source source = {.session = s,
                                      .trace = o->trace,
                                      .saved = o->trace != NULL,
                                      .note = engine->note[0] != '\0' ? engine->note
                                              : slowed ? "slowed down to be watched:  > faster  < slower  :speed max"
                                                       : NULL,
                                      .export_to = recording_export,
                                      .trace_now = recording_folder,
                                      .trouble = recording_trouble,
                                      .user = recording};
        status = show(&source, o, prompts, n_prompts, so.pace, err);
    } else {
        status = command_failed(err);
    }
    struct err trouble = {0};
    session_post(s, &(struct control){.kind = CONTROL_QUIT}, NULL);
    if (!recording_close(recording, &trouble))
        command_failed(&trouble);
    session_close(s);
    if (!policy_memory_close(&memory, &trouble))
        command_failed(&trouble);
    return status;
}

int
scope_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    struct engine *engine = NULL;
    char **prompts = NULL;
    size_t n_prompts = 0;
    int status;
    if (!options_begin(&o, COMMAND_SCOPE, argc, argv, &status))
        return status;
    bool ok = true;
    if (o.prompts_file != NULL)
        ok = prompts_read(o.prompts_file, &prompts, &n_prompts, &err);
    else
        prompts_bundled(&prompts, &n_prompts, NULL); /* without them nothing is offered */
    if (ok && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        ok = err_set(&err, ERR_USAGE, "the scope needs a terminal; without one use `specscope run`");
    ok = ok && generation_engine(&o, &engine, &err);
    status = ok ? scope_run_live(&o, engine, prompts, n_prompts, &err) : command_failed(&err);
    prompts_free(prompts, n_prompts);
    engine_close(engine);
    options_free(&o);
    return status;
}
