/* One row for every option of every command, one for every command. Reading the command line and the config file,
 * --help, the manual's list of options and the shells' completions are made from these rows. */
#ifndef CLI_OPTIONS_OPTION_TABLE_H
#define CLI_OPTIONS_OPTION_TABLE_H

#include <stdio.h>

#include "cli/options/options.h"
#include "policies/registry.h"

enum option_type {
    OPTION_SWITCH, /* bool: true if the option is given */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct option_list, one more text each time */
    OPTION_WHOLE,  /* uint32_t, int or uint64_t, from least to most */
    OPTION_REAL,   /* float or double, from low to high */
    OPTION_CHOICE, /* an enum: the index of one of `words` */
    OPTION_CALL,   /* set() */
    OPTION_PRINT   /* print() prints, and the program ends; not in the config file */
};

/* Kinds of arguments besides `words`, for completions. */
enum option_takes { TAKES_WORDS, TAKES_FILE, TAKES_FOLDER, TAKES_POLICY, TAKES_KNOB, TAKES_SHAPE };

struct option_row;
/* Sets an option from its argument; fails with ERR_USAGE. */
typedef bool option_fn(struct options *, const struct option_row *, const char *text, struct err *);

struct option_row {
    const char *name; /* without "--"; a name has a row for each of its meanings in different commands */
    char letter;      /* 0: none */
    bool repeats;
    bool model; /* the argument is a model or an adapter of one */
    enum option_type type;
    enum option_takes takes;
    unsigned commands;    /* a set of enum command */
    const char *argument; /* "FILE"; NULL: a switch */
    size_t at, size;      /* of the member of struct options, in bytes */
    uint64_t least, most;
    double low, high;
    const char *const *words; /* (n_words) */
    size_t n_words;
    option_fn *set;
    void (*print)(enum command);
    const char *help;    /* one line */
    const char *def;     /* the default, in the user's notation; NULL: the member stays zero */
    const char *without; /* or the default in words */
    const char *more;    /* more sentences for the manual, with `literals` */
};

#define ROWS_MOST 192 /* of the table of options, and of that of commands */

extern const struct option_row option_rows[];
extern const size_t n_option_rows;

/* A command. It is called with *status = 0, the exit status if it returns true. */
typedef bool command_fn(struct options *, int *status, struct err *);

struct command_row {
    enum command command;
    const char *name; /* "run"; "" for the scope */
    command_fn *main;
    const char *usage;    /* after the program's name */
    const char *what;     /* one line */
    const char *after;    /* below the options; NULL: nothing */
    const char *too_many; /* the error for one operand too many, or for any if takes_operand is false */
    bool takes_operand;
    bool several; /* operands, in struct options' list */
    enum option_takes takes;
    const char *const *words; /* (n_words) values of the operand besides files or folders */
    size_t n_words;
    const char *(*word_what)(const char *); /* describes a word in one line, in a list after `what`; NULL: no list */
    bool config;                            /* reads the config file */
};
extern const struct command_row command_rows[];
extern const size_t n_command_rows;

command_fn scope_main, run_main, connect_main, replay_main, bench_main, tune_main, score_main, info_main, models_main,
    doctor_main, tokenize_main, train_main, train_heads_main, train_eagle_main, train_accept_main, train_profile_main,
    plot_main, diff_main, verdict_main, completions_main;

const struct command_row *command_row(enum command);
/* Returns the command of a command line, and the number of words of its name; without a name the scope and 0. */
const struct command_row *command_named(int argc, char **argv, int *words);
/* Returns the row of a long option in a command, or NULL. */
const struct option_row *option_find(const char *name, unsigned commands);
/* Sets an option from its argument (NULL for a switch). False: *err names option and value (ERR_USAGE). */
bool option_set(struct options *, const struct option_row *, const char *text, struct err *);
/* Writes the row's words as "a, b and c". */
const char *option_words(const struct option_row *, const char *before_last, char *out, size_t n);

void options_help(enum command); /* to stdout */
void options_manual(void);       /* the manual's list of options, in mdoc, to stdout */

/* ---- setters of OPTION_CALL (option_values.c) ---- */

option_fn set_prompt, set_prompt_file, set_policy, set_head, set_head_kind, set_trace_max, set_trace_probe, set_probe,
    set_tools, set_chat_variable, set_chat_template, set_chat_date;
option_fn set_batch;  /* text: the number of sequences at a time, or a file of prompts for 8 at a time */
option_fn set_time;   /* "90s", "5m", "1h" */
option_fn set_knob;   /* "KNOB=VALUE"; the last one counts */
option_fn set_blocks; /* "0,1,3" */
option_fn set_preset; /* replaces policy, knobs, head and sampling by the preset's; later options override them */

/* Writes "; did you mean NAME?" with the name next to a mistyped word, or "" if none is near. names ends with NULL.
 * Returns out. */
const char *option_near(const char *word, const char *const *names, char *out, size_t n);
/* Prints a line for each preset; for a bad one, the reason. */
void presets_list(enum command);

/* ---- policies (option_help.c) ---- */

/* Calls visit() for each policy of the registry, in order, with its knobs for a model of 7B's shape. */
void policies_each(void (*visit)(void *user, const struct policy_ops *, const struct policy_info *), void *user);
void policies_list(enum command); /* --list-policies, to stdout */

#endif
