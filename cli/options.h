/* Options of the command line and the config file: one table, one setter. Flags win over the config file. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdio.h>

#include "engine/session/session.h"

#define OPTIONS_MOST 32 /* of a repeatable one */

enum command { COMMAND_SCOPE = 1, COMMAND_RUN = 2, COMMAND_REPLAY = 4, COMMAND_BENCH = 8 };

struct options {
    enum command command;
    const char *model; /* or the trace folder, for replay */
    const char *synth; /* a model to be planted instead; NULL: none */
    char *prompt;      /* owned; NULL: none given */
    size_t prompt_len;
    const char *prompts_file; /* JSON lines */
    bool chat;
    const char *system; /* NULL: the chat template's own */
    uint32_t tokens, ctx, repeat;
    const char *policies[OPTIONS_MOST];
    size_t n_policies;
    struct knob_setting set[OPTIONS_MOST];
    size_t n_set, n_config_set;     /* the first ones are the config file's */
    const char *grid[OPTIONS_MOST]; /* KNOB=from:to:step, as given */
    size_t n_grid;
    struct sampling sampling;
    uint64_t seed;
    bool ignore_eos, quit_at_end, steps, speed, no_progress, quantize;
    float pace; /* tokens/s; 0: no bound; below 0: not given */
    const char *backend;
    bool backend_given; /* by a flag or the config file */
    struct backend_options backend_options;
    enum probe_mode probe;
    bool probe_given;
    const char *heads;                      /* a file, "none", or NULL: the one beside the model */
    enum head_mode heads_given[HEAD_MODES]; /* by --head, in order; several for bench alone */
    size_t n_heads_given;
    const char *policy_state;
    const char *trace, *theme, *script, *json, *csv;
    bool finished;   /* --help, --version, --list-policies said all there was to say */
    char *owned[64]; /* strings from the config file */
    size_t n_owned;
};

/* Reads the config file, then argv. False: *err says what is wrong (ERR_USAGE). */
bool options_read(struct options *, enum command, int argc, char **argv, struct err *);
/* The config file's part, on bytes (tests, fuzzing). */
bool options_config(struct options *, const char *path, const char *json, size_t len, struct err *);
void options_free(struct options *);
void options_help(enum command, FILE *);

/* What is generated from, and how, when nothing is said. */
extern const char default_prompt[], default_policy[];

#endif
