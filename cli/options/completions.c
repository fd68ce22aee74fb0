/* specscope completions SHELL: what a shell needs to complete the command line; and the manual's list of options. */
#include "cli/options/completions.h"

#include <errno.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/options/policy_list.h"
#include "engine/synthetic/synthetic.h"

static void
print_words(const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

void
completions_words(const struct option_row *row)
{
    print_words(row->words, row->n_words);
    if (row->takes == TAKES_POLICY)
        completions_policies();
    for (size_t i = 0; row->takes == TAKES_SHAPE && synthetic_shapes[i].name != NULL; i++)
        printf("%s%s,", i > 0 ? " " : "", synthetic_shapes[i].name);
}

void
completions_commands(const char *between)
{
    for (size_t i = 1; i < n_command_rows; i++)
        if (completions_second(&command_rows[i]) == NULL)
            printf("%s%s", i > 1 ? between : "", command_rows[i].name);
}

void
completions_policies(void)
{
    for (size_t i = 0; policy_registry[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", policy_registry[i]->name);
}

void
completions_operands(const struct command_row *c)
{
    print_words(c->words, c->n_words);
}

const char *
completions_second(const struct command_row *c)
{
    const char *space = strchr(c->name, ' ');
    return space != NULL ? space + 1 : NULL;
}

void
completions_name(const struct command_row *c)
{
    for (const char *at = c->name[0] != '\0' ? c->name : "scope"; *at != '\0'; at++)
        putchar(*at != ' ' ? *at : '_');
}

void
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

int
completions_what(const struct command_row *c)
{
    return (int)strcspn(c->what, "\n");
}

int
completions_main(int argc, char **argv)
{
    static void (*const writers[])(void) = {completions_bash, completions_zsh, completions_fish, options_manual};
    const struct command_row *command = command_row(COMMAND_COMPLETIONS);
    struct options o;
    struct err err = {0};
    int status;
    if (!options_begin(&o, COMMAND_COMPLETIONS, argc, argv, &status))
        return status;
    size_t i = 0;
    while (i < command->n_words && (o.model == NULL || strcmp(o.model, command->words[i]) != 0))
        i++;
    bool ok = i < command->n_words ||
              err_set(&err, ERR_USAGE, "which shell? specscope completions bash, zsh or fish; '%.32s' is none of them",
                      o.model != NULL ? o.model : "");
    if (ok) {
        writers[i]();
        ok = fflush(stdout) == 0 || err_set(&err, ERR_WORK, "stdout: %s", strerror(errno));
    }
    options_free(&o);
    return ok ? 0 : command_failed(&err);
}
