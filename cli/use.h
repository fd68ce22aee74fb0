/* Prints how to use a setting that was found: commands of this program and of other engines. */
#pragma once

#include "cli/options/options.h"

#define ENGINE_COMMAND 8192 /* bytes of a command of another engine */

/* Prints an option of a command, or an operand if name is NULL; nothing if value is NULL. */
void use_option(const char *name, const char *value);
/* Prints the end of a command that uses the same models, and a newline. draft: in place of that of the options; or
 * NULL. */
void use_models(const struct options *, const char *draft);
/* Prints lines, each after two blanks. */
void use_indented(const char *text);
