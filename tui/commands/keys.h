/* Keys and mouse. Every key is a ':' command; what the focused panel takes comes first. */
#ifndef TUI_COMMANDS_KEYS_H
#define TUI_COMMANDS_KEYS_H

#include "tui/state/app_state.h"

void app_key(struct app *, const struct input *);

#endif
