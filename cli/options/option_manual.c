/* The manual's list of options, in mdoc. In helps and in `more`, --options, `literals`, 'words' and the option's own
 * argument are set apart. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/option_table.h"
#include "engine/synthetic/synthetic.h"

#define LINE 110 /* columns; a longer line goes on in the next */

struct writer {
    size_t column;
};

static void
end_line(struct writer *w)
{
    if (w->column > 0)
        putchar('\n');
    w->column = 0;
}

static void
plain(struct writer *w, const char *text, size_t len)
{
    if (w->column > 0 && w->column + 1 + len > LINE)
        end_line(w);
    if (w->column > 0)
        putchar(' ');
    else if (text[0] == '.' || text[0] == '\'') /* no macro */
        fputs("\\&", stdout);
    printf("%.*s", (int)len, text);
    w->column += len + 1;
    if (text[len - 1] == '.') /* a sentence, a line */
        end_line(w);
}

/* A macro has its line; punctuation after it is its last argument. */
static void
macro(struct writer *w, const char *name, const char *text, size_t len, const char *after, size_t n_after)
{
    end_line(w);
    const char *guard = strchr(".,;:()", text[0]) != NULL ? "\\&" : ""; /* punctuation that is the argument itself */
    printf(".%s %s", name, guard);
    for (size_t i = 0; i < len; i++) /* a quote that is only that would hold words together, and be gone */
        fputs(text[i] == '"' ? "\\(dq" : (char[2]){text[i]}, stdout);
    printf("%s%.*s\n", n_after > 0 ? " " : "", (int)n_after, after);
}

/* One word, or one `literal of several`; returns what follows it. */
static const char *
word(struct writer *w, const char *text, const char *argument)
{
    size_t len = strcspn(text, " ");
    if (text[0] == '(' && text[1] == '`') { /* the macro's line begins with what stands before it */
        const char *end = strchr(text + 2, '`');
        const size_t n_after = strcspn(end + 1, " ");
        end_line(w);
        printf(".Ql ( %.*s%s%.*s\n", (int)(end - text - 2), text + 2, n_after > 0 ? " " : "", (int)n_after, end + 1);
        return end + 1 + n_after;
    }
    if (text[0] == '`' || (text[0] == '\'' && memchr(text + 1, '\'', len - 1) != NULL)) {
        const char *end = strchr(text + 1, text[0]);
        const size_t n_after = strcspn(end + 1, " ");
        macro(w, text[0] == '`' ? "Ql" : "Sq", text + 1, (size_t)(end - text - 1), end + 1, n_after);
        return end + 1 + n_after;
    }
    size_t bare = len;
    while (bare > 0 && strchr(".,;:", text[bare - 1]) != NULL)
        bare--;
    if (text[0] == '-' && (bare == 1 || isalpha((unsigned char)text[bare - 1])))
        macro(w, bare == 1 ? "Sq" : "Fl", text + (bare > 1), bare - (bare > 1), text + bare, len - bare);
    else if (argument != NULL && bare == strlen(argument) && strncmp(text, argument, bare) == 0)
        macro(w, "Ar", text, bare, text + bare, len - bare);
    else
        plain(w, text, len);
    return text + len;
}

static void
prose(struct writer *w, const char *text, const char *argument)
{
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " "))
        text = word(w, text, argument);
    end_line(w);
}

static void
print_row(const struct option_row *row, bool named, bool first)
{
    struct writer w = {0};
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
    prose(&w, strcat(sentence, "."), row->argument);
    if (row->more != NULL && first)
        prose(&w, row->more, row->argument);
    if (row->takes == TAKES_SHAPE && first) {
        prose(&w, "Shapes:", NULL);
        for (const struct synthetic_shape *s = synthetic_shapes; s->name != NULL; s++)
            macro(&w, "Sq", s->name, strlen(s->name), s[1].name != NULL ? "," : ".", 1);
    }
}

/* Options of some of `commands`; those that not all of `usual` have say which do. What stood in the list of `before` is
 * said in short. */
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
