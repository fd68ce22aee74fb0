/* A small trace with known lines, which tests edit. */
#pragma once

/* Writes an event of each kind, all in one round, as folder/t, and closes it; returns the path in path (256 bytes). */
void write_small_trace(const char *folder, char path[256]);
