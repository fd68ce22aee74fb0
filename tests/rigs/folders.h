/* Folders that tests write to, and files in them. */
#pragma once

/* Creates an empty folder in $TMPDIR or /tmp; path has room for 256 bytes. */
void make_temp_folder(char path[256]);
void remove_folder(const char *path);
/* Set-up and tear-down of a test: *state is the path of an empty folder of its own. */
int folder_set_up(void **state);
int folder_tear_down(void **state);
/* Read a whole file into terminated memory that the caller frees, and write one. */
char *read_text(const char *folder, const char *file);
void write_text(const char *folder, const char *file, const char *text);
