/* A frame in one write. curses flushes what it holds at every movement of the cursor: some ninety system calls a frame,
 * each of which may wake the terminal, and where every core computes each of these switches is missed by the engine. So
 * curses has a descriptor of its own, which is a file in memory while it updates the screen, and the terminal between. */
#ifndef TUI_TERMINAL_TERMINAL_OUTPUT_H
#define TUI_TERMINAL_TERMINAL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct terminal_output {
    FILE *file; /* for newterm(); nobody else writes to it */
    int memory; /* -1: there is none, and curses writes as it pleases */
    char *bytes;
    size_t room;
};

/* Output goes where stdout does. False, errno set, and nothing to close when there is no descriptor left. */
bool terminal_output_open(struct terminal_output *);
void terminal_output_close(struct terminal_output *); /* also when it is all zero */
void terminal_output_begin(struct terminal_output *); /* before doupdate() */
void terminal_output_end(struct terminal_output *);   /* after it: sends the frame */

#endif
