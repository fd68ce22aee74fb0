#include "cli/use.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void
use_option(const char *name, const char *value)
{
    if (value == NULL)
        return;
    if (name != NULL)
        printf(" --%s", name);
    putchar(' ');
    put_shell_word(stdout, value);
}

void
use_models(const struct options *o, const char *draft)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        use_option(aux_names[role], role == AUX_DRAFT && draft != NULL ? draft : o->aux[role]);
    use_option("synth", o->synth);
    if (o->chat.on)
        fputs(" --chat", stdout);
    use_option("system", o->chat.system);
    use_option(NULL, o->model);
    putchar('\n');
}

void
use_indented(const char *text)
{
    while (*text != '\0') {
        const int n = (int)strcspn(text, "\n");
        printf("  %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}
