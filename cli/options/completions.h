/* What completes the command line in a shell: made from the tables of options and commands. */
#ifndef CLI_OPTIONS_COMPLETIONS_H
#define CLI_OPTIONS_COMPLETIONS_H

#include "cli/options/option_table.h"

/* Each writes a whole script to stdout. */
void completions_bash(void);
void completions_zsh(void);
void completions_fish(void);

/* What completes the row's argument, with spaces between: `words`, policies, shapes; or nothing. */
void completions_words(const struct option_row *);
/* The same of commands (the first words of all but the scope), policies, and of a command's operand. */
void completions_commands(const char *between);
void completions_policies(void);
void completions_operands(const struct command_row *);
void completions_name(const struct command_row *); /* "run"; "train_heads"; of the scope: "scope" */
/* NULL, or what follows the first word of a command's name: "heads". */
const char *completions_second(const struct command_row *);
/* "exit_layer= gamma= length=static length=dynamic" of a policy */
void completions_knobs(const struct policy_info *);
/* A command's description: the first line. Returns its length. */
int completions_what(const struct command_row *);

#endif
