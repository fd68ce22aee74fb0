/* A small trace with known lines, which tests edit. */
#ifndef TESTS_RIGS_SMALL_TRACE_H
#define TESTS_RIGS_SMALL_TRACE_H

/* Writes an event of each kind, all in one round, as folder/t, and closes it; returns the path in path (256 bytes). */
void write_small_trace(const char *folder, char path[256]);

#endif
