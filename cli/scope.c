/* specscope: runs the scope on a live model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "cli/recording.h"
#include "cli/scope.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"

#define WATCHABLE 25.0 /* tokens a second */

/* State that outlives a change of the model. */
struct showing {
    struct options *o;
    struct prompt_list prompts; /* of --prompts, else the bundled ones */
    char model[PATH_MAX];       /* the model chosen on the screen; "": that of the command line */
    struct app_opening next;
    bool ran; /* one of them did */
};

bool
scope_has_terminal(const char *without, struct err *err)
{
    return (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) ||
           err_set(err, ERR_USAGE, "the scope needs a terminal; without one use `%s %s`", program_name(), without);
}

int
scope_show(const struct options *o, struct live *live, struct app_options app, const char *note, struct err *err)
{
    char history[1024], presets[1024], command[1024];
    struct recording *recording = NULL;
    if (!recording_open(&recording, o->trace, &o->trace_bounds, live, err))
        return command_failed(err);
    const struct source source = {.live = live,
                                  .trace = o->trace,
                                  .saved = o->trace != NULL,
                                  .note = note,
                                  .export_to = recording_export,
                                  .trouble = recording_trouble,
                                  .user = recording};
    app.theme = o->theme;
    app.script = o->script;
    app.history_path = state_path(history, sizeof history, "prompts");
    app.presets = config_path(presets, sizeof presets, "presets");
    app.command_path = state_path(command, sizeof command, "command");
    app.data_dir = data_dir();
    app.quit_at_end = o->quit_at_end;
    app.own_prompt = o->prompt != NULL;
    const int status = app_run(&source, &app, err);
    if (status == 1 || status == 2 || err->kind != ERR_NONE)
        command_failed(err);
    struct err trouble = {0};
    live->ops->post(live, &(struct control){.kind = CONTROL_QUIT}, NULL);
    bool kept = recording_close(recording, &trouble);
    if (!kept && (status == 0 || !err_is_memory(&trouble)))                    /* else the screen's own line says it */
        kept = command_failed(&trouble) == 0 || trouble.kind == ERR_CANCELLED; /* a full trace is no failure */
    return status == 0 && !kept ? 1 : status;
}

/* Opens a session. Options of policies may not fit a model that was chosen on the screen: if they are refused, the
 * the session chooses a policy with its defaults, and the engine's note contains the reason. */
static bool
open_session(struct live **s, const struct showing *w, struct engine *engine, struct session_options *so,
             struct err *err)
{
    if (session_open(s, engine, so, err))
        return true;
    const struct err why = *err;
    if (w->model[0] == '\0' || why.kind != ERR_USAGE)
        return false;
    so->policy = POLICY_AUTO;
    so->set = NULL;
    so->n_set = 0;
    so->versus = NULL;
    so->head = HEADS_POLICY;
    if (!session_open(s, engine, so, err))
        return false;
    snprintf(engine->note, sizeof engine->note, "%.150s; the policy is chosen automatically", why.text);
    return true;
}

/* Shows the model with the prompts for :tune that suit it; without memory there are none. */
static int
show_tunable(struct showing *w, struct live *live, struct app_options app, const char *note, struct err *err)
{
    struct prompt_list bundled = {0};
    const struct prompt_list *list = w->o->prompts_file != NULL ? &w->prompts : &bundled;
    if (list == &bundled)
        generation_tune_prompts(w->o, &bundled, NULL);
    struct race_prompt *prompts = list->n > 0 ? calloc(list->n, sizeof *prompts) : NULL;
    app.tune_prompts = prompts;
    app.n_tune_prompts = prompts != NULL ? (uint32_t)list->n : 0;
    for (size_t i = 0; i < app.n_tune_prompts; i++)
        prompts[i] = (struct race_prompt){list->texts[i], list->categories[i]};
    const int status = scope_show(w->o, live, app, note, err);
    free(prompts);
    prompts_free(&bundled);
    return status;
}

#define NOT_OPENED (-1) /* the chosen model has no session; *err contains the reason */

static int
scope_run_live(struct showing *w, struct engine *engine, struct err *err)
{
    const struct options *o = w->o;
    struct session_options so = generation_options(o);
    so.stay = true;
    so.paused = o->script != NULL;
    const bool bundled = o->synth == NULL && (o->model == NULL || strcmp(o->model, bundled_model_path()) == 0);
    /* the bundled model would finish too fast to watch */
    const bool slowed = o->pace < 0 && bundled && o->script == NULL;
    so.pace = slowed ? WATCHABLE : o->pace > 0 ? (double)o->pace : 0;
    struct prompt_text *batch = NULL; /* (w->prompts.n) */
    if (o->prompts_file != NULL) {
        so.prompt = w->prompts.texts[0];
        so.prompt_len = strlen(so.prompt);
    }
    if (o->prompts_file != NULL && o->batch > 0) {
        if ((batch = generation_prompts(&w->prompts, err)) == NULL)
            return command_failed(err);
        so.prompts = batch;
        so.n_prompts = w->prompts.n;
        so.prompts_path = o->prompts_file;
    }
    struct policy_memory memory = {0};
    so.memory = &memory;
    struct live *live;
    const bool open = open_session(&live, w, engine, &so, err);
    free(batch);
    if (!open) {
        policy_memory_free(&memory);
        return w->model[0] != '\0' ? NOT_OPENED : command_failed(err);
    }
    const struct app_options app = {.prompts = w->prompts.texts,
                                    .n_prompts = w->prompts.n,
                                    .engine = engine,
                                    .chat = &so.chat,
                                    .chat_unused = generation_chat_unused(o, engine),
                                    .bundled = bundled_model_path(),
                                    .opening = &w->next,
                                    .pace = so.pace,
                                    .once = o->once};
    const int status = show_tunable(w, live, app,
                                    engine->note[0] != '\0' ? engine->note
                                    : slowed ? "slowed down to be watched:  > faster  < slower  :pace max"
                                             : NULL,
                                    err);
    live_close(live);
    policy_memory_free(&memory);
    return status;
}

/* ---- which model ---- */

/* Stops the list at its first model. */
static bool
found_model(void *found, const char *name, const char *path)
{
    (void)name, (void)path;
    *(bool *)found = true;
    return false;
}

static bool
has_models(void)
{
    bool found = false;
    model_locations_list(found_model, &found, NULL);
    return found;
}

/* Lets the user choose from the models on this machine. Returns false without a choice; *status is then the program's
 * exit status. */
static bool
choose_model(struct showing *w, const char *message, int *status)
{
    struct model_list *list;
    struct err err = {0};
    struct model_screen_options options = {.theme = w->o->theme, .data_dir = data_dir(), .message = message};
    size_t chosen = 0;
    bool left = true;
    *status = 1;
    if (model_list_open(&list, bundled_model_path(), &err)) {
        for (size_t i = 0; i < list->n; i++)
            if (strcmp(list->at[i].path, w->model) == 0)
                options.at = i;
        *status = model_screen_run(list, &options, &chosen, &left, &err);
        if (!left)
            snprintf(w->next.path, sizeof w->next.path, "%s", list->at[chosen].path);
    }
    model_list_close(list);
    if (*status == 1)
        command_failed(&err);
    return *status == 0 && !left;
}

/* Drops options that belong to the earlier model. */
static void
take_next(struct showing *w, bool own_ctx)
{
    struct options *o = w->o;
    struct model_summary summary;
    const bool same = !w->ran && w->model[0] == '\0' && strcmp(w->next.path, bundled_model_path()) == 0;
    memcpy(w->model, w->next.path, sizeof w->model);
    w->next.path[0] = '\0';
    if (same)
        return; /* the default without a question */
    if (w->ran)
        o->trace = NULL; /* the trace is of the first model only */
    o->model = w->model;
    o->lora.n = 0;
    o->synth = o->heads = o->accept_head = o->profile_file = o->vocab_counts = NULL;
    for (int i = 0; i < AUX_MODELS; i++)
        o->aux[i] = NULL;
    model_summary(&summary, w->model, memory_available());
    if (own_ctx)
        o->ctx = summary.ctx < summary.ctx_train ? summary.ctx : 0;
}

static void
note_ctx(const struct options *o, struct engine *engine)
{
    if (engine->note[0] == '\0' && o->ctx > 0)
        snprintf(engine->note, sizeof engine->note, "a context of %u tokens is what memory is good for; its own is %u",
                 (unsigned)o->ctx, (unsigned)engine->model->ctx_train);
}

/* Shows one model after another, as the user opens them. */
static int
show_models(struct showing *w, bool ask)
{
    const bool own_ctx = w->o->ctx == 0;
    int status = 0;
    if (ask && !choose_model(w, NULL, &status))
        return status;
    do {
        const bool chosen = w->next.path[0] != '\0';
        struct engine *engine = NULL;
        struct err err = {0};
        if (chosen)
            take_next(w, own_ctx);
        const bool opened = generation_engine(w->o, &engine, &err);
        if (opened && chosen && own_ctx)
            note_ctx(w->o, engine);
        w->ran = w->ran || opened;
        if (opened)
            status = scope_run_live(w, engine, &err);
        else if (!chosen)
            status = command_failed(&err);
        engine_close(engine);
        if ((!opened && !chosen) || ((!opened || status == NOT_OPENED) && !choose_model(w, err.text, &status)))
            return status;
    } while (status == 0 && w->next.path[0] != '\0');
    return status;
}

bool
scope_main(struct options *o, int *status, struct err *err)
{
    struct showing w = {.o = o};
    bool ok = true;
    if (o->prompts_file != NULL)
        ok = prompts_read(o->prompts_file, &w.prompts, err);
    else /* if this fails, no prompts are offered */
        prompts_bundled("prompts", &w.prompts, NULL);
    ok = ok && scope_has_terminal("run", err);
    if (ok)
        *status = show_models(&w, o->bare && o->model == NULL && o->synth == NULL && has_models());
    prompts_free(&w.prompts);
    return ok;
}
