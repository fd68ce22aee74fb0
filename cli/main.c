/* specscope: an oscilloscope for speculative decoding. */
#include <locale.h>
#include <string.h>

#include "cli/commands.h"

int
command_failed(const struct err *e)
{
    fprintf(stderr, "specscope: %s\n", e->kind != ERR_NONE ? e->text : "failed without a word");
    return e->kind == ERR_USAGE ? 2 : 1;
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        {"run", run_main},   {"replay", replay_main},     {"bench", bench_main},
        {"info", info_main}, {"tokenize", tokenize_main},
    };
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (argc > 1 && strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return scope_main(argc, argv);
}
