/* The whole app on a terminal that is a program's: bytes go in as from a keyboard, what is drawn goes nowhere. */
#ifndef TESTS_FUZZ_APP_RIG_H
#define TESTS_FUZZ_APP_RIG_H

#include "tui/app/app_state.h"

/* Once for the process: a terminal in the place of standard input and output, and a folder of its own to work in, which
 * goes at the end. root: where the process was before. */
void app_rig_open(char root[4096]);
void app_rig_type(const void *bytes, size_t n); /* 4000 at most */
/* What no fuzzer may say, for it would leave the folder or stop the process: '/', '~' and Ctrl-Z are '.'. */
void app_rig_tame(char *bytes, size_t n);
void app_rig_size(int rows, int cols);
/* A trace of so many lines of rounds in the folder, the beginning of the tests' own one of that name: long ones take
 * their time to be read, again for each input. */
void app_rig_trace(const char *root, const char *name, int rounds);

#endif
