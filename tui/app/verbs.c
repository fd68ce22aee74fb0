/* The table of ':' commands and the completions of their arguments. */
#include "tui/app/verbs.h"

#include <string.h>

static const char *
offer_knob(struct app *app, int i)
{
    const struct policy_info *p = scope_policy(app->run.scope);
    const int n = (int)p->n_knobs;
    return i < n ? p->knobs[i].name : i < n + SAMPLING_KNOBS ? sampling_knobs[i - n].name : NULL;
}

/* Rows of the ledger, the newest first. */
static const char *
offer_row(struct app *app, int i)
{
    const struct segment *s = segments_at(scope_now(app->run.scope)->segments, (uint32_t)i);
    if (s == NULL)
        return NULL;
    segment_letter(s->number, app->row);
    return app->row;
}

static const char *
offer_policy(struct app *app, int i)
{
    return i < (int)app->run.info->n_policies ? app->run.info->policies[i].name : NULL;
}

static const char *
offer_path(struct app *app, int i)
{
    const char *blank = strrchr(app->line.editor.text, ' ');
    if (i == 0)
        path_offers_find(&app->paths, blank == NULL ? app->line.editor.text : blank + 1);
    return (size_t)i < app->paths.gl_pathc ? app->paths.gl_pathv[i] : NULL;
}

static const char *
offer_theme(struct app *app, int i)
{
    if (strchr(app->line.editor.text, '/') != NULL) /* the user's own file */
        return offer_path(app, i);
    chooser_themes(&app->chooser, app->options.data_dir, ""); /* the menu is closed while a line is written */
    return i < app->chooser.n ? app->chooser.name[i] : NULL;
}

static const char *
offer_preset(struct app *app, int i)
{
    if (i == 0 && (app->options.presets == NULL || !preset_list(&app->presets, app->options.presets, NULL)))
        preset_names_free(&app->presets);
    return (size_t)i < app->presets.n ? app->presets.name[i] : NULL;
}

static const char *
offer_panel(struct app *app, int i)
{
    return i < app->panes.n ? panel_registry[i]->name : NULL;
}

static const char *
offer_switch(struct app *app, int i)
{
    static const char *const switches[] = {"on", "off", NULL};
    (void)app;
    return i < 2 ? switches[i] : NULL;
}

const struct verb app_verbs[] = {
    {"set", "KNOB VALUE",
     "change a knob of the policy, or temperature, top_k, top_p, seed; takes effect from the next round", run_set,
     offer_knob},
    {"what-if", "[on | off | KNOB KNOB]", "forecasts for other values of knobs: on or off; a grid of two", run_what_if,
     offer_knob},
    {"undo", "", "undo the last change of a knob, a policy or a head", run_undo, NULL},
    {"redo", "", "redo it", run_redo, NULL},
    {"take", "ROW", "the settings of a row of the ledger again", run_take, offer_row},
    {"preset", "[save [ROW]] [NAME]", "settings under a name: bring back, save, list", run_preset, offer_preset},
    {"sweep", "[KNOB=a:b:step …] [prompts] | csv FILE | stop | take N",
     "the run at every point; again: what is missing", run_sweep, offer_knob},
    {"tune", "[TIME] [POLICY …] | stop | take N | save N NAME | copy N",
     "find the fastest setting: a race over prompts", run_tune, offer_policy},
    {"score", "FILE | stop | take N",
     "forecasts of all drafters on finished texts, without generating; or a report of `score --json`", run_score,
     offer_path},
    {"copy-command", "[ROW]", "the settings as a command line, to the clipboard", run_copy_command, offer_row},
    {"versus", "POLICY [KNOB=VALUE …] [head=MODE] | off",
     "a second setting beside this one: the same prompt under both", run_versus, offer_policy},
    {"policy", "[NAME]", "choose the policy", run_policy, offer_policy},
    {"prompt", "[TEXT]", "a new run from this prompt; in a chat the next turn of the conversation", run_prompt, NULL},
    {"new", "[TEXT]", "a new conversation with this prompt", run_new, NULL},
    {"system", "[TEXT]", "the system message from the next prompt on; without a text that from the start", run_system,
     NULL},
    {"next", "", "the next prompt of the list, at once", run_next, NULL},
    {"open", "[MODEL]", "another model: a file, a folder, hf:ORG/NAME, ollama:NAME, bundled; without one a list",
     run_open, offer_path},
    {"pause", "", "pause", run_pause, NULL},
    {"resume", "", "continue", run_resume, NULL},
    {"toggle", "", "pause or resume", run_toggle, NULL},
    {"step", "[N | token]", "so many rounds, or one token, then pause", run_step, NULL},
    {"until", "reject | text WORD | confidence X | spurious | round N", "continue, and pause where it occurs",
     run_until, NULL},
    {"jump", "next | previous [WHAT]", "to the next round with it; after the newest one: continue until it occurs",
     run_jump, NULL},
    {"restart", "", "again from the same prompt", run_restart, NULL},
    {"goto", "ROUND | P%", "to the end of a round; a replay jumps there", run_goto, NULL},
    {"pace", "N | max | faster | slower", "tokens a second at most; a replay's speed, 0.25 to 64", run_pace, NULL},
    {"export", "[DIR]", "write the run as CSV into a folder", run_export, offer_path},
    {"theme", "[NAME]", "choose the theme: a name, or a file with a '/'", run_theme, offer_theme},
    {"panel", "NAME | N | next | previous", "focus a panel", run_panel, offer_panel},
    {"sequence", "N | next | previous", "show that sequence of a batch, from 1, in the panels", run_sequence, NULL},
    {"window", "[segment | last | run | next]", "rounds that all numbers describe; last: 32 rounds", run_window, NULL},
    {"drafts", "on | off", "drafts after the end of the text: shown or hidden", run_drafts, offer_switch},
    {"zoom", "", "the focused panel alone, and back", run_zoom, NULL},
    {"probe", "off | policy | N% | all", "which layers are probed", run_probe, NULL},
    {"head", "lens | trained | policy | other", "head that reads layers; policy: that of its paper", run_head, NULL},
    {"save-screen", "FILE", "write what is on the terminal: as text, with colours as .svg", run_save_screen,
     offer_path},
    {"wait", "round N | sweep N | end | idle | what-if", "in a script: until it is so", run_wait, NULL},
    {"baseline", "", "run autoregressively and compare; again: measure further, between rounds", run_baseline, NULL},
    {"extend", "[N]", "generate N more tokens", run_extend, NULL},
    {"search", "[TEXT]", "find a text; again: the next place", run_search, NULL},
    {"search-next", "", "the next place", run_search_next, NULL},
    {"search-back", "", "the place before", run_search_back, NULL},
    {"note", "[TEXT]", "a note at the cursor, kept in the trace; without a text it is removed", run_note, NULL},
    {"note-next", "", "to the next note", run_note_next, NULL},
    {"key", "NAME…", "press keys: x, Enter, Tab, Up, S-Left, C-l, …", run_key, NULL},
    {"command", "[TEXT]", NULL, run_command, NULL},
    {"help", "[TEXT]", "keys, measures and commands; those with a text", run_help, NULL},
    {"messages", "", "the messages so far", run_messages, NULL},
    {"redraw", "", "draw the screen again", run_redraw, NULL},
    {"suspend", "", "back to the shell; fg returns", run_suspend, NULL},
    {"quit", "", "leave", run_quit, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
