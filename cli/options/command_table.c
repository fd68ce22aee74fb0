#include "cli/base/commands.h"
#include "cli/options/option_table.h"

#define BUNDLED "without it the bundled model is used."
#define MODEL                                                                                                          \
    "\n\nMODEL is a .gguf file or a Hugging Face folder, or hf:ORG/NAME or ollama:NAME that is on this machine\n"      \
    "(`specscope models` lists them); " BUNDLED

static const char *const trained[] = {"heads", "accept", "profile"};
static const char *const figures[] = {"layers", "series", "exits", "reliability", "mask", "grid", "pareto", "versus"};
static const char *const shells[] = {"bash", "zsh", "fish", "mdoc"};

#define ROW(id, word, function, use, does, ...)                                                                        \
    {                                                                                                                  \
        .command = id, .name = word, .main = function, .usage = use, .what = does, .too_many = __VA_ARGS__             \
    }
#define ONE_TOO_MANY "one argument too many; the model goes after --model"
#define ONE_MODEL    "one model is enough", .takes_operand = true, .takes = TAKES_FILE

const struct command_row command_rows[] = {
    ROW(COMMAND_SCOPE, "", scope_main, "[options] [MODEL]",
        "watch a model generate, layer by layer, and tune how it speculates" MODEL, ONE_MODEL, .config = true,
        .after =
            "defaults are read from $XDG_CONFIG_HOME/specscope/config.json: {\"policy\": \"layerskip\", \"theme\": "
            "\"light\", …}"),
    ROW(COMMAND_RUN, "run", run_main, "run [options] [MODEL]",
        "generate without the scope: text to stdout, a summary to stderr" MODEL, ONE_MODEL, .config = true),
    ROW(COMMAND_REPLAY, "replay", replay_main, "replay [options] TRACE", "the scope on a saved trace",
        "one trace is enough", .takes_operand = true, .takes = TAKES_FOLDER, .config = true),
    ROW(COMMAND_BENCH, "bench", bench_main, "bench [options] [MODEL]",
        "policies side by side on the same prompts" MODEL, ONE_MODEL, .config = true),
    ROW(COMMAND_INFO, "info", info_main, "info [options] [MODEL]", "what is in a model" MODEL, ONE_MODEL),
    ROW(COMMAND_MODELS, "models", models_main, "models",
        "the models on this machine: bundled, in the caches of Hugging Face, Ollama, LM Studio and llama.cpp; which "
        "run",
        "it takes no arguments"),
    ROW(COMMAND_DOCTOR, "doctor", doctor_main, "doctor [options]",
        "what this machine has for the scope and for speed, what it lacks, and what to do about it",
        "it takes no "
        "arguments",
        .after = "ends with 0 unless something is bad: that is, unless something that the program does would fail."),
    ROW(COMMAND_TOKENIZE, "tokenize", tokenize_main, "tokenize [options] [MODEL] < TEXT",
        "text on standard input to token ids, one a line\n\nMODEL is a .gguf file, a Hugging Face folder, a "
        "tokenizer.json or a tokenizer.model (a vocabulary without weights will do);\n" BUNDLED,
        ONE_MODEL),
    ROW(COMMAND_TRAIN, "train", train_main, "train heads|accept|profile [options]",
        "what policies learn about models beforehand; each has --help", "train what? heads, accept or profile",
        .words = trained, .n_words = sizeof trained / sizeof *trained),
    ROW(COMMAND_TRAIN_HEADS, "train heads", train_heads_main, "train heads --text FILE --out FILE [options]",
        "train a head for every layer but the last, so that early layers guess better; --heads FILE uses them",
        ONE_TOO_MANY,
        .after = "Ctrl-C ends training; the best heads so far are in the file, and the same command goes on."),
    ROW(COMMAND_TRAIN_ACCEPT, "train accept", train_accept_main,
        "train accept --draft MODEL --text FILE --out FILE [options]",
        "train a head that says how likely a draft model's candidate is accepted (SpecDec++)", ONE_TOO_MANY,
        .after = "Ctrl-C ends training; the best head so far is in the file, and the same command goes on."),
    ROW(COMMAND_TRAIN_PROFILE, "train profile", train_profile_main,
        "train profile --draft MODEL --companion MODEL --text FILE --out FILE [options]",
        "measure how likely drafts are accepted, given what a companion model says of them (Speculative Verification)",
        ONE_TOO_MANY, .after = "Ctrl-C ends it; the profile of what was seen is written."),
    ROW(COMMAND_PLOT, "plot", plot_main, "plot TRACE... KIND -o FILE [options]",
        "a figure of saved traces or of what bench --csv wrote, as SVG, PDF or PNG\n\n"
        "KIND is\n"
        "  layers       what each layer said at each position, as SpecBound's Figure 1\n"
        "  series       tokens a round, acceptance, tokens a second, the policy's series, changes of knobs\n"
        "  exits        exit layers, and acceptance by position in the draft\n"
        "  reliability  confidence against acceptance, with ECE and the threshold\n"
        "  mask         sublayers skipped over the rounds (swift)\n"
        "  grid         a sweep, from the CSV of bench --grid\n"
        "  pareto       two measures against each other, of traces and CSV files\n"
        "  versus       two traces beside each other",
        "too many inputs; 31 are possible", .takes_operand = true, .several = true, .takes = TAKES_FILE,
        .words = figures, .n_words = sizeof figures / sizeof *figures),
    ROW(COMMAND_DIFF, "diff", diff_main, "diff TRACE [TRACE] [options]",
        "two saved runs beside each other: settings, measures with their standard errors, where the texts part, who "
        "was "
        "faster where\n\nOf one trace that was made with --versus, its two settings.",
        "two traces are compared", .takes_operand = true, .several = true, .takes = TAKES_FOLDER, .config = true),
    ROW(COMMAND_COMPLETIONS, "completions", completions_main, "completions bash|zsh|fish",
        "what a shell needs to complete this command line, to stdout (mdoc: the manual's list of options)",
        "one shell at a time", .takes_operand = true, .words = shells, .n_words = sizeof shells / sizeof *shells),
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
