#include <stdio.h>
#include <string.h>

#include "cli/base/commands.h"
#include "engine/base/printable.h"

int
command_failed(const struct err *e)
{
    char safe[4 * sizeof e->text + 1]; /* C1 control characters and broken UTF-8 are left in it */
    const char *text = e->kind != ERR_NONE ? e->text : "failed without a word";
    printable_text(text, strlen(text), safe, sizeof safe);
    fprintf(stderr, "specscope: %s\n", safe);
    return e->kind == ERR_USAGE ? 2 : e->kind == ERR_CANCELLED ? 130 : 1;
}
