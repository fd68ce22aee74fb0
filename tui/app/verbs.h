/* What each ':' command does; the table of them is in verbs.c. Private to the app. */
#ifndef TUI_APP_VERBS_H
#define TUI_APP_VERBS_H

#include "tui/app/app_state.h"

bool run_set(struct app *, const char *rest, struct err *);
bool run_policy(struct app *, const char *rest, struct err *);
bool run_prompt(struct app *, const char *rest, struct err *);
bool run_pause(struct app *, const char *rest, struct err *);
bool run_resume(struct app *, const char *rest, struct err *);
bool run_toggle(struct app *, const char *rest, struct err *);
bool run_step(struct app *, const char *rest, struct err *);
bool run_restart(struct app *, const char *rest, struct err *);
bool run_goto(struct app *, const char *rest, struct err *);
bool run_speed(struct app *, const char *rest, struct err *);
bool run_export(struct app *, const char *rest, struct err *);
bool run_theme(struct app *, const char *rest, struct err *);
bool run_panel(struct app *, const char *rest, struct err *);
bool run_probe(struct app *, const char *rest, struct err *);
bool run_head(struct app *, const char *rest, struct err *);
bool run_save_screen(struct app *, const char *rest, struct err *);
bool run_wait(struct app *, const char *rest, struct err *);
bool run_baseline(struct app *, const char *rest, struct err *);
bool run_extend(struct app *, const char *rest, struct err *);
bool run_search(struct app *, const char *rest, struct err *);
bool run_search_next(struct app *, const char *rest, struct err *);
bool run_bookmark(struct app *, const char *rest, struct err *);
bool run_help(struct app *, const char *rest, struct err *);
bool run_command(struct app *, const char *rest, struct err *);
bool run_zoom(struct app *, const char *rest, struct err *);
bool run_redraw(struct app *, const char *rest, struct err *);
bool run_suspend(struct app *, const char *rest, struct err *);
bool run_key(struct app *, const char *rest, struct err *);
bool run_quit(struct app *, const char *rest, struct err *);

#endif
