/* For fish. */
#include <string.h>

#include "cli/options/completions.h"
#include "cli/options/policy_list.h"

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
print_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
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
print_option(const struct option_row *row)
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

void
completions_fish(void)
{
    print_functions();
    puts("function __specscope_knobs\n    for policy in (__specscope_policies)\n        switch $policy");
    policies_each(print_policy, NULL);
    puts("        end\n    end\nend\ncomplete -c specscope -f");
    for (size_t i = 0; i < n_command_rows; i++)
        print_operand(&command_rows[i]);
    for (size_t i = 0; i < n_option_rows; i++)
        print_option(&option_rows[i]);
}
