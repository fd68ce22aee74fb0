/* specscope: an oscilloscope for speculative decoding. */
#include <locale.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/option_table.h"

int
main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    for (size_t i = 0; i < n_command_rows && argc > 1; i++)
        if (command_rows[i].name[0] != '\0' && strcmp(argv[1], command_rows[i].name) == 0)
            return command_rows[i].main(argc - 1, argv + 1);
    return scope_main(argc, argv);
}
