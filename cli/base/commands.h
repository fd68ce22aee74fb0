/* The subcommands, one file each. Each gets argv with its own name in argv[0] and returns the exit status:
 * 0 fine, 1 the work failed, 2 bad usage. */
#ifndef CLI_BASE_COMMANDS_H
#define CLI_BASE_COMMANDS_H

#include <stddef.h>

#include "kernels/base/err.h"

int scope_main(int argc, char **argv);
int run_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int info_main(int argc, char **argv);
int tokenize_main(int argc, char **argv);
int train_main(int argc, char **argv); /* fails with the names of its commands */
int train_heads_main(int argc, char **argv);
int train_accept_main(int argc, char **argv);
int train_profile_main(int argc, char **argv);
int plot_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int models_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int completions_main(int argc, char **argv);

/* Prints "specscope: …" on stderr and returns the exit status: 2 for bad usage, 130 for an interruption, 1 for any other error. */
int command_failed(const struct err *);

/* The folder of themes/ and models/: beside the program in its source tree, else the installed share folder. Constant for
 * the life of the process. */
const char *data_dir(void);
const char *bundled_model_path(void);
/* A file or folder of the user's: $XDG_CONFIG_HOME/specscope/NAME, or ~/.config/…; $XDG_STATE_HOME/specscope/NAME, or
 * ~/.local/state/…, whose folder is made. NULL: the environment names no home, or it is too long a path. */
const char *config_path(char *out, size_t n, const char *name);
const char *state_path(char *out, size_t n, const char *name);
const char *state_place(char *out, size_t n, const char *name); /* the same, without making a folder */

#endif
