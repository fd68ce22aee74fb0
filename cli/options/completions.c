/* specscope completions SHELL: prints a script that completes command lines in a shell, or the manual's list of
 * options. The scripts pass the line so far to `specscope completions words`, which prints the possible words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/model/synthetic/synthetic.h"

/* Bash splits words at "=". So they are joined first, and the part that bash has already is removed from the
 * answers. */
static const char bash_script[] =
    "# bash completion of specscope, made by `specscope completions bash`\n"
    "_specscope()\n"
    "{\n"
    "    local typed=${COMP_WORDS[COMP_CWORD]} word cur path paths i\n"
    "    local -a line=() found=() files=()\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ ${#line[@]} -gt 1 && ( $word == '=' || ${line[-1]} == *= ) ]]; then\n"
    "            line[-1]+=$word\n"
    "        else\n"
    "            line+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $typed == '=' ]] && typed=''\n"
    "    cur=${line[-1]} path=${line[-1]#--*=}\n"
    "    mapfile -t found < <(printf '%s\\n' \"${line[@]}\" | specscope completions words 2>/dev/null)\n"
    "    paths=${found[0]}\n"
    "    found=(\"${found[@]:1}\")\n"
    "    [[ $paths == files ]] && mapfile -t files < <(compgen -f -P \"${cur%\"$path\"}\" -- \"$path\")\n"
    "    [[ $paths == folders ]] && mapfile -t files < <(compgen -d -P \"${cur%\"$path\"}\" -- \"$path\")\n"
    "    [[ $paths == f* ]] && compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"${found[*]%%$'\\t'*}\" -- \"$cur\")\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && $COMPREPLY == *[=,] ]] && compopt -o nospace 2>/dev/null\n"
    "    COMPREPLY+=(\"${files[@]}\")\n"
    "    COMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"$typed\"}\"}\")\n"
    "}\n"
    "complete -F _specscope specscope\n";

static const char zsh_script[] =
    "#compdef specscope\n"
    "# zsh completion of specscope, made by `specscope completions zsh`\n"
    "_specscope() {\n"
    "    local -a found open names shown\n"
    "    local word\n"
    "    found=(\"${(@f)$(print -rl -- \"${(@Q)words[1,CURRENT]}\" | specscope completions words 2>/dev/null)}\")\n"
    "    for word in $found[2,-1]; do\n"
    "        if [[ $word == *[=,] ]]; then\n"
    "            open+=$word\n"
    "        else\n"
    "            names+=${word%%$'\\t'*} shown+=${word/$'\\t'/  -- }\n"
    "        fi\n"
    "    done\n"
    "    (($#open)) && compadd -S '' -- $open\n"
    "    (($#names)) && compadd -l -d shown -- $names\n"
    "    [[ $found[1] == f* ]] && compset -P '--*='\n"
    "    [[ $found[1] == files ]] && _files\n"
    "    [[ $found[1] == folders ]] && _files -/\n"
    "}\n"
    "[[ $funcstack[1] == _specscope ]] && _specscope\n"
    "compdef _specscope specscope\n";

static const char fish_script[] =
    "# fish completion of specscope, made by `specscope completions fish`\n"
    "function __specscope_words\n"
    "    set -l token (commandline -ct)\n"
    "    set -l found (printf '%s\\n' (commandline -opc) \"$token\" | specscope completions words 2>/dev/null)\n"
    "    set -l option (string match -r -- '^--[^=]*=' \"$token\")\n"
    "    set -l path (string replace -r -- '^--[^=]*=' '' \"$token\")\n"
    "    string match -- \"$token*\" $found[2..-1]\n"
    "    switch \"$found[1]\"\n"
    "        case files\n"
    "            __fish_complete_path \"$path\" | string replace -r -- '^' \"$option\"\n"
    "        case folders\n"
    "            __fish_complete_directories \"$path\" | string replace -r -- '^' \"$option\"\n"
    "    end\n"
    "end\n"
    "complete -c specscope -f -a '(__specscope_words)'\n";

/* ---- the words ---- */

#define WORDS_MOST 512

/* A command line up to the word that is being completed. */
struct line {
    char *word[WORDS_MOST]; /* (n) word[0] is the program */
    int n, first;           /* first: index after the command's name */
    const struct command_row *command;
    const char *before; /* "--policy=" if the last word is "--policy=de"; otherwise "" */
};

/* Returns the option of this word, with or without its value; NULL: the word is no option of the command. */
static const struct option_row *
option_of(const struct line *l, const char *word)
{
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        const bool letter = row->letter != 0 && n == 2 && word[0] == '-' && word[1] == row->letter;
        const bool name =
            strncmp(word, "--", 2) == 0 && strlen(row->name) + 2 == n && strncmp(row->name, word + 2, n - 2) == 0;
        if ((row->commands & l->command->command) != 0 && (letter || name))
            return row;
    }
    return NULL;
}

/* Omits placeholders such as "N%". */
static void
print_words(const struct line *l, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr(words[i], '%') == NULL)
            printf("%s%s\n", l->before, words[i]);
}

/* Returns whether the line names the policy or, if it names none, whether the policy is a default. Commands with one
 * policy take the last. */
static bool
is_chosen(const struct line *l, const char *policy)
{
    const bool compares = (l->command->command & COMPARES) != 0;
    bool any = false, chosen = false;
    for (int i = l->first; i + 1 < l->n; i++) {
        const char *name = strcmp(l->word[i], "--policy") == 0        ? l->word[i + 1]
                           : strncmp(l->word[i], "--policy=", 9) == 0 ? l->word[i] + 9
                                                                      : NULL;
        if (name == NULL)
            continue;
        chosen = strcmp(name, policy) == 0 || (compares && chosen);
        any = true;
    }
    return any ? chosen : compares || strcmp(policy, knobs_policy) == 0;
}

/* Prints the knobs of a chosen policy: "exit_layer=", "length=static", "length=dynamic". */
static void
print_knobs(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    const struct line *l = user;
    for (uint32_t k = 0; k < info->n_knobs && is_chosen(l, ops->name); k++) {
        const struct knob *knob = &info->knobs[k];
        if (knob->kind != KNOB_CHOICE)
            printf("%s%s=\n", l->before, knob->name);
        for (int c = 0; knob->kind == KNOB_CHOICE && c <= (int)knob->max; c++)
            printf("%s%s=%s\n", l->before, knob->name, knob->choices[c]);
    }
}

static const char *
paths_of(enum option_takes takes)
{
    return takes == TAKES_FILE ? "files" : takes == TAKES_FOLDER ? "folders" : "none";
}

static void
print_argument(struct line *l, const struct option_row *row)
{
    puts(paths_of(row->takes));
    print_words(l, row->words, row->n_words);
    for (size_t i = 0; row->takes == TAKES_POLICY && policy_registry[i] != NULL; i++)
        printf("%s%s\n", l->before, policy_registry[i]->name);
    if (row->without != NULL && strcmp(row->without, POLICY_AUTO) == 0)
        printf("%s" POLICY_AUTO "\n", l->before);
    for (size_t i = 0; row->takes == TAKES_SHAPE && synthetic_shapes[i].name != NULL; i++)
        printf("%s%s,\n", l->before, synthetic_shapes[i].name);
    if (row->takes == TAKES_KNOB)
        policies_each(print_knobs, l);
}

static void
print_options(const struct line *l)
{
    puts("none");
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & l->command->command) != 0)
            printf("--%s\t%s\n", option_rows[i].name, option_rows[i].help);
}

/* Prints the operands, and for the first word of the line the commands. */
static void
print_operands(const struct line *l)
{
    const struct command_row *c = l->command;
    const bool first = l->n - 1 == l->first;
    puts(c->n_words > 0 && !c->several ? "none" : paths_of(c->takes));
    if (first || c->several)
        print_words(l, c->words, c->n_words);
    for (size_t i = 1; l->n == 2 && i < n_command_rows; i++)
        if (strchr(command_rows[i].name, ' ') == NULL)
            printf("%s\t%.*s\n", command_rows[i].name, (int)strcspn(command_rows[i].what, "\n"), command_rows[i].what);
}

/* Prints "files", "folders" or "none" for paths that are possible, too; then a line for each word, some with a
 * description after a tab. */
static void
print_completions(struct line *l)
{
    char *last = l->word[l->n - 1], *equals = strchr(last, '=');
    const struct option_row *row = NULL;
    l->before = "";
    if (strncmp(last, "--", 2) == 0 && equals != NULL) {
        row = option_of(l, last);
        equals[1] = '\0';
        l->before = last;
    } else if (l->n - 2 >= l->first && strchr(l->word[l->n - 2], '=') == NULL) {
        row = option_of(l, l->word[l->n - 2]);
    }
    if (row != NULL && row->argument != NULL)
        print_argument(l, row);
    else if (last[0] == '-')
        print_options(l);
    else
        print_operands(l);
}

/* Reads the words of the line from stdin, one on each line. */
static bool
complete_line(struct err *err)
{
    char *text;
    size_t len;
    struct line l = {.n = 0};
    if (!file_read("-", &text, &len, err))
        return false;
    for (char *at = text, *end; at < text + len && l.n < WORDS_MOST; at = end + 1) {
        end = at + strcspn(at, "\n");
        *end = '\0';
        l.word[l.n++] = at;
    }
    if (l.n >= 2) {
        int words;
        l.command = command_named(l.n - 1, l.word, &words);
        l.first = 1 + words;
        print_completions(&l);
    }
    free(text);
    return true;
}

bool
completions_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    static const char *const scripts[] = {bash_script, zsh_script, fish_script};
    const struct command_row *command = command_row(COMMAND_COMPLETIONS);
    const char *shell = o->model != NULL ? o->model : "";
    size_t i = 0;
    while (i < command->n_words && strcmp(shell, command->words[i]) != 0)
        i++;
    bool ok = true;
    if (i < command->n_words)
        fputs(scripts[i], stdout);
    else if (strcmp(shell, "words") == 0) /* the scripts ask for these, */
        ok = complete_line(err);
    else if (strcmp(shell, "mdoc") == 0) /* and make for these */
        options_manual();
    else
        ok = err_set(err, ERR_USAGE, "which shell? %s completions bash, zsh or fish; '%.32s' is none of them",
                     program_name(), shell);
    return ok && (fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno)));
}
