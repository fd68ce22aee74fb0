/* What each ':' command does (verbs_run.c, verbs_screen.c), and the table of them (verbs.c). */
#ifndef TUI_COMMANDS_VERBS_H
#define TUI_COMMANDS_VERBS_H

#include "tui/state/app_state.h"

extern const struct verb app_verbs[]; /* ends with a name of NULL */

/* False with a line, in a replay; what: "a knob". */
bool verb_only_live(const struct app *, const char *what, struct err *);

verb_function run_set, run_policy, run_prompt, run_pause, run_resume, run_toggle, run_step, run_restart, run_goto,
    run_speed, run_export, run_theme, run_panel, run_probe, run_head, run_save_screen, run_wait, run_baseline,
    run_extend, run_search, run_search_next, run_search_back, run_bookmark, run_note, run_help, run_messages,
    run_command, run_zoom, run_redraw, run_suspend, run_key, run_quit, run_sequence, run_window, run_undo, run_redo,
    run_take, run_preset, run_copy_command;
verb_function run_next;            /* verbs_prompts.c */
verb_function run_open;            /* verbs_models.c */
verb_function run_plot;            /* verbs_figures.c */
verb_function run_sweep;           /* verbs_sweep.c */
verb_function run_versus;          /* verbs_versus.c */
verb_function run_what_if;         /* verbs_what_if.c */
verb_function run_until, run_jump; /* verbs_until.c */

#endif
