/* What keys send, for curses, and what curses calls them. Private to terminal*.c. */
#ifndef TUI_TERMINAL_TERMINAL_KEYS_H
#define TUI_TERMINAL_TERMINAL_KEYS_H

#define KEYS_REPORT 610 /* beyond curses' own codes; + enum report_kind: such a report begins */

void keys_declare(void);       /* after curses started */
int keys_named(unsigned code); /* of curses; INPUT_NONE: not one of ours */

#endif
