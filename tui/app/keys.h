/* Keys and mouse. Every key is a ':' command; what the focused panel takes comes first. */
#ifndef TUI_APP_KEYS_H
#define TUI_APP_KEYS_H

#include "tui/app/app_state.h"

void app_key(struct app *, const struct input *);

#endif
