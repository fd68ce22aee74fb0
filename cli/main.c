/* specscope: an oscilloscope for speculative decoding. */
#include <locale.h>
#include <string.h>

#include "cli/commands.h"
#include "engine/base/printable.h"
#include "tui/terminal/text.h"

int
command_failed(const struct err *e)
{
    char safe[4 * sizeof e->text + 1]; /* C1 control characters and broken UTF-8 are left in it */
    const char *text = e->kind != ERR_NONE ? e->text : "failed without a word";
    printable_text(text, strlen(text), safe, sizeof safe);
    fprintf(stderr, "specscope: %s\n", safe);
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
        {"info", info_main}, {"tokenize", tokenize_main}, {"train", train_main},
    };
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (argc > 1 && strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return scope_main(argc, argv);
}
