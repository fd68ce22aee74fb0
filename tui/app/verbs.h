/* The ':' commands (verbs_*.c) and their table (verbs.c). */
#ifndef TUI_APP_VERBS_H
#define TUI_APP_VERBS_H

#include "base/json_read.h"
#include "engine/measure/segments.h"
#include "tui/app/app_state.h"

extern const struct verb app_verbs[]; /* ends with a name of NULL */

/* Fails in a replay; what, such as "a knob", is named in the error. */
bool verb_only_live(const struct app *, const char *what, struct err *);
/* Stops a sweep or a race and shows its summary with `resume` at its end. Fails if it is not under way: "no race is
 * running". */
bool verb_stop(struct app *, bool is_under_way, const char *what, const char *resume, struct err *);
/* True if the first message is the system's. */
bool verb_has_system(const cJSON *turns);

verb_function run_set, run_policy, run_prompt, run_pause, run_resume, run_toggle, run_step, run_restart, run_goto,
    run_pace, run_export, run_theme, run_panel, run_probe, run_head, run_save_screen, run_wait, run_baseline,
    run_extend, run_search, run_search_next, run_search_back, run_note, run_note_next, run_help, run_messages,
    run_command, run_zoom, run_redraw, run_suspend, run_key, run_quit, run_sequence, run_window, run_undo, run_redo,
    run_take, run_preset, run_tune, run_copy_command, run_next, run_open, run_until, run_jump, run_sweep, run_versus,
    run_score, run_what_if, run_drafts, run_new, run_system;

/* Returns a segment as a command line that generates with its settings again, "specscope run --policy specbound --set
 * tau=0.7 … -p '…' MODEL", for the caller to free; NULL: out of memory. A setting is left out if it is the default and
 * was so at the run's start, too. prompt may be NULL: unknown. before: the messages before it (struct control); may be
 * NULL. */
char *shell_command(const struct segment *, const struct run_info *, const char *prompt, const char *before);

#endif
