/* For zsh: _arguments with a list for each command. */
#include <string.h>

#include "cli/options/completions.h"
#include "cli/options/policy_list.h"

/* In single quotes, with a backslash before each of `special`: what ends a description or a message. */
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
print_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    if (info->n_knobs == 0)
        return;
    printf("            %s) knobs+=(", ops->name);
    completions_knobs(info);
    puts(") ;;");
}

/* The knobs of the policies that are named; of all of them in bench where none is. */
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
    policies_each(print_policy, NULL);
    puts("        esac\n    done\n    compadd -S '' -- $knobs\n}");
}

/* ":MODEL:_files" */
static void
print_argument(const struct option_row *row)
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
print_option(const struct option_row *row)
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
        print_argument(row);
    puts("' \\");
}

static void
print_command(const struct command_row *c)
{
    fputs("        ", stdout);
    if (c->command == COMMAND_SCOPE)
        putchar('*');
    else
        completions_name(c);
    puts(")\n        _arguments -s -S : \\");
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & c->command) != 0)
            print_option(&option_rows[i]);
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

void
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
        print_command(&command_rows[i]);
    print_command(&command_rows[0]);
    puts("    esac\n}\n_specscope \"$@\"");
}
