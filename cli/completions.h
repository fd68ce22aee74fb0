/* What completes the command line in a shell: made from the tables of options and commands. */
#ifndef CLI_COMPLETIONS_H
#define CLI_COMPLETIONS_H

#include "cli/option_table.h"

/* Each writes a whole script to stdout. */
void completions_bash(void);
void completions_zsh(void);
void completions_fish(void);

/* Words that complete the row's argument, with spaces between them: of `words`, policies, shapes; none: nothing. */
void completions_words(const struct option_row *);
/* "exit_layer= gamma= length=static length=dynamic" of a policy */
void completions_knobs(const struct policy_info *);
/* A command's description: the first line. Returns its length. */
int completions_what(const struct command_row *);

#endif
