/* A text for the terminal's clipboard: OSC 52, which many terminals take (also through ssh and tmux) and others pass
 * over. */
#ifndef TUI_TERMINAL_CLIPBOARD_H
#define TUI_TERMINAL_CLIPBOARD_H

#include <stdbool.h>
#include <stddef.h>

#define CLIPBOARD_MOST 49152 /* bytes; terminals take no more than about 100 kB of sequence */

/* The sequence for n bytes, as a string for the caller to free; NULL: too many, or no memory. */
char *clipboard_sequence(const char *text, size_t n);
/* To standard output, if that is a terminal; not within a frame. */
bool clipboard_put(const char *text, size_t n);

#endif
