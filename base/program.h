/* The program's name in messages that suggest a command: as the user called the program. */
#pragma once

/* Call this function once, before any other thread starts. argv0 is the first word of the command line, or NULL. */
void program_called(const char *argv0);

/* Returns argv0, quoted for a shell, if it contains a slash, and else "specscope". A path without room in a message, or
 * with a quote, gives "specscope", too. Constant for the life of the process. */
const char *program_name(void);
