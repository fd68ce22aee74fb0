/* Reading the command line. */
#include "cli/options/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/options/option_config.h"
#include "cli/options/option_conflicts.h"
#include "cli/options/option_models.h"
#include "cli/options/option_table.h"

#define LONG 256 /* getopt's values from here on are rows of the table */
#define MOST 128 /* rows */

/* What getopt_long() wants to know about a command's options. */
struct getopt_tables {
    struct option longs[MOST + 1];
    char shorts[2 * MOST + 3];
};

static void
make_tables(struct getopt_tables *t, enum command command)
{
    struct option *l = t->longs;
    char *s = t->shorts;
    *s++ = '+'; /* stop at an operand; tell a value that is missing from an unknown option */
    *s++ = ':';
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if ((row->commands & command) == 0)
            continue;
        *l++ = (struct option){row->name, row->argument != NULL, NULL, LONG + (int)i};
        if (row->letter != 0)
            *s++ = row->letter;
        if (row->letter != 0 && row->argument != NULL)
            *s++ = ':';
    }
    *l = (struct option){0};
    *s = '\0';
}

static const struct option_row *
row_of(int c, enum command command)
{
    if (c >= LONG)
        return &option_rows[c - LONG];
    const struct option_row *row = option_rows;
    while ((row->commands & command) == 0 || row->letter != c) /* getopt knows no other letters */
        row++;
    return row;
}

static bool
take_operand(struct options *o, const char *text, struct err *err)
{
    const struct command_row *command = command_row(o->command);
    if (command->several && o->operands.n < OPTIONS_MOST) {
        o->operands.at[o->operands.n++] = text;
        return true;
    }
    if (!command->takes_operand || command->several || o->model != NULL)
        return err_set(err, ERR_USAGE, "'%.60s': %s; see --help", text, command->too_many);
    o->model = text;
    return true;
}

/* A policy given by a flag takes the place of the config file's; another one has no use for the settings there. */
static void
forget_config_policy(struct options *o, const char *flag)
{
    const char *before = o->policies.n > 0 ? o->policies.at[0] : default_policy;
    if ((o->command & COMPARES) != 0 || strcmp(flag, before) != 0) {
        o->n_set -= o->n_config_set;
        memmove(o->set, o->set + o->n_config_set, o->n_set * sizeof *o->set);
        o->n_config_set = 0;
    }
    o->policies.n = 0;
}

/* What getopt_long() has no use for: a name that nothing begins with, or several do, or a switch with a value. */
static bool
refuse(const struct options *o, const char *text, struct err *err)
{
    char could[300] = "";
    const size_t n = strncmp(text, "--", 2) == 0 ? strcspn(text, "=") : 0;
    size_t found = 0;
    for (size_t i = 0; i < n_option_rows && n > 2; i++) {
        const char *name = option_rows[i].name;
        if ((option_rows[i].commands & o->command) == 0 || strncmp(text + 2, name, n - 2) != 0)
            continue;
        const size_t used = strlen(could);
        snprintf(could + used, sizeof could - used, "%s--%s", found++ > 0 ? ", " : "", name);
        if (name[n - 2] == '\0')
            return err_set(err, ERR_USAGE, "option --%s takes no value; see --help", name);
    }
    if (found == 1)
        return err_set(err, ERR_USAGE, "option %s takes no value; see --help", could);
    return found > 1 ? err_set(err, ERR_USAGE, "option %.60s may be one of %s", text, could)
                     : err_set(err, ERR_USAGE, "option %.60s is not known; see --help", text);
}

/* Options and operands may be mixed; what follows "--" is operands. */
static bool
read_arguments(struct options *o, int argc, char **argv, bool given[MOST], struct err *err)
{
    struct getopt_tables tables;
    make_tables(&tables, o->command);
    bool policy_given = false;
    optind = 0;
    opterr = 0;
    while (!o->finished) {
        const int at = optind > 0 ? optind : 1;
        const int c = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
        if (c == -1) {
            const bool last = optind >= argc || optind > at; /* the end, or "--" */
            for (const int end = last ? argc : optind + 1; optind < end; optind++)
                if (!take_operand(o, argv[optind], err))
                    return false;
            if (last)
                return true;
            continue;
        }
        if (c == '?')
            return refuse(o, argv[optind > at ? at : optind], err);
        if (c == ':')
            return err_set(err, ERR_USAGE, "option %.60s needs a value; see --help", argv[optind - 1]);
        const struct option_row *row = row_of(c, o->command);
        if (optarg == argv[optind - 1] && !row->model && word_is_model(optarg))
            return err_set(err, ERR_USAGE,
                           "option --%s needs a value: the next word, %.200s, is a model; give %s first", row->name,
                           optarg, row->argument);
        given[row - option_rows] = true;
        if (strcmp(row->name, "policy") == 0 && !policy_given) {
            policy_given = true;
            forget_config_policy(o, optarg);
        }
        if (!option_set(o, row, optarg, err))
            return false;
    }
    return true;
}

/* What options mean to each other; config: what the config file said. */
static bool
settle(struct options *o, const struct options *config, bool prompt_given, struct err *err)
{
    o->chat.on = o->chat.on || o->chat.system != NULL || o->chat.tools != NULL || o->chat.n_variables > 0 ||
                 o->chat.name != NULL || o->chat.template.data != NULL || o->chat.day != NULL || o->chat.special;
    o->chat.variables = o->chat_variables;
    if (prompt_given && o->prompts_file == config->prompts_file)
        o->prompts_file = NULL; /* a flag wins, */
    if (prompt_given && o->prompts_file != NULL)
        return err_set(err, ERR_USAGE, "--batch %.60s has prompts; leave the other prompt out", o->prompts_file);
    if (o->synth == config->synth && o->model != NULL)
        o->synth = NULL; /* and so does a model */
    if (o->synth != NULL && o->model != NULL)
        return err_set(err, ERR_USAGE, "--synth %.60s makes a model; leave '%.60s' out", o->synth, o->model);
    return true;
}

bool
options_read(struct options *o, enum command command, int argc, char **argv, struct err *err)
{
    options_init(o, command);
    if (command_row(command)->config && !options_config_file(o, err))
        return false;
    const struct options config = *o;
    bool given[MOST] = {false};
    return read_arguments(o, argc, argv, given, err) &&
           (o->finished || (options_agree(o, given, err) &&
                            settle(o, &config, option_given(given, "prompt") || option_given(given, "file"), err)));
}

void
options_free(struct options *o)
{
    free(o->prompt);
    for (size_t i = 0; i < o->n_owned; i++)
        free(o->owned[i]);
    o->prompt = NULL;
    o->n_owned = 0;
}

bool
options_begin(struct options *o, enum command command, int argc, char **argv, int *status)
{
    struct err err = {0};
    bool ok = options_read(o, command, argc, argv, &err) && options_find_models(o, &err);
    if (ok && o->finished && fflush(stdout) != 0)
        ok = err_set(&err, ERR_WORK, "stdout: %s", strerror(errno));
    *status = ok ? 0 : command_failed(&err);
    if (ok && !o->finished)
        return true;
    options_free(o);
    return false;
}
