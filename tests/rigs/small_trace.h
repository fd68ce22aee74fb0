/* A small trace whose every line is known, to be edited. */
#ifndef TESTS_RIGS_SMALL_TRACE_H
#define TESTS_RIGS_SMALL_TRACE_H

/* An event of each kind, all of one round, as folder/t, closed; returns the path in path (256 bytes). */
void write_small_trace(const char *folder, char path[256]);

#endif
