/* Options that are more than a value: their setters (see struct option_row). */
#ifndef CLI_OPTIONS_OPTION_SETTERS_H
#define CLI_OPTIONS_OPTION_SETTERS_H

#include "cli/options/option_table.h"

bool set_prompt(struct options *, const struct option_row *, const char *text, struct err *);
bool set_prompt_file(struct options *, const struct option_row *, const char *path, struct err *);
/* Sequences at a time, or a file of prompts for as many as is usual. */
bool set_batch(struct options *, const struct option_row *, const char *text, struct err *);
bool set_policy(struct options *, const struct option_row *, const char *name, struct err *);
bool set_time(struct options *, const struct option_row *, const char *text, struct err *); /* "90s", "5m", "1h" */
bool set_knob(struct options *, const struct option_row *, const char *text, struct err *); /* the last one counts */
bool set_head(struct options *, const struct option_row *, const char *name, struct err *);
bool set_head_kind(struct options *, const struct option_row *, const char *name, struct err *);
bool set_prefill(struct options *, const struct option_row *, const char *name, struct err *);
bool set_trace_max(struct options *, const struct option_row *, const char *, struct err *);
bool set_trace_probe(struct options *, const struct option_row *, const char *, struct err *);
bool set_blocks(struct options *, const struct option_row *, const char *text, struct err *);

/* ERR_USAGE: the word is none of the row's. */
bool option_unknown_word(const struct option_row *, const char *text, struct err *);

#endif
