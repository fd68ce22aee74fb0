/* Prints --help, --list-policies and the manual's list of options. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/option_table.h"
#include "engine/model/synthetic/synthetic.h"

/* ---- --list-policies ---- */

void
policies_each(void (*visit)(void *user, const struct policy_ops *, const struct policy_info *), void *user)
{
    const struct model_info usual = {.layers = 32, .width = 4096, .vocab = 32000, .rho = 0.65};
    const struct sampling greedy = {.top_p = 1};
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct policy p;
        if (!policy_open(&p, policy_registry[i], &usual, &greedy, NULL))
            p.info.n_knobs = 0;
        visit(user, p.ops, &p.info);
        policy_close(&p);
    }
}

static void
print_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    printf("%-12s%s%s%s\n", ops->name, ops->title, ops->paper[0] != '\0' ? "; " : "", ops->paper);
    char missing[POLICY_MISSING];
    for (unsigned need = 1; need <= ops->needs; need <<= 1)
        if ((ops->needs & need) != 0)
            printf("    needs %s\n", policy_missing(need, missing));
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        char value[32];
        knob_format(&info->knobs[k], info->knobs[k].def, value, sizeof value);
        printf("    %-14s%-10s%s", info->knobs[k].name, value, info->knobs[k].help);
        for (int c = 0; info->knobs[k].kind == KNOB_CHOICE && c <= (int)info->knobs[k].max; c++)
            printf("%s%s", c == 0 ? " (" : ", ", info->knobs[k].choices[c]);
        puts(info->knobs[k].kind == KNOB_CHOICE ? ")" : "");
    }
}

void
policies_list(enum command command)
{
    (void)command;
    policies_each(print_policy, NULL);
    puts("(defaults for a model of 32 layers; they scale with the model)");
}

/* ---- --help ---- */

/* Writes the help with words and default: "layers shown: off, policy or all (all)". */
static const char *
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
    {NULL, "prompt file texts tokens policy set temp draft drafts time save backend trace json csv grid repeat"},
    {"Training", "model text out minutes kind layers draft-vocab rate window prompt-tokens response at-once"},
    {"Prompts, chat and sampling",
     "prompts batch chat-template chat chat-special system chat-var tools chat-date ctx top-k top-p seed ignore-eos"},
    {"Policies and models",
     "server server-kind key-env key-file versus companion accept profile heads head lora synth preset list-policies "
     "list-presets vocab-counts"},
    {"Layers, traces and the screen", "probe trace-probe theme pace trace-max script once quit-at-end"},
    {"Computation and help", "quantize steps speed isa exact threads gpu help version"},
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
    printf("usage: specscope %s\n%s\n", c->usage, c->what);
    for (size_t i = 0; c->word_what != NULL && i < c->n_words; i++)
        printf("  %-12s %s\n", c->words[i], c->word_what(c->words[i]));
    putchar('\n');
    print_options(command);
    if (command == COMMAND_SCOPE) {
        fputs("\nalso:", stdout);
        for (size_t i = 1; i < n_command_rows; i++)
            if (strchr(command_rows[i].name, ' ') == NULL && command_rows[i].command != COMMAND_COMPLETIONS)
                printf(" %s", command_rows[i].name);
        putchar('\n');
    }
    if (c->after != NULL)
        printf("%s%s\n", command == COMMAND_SCOPE ? "" : "\n", c->after);
}

/* ---- the manual ---- */

/* Prints sentences of the manual's list of options, a line for each; `literals` are bold. */
static void
prose(const char *text)
{
    bool bold = false, begins = true;
    for (; *text != '\0'; text++) {
        const bool ends = text[0] == ' ' && begins == false && text[-1] == '.';
        if (begins && (text[0] == '.' || text[0] == '\'')) /* no macro */
            fputs("\\&", stdout);
        begins = ends;
        if (ends)
            putchar('\n');
        else if (text[0] == '`')
            fputs((bold = !bold) ? "\\fB" : "\\fP", stdout);
        else if (text[0] == '-')
            fputs("\\-", stdout);
        else
            putchar(text[0]);
    }
    putchar('\n');
}

static void
print_row(const struct option_row *row, bool named, bool first)
{
    char sentence[400];
    printf(".It Fl %.1s%s-%s", row->letter != 0 ? &row->letter : "", row->letter != 0 ? " , " : "", row->name);
    printf("%s%s\n", row->argument != NULL ? " Ar " : "", row->argument != NULL ? row->argument : "");
    if (named) {
        fputs(".Em ", stdout);
        const char *between = "";
        for (size_t i = 0; i < n_command_rows; i++)
            if ((row->commands & command_rows[i].command) != 0) {
                printf("%s%s", between, command_rows[i].name[0] != '\0' ? command_rows[i].name : "scope");
                between = " , ";
            }
        puts(" :");
    }
    option_sentence(row, sentence, sizeof sentence - 1);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    prose(strcat(sentence, "."));
    if (row->more != NULL && first)
        prose(row->more);
    if (row->takes == TAKES_SHAPE && first) {
        fputs("Shapes:", stdout);
        for (const struct synthetic_shape *shape = synthetic_shapes; shape->name != NULL; shape++)
            printf(" %s%s", shape->name, shape[1].name != NULL ? "," : ".\n");
    }
}

/* Lists options of `commands`. If not all of `usual` have an option, its commands are named. An option that is also in
 * the list of `before` is printed in its short form. */
static void
print_list(unsigned commands, unsigned usual, unsigned before)
{
    puts(".Bl -tag -width indent");
    for (size_t i = 0; i < n_option_rows; i++) {
        const unsigned in = option_rows[i].commands;
        if ((in & commands) != 0 && in != COMMAND_ALL)
            print_row(&option_rows[i], (in & usual) != usual, (in & before) == 0);
    }
    puts(".El");
}

void
options_manual(void)
{
    const unsigned generate = COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH,
                   first = generate | COMMAND_TUNE | COMMAND_REPLAY;
    puts("Every command has\n.Fl h , -help\nand\n.Fl V , -version .\n.Ss The scope, run, replay, bench, tune");
    print_list(first, generate, 0);
    for (size_t i = 0; i < n_command_rows; i++)
        if ((command_rows[i].command & (first | COMMAND_COMPLETIONS | COMMAND_TRAIN | COMMAND_MODELS)) == 0) {
            printf(".Ss %s\n", command_rows[i].name);
            print_list(command_rows[i].command, 0, first);
        }
}
