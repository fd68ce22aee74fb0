#include <string.h>

#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "tui/figures/figure.h"

#define BUNDLED "without it the bundled model is used."
#define MODEL   "\nMODEL is a .gguf file, a Hugging Face folder, hf:ORG/NAME or ollama:NAME (default: the bundled one)"

static const char *const trained[] = {"heads", "eagle", "accept", "profile"};
#define WORD(kind) #kind,
static const char *const figures[] = {FIGURE_KINDS(WORD)};
static const char *const shells[] = {"bash", "zsh", "fish"};

#define ROW(id, word, function, use, does, ...)                                                                        \
    {                                                                                                                  \
        .command = id, .name = word, .main = function, .usage = use, .what = does, .too_many = __VA_ARGS__             \
    }
#define ONE_TOO_MANY "one argument too many; the model goes after --model"
#define ONE_MODEL    "one model is enough", .takes_operand = true, .takes = TAKES_FILE

const struct command_row command_rows[] = {
    ROW(COMMAND_SCOPE, "", scope_main, "[options] [MODEL]",
        "shows a model as it generates, layer by layer, with settings of its speculation" MODEL, ONE_MODEL,
        .config = true,
        .after = "defaults: $XDG_CONFIG_HOME/specscope/config.json, such as {\"policy\": \"layerskip\", \"theme\": "
                 "\"light\"}"),
    ROW(COMMAND_RUN, "run", run_main, "run [options] [MODEL]",
        "generates without the scope: text to stdout, a summary to stderr" MODEL, ONE_MODEL, .config = true),
    ROW(COMMAND_REPLAY, "replay", replay_main, "replay [options] TRACE", "shows a saved trace in the scope",
        "one trace is enough", .takes_operand = true, .takes = TAKES_FOLDER, .config = true),
    ROW(COMMAND_CONNECT, "connect", connect_main, "connect [options] URL",
        "shows a server as it generates: a llama-server, an SGLang server, or a vLLM server with\n"
        "--per-request-spec-decode-metrics detailed",
        "one server is enough", .takes_operand = true, .config = true),
    ROW(COMMAND_BENCH, "bench", bench_main, "bench [options] [MODEL]", "measures policies on the same prompts" MODEL,
        ONE_MODEL, .config = true),
    ROW(COMMAND_TUNE, "tune", tune_main, "tune [options] [MODEL]",
        "finds the fastest setting: policies and knobs race over prompts; others measure the winner" MODEL, ONE_MODEL,
        .config = true, .after = "Ctrl-C ends it with the result so far."),
    ROW(COMMAND_SCORE, "score", score_main, "score --texts FILE [options] [MODEL]",
        "forecasts what each drafter gains on finished conversations, without generating" MODEL, ONE_MODEL,
        .config = true,
        .after = "Answers are read in parts of at most 1024 tokens, so the memory does not depend on their length.\n"
                 "Ctrl-C ends it with the result so far."),
    ROW(COMMAND_INFO, "info", info_main, "info [options] [MODEL]", "describes a model" MODEL, ONE_MODEL),
    ROW(COMMAND_MODELS, "models", models_main, "models",
        "lists the models on this machine, and which of them run: the bundled one, and those in the caches of\n"
        "Hugging Face, Ollama, LM Studio and llama.cpp",
        "it takes no arguments"),
    ROW(COMMAND_DOCTOR, "doctor", doctor_main, "doctor [options] [MODEL]",
        "checks what this machine has for the scope and for speed, and gives advice\n\nWith MODEL it prints what steps "
        "of the model cost here, and for each policy a\nforecast, with the reason where there is no gain.",
        ONE_MODEL, .after = "The exit status is 0 unless something that the program does would fail."),
    ROW(COMMAND_TOKENIZE, "tokenize", tokenize_main, "tokenize [options] [MODEL] < TEXT",
        "converts text on standard input to token ids, one on each line\n\nMODEL is a .gguf file, a Hugging Face "
        "folder, a tokenizer.json or a tokenizer.model\n(a vocabulary without weights suffices); " BUNDLED,
        ONE_MODEL),
    ROW(COMMAND_TRAIN, "train", train_main, "train heads|eagle|accept|profile [options]",
        "trains what policies use; heads, eagle, accept and profile have --help",
        "train what? heads, eagle, accept or profile", .words = trained, .n_words = sizeof trained / sizeof *trained),
    ROW(COMMAND_TRAIN_HEADS, "train heads", train_heads_main,
        "train heads --text FILE | --prompts FILE --out FILE [options]",
        "trains heads for layers before the last, for better predictions; --heads FILE uses them", ONE_TOO_MANY,
        .after = "Ctrl-C ends training; the best heads so far are in the file."),
    ROW(COMMAND_TRAIN_EAGLE, "train eagle", train_eagle_main,
        "train eagle --text FILE | --prompts FILE --out PATH [options]",
        "trains an EAGLE-3 head, which drafts from hidden states (policy eagle); --draft FILE uses it", ONE_TOO_MANY,
        .after = "Ctrl-C ends training; the best head so far is in the file."),
    ROW(COMMAND_TRAIN_ACCEPT, "train accept", train_accept_main,
        "train accept --draft MODEL --text FILE --out FILE [options]",
        "trains a head that predicts whether a draft model's candidate is accepted (SpecDec++)", ONE_TOO_MANY,
        .after = "Ctrl-C ends training; the best head so far is in the file."),
    ROW(COMMAND_TRAIN_PROFILE, "train profile", train_profile_main,
        "train profile --draft MODEL --companion MODEL --text FILE --out FILE [options]",
        "measures how likely drafts are accepted, given a companion model (Speculative Verification)", ONE_TOO_MANY,
        .after = "Ctrl-C ends it; the profile of the answers so far is written."),
    ROW(COMMAND_PLOT, "plot", plot_main, "plot TRACE... KIND -o FILE [options]",
        "draws a figure of saved traces, of bench --csv or of score --json, as SVG, PDF or PNG\n\nKIND is",
        "too many inputs; 31 are possible", .takes_operand = true, .several = true, .takes = TAKES_FILE,
        .words = figures, .n_words = sizeof figures / sizeof *figures, .word_what = figure_kind_what),
    ROW(COMMAND_DIFF, "diff", diff_main, "diff TRACE [TRACE] [options]",
        "compares two saved runs, or the two settings of one trace of --versus: settings, measures with their\n"
        "standard errors, where the texts differ, which run was faster where",
        "two traces are compared", .takes_operand = true, .several = true, .takes = TAKES_FOLDER, .config = true),
    ROW(COMMAND_VERDICT, "verdict", verdict_main, "verdict --server URL --policy NAME [options] [MODEL]",
        "generates the same prompts here and on a server, greedily, and compares the accepted drafts" MODEL, ONE_MODEL,
        .after = "The exit status is 0 if the drafts are the same within sampling error, 1 if fewer or more are\n"
                 "accepted there, and 3 if drafts cannot be compared: texts part first, or prompts are too few."),
    ROW(COMMAND_COMPLETIONS, "completions", completions_main, "completions bash|zsh|fish",
        "prints completions for a shell", "one shell at a time", .takes_operand = true, .words = shells,
        .n_words = sizeof shells / sizeof *shells),
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

const struct command_row *
command_named(int argc, char **argv, int *words)
{
    const struct command_row *best = command_row(COMMAND_SCOPE);
    *words = 0;
    for (size_t i = 0; i < n_command_rows; i++) {
        const int n = words_of(&command_rows[i], argc, argv);
        if (n > *words) {
            *words = n;
            best = &command_rows[i];
        }
    }
    return best;
}
