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
    FILE *file; /* for newterm(); nobody else writes to it */
    int memory; /* -1: there is none, and curses writes as it pleases */
    char *bytes;
    size_t room;
    const int32_t *slots; /* (OUTPUT_SLOTS) 0xRRGGBB by colour number, -1: left as it is; NULL: all are; borrowed */
};

/* Output goes where stdout does. False, errno set, and nothing to close when there is no descriptor left. */
bool terminal_output_open(struct terminal_output *);
void terminal_output_close(struct terminal_output *); /* also when it is all zero */
void terminal_output_begin(struct terminal_output *); /* before doupdate() */
void terminal_output_end(struct terminal_output *);   /* after it: sends the frame */

/* Everything, whatever interrupts it; not through stdio, whose stream a size that changes meanwhile (EINTR) would leave
 * broken. Once a signal has asked for the end, what the terminal does not take soon is left out. */
void terminal_output_send(const char *bytes, size_t n);
bool terminal_output_room(int ms); /* the terminal takes something, now or within ms */

bool terminal_output_whole(const struct terminal_output *); /* frames go through here, so that slots can be used */

/* Copies n bytes that curses wrote, CSI 38;5;N m and CSI 48;5;N m as CSI 38;2;R;G;B m and so on. `out` has room for 2 n
 * bytes; returns how many it took. Pure. */
size_t terminal_output_direct(const int32_t slots[OUTPUT_SLOTS], const char *bytes, size_t n, char *out);

#endif
