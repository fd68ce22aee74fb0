/* --help: a command with few options lists one on a line. Otherwise the common ones come first and the others follow
 * below headings, two short ones on a line, so that the list fits a screen of 50 lines and 100 columns. */
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

enum { LINE = 100, FEW = 24, INDENT = 2, WIDE = 28, NARROW = 22, HALF = 50 };

/* The options of each section, by their names. */
static const struct section {
    const char *title, *names;
} sections[] = {
    {NULL, "prompt file tokens policy set temp draft backend trace json csv grid repeat"},
    {"Prompts, chat and sampling",
     "prompts batch chat-template chat chat-special system chat-var tools chat-date ctx top-k top-p seed ignore-eos"},
    {"Policies and models", "versus companion accept profile heads head lora synth preset list-policies list-presets"},
    {"Layers, traces and the screen", "probe trace-probe theme pace trace-max script once quit-at-end"},
    {"Computation and help", "prefill quantize steps speed isa exact threads gpu help version"},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

/* Prints text from a column on; `at` is the present column. */
static void
print_text(const char *text, int column, int at)
{
    int end = (int)strlen(text);
    if (at < column)
        printf("%*s", column - at, "");
    if (end > LINE - (at > column ? at : column)) {
        end = LINE - (at > column ? at : column);
        while (end > 0 && text[end] != ' ')
            end--;
    }
    printf("%.*s\n", end, text);
    if (text[end] != '\0')
        print_text(text + end + 1, column, 0);
}

/* Prints an option; `at` is the present column. Returns the column after it, which is 0 at the end of a line. */
static int
print_option(const struct option_row *row, int width, int at)
{
    char left[64], letter[8] = "", sentence[400];
    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%*s--%s%s%s", width == WIDE ? -4 : 0, letter, row->name,
             row->argument != NULL ? " " : "", row->argument != NULL ? row->argument : "");
    option_sentence(row, sentence, sizeof sentence);
    if (width == NARROW && strlen(sentence) > LINE - INDENT - NARROW) /* too many words: the manual lists them */
        snprintf(sentence, sizeof sentence, "%s (%s)", row->help, row->without != NULL ? row->without : row->def);
    if (width == NARROW && strlen(left) < NARROW && strlen(sentence) <= HALF - INDENT - NARROW) {
        at += printf("%*s%-*s%s", at == 0 ? INDENT : HALF + INDENT - at, "", NARROW, left, sentence);
        if (at <= HALF)
            return at;
        putchar('\n');
        return 0;
    }
    if (at > 0)
        putchar('\n');
    print_text(sentence, INDENT + width, printf("%*s%s%s", INDENT, "", left, (int)strlen(left) < width ? "" : "  "));
    return 0;
}

static void
print_section(enum command command, const struct section *section)
{
    int at = 0;
    bool any = false;
    for (const char *names = section->names; *names != '\0'; names += strspn(names, " ")) {
        char name[32];
        const size_t n = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        names += n;
        const struct option_row *row = option_find(name, command);
        if (row == NULL)
            continue;
        if (!any && section->title != NULL)
            printf("%s:\n", section->title);
        any = true;
        at = print_option(row, section->title == NULL ? WIDE : NARROW, at);
    }
    if (at > 0)
        putchar('\n');
}

static void
print_options(enum command command)
{
    size_t n = 0;
    for (size_t i = 0; i < n_option_rows; i++)
        n += (option_rows[i].commands & command) != 0;
    for (size_t i = 0; n > FEW && i < N_SECTIONS; i++)
        print_section(command, &sections[i]);
    for (size_t i = 0; n <= FEW && i < n_option_rows; i++)
        if ((option_rows[i].commands & command) != 0)
            print_option(&option_rows[i], WIDE, 0);
}

void
options_help(enum command command)
{
    const struct command_row *c = command_row(command);
    printf("usage: specscope %s\n%s\n\n", c->usage, c->what);
    print_options(command);
    if (command == COMMAND_SCOPE) {
        fputs("\ncommands with --help:", stdout);
        for (size_t i = 1; i < n_command_rows; i++)
            if (strchr(command_rows[i].name, ' ') == NULL)
                printf(" %s", command_rows[i].name);
        putchar('\n');
    }
    if (c->after != NULL)
        printf("%s%s\n", command == COMMAND_SCOPE ? "" : "\n", c->after);
}
