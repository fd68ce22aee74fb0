/* specscope plot: figures of saved traces and benchmarks. */
#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "tui/figures/figure.h"

static int64_t
given(uint64_t number)
{
    return number == UINT64_MAX ? -1 : (int64_t)number;
}

static bool
is_kind(const char *word)
{
    return figure_kind_what(word) != NULL;
}

/* The kind is the last operand, or the first if only the first is a kind. */
bool
plot_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    const char *const *inputs = o->operands.at;
    size_t n = o->operands.n;
    if (n == 0)
        return err_set(err, ERR_USAGE, "which trace, and what of it? %s plot TRACE KIND -o FILE; see --help",
                       program_name());
    const bool first = n > 1 && !is_kind(inputs[n - 1]) && is_kind(inputs[0]);
    const char *kind = inputs[first ? 0 : n - 1];
    inputs += first;
    n--;
    struct figure_options f = {.from = given(o->plot.from),
                               .to = given(o->plot.to),
                               .run = o->plot.run,
                               .seq = o->plot.seq == UINT64_MAX ? -1 : (int64_t)o->plot.seq - 1,
                               .measure = o->plot.measure,
                               .axes = o->plot.axes,
                               .caption = o->plot.caption};
    if (o->plot.width != NULL && !figure_length(o->plot.width, &f.width, err))
        return false;
    if (n == 0 && is_kind(kind))
        return err_set(err, ERR_USAGE, "%s of which trace? %s plot TRACE %s -o FILE", kind, program_name(), kind);
    if (n == 0) {
        const struct command_row *plots = command_row(COMMAND_PLOT);
        char kinds[200] = "";
        for (size_t i = 0; i < plots->n_words; i++)
            snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s", i > 0 ? ", " : "", plots->words[i]);
        return err_set(err, ERR_USAGE, "which figure of %.60s? %s plot TRACE KIND -o FILE; KIND is one of %s", kind,
                       program_name(), kinds);
    }
    if (o->plot.out == NULL && is_kind(kind))
        return err_set(err, ERR_USAGE, "into which file? -o FILE, which ends in .svg, .pdf or .png");
    char note[FIGURE_NOTE];
    if (!figure_make(o->plot.out != NULL ? o->plot.out : ".svg", kind, inputs, n, &f, note, err))
        return false;
    if (note[0] != '\0')
        fprintf(stderr, "specscope: %s: %s\n", o->plot.out, note);
    return true;
}
