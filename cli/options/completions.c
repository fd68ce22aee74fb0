/* specscope completions SHELL: prints completions for a shell, or the manual's list of options. */
#include <errno.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/options/option_table.h"
#include "engine/synthetic/synthetic.h"

static void
print_words(const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

static void
completions_policies(void)
{
    for (size_t i = 0; policy_registry[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", policy_registry[i]->name);
}

/* Returns the part of a command's name after its first word, as "heads", or NULL. */
static const char *
completions_second(const struct command_row *c)
{
    const char *space = strchr(c->name, ' ');
    return space != NULL ? space + 1 : NULL;
}

/* Prints the completions of the row's argument with spaces between: `words`, policies or shapes. */
static void
completions_words(const struct option_row *row)
{
    print_words(row->words, row->n_words);
    if (row->takes == TAKES_POLICY)
        completions_policies();
    for (size_t i = 0; row->takes == TAKES_SHAPE && synthetic_shapes[i].name != NULL; i++)
        printf("%s%s,", i > 0 ? " " : "", synthetic_shapes[i].name);
}

/* Prints the first words of all commands except the scope. */
static void
completions_commands(const char *between)
{
    for (size_t i = 1; i < n_command_rows; i++)
        if (completions_second(&command_rows[i]) == NULL)
            printf("%s%s", i > 1 ? between : "", command_rows[i].name);
}

static void
completions_operands(const struct command_row *c)
{
    print_words(c->words, c->n_words);
}

/* Prints "run", "train_heads" or, for the scope, "scope". */
static void
completions_name(const struct command_row *c)
{
    for (const char *at = c->name[0] != '\0' ? c->name : "scope"; *at != '\0'; at++)
        putchar(*at != ' ' ? *at : '_');
}

/* Prints a policy's knobs: "exit_layer= gamma= length=static length=dynamic". */
static void
completions_knobs(const struct policy_info *info)
{
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        const struct knob *knob = &info->knobs[k];
        const char *between = k > 0 ? " " : "";
        if (knob->kind != KNOB_CHOICE)
            printf("%s%s=", between, knob->name);
        else
            for (int c = 0; c <= (int)knob->max; c++)
                printf("%s%s=%s", c > 0 ? " " : between, knob->name, knob->choices[c]);
    }
}

/* Finds the first line of a command's description. Returns its length. */
static int
completions_what(const struct command_row *c)
{
    return (int)strcspn(c->what, "\n");
}

/* For bash, without the package bash-completion. Bash splits words at "=". So they are joined before completion, and
 * the part that bash has already is cut off the answers. */

static const char intro[] =
    "# bash completion of specscope, made by `specscope completions bash`\n"
    "_specscope()\n"
    "{\n"
    "    local typed=${COMP_WORDS[COMP_CWORD]} word command=scope policies='' words='' files='' i\n"
    "    local -a line=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ ${#line[@]} -gt 0 && ( $word == '=' || ${line[-1]} == *= ) ]]; then\n"
    "            line[-1]+=$word\n"
    "        else\n"
    "            line+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $typed == '=' ]] && typed=''\n"
    "    local last=$((${#line[@]} - 1))\n"
    "    local cur=${line[last]} option=''\n"
    "    ((last > 0)) && option=${line[last - 1]}\n"
    "    [[ $cur == --*=* ]] && option=${cur%%=*} cur=${cur#*=}\n";

static const char outro[] = "    esac\n"
                            "    [[ $files == files ]] && mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                            "    [[ $files == folders ]] && mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
                            "    [[ -n $files ]] && compopt -o filenames 2>/dev/null\n"
                            "    local -a found\n"
                            "    mapfile -t found < <(compgen -W \"$words\" -- \"$cur\")\n"
                            "    COMPREPLY+=(\"${found[@]}\")\n"
                            "    [[ ${#found[@]} -eq 1 && $found == *[=,] ]] && compopt -o nospace 2>/dev/null\n"
                            "    if [[ $cur == *\"$typed\" ]]; then\n"
                            "        COMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"$typed\"}\"}\")\n"
                            "    else # bash was told not to cut words at \"=\"\n"
                            "        COMPREPLY=(\"${COMPREPLY[@]/#/\"$option=\"}\")\n"
                            "    fi\n"
                            "}\n"
                            "complete -F _specscope specscope\n";

static void
bash_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    if (info->n_knobs == 0)
        return;
    printf("            %s) words+=' ", ops->name);
    completions_knobs(info);
    puts("' ;;");
}

/* Prints code that finds the command, and the knobs of the policies on the command line; of all policies if there is
 * none. */
static void
print_look_back(void)
{
    fputs("    case ${line[0]} in\n    ", stdout);
    completions_commands("|");
    puts(") ((last > 0)) && command=${line[0]} ;;\n    esac");
    for (size_t i = 0; i < n_command_rows; i++)
        if (completions_second(&command_rows[i]) != NULL) {
            printf("    ((last > 1)) && [[ \"${line[0]} ${line[1]}\" == '%s' ]] && command=", command_rows[i].name);
            completions_name(&command_rows[i]);
            putchar('\n');
        }
    puts("    for ((i = 0; i < last; i++)); do\n"
         "        word=''\n"
         "        [[ ${line[i]} == --policy ]] && word=${line[i + 1]}\n"
         "        [[ ${line[i]} == --policy=* ]] && word=${line[i]#*=}\n"
         "        [[ $command == bench && -n $word ]] && policies+=\" $word\"\n"
         "        [[ $command != bench && -n $word ]] && policies=$word\n"
         "    done");
    printf("    [[ -z $policies && $command != bench ]] && policies=%s\n    [[ -z $policies ]] && policies='",
           default_policy);
    completions_policies();
    puts("'");
}

/* "run:--file|run:-f|bench:--file|bench:-f" */
static void
print_pattern(const struct option_row *row)
{
    const char *between = "    ";
    for (size_t i = 0; i < n_command_rows; i++) {
        if ((row->commands & command_rows[i].command) == 0)
            continue;
        fputs(between, stdout);
        completions_name(&command_rows[i]);
        printf(":--%s", row->name);
        if (row->letter != 0) {
            putchar('|');
            completions_name(&command_rows[i]);
            printf(":-%c", row->letter);
        }
        between = "|";
    }
    fputs(") ", stdout);
}

static void
bash_argument(const struct option_row *row)
{
    print_pattern(row);
    if (row->takes == TAKES_KNOB) {
        puts("\n        for word in $policies; do\n            case $word in");
        policies_each(bash_policy, NULL);
        puts("            esac\n        done ;;");
        return;
    }
    if (row->takes == TAKES_FILE || row->takes == TAKES_FOLDER)
        fputs(row->takes == TAKES_FILE ? "files=files " : "files=folders ", stdout);
    fputs("words='", stdout);
    completions_words(row);
    puts("' ;;");
}

/* Prints the completions of the command's operands and options. */
static void
bash_command(const struct command_row *c)
{
    fputs("    ", stdout);
    completions_name(c);
    fputs(":*) if [[ $cur == -* ]]; then words='", stdout);
    const char *between = "";
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & c->command) != 0) {
            printf("%s--%s", between, option_rows[i].name);
            between = " ";
        }
    puts("'");
    if (c->n_words > 0) {
        fputs(c->several ? "        else words='" : "        else ((last == 1)) && words='", stdout);
        completions_operands(c);
        puts(c->several ? "' files=files" : "'");
    } else if (c->takes_operand) {
        printf("        else files=%s\n", c->takes == TAKES_FOLDER ? "folders" : "files");
    }
    if (c->command == COMMAND_SCOPE) {
        fputs("            ((last == 0)) && words='", stdout);
        completions_commands(" ");
        puts("'");
    }
    puts("        fi ;;");
}

static void
completions_bash(void)
{
    fputs(intro, stdout);
    print_look_back();
    puts("    COMPREPLY=()\n    case $command:$option in");
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].argument != NULL)
            bash_argument(&option_rows[i]);
    for (size_t i = 0; i < n_command_rows; i++)
        bash_command(&command_rows[i]);
    fputs(outro, stdout);
}

/* For fish. */

static void
print_functions(void)
{
    puts("# fish completion of specscope, made by `specscope completions fish`\n"
         "function __specscope_command\n"
         "    set -l words (commandline -opc)");
    fputs("    if set -q words[2]; and contains -- $words[2] ", stdout);
    completions_commands(" ");
    putchar('\n');
    for (size_t i = 0; i < n_command_rows; i++)
        if (completions_second(&command_rows[i]) != NULL) {
            printf("        if test \"$words[2] $words[3]\" = '%s'\n            echo ", command_rows[i].name);
            completions_name(&command_rows[i]);
            puts("\n            return\n        end");
        }
    puts("        echo $words[2]\n    else\n        echo scope\n    end\nend\n"
         "function __specscope_in\n    contains -- (__specscope_command) $argv\nend\n"
         "function __specscope_words\n    test (count (commandline -opc)) -eq $argv[1]\nend\n"
         "function __specscope_policies\n"
         "    set -l words (commandline -opc)\n"
         "    set -l found\n"
         "    for i in (seq (count $words))\n"
         "        if test \"$words[$i]\" = --policy; and set -q words[(math $i + 1)]\n"
         "            set -a found $words[(math $i + 1)]\n"
         "        else if string match -q -- '--policy=*' $words[$i]\n"
         "            set -a found (string replace -- --policy= '' $words[$i])\n"
         "        end\n"
         "    end");
    puts("    if set -q found[1]; and not __specscope_in bench\n        echo $found[-1]\n"
         "    else if set -q found[1]\n        printf '%s\\n' $found\n"
         "    else if __specscope_in bench");
    fputs("        printf '%s\\n' ", stdout);
    completions_policies();
    printf("\n    else\n        echo %s\n    end\nend\n", default_policy);
}

static void
fish_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    if (info->n_knobs == 0)
        return;
    printf("            case %s\n                printf '%%s\\n' ", ops->name);
    completions_knobs(info);
    putchar('\n');
}

/* In single quotes. */
static void
print_quoted(const char *text, size_t len)
{
    putchar('\'');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'' || text[i] == '\\')
            putchar('\\');
        putchar(text[i]);
    }
    putchar('\'');
}

static void
print_in(unsigned commands, bool second_word)
{
    fputs("complete -c specscope -n '__specscope_in", stdout);
    for (size_t i = 0; i < n_command_rows; i++)
        if ((commands & command_rows[i].command) != 0) {
            putchar(' ');
            completions_name(&command_rows[i]);
        }
    fputs(second_word ? "; and __specscope_words 2'" : "'", stdout);
}

static void
fish_option(const struct option_row *row)
{
    print_in(row->commands, false);
    printf(" -l %s", row->name);
    if (row->letter != 0)
        printf(" -s %c", row->letter);
    if (row->argument != NULL)
        fputs(row->takes == TAKES_FILE ? " -r -F" : " -x", stdout);
    if (row->takes == TAKES_FOLDER) {
        fputs(" -a '(__fish_complete_directories)'", stdout);
    } else if (row->takes == TAKES_KNOB) {
        fputs(" -a '(__specscope_knobs)'", stdout);
    } else if (row->n_words > 0 || row->takes == TAKES_POLICY || row->takes == TAKES_SHAPE) {
        fputs(" -a '", stdout);
        completions_words(row);
        putchar('\'');
    }
    fputs(" -d ", stdout);
    print_quoted(row->help, strlen(row->help));
    putchar('\n');
}

static void
print_operand(const struct command_row *c)
{
    if (c->command != COMMAND_SCOPE && completions_second(c) == NULL) {
        printf("complete -c specscope -n '__specscope_words 1' -a %s -d ", c->name);
        print_quoted(c->what, (size_t)completions_what(c));
        putchar('\n');
    }
    if (!c->takes_operand && c->n_words == 0)
        return;
    print_in(c->command, c->n_words > 0 && !c->several);
    if (c->n_words > 0) {
        fputs(c->several ? " -F -a '" : " -a '", stdout);
        completions_operands(c);
        puts("'");
    } else {
        puts(c->takes == TAKES_FOLDER ? " -a '(__fish_complete_directories)'" : " -F");
    }
}

static void
completions_fish(void)
{
    print_functions();
    puts("function __specscope_knobs\n    for policy in (__specscope_policies)\n        switch $policy");
    policies_each(fish_policy, NULL);
    puts("        end\n    end\nend\ncomplete -c specscope -f");
    for (size_t i = 0; i < n_command_rows; i++)
        print_operand(&command_rows[i]);
    for (size_t i = 0; i < n_option_rows; i++)
        fish_option(&option_rows[i]);
}

/* For zsh: _arguments with a list for each command. */

/* Prints text for single quotes, with a backslash before each character of `special`, which would end a description or
 * a message. */
static void
print_escaped(const char *text, size_t len, const char *special)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'')
            fputs("'\\'", stdout);
        else if (strchr(special, text[i]) != NULL)
            putchar('\\');
        putchar(text[i]);
    }
}

static void
zsh_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    if (info->n_knobs == 0)
        return;
    printf("            %s) knobs+=(", ops->name);
    completions_knobs(info);
    puts(") ;;");
}

/* Prints code for the knobs of the policies on the command line; in bench of all policies if there is none. */
static void
print_knobs(void)
{
    puts("#compdef specscope\n"
         "# zsh completion of specscope, made by `specscope completions zsh`\n"
         "_specscope_knobs() {\n"
         "    local -a policies knobs\n"
         "    local i policy\n"
         "    for ((i = 1; i < CURRENT; i++)); do\n"
         "        [[ $words[i] == --policy ]] && policies+=($words[i+1])\n"
         "        [[ $words[i] == --policy=* ]] && policies+=(${words[i]#*=})\n"
         "    done\n"
         "    [[ $words[1] != bench ]] && policies=($policies[-1])");
    printf("    (($#policies == 0)) && [[ $words[1] != bench ]] && policies=(%s)\n", default_policy);
    fputs("    (($#policies == 0)) && policies=(", stdout);
    completions_policies();
    puts(")\n    for policy in $policies; do\n        case $policy in");
    policies_each(zsh_policy, NULL);
    puts("        esac\n    done\n    compadd -S '' -- $knobs\n}");
}

/* ":MODEL:_files" */
static void
zsh_argument(const struct option_row *row)
{
    putchar(':');
    print_escaped(row->argument, strlen(row->argument), ":\\");
    putchar(':');
    if (row->takes == TAKES_KNOB)
        fputs("_specscope_knobs", stdout);
    else if (row->takes == TAKES_FOLDER)
        fputs("_files -/", stdout);
    else if (row->takes == TAKES_FILE && row->n_words == 0)
        fputs("_files", stdout);
    else if (row->takes == TAKES_FILE) {
        fputs("{compadd -- ", stdout);
        completions_words(row);
        fputs("; _files}", stdout);
    } else if (row->n_words > 0 || row->takes == TAKES_POLICY || row->takes == TAKES_SHAPE) {
        putchar('(');
        completions_words(row);
        putchar(')');
    }
}

static void
zsh_option(const struct option_row *row)
{
    const bool value = row->argument != NULL;
    fputs("            ", stdout);
    if (row->repeats)
        printf("'*'");
    else if (row->letter != 0)
        printf("'(-%c --%s)'", row->letter, row->name);
    if (row->letter != 0)
        printf("{-%c%s,--%s%s}", row->letter, value ? "+" : "", row->name, value ? "=" : "");
    else
        printf("--%s%s", row->name, value ? "=" : "");
    fputs("'[", stdout);
    print_escaped(row->help, strlen(row->help), "[]:\\");
    putchar(']');
    if (value)
        zsh_argument(row);
    puts("' \\");
}

static void
zsh_command(const struct command_row *c)
{
    fputs("        ", stdout);
    if (c->command == COMMAND_SCOPE)
        putchar('*');
    else
        completions_name(c);
    puts(")\n        _arguments -s -S : \\");
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & c->command) != 0)
            zsh_option(&option_rows[i]);
    if (!c->takes_operand && c->n_words == 0) {
        puts("            && return ;;");
        return;
    }
    fputs(c->several ? "            '*:" : "            '1:", stdout);
    if (c->several) {
        fputs("what:{compadd -- ", stdout);
        completions_operands(c);
        fputs("; _files}", stdout);
    } else if (c->n_words > 0) {
        fputs("what:(", stdout);
        completions_operands(c);
        putchar(')');
    } else {
        fputs(c->takes == TAKES_FOLDER ? "trace:_files -/" : "model:_files", stdout);
    }
    puts("' ;;");
}

static void
completions_zsh(void)
{
    print_knobs();
    puts("_specscope() {\n    local -a commands=(");
    for (size_t i = 1; i < n_command_rows; i++) {
        if (completions_second(&command_rows[i]) != NULL)
            continue;
        printf("        '%s:", command_rows[i].name);
        print_escaped(command_rows[i].what, (size_t)completions_what(&command_rows[i]), ":\\");
        puts("'");
    }
    puts("    )\n    local command=scope\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command commands\n"
         "    else\n"
         "        case $words[2] in");
    fputs("        ", stdout);
    completions_commands("|");
    puts(")\n            command=$words[2]\n"
         "            shift words\n"
         "            ((CURRENT--)) ;;\n"
         "        esac\n"
         "    fi");
    for (size_t i = 1; i < n_command_rows; i++)
        if (completions_second(&command_rows[i]) != NULL) {
            printf("    if ((CURRENT > 2)) && [[ \"$words[1] $words[2]\" == '%s' ]]; then\n        command=",
                   command_rows[i].name);
            completions_name(&command_rows[i]);
            puts("\n        shift words\n        ((CURRENT--))\n    fi");
        }
    puts("    case $command in");
    for (size_t i = 1; i < n_command_rows; i++)
        zsh_command(&command_rows[i]);
    zsh_command(&command_rows[0]);
    puts("    esac\n}\n_specscope \"$@\"");
}

bool
completions_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    static void (*const writers[])(void) = {completions_bash, completions_zsh, completions_fish, options_manual};
    const struct command_row *command = command_row(COMMAND_COMPLETIONS);
    size_t i = 0;
    while (i < command->n_words && (o->model == NULL || strcmp(o->model, command->words[i]) != 0))
        i++;
    bool ok = i < command->n_words ||
              err_set(err, ERR_USAGE, "which shell? specscope completions bash, zsh or fish; '%.32s' is none of them",
                      o->model != NULL ? o->model : "");
    if (ok) {
        writers[i]();
        ok = fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno));
    }
    return ok;
}
