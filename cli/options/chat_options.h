/* Options of the chat template. */
#ifndef CLI_OPTIONS_CHAT_OPTIONS_H
#define CLI_OPTIONS_CHAT_OPTIONS_H

#include "cli/options/option_table.h"

bool set_chat_variable(struct options *, const struct option_row *, const char *text, struct err *);
bool set_tools(struct options *, const struct option_row *, const char *path, struct err *);
bool set_chat_template(struct options *, const struct option_row *, const char *name_or_path, struct err *);
bool set_chat_date(struct options *, const struct option_row *, const char *text, struct err *);

#endif
