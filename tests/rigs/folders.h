/* Folders for tests to write into, and files in them. */
#ifndef TESTS_RIGS_FOLDERS_H
#define TESTS_RIGS_FOLDERS_H

/* An empty new folder under $TMPDIR or /tmp; path has room for 256 bytes. */
void make_temp_folder(char path[256]);
void remove_folder(const char *path);
/* A test's set-up and tear-down: *state is the path of an empty folder of its own. */
int folder_set_up(void **state);
int folder_tear_down(void **state);
/* A whole file, terminated, in memory of the caller; and back. */
char *read_text(const char *folder, const char *file);
void write_text(const char *folder, const char *file, const char *text);

#endif
