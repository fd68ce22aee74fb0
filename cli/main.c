/* specscope: an oscilloscope for speculative decoding. */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/options/option_table.h"

/* Returns the number of words of the command line that name this command; 0: it is another one. */
static int
words_of(const struct command_row *c, int argc, char **argv)
{
    int n = 0;
    for (const char *name = c->name; *name != '\0'; n++) {
        const size_t len = strcspn(name, " ");
        if (n + 1 >= argc || strlen(argv[n + 1]) != len || strncmp(argv[n + 1], name, len) != 0)
            return 0;
        name += len + strspn(name + len, " ");
    }
    return n;
}

int
main(int argc, char **argv)
{
    struct err err = {0};
    errno = 0;
    if (setlocale(LC_ALL, "") == NULL && errno == ENOMEM) { /* the screen would look different without the locale */
        err_set(&err, ERR_WORK, "out of memory for the locale");
        return command_failed(&err);
    }
    setlocale(LC_NUMERIC, "C");
    json_memory_watch();
    const struct command_row *best = command_row(COMMAND_SCOPE);
    int n = 0;
    for (size_t i = 0; i < n_command_rows; i++) {
        const int words = words_of(&command_rows[i], argc, argv);
        if (words > n) {
            n = words;
            best = &command_rows[i];
        }
    }
    const int status = options_run(best->command, argc - n, argv + n);
    if (status == 0 && !results_close(stdout, "-", &err)) /* buffered output may still fail */
        return command_failed(&err);
    return status;
}
