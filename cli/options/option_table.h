/* One row for every option of every command, one for every command. Reading the command line and the config file,
 * --help, the manual's list of options and the shells' completions are made from these rows. */
#ifndef CLI_OPTIONS_OPTION_TABLE_H
#define CLI_OPTIONS_OPTION_TABLE_H

#include <stdio.h>

#include "cli/options/options.h"
#include "policies/policy.h"

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
    bool (*set)(struct options *, const struct option_row *, const char *text, struct err *);
    void (*print)(enum command);
    const char *help;    /* one line */
    const char *def;     /* the default, in the user's notation; NULL: the member stays zero */
    const char *without; /* or the default in words */
    const char *more;    /* more sentences for the manual, with `literals` */
};
extern const struct option_row option_rows[];
extern const size_t n_option_rows;

struct command_row {
    enum command command;
    const char *name; /* "run"; "" for the scope */
    bool (*main)(struct options *, int *status, struct err *);
    const char *usage;    /* after the program's name */
    const char *what;     /* one line */
    const char *after;    /* below the options; NULL: nothing */
    const char *too_many; /* the error for one operand too many, or for any if takes_operand is false */
    bool takes_operand;
    bool several; /* operands, in struct options' list */
    enum option_takes takes;
    const char *const *words; /* (n_words) values of the operand besides files or folders */
    size_t n_words;
    bool config; /* reads the config file */
};
extern const struct command_row command_rows[];
extern const size_t n_command_rows;

/* The commands. Each is called with *status = 0, the exit status if it returns true. */
bool scope_main(struct options *, int *status, struct err *);
bool run_main(struct options *, int *status, struct err *);
bool replay_main(struct options *, int *status, struct err *);
bool bench_main(struct options *, int *status, struct err *);
bool tune_main(struct options *, int *status, struct err *);
bool info_main(struct options *, int *status, struct err *);
bool tokenize_main(struct options *, int *status, struct err *);
bool train_main(struct options *, int *status, struct err *);
bool train_heads_main(struct options *, int *status, struct err *);
bool train_accept_main(struct options *, int *status, struct err *);
bool train_profile_main(struct options *, int *status, struct err *);
bool plot_main(struct options *, int *status, struct err *);
bool diff_main(struct options *, int *status, struct err *);
bool models_main(struct options *, int *status, struct err *);
bool doctor_main(struct options *, int *status, struct err *);
bool completions_main(struct options *, int *status, struct err *);

const struct command_row *command_row(enum command);
/* Returns the command of a command line, and the number of words of its name; without a name the scope and 0. */
const struct command_row *command_named(int argc, char **argv, int *words);
/* Returns the row of a long option in a command, or NULL. */
const struct option_row *option_find(const char *name, unsigned commands);
/* Sets an option from its argument (NULL for a switch). False: *err names option and value (ERR_USAGE). */
bool option_set(struct options *, const struct option_row *, const char *text, struct err *);
/* Writes the row's words as "a, b and c". */
const char *option_words(const struct option_row *, const char *before_last, char *out, size_t n);
/* Writes the help with words and default: "layers shown: off, policy or all (all)". */
const char *option_sentence(const struct option_row *, char *out, size_t n);

void options_help(enum command); /* to stdout */
void options_manual(void);       /* the manual's list of options, in mdoc, to stdout */

/* ---- setters of OPTION_CALL (option_values.c) ---- */

bool set_prompt(struct options *, const struct option_row *, const char *text, struct err *);
bool set_prompt_file(struct options *, const struct option_row *, const char *path, struct err *);
/* text: the number of sequences at a time, or a file of prompts for 8 at a time. */
bool set_batch(struct options *, const struct option_row *, const char *text, struct err *);
/* Writes "; did you mean NAME?" with the name next to a mistyped word, or "" if none is near. names ends with NULL. Returns out. */
const char *option_near(const char *word, const char *const *names, char *out, size_t n);
bool set_policy(struct options *, const struct option_row *, const char *name, struct err *);
bool set_time(struct options *, const struct option_row *, const char *text, struct err *); /* "90s", "5m", "1h" */
bool set_knob(struct options *, const struct option_row *, const char *text, struct err *); /* the last one counts */
bool set_head(struct options *, const struct option_row *, const char *name, struct err *);
bool set_head_kind(struct options *, const struct option_row *, const char *name, struct err *);
bool set_trace_max(struct options *, const struct option_row *, const char *, struct err *);
bool set_trace_probe(struct options *, const struct option_row *, const char *, struct err *);
bool set_blocks(struct options *, const struct option_row *, const char *text, struct err *);

bool set_chat_variable(struct options *, const struct option_row *, const char *text, struct err *);
bool set_tools(struct options *, const struct option_row *, const char *path, struct err *);
bool set_chat_template(struct options *, const struct option_row *, const char *name_or_path, struct err *);
bool set_chat_date(struct options *, const struct option_row *, const char *text, struct err *);

/* Replaces policy, knobs, head and sampling by the preset's (engine/tune/preset.h); later options override them. */
bool set_preset(struct options *, const struct option_row *, const char *name, struct err *);
/* Prints a line for each preset; for a bad one, the reason. */
void presets_list(void);

/* ---- policies (option_help.c) ---- */

/* Calls visit() for each policy of the registry, in order, with its knobs for a model of 7B's shape. */
void policies_each(void (*visit)(void *user, const struct policy_ops *, const struct policy_info *), void *user);
void policies_list(void); /* --list-policies, to stdout */

#endif
