/* A frame in one write. curses flushes what it holds at every movement of the cursor: some ninety system calls a frame,
 * each of which may wake the terminal, and where every core computes each of these switches is missed by the engine. So
 * curses has a descriptor of its own, which is a file in memory while it updates the screen, and the terminal between.
 *
 * A frame is sent as a synchronized update (CSI ? 2026 h … l): a terminal that knows this shows it at once or not at all,
 * others ignore it. Where `slots` is set, colours that curses sets by number become the 24-bit ones that stand there. */
#ifndef TUI_TERMINAL_TERMINAL_OUTPUT_H
#define TUI_TERMINAL_TERMINAL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OUTPUT_SLOTS 256

struct terminal_output {
    FILE *file; /* for newterm(); only curses writes to it */
    int memory; /* -1: none; curses then writes to the terminal directly */
    char *bytes;
    size_t room;
    const int32_t *slots; /* (OUTPUT_SLOTS) 0xRRGGBB by colour number, -1: unchanged; NULL: all unchanged; borrowed */
};

/* Opens the output to stdout's terminal. If no descriptor is left, fails with errno set, and there is nothing to close. */
bool terminal_output_open(struct terminal_output *);
void terminal_output_close(struct terminal_output *); /* also of a zeroed struct */
void terminal_output_begin(struct terminal_output *); /* before doupdate() */
void terminal_output_end(struct terminal_output *);   /* after it: sends the frame */

/* Writes all bytes despite interruptions; not through stdio, because a change of size (EINTR) would break its stream. After a signal
 * that ends the program, bytes that the terminal does not accept soon are dropped. */
void terminal_output_send(const char *bytes, size_t n);
bool terminal_output_room(int ms); /* whether the terminal accepts bytes within ms */

bool terminal_output_whole(const struct terminal_output *); /* whether frames pass through here, which slots need */

/* Copies n bytes that curses wrote, CSI 38;5;N m and CSI 48;5;N m as CSI 38;2;R;G;B m and so on. `out` has room for 2 n
 * bytes; returns how many it took. Pure. */
size_t terminal_output_direct(const int32_t slots[OUTPUT_SLOTS], const char *bytes, size_t n, char *out);

/* A text for the clipboard of the terminal: OSC 52, which many terminals accept (also through ssh and tmux) and others ignore. */

#define CLIPBOARD_MOST 49152 /* bytes; terminals accept sequences of at most about 100 kB */

/* Returns the sequence for n bytes, a string for the caller to free; NULL: too many bytes, or no memory. */
char *clipboard_sequence(const char *text, size_t n);
/* Writes it to standard output, if that is a terminal; not within a frame. */
bool clipboard_put(const char *text, size_t n);

#endif
