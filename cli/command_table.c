#include "cli/commands.h"
#include "cli/option_table.h"

#define MODEL_IS "MODEL is a .gguf file or a Hugging Face folder; without it the bundled model is used."

static const char *const shells[] = {"bash", "zsh", "fish", "mdoc"};

const struct command_row command_rows[] = {
    {.command = COMMAND_SCOPE,
     .name = "",
     .main = scope_main,
     .usage = "[options] [MODEL]",
     .what = "watch a model generate, layer by layer, and tune how it speculates\n\n" MODEL_IS,
     .after = "defaults are read from $XDG_CONFIG_HOME/specscope/config.json: {\"policy\": \"layerskip\", \"theme\": "
              "\"light\", …}",
     .too_many = "one model is enough",
     .takes_operand = true,
     .takes = TAKES_FILE,
     .config = true},
    {.command = COMMAND_RUN,
     .name = "run",
     .main = run_main,
     .usage = "run [options] [MODEL]",
     .what = "generate without the scope: text to stdout, a summary to stderr\n\n" MODEL_IS,
     .too_many = "one model is enough",
     .takes_operand = true,
     .takes = TAKES_FILE,
     .config = true},
    {.command = COMMAND_REPLAY,
     .name = "replay",
     .main = replay_main,
     .usage = "replay [options] TRACE",
     .what = "the scope on a saved trace",
     .too_many = "one trace is enough",
     .takes_operand = true,
     .takes = TAKES_FOLDER,
     .config = true},
    {.command = COMMAND_BENCH,
     .name = "bench",
     .main = bench_main,
     .usage = "bench [options] [MODEL]",
     .what = "policies side by side on the same prompts\n\n" MODEL_IS,
     .too_many = "one model is enough",
     .takes_operand = true,
     .takes = TAKES_FILE,
     .config = true},
    {.command = COMMAND_INFO,
     .name = "info",
     .main = info_main,
     .usage = "info [options] [MODEL]",
     .what = "what is in a model\n\n" MODEL_IS,
     .too_many = "one model is enough",
     .takes_operand = true,
     .takes = TAKES_FILE},
    {.command = COMMAND_TOKENIZE,
     .name = "tokenize",
     .main = tokenize_main,
     .usage = "tokenize [options] [MODEL] < TEXT",
     .what =
         "text on standard input to token ids, one a line\n\n"
         "MODEL is a .gguf file, a Hugging Face folder or a tokenizer.json (a vocabulary without weights will do);\n"
         "without it the bundled model is used.",
     .too_many = "one model is enough, and the text comes on standard input",
     .takes_operand = true,
     .takes = TAKES_FILE},
    {.command = COMMAND_TRAIN,
     .name = "train",
     .main = train_main,
     .usage = "train heads --text FILE --out FILE [options]",
     .what = "train a head for every layer but the last, so that early layers guess better; --heads FILE uses them",
     .after = "Ctrl-C ends training; the best heads so far are in the file.",
     .too_many = "one argument too many; the model goes after --model"},
    {.command = COMMAND_COMPLETIONS,
     .name = "completions",
     .main = completions_main,
     .usage = "completions bash|zsh|fish",
     .what = "what a shell needs to complete this command line, to stdout (mdoc: the manual's list of options)",
     .too_many = "one shell at a time",
     .takes_operand = true,
     .words = shells,
     .n_words = sizeof shells / sizeof *shells},
};
const size_t n_command_rows = sizeof command_rows / sizeof *command_rows;

const struct command_row *
command_row(enum command command)
{
    const struct command_row *row = command_rows;
    while (row->command != command)
        row++;
    return row;
}
