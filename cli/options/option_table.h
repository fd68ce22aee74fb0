/* One row for every option of every command, one for every command. Reading the command line and the config file,
 * --help, the manual's list of options and the shells' completions are made from these rows. */
#ifndef CLI_OPTIONS_OPTION_TABLE_H
#define CLI_OPTIONS_OPTION_TABLE_H

#include <stdio.h>

#include "cli/options/options.h"

enum option_type {
    OPTION_SWITCH, /* bool: true when it is given */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct option_list, one more text each time */
    OPTION_WHOLE,  /* uint32_t, int or uint64_t, from least to most */
    OPTION_REAL,   /* float or double, from low to high */
    OPTION_CHOICE, /* an enum: the index of one of `words` */
    OPTION_CALL,   /* set() */
    OPTION_SAY     /* say(), and then the program is finished; not for the config file */
};

/* What an argument is made of, for those who complete it (besides `words`, and for help beside them). */
enum option_takes { TAKES_WORDS, TAKES_FILE, TAKES_FOLDER, TAKES_POLICY, TAKES_KNOB, TAKES_SHAPE };

struct option_row {
    const char *name; /* without "--"; a row for each meaning that it has in different commands */
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
    void (*say)(enum command);
    const char *help;    /* one line */
    const char *def;     /* the default, as a user would give it; NULL: the member stays zero */
    const char *without; /* or what happens without the option, in words */
    const char *more;    /* what the manual says besides; see option_manual.c for what is set apart in it */
};
extern const struct option_row option_rows[];
extern const size_t n_option_rows;

struct command_row {
    enum command command;
    const char *name; /* "run"; "" for the scope */
    int (*main)(int argc, char **argv);
    const char *usage;    /* after the program's name */
    const char *what;     /* one line */
    const char *after;    /* below the options; NULL: nothing */
    const char *too_many; /* said of an operand too many; of any operand where takes_operand is false */
    bool takes_operand;
    bool several; /* operands, in struct options' list */
    enum option_takes takes;
    const char *const *words; /* (n_words) what the operand may be; beside files or folders that it takes */
    size_t n_words;
    bool config; /* reads the config file */
};
extern const struct command_row command_rows[];
extern const size_t n_command_rows;

const struct command_row *command_row(enum command);
/* The row of a long option in a command; NULL: there is none. */
const struct option_row *option_find(const char *name, unsigned commands);
/* Sets an option from its argument (NULL for a switch). False: *err names option and value (ERR_USAGE). */
bool option_set(struct options *, const struct option_row *, const char *text, struct err *);
/* "a, b and c" of the row's words. */
const char *option_words(const struct option_row *, const char *before_last, char *out, size_t n);
/* The help with words and default: "layers shown: off, policy or all (all)". */
const char *option_sentence(const struct option_row *, char *out, size_t n);

void options_help(enum command); /* to stdout */
void options_manual(void);       /* the manual's list of options, in mdoc, to stdout */

#endif
