/* Running a script: its lines one after another, each when what the one before waits for has come. */
#ifndef TUI_APP_SCRIPTING_H
#define TUI_APP_SCRIPTING_H

#include "tui/state/app_state.h"

void script_run(struct app *); /* up to its next wait */

#endif
