/* --help. */
#include <stdio.h>
#include <string.h>

#include "cli/options/option_table.h"

const char *
option_sentence(const struct option_row *row, char *out, size_t n)
{
    char words[160];
    const bool file = row->takes == TAKES_FILE;
    const char *def = row->without != NULL ? row->without : row->def;
    option_words(row, file ? ", " : " or ", words, sizeof words);
    snprintf(out, n, "%s%s%s%s%s%s%s%s", row->help, row->n_words > 0 ? ": " : "", words,
             row->n_words > 0 && file ? " or a file" : "", def != NULL ? " (" : "", def != NULL ? def : "",
             def != NULL ? ")" : "", row->repeats ? "; repeatable" : "");
    return out;
}

static void
print_option(const struct option_row *row)
{
    char left[48], letter[8] = "    ", sentence[400];
    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, row->argument != NULL ? " " : "",
             row->argument != NULL ? row->argument : "");
    printf("  %-27s %s\n", left, option_sentence(row, sentence, sizeof sentence));
}

void
options_help(enum command command)
{
    const struct command_row *c = command_row(command);
    printf("usage: specscope %s\n%s\n\n", c->usage, c->what);
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & command) != 0)
            print_option(&option_rows[i]);
    if (command == COMMAND_SCOPE) {
        fputs("\nother commands: specscope ", stdout);
        for (size_t i = 1; i < n_command_rows; i++)
            if (strchr(command_rows[i].name, ' ') == NULL)
                printf("%s%s", i > 1 ? ", " : "", command_rows[i].name);
        puts("; each has --help");
    }
    if (c->after != NULL)
        printf("%s%s\n", command == COMMAND_SCOPE ? "" : "\n", c->after);
}
