/* For bash, without the package bash-completion. Bash cuts words at "=", so they are joined before anything is looked
 * at, and what it has already taken is cut off the answers. */
#include <string.h>

#include "cli/options/completions.h"
#include "cli/options/policy_list.h"

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
print_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    if (info->n_knobs == 0)
        return;
    printf("            %s) words+=' ", ops->name);
    completions_knobs(info);
    puts("' ;;");
}

/* Which command, and the knobs of the policies that are named; of all of them where none is. */
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
print_argument(const struct option_row *row)
{
    print_pattern(row);
    if (row->takes == TAKES_KNOB) {
        puts("\n        for word in $policies; do\n            case $word in");
        policies_each(print_policy, NULL);
        puts("            esac\n        done ;;");
        return;
    }
    if (row->takes == TAKES_FILE || row->takes == TAKES_FOLDER)
        fputs(row->takes == TAKES_FILE ? "files=files " : "files=folders ", stdout);
    fputs("words='", stdout);
    completions_words(row);
    puts("' ;;");
}

/* What an operand or an option may be. */
static void
print_command(const struct command_row *c)
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

void
completions_bash(void)
{
    fputs(intro, stdout);
    print_look_back();
    puts("    COMPREPLY=()\n    case $command:$option in");
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].argument != NULL)
            print_argument(&option_rows[i]);
    for (size_t i = 0; i < n_command_rows; i++)
        print_command(&command_rows[i]);
    fputs(outro, stdout);
}
