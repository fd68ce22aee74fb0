#include "cli/options/option_table.h"

#include <float.h>

#include "cli/options/chat_options.h"
#include "cli/options/option_setters.h"
#include "cli/options/policy_list.h"
#include "cli/options/preset_option.h"

#define GENERATES (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH)
#define SCREEN    (COMMAND_SCOPE | COMMAND_REPLAY | COMMAND_DIFF)
#define TRAINS    (COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE)

#define SIBLING(role) "NAME-" role "-TYPE.gguf beside NAME-TYPE.gguf, if it is there"
#define SELF                                                                                                           \
    "'self:E' stands for the model's own layers 1 to E; not for `info`. Without the option the file is looked for "    \
    "where something needs it, and passed over where its vocabulary is another one."

#define GOES_ON                                                                                                        \
    "What was collected stands in FILE.partial until the end: after an interruption the same command goes on from "    \
    "there."

#define REPLACES "An existing file is replaced only if it is empty or already holds such results."

#define MEMBER(m)      .at = offsetof(struct options, m), .size = sizeof((struct options *)0)->m
#define COUNT(list)    (sizeof list / sizeof *list)
#define WORDS(list, n) .words = list, .n_words = n
/* Name, letter, argument, commands, member or function, bounds, help; then what else there is. */
#define ROW(t, n, l, a, c, ...)                                                                                        \
    {                                                                                                                  \
        .type = t, .name = n, .letter = l, .argument = a, .commands = c, __VA_ARGS__                                   \
    }
#define SWITCH(n, l, c, m, ...)    ROW(OPTION_SWITCH, n, l, NULL, c, MEMBER(m), .help = __VA_ARGS__)
#define SAY(n, l, c, f, ...)       ROW(OPTION_SAY, n, l, NULL, c, .say = f, .help = __VA_ARGS__)
#define CALL(n, l, a, c, f, ...)   ROW(OPTION_CALL, n, l, a, c, .set = f, .help = __VA_ARGS__)
#define TEXT(n, l, a, c, m, ...)   ROW(OPTION_TEXT, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define LIST(n, l, a, c, m, ...)   ROW(OPTION_LIST, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define CHOICE(n, l, a, c, m, ...) ROW(OPTION_CHOICE, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define WHOLE(n, l, a, c, m, from, to, ...)                                                                            \
    ROW(OPTION_WHOLE, n, l, a, c, MEMBER(m), .least = from, .most = to, .help = __VA_ARGS__)
#define REAL(n, l, a, c, m, from, to, ...)                                                                             \
    ROW(OPTION_REAL, n, l, a, c, MEMBER(m), .low = from, .high = to, .help = __VA_ARGS__)

const char default_policy[] = "specbound";
const char default_prompt[] = "A baker sent Ruby to market with a leather fork. \"Bring me an oven for it,\" said the "
                              "baker, \"and do not stop on the way.\" In the park she met";

static const char *const backend_words[] = {"auto", "cpu", "cuda", "check"};
static const char *const isa_words[] = {"auto", "reference", "avx2", "avx512", "avx512vnni", "amx", "neon", "neondot"};
static const char *const prefill_words[] = {"rows", "blas"};
static const char *const quantize_words[] = {"none", "q8_0"};
static const char *const heads_words[] = {"none"};
static const char *const helper_words[] = {"none"};
static const char *const theme_words[] = {"dark", "light", "cividis", "mono"};
static const char *const measure_words[] = {
    "tok_per_s", "speedup",      "modelled_speedup", "tokens_per_round", "acceptance_rate", "per_token_acceptance",
    "etpl",      "discard_rate", "verification_rate"};
static const char *const trace_probe_words[] = {"all", "policy", "off"};
static const char *const kind_words[] = {"affine", "full"};

static void
say_version(enum command command)
{
    (void)command;
    puts("specscope " SPECSCOPE_VERSION);
}

static void
say_policies(enum command command)
{
    (void)command;
    policies_list();
}

static void
say_presets(enum command command)
{
    (void)command;
    presets_list();
}

const struct option_row option_rows[] = {
    /* ---- what is generated ---- */
    CALL("prompt", 'p', "TEXT", GENERATES, set_prompt, "what to go on from"),
    CALL("file", 'f', "FILE", GENERATES, set_prompt_file, "the prompt from a file; - is stdin", .takes = TAKES_FILE),
    TEXT("prompts", 0, "FILE.jsonl", GENERATES, prompts_file,
         "prompts from Spec-Bench's `turns`, the first of each line (the scope takes them in turn)",
         .takes = TAKES_FILE),
    CALL("batch", 0, "N|FILE.jsonl", GENERATES, set_batch,
         "so many sequences at a time, drafted in step and verified together; or 8, on a file's prompts",
         .takes = TAKES_FILE,
         .more =
             "With --prompts they are its prompts: when one ends the next takes its place. Without, all go on from the "
             "one prompt. The first sequence draws with --seed, each other one with a seed made from --seed and its "
             "number, which --json names; alone with that seed it has the same text (sampled under `sv`, and under "
             "`swift` behind another one of which it learned: as likely)."),
    SWITCH("chat", 0, GENERATES, chat.on, "prompts are turns of a dialogue, as the model's chat template writes them",
           .more = "So are those typed later, up to where the model answers. The template is Jinja and is run as "
                   "transformers runs it; what it can't be run for is said in a line, with the template's own. A model "
                   "that comes without one has its prompts as they are, and a line says so. The options below bring "
                   "--chat with them."),
    TEXT("system", 0, "TEXT", GENERATES, chat.system, "what the dialogue is told first",
         .without = "what the template says, if anything"),
    CALL("chat-var", 0, "NAME=VALUE", GENERATES, set_chat_variable, "a variable of the chat template", .repeats = true,
         .more =
             "Such as `enable_thinking=false`, `reasoning_effort=low`, `date_string=\"26 Jul 2024\"`: JSON, or what "
             "isn't JSON as a text. `messages`, a list of objects with `role` and `content`, is what was said before: "
             "prompts are "
             "the next turn."),
    CALL("tools", 0, "FILE.json", GENERATES, set_tools, "tools that the model is told of: a JSON list",
         .takes = TAKES_FILE),
    CALL("chat-template", 0, "NAME|FILE.jinja", GENERATES, set_chat_template,
         "another one of the model's chat templates, or a file", .takes = TAKES_FILE,
         .without = "`tool_use` with --tools where the model has it, else `default`",
         .more = "A file has a `/` or a `.` in its name. `specscope info` lists a model's."),
    SWITCH(
        "chat-special", 0, GENERATES, chat.special, "recognise control tokens written in messages",
        .more =
            "Without it the text of messages (--system, prompts, `messages`) is plain text: `</s>` in a prompt cannot "
            "end a turn. Without --chat prompts are read as `tokenize` reads them: control tokens count."),
    CALL("chat-date", 0, "YYYY-MM-DD[ HH:MM]", GENERATES, set_chat_date, "the day that a chat template takes for today",
         .without = "today"),
    WHOLE("tokens", 'n', "N", GENERATES, tokens, 0, UINT32_MAX / 2, "tokens to generate; 0: to the end of the context",
          .def = "256"),
    WHOLE("ctx", 'c', "N", GENERATES, ctx, 0, 1u << 24, "context in tokens", .without = "the model's own"),
    /* ---- how ---- */
    CALL("policy", 0, "NAME", COMMAND_SCOPE | COMMAND_RUN, set_policy, "how to draft; --list-policies shows all",
         .takes = TAKES_POLICY, .without = default_policy),
    CALL("policy", 0, "NAME", COMMAND_BENCH, set_policy, "a policy to measure, beside ar", .repeats = true,
         .takes = TAKES_POLICY, .without = "all"),
    CALL("set", 0, "KNOB=VALUE", GENERATES, set_knob, "set a knob of the policy", .repeats = true, .takes = TAKES_KNOB),
    TEXT("versus", 0, "POLICY [KNOB=VALUE ...]", COMMAND_SCOPE | COMMAND_RUN, versus,
         "a second setting beside the first: the same prompt under both, in step by token", .takes = TAKES_POLICY,
         .more = "They take turns round by round on one engine, so that their times are fair. Knobs that are not named "
                 "are as in the first; 'head=lens' or 'head=trained' among them chooses the second one's head. `run` "
                 "writes the text once and compares the two on standard error."),
    CALL("preset", 0, "NAME", GENERATES, set_preset,
         "the policy, knobs, head and sampling that were saved under a name",
         .more =
             "In the scope `:preset save NAME` saves them, in `$XDG_CONFIG_HOME/specscope/presets/NAME.json`. Options "
             "behind it count more."),
    TEXT("policy-state", 0, "DIR", GENERATES, policy_state,
         "where policies keep what they learn about a model, for the next run", .takes = TAKES_FOLDER,
         .more = "For `swift` that is its search: it goes on where it stood."),
    REAL("temp", 0, "T", GENERATES, sampling.temperature, 0, 100, "sampling temperature; 0 is greedy", .def = "0"),
    WHOLE("top-k", 0, "K", GENERATES, sampling.top_k, 0, 1u << 24, "sample among the K likeliest; 0: all", .def = "0"),
    REAL("top-p", 0, "P", GENERATES, sampling.top_p, 1e-6, 1, "sample from the nucleus of mass P", .def = "1"),
    SWITCH("ignore-eos", 0, GENERATES, ignore_eos, "go on after an end of sequence"),
    /* ---- on what ---- */
    SWITCH("exact", 0, GENERATES, backend_options.exact, "F32 weights, activations and KV: slow, oracle-grade"),
    TEXT("isa", 0, "NAME", GENERATES, backend_options.isa, "force a CPU instruction set",
         WORDS(isa_words, COUNT(isa_words)), .without = "the best that is here"),
    WHOLE("gpu", 0, "N", GENERATES, backend_options.gpu, 0, 1024, "which GPU, numbered from 0",
          .without = "the first that will do"),
    TEXT(
        "synth", 0, "SHAPE[:TYPE],K,A", GENERATES | COMMAND_INFO, synth,
        "no file, but random weights in a real model's shape, of whose drafts from layer K a share A is accepted",
        .takes = TAKES_SHAPE,
        .more =
            "A is from 0.3 to 0.97: the layers after K change little of what is said. For measuring what speculation "
            "gains at real sizes; what is written is not language. Types: 'f32', 'f16', 'bf16', 'q8_0' (the default)."),
    LIST("lora", 0, "FILE[:SCALE]", GENERATES | COMMAND_INFO | TRAINS, lora,
         "an adapter (LoRA) that is merged into the model when it is loaded", .repeats = true, .model = true,
         .takes = TAKES_FILE,
         .more =
             "A folder as PEFT writes it, the safetensors file in it, or a GGUF file, whatever the model's own format. "
             "What is added is scaled by SCALE, from -100 to 100. Merged matrices in blocks are held as F16. Files of "
             "trained heads and profiles of the model alone don't go with it then."),
    CHOICE("quantize", 0, "TYPE", GENERATES | COMMAND_INFO, quantize,
           "what weights in F32, F16 or BF16 become when they are loaded", WORDS(quantize_words, COUNT(quantize_words)),
           .def = "none"),
    TEXT(
        "backend", 0, "NAME", GENERATES | TRAINS, backend, "what computes", WORDS(backend_words, COUNT(backend_words)),
        .without = "a GPU if there is one",
        .more =
            "With 'auto' an NVIDIA GPU computes if there is one that will do, the plug-in `specscope-cuda.so` is there "
            "and the model fits; else the CPU, and a line says why. Without the option that line is said only where "
            "something is there that should have worked. 'check' is the CPU with an accelerator's manners, for tests."),
    CALL("prefill", 0, "WAY", GENERATES, set_prefill, "how long prompts are read on a GPU",
         WORDS(prefill_words, COUNT(prefill_words)), .def = "rows",
         .more =
             "As 'rows' like all others, or those of 256 tokens and more by 'blas': NVIDIA's library, through "
             "`specscope-cublas.so`. The rows of such a prompt are then rounded in another way, the same under every "
             "policy; what is generated from them takes the same way as ever."),
    WHOLE("threads", 't', "N", GENERATES | TRAINS, backend_options.threads, 0, 1024, "CPU threads, always that many",
          .without = "as many as help"),
    WHOLE("seed", 0, "N", GENERATES | TRAINS, seed, 0, UINT64_MAX, "of the random numbers", .def = "1"),
    TEXT("draft", 0, "MODEL", GENERATES | COMMAND_INFO | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE,
         helpers[HELPER_DRAFT], "a smaller model with the same vocabulary, which drafts; or self:E", .model = true,
         .takes = TAKES_FILE, WORDS(helper_words, COUNT(helper_words)), .without = SIBLING("draft"), .more = SELF),
    TEXT("companion", 0, "MODEL", GENERATES | COMMAND_INFO | COMMAND_TRAIN_PROFILE, helpers[HELPER_COMPANION],
         "a third one, whose opinion of drafts is asked; or self:E", .model = true, .takes = TAKES_FILE,
         WORDS(helper_words, COUNT(helper_words)), .without = SIBLING("companion"), .more = SELF),
    TEXT("accept", 0, "FILE", GENERATES, accept_head,
         "the draft model's acceptance head, of `specscope train accept`, for `specdecpp`", .takes = TAKES_FILE,
         WORDS(heads_words, COUNT(heads_words)), .without = "DRAFT.accept.safetensors, if it is there",
         .more = "That is the file beside the draft model `DRAFT.gguf`. A head of another draft model is refused."),
    TEXT("profile", 0, "FILE", GENERATES, profile_file, "how likely drafts are accepted, of `specscope train profile`",
         .takes = TAKES_FILE, WORDS(heads_words, COUNT(heads_words)), .without = "MODEL.profile.json, if it is there",
         .more = "For `sv`. A profile is of one target, draft and companion, and of one temperature; that of other "
                 "models is refused."),
    /* ---- layers and heads ---- */
    CHOICE("probe", 0, "MODE", COMMAND_SCOPE, probe, "layers shown", WORDS(probe_mode_names, PROBE_MODES), .def = "all",
           .more = "'policy' shows only what the policy looks at anyway."),
    CHOICE("probe", 0, "MODE", COMMAND_RUN, probe, "layers looked at, for the trace",
           WORDS(probe_mode_names, PROBE_MODES), .def = "policy"),
    CHOICE("probe", 0, "MODE", COMMAND_BENCH, probe, "layers looked at besides", WORDS(probe_mode_names, PROBE_MODES),
           .def = "off"),
    TEXT("heads", 0, "FILE", GENERATES, heads, "trained heads, of `specscope train heads`", .takes = TAKES_FILE,
         WORDS(heads_words, COUNT(heads_words)), .without = "MODEL.heads.safetensors, if it is there",
         .more =
             "That is the file beside `MODEL.gguf`, or beside the folder `MODEL`. Heads of another model are refused."),
    CALL("head", 0, "MODE", COMMAND_SCOPE | COMMAND_RUN, set_head, "what looks at layers",
         WORDS(head_mode_names, HEAD_MODES), .without = "policy",
         .more = "The model's own head through the 'lens', the 'trained' one, or, with 'policy', what the policy's "
                 "paper has, which is the trained one for `specbound` and the lens for all others. Verification always "
                 "goes by the model's own head, so the text is the same."),
    CALL("head", 0, "MODE", COMMAND_BENCH, set_head, "what looks at layers", .repeats = true,
         WORDS(head_mode_names, HEAD_MODES), .without = "policy"),
    /* ---- run, the scope, replay ---- */
    TEXT("trace", 0, "DIR", COMMAND_SCOPE | COMMAND_RUN, trace, "write a trace into a new folder",
         .takes = TAKES_FOLDER),
    CALL("trace-max", 0, "SIZE", COMMAND_SCOPE | COMMAND_RUN, set_trace_max,
         "bytes of a trace at most, as 200M: it ends there, the run goes on", .without = "as much as the disk has",
         .more =
             "K, M and G are 2^10, 2^20 and 2^30 bytes. It ends behind a whole round and replays up to there; so does "
             "what the scope keeps for `:export`."),
    CALL("trace-probe", 0, "WHICH|N", COMMAND_SCOPE | COMMAND_RUN, set_trace_probe,
         "of the layers looked at, which a trace has", WORDS(trace_probe_words, COUNT(trace_probe_words)), .def = "all",
         .more = "'policy': those that the policy or the verification asked. A number N: those besides, in every Nth "
                 "round. 'off': none. Layers are most of a trace's bytes."),
    TEXT("theme", 0, "NAME", SCREEN, theme, "colours", .takes = TAKES_FILE, WORDS(theme_words, COUNT(theme_words))),
    TEXT("script", 0, "FILE", SCREEN, script, "run a file of ':' commands; a live run then starts paused",
         .takes = TAKES_FILE),
    REAL("pace", 0, "N", COMMAND_SCOPE, pace, 0, 1e6, "tokens a second at most; 0: as fast as it goes",
         .without = "bundled model: 25; else 0"),
    SWITCH("follow", 0, COMMAND_REPLAY, follow, "as another process writes it",
           .more = "As `tail -F`: waits for TRACE/run.json, then shows what is there and what comes, round by round, "
                   "until the "
                   "trace is closed. The writer need not be specscope: docs/traces.md says what a trace is."),
    SWITCH("once", 0, COMMAND_SCOPE, once, "stay at the end of a text",
           .more = "Without, the next prompt of the list, --prompts or those that come with the program, starts five "
                   "seconds later unless a key is pressed; not in a batch, with --script or with --quit-at-end."),
    SWITCH("quit-at-end", 0, COMMAND_SCOPE, quit_at_end, "leave when the run is over"),
    TEXT("json", 0, "FILE", COMMAND_RUN | COMMAND_BENCH | COMMAND_DIFF, json, "results as JSON; - is stdout",
         .takes = TAKES_FILE, .more = REPLACES),
    /* ---- bench ---- */
    TEXT("csv", 0, "FILE", COMMAND_BENCH, csv, "results as CSV, a line for each policy or point of a grid; - is stdout",
         .takes = TAKES_FILE, .more = REPLACES),
    LIST("grid", 0, "KNOB=a:b:step", COMMAND_BENCH, grid, "sweep a knob, or the product of several, and name the best",
         .repeats = true, .takes = TAKES_KNOB,
         .more = "Swept in every policy that has it; 1000 points at most. The table is sorted by speedup, and each "
                 "policy's best points by speedup and by eTPL are named."),
    WHOLE("repeat", 0, "N", COMMAND_BENCH, repeat, 1, 1000, "passes over the prompts, policies in turn", .def = "3"),
    SWITCH("steps", 0, COMMAND_BENCH, steps, "measure steps instead: rows together, probes against layers",
           .more = "Behind 64 rows, or near the end of a context of -c tokens."),
    SWITCH("speed", 0, COMMAND_BENCH, speed,
           "measure speed instead: loading, a prompt of 512 tokens, -n tokens one by one",
           .more = "Those are the three figures by which engines are compared. Decoding begins with an empty context."),
    /* ---- info ---- */
    WHOLE("ctx", 'c', "N", COMMAND_INFO, ctx, 1, 1u << 28, "memory of keys and values for a context of N tokens"),
    SWITCH("json", 0, COMMAND_INFO | COMMAND_DOCTOR, as_json, "as JSON"),
    /* ---- tokenize ---- */
    SWITCH("decode", 0, COMMAND_TOKENIZE, tokenize.decode, "ids to text instead"),
    SWITCH("no-special", 0, COMMAND_TOKENIZE, tokenize.no_special,
           "encode control tokens written in the text as plain text"),
    SWITCH("no-bos", 0, COMMAND_TOKENIZE, tokenize.no_bos, "without the token that begins a sequence"),
    SWITCH("no-eos", 0, COMMAND_TOKENIZE, tokenize.no_eos,
           "without the token that ends a sequence, where the model wants one"),
    SWITCH("pieces", 0, COMMAND_TOKENIZE, tokenize.pieces, "the text of each token beside its id"),
    /* ---- train ---- */
    TEXT("model", 'm', "MODEL", TRAINS, model, "a .gguf file or a Hugging Face folder", .model = true,
         .takes = TAKES_FILE, .without = "the bundled model"),
    TEXT("text", 0, "FILE", COMMAND_TRAIN_HEADS, train.text,
         "plain text to train on, 64 MiB at most; every 16th window is held out", .takes = TAKES_FILE),
    TEXT("text", 0, "FILE", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, train.text,
         "plain text that prompts are cut out of, 64 MiB at most", .takes = TAKES_FILE),
    TEXT("prompts", 0, "FILE.jsonl", COMMAND_TRAIN_PROFILE, prompts_file,
         "prompts from Spec-Bench's `turns` instead, the first of each line", .takes = TAKES_FILE),
    TEXT("out", 0, "FILE", COMMAND_TRAIN_HEADS, train.out, "the safetensors file to write", .takes = TAKES_FILE,
         .more = "Where training is stands in FILE.state until the end, four times as large: after an interruption the "
                 "same command goes on from there, and ends with the same heads."),
    TEXT("out", 0, "FILE", COMMAND_TRAIN_ACCEPT, train.out, "the safetensors file to write", .takes = TAKES_FILE,
         .more = GOES_ON " Where training is stands in FILE.state; with other candidates or another schedule it is "
                         "refused, and can be removed."),
    TEXT("out", 0, "FILE", COMMAND_TRAIN_PROFILE, train.out, "the JSON file to write", .takes = TAKES_FILE,
         .more = GOES_ON),
    CALL("kind", 0, "KIND", COMMAND_TRAIN_HEADS, set_head_kind,
         "h + A h + b before the model's own head, or a head of its own", WORDS(kind_words, COUNT(kind_words)),
         .def = "affine"),
    WHOLE("tokens", 0, "N", COMMAND_TRAIN_HEADS, train.tokens, 1, UINT64_C(1) << 40,
          "tokens to train on, repeating the text as needed", .def = "200000"),
    WHOLE("tokens", 0, "N", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, train.tokens, 1, UINT64_C(1) << 30,
          "tokens that the model answers with, in all", .def = "20000"),
    REAL("rate", 0, "R", COMMAND_TRAIN_HEADS, train.rate, DBL_MIN, 1, "of the optimizer, falling to nothing",
         .def = "0.0003"),
    REAL("rate", 0, "R", COMMAND_TRAIN_ACCEPT, train.rate, DBL_MIN, 1,
         "of the optimizer, falling to nothing along a cosine", .def = "0.001"),
    WHOLE("batch", 0, "N", COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT, train.batch, 1, 1 << 16, "tokens in a step",
          .def = "256"),
    WHOLE("window", 0, "N", COMMAND_TRAIN_HEADS, train.window, 8, 1 << 20, "tokens that the model reads at a time",
          .without = "512, or its context"),
    WHOLE("prompt-tokens", 0, "N", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.prompt, 2, 1 << 16,
          "tokens of a prompt, at most", .def = "48"),
    WHOLE("response", 0, "N", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.response, 1, 1 << 16,
          "tokens of an answer, at most", .def = "64"),
    WHOLE("at-once", 0, "N", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.at_once, 1, 64,
          "answers that share a pass over the weights", .def = "8",
          .more = "Each is the same whatever shares its passes: more of them are faster and take more memory."),
    REAL("temp", 0, "T", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.sampling.temperature, 0, 100,
         "sampling temperature of answers and drafts; 0 is greedy", .def = "1"),
    WHOLE("top-k", 0, "K", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.sampling.top_k, 0, 1u << 24,
          "answers and drafts are among the K likeliest tokens; 0: all", .def = "0"),
    REAL("top-p", 0, "P", COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, answers.sampling.top_p, 1e-6, 1,
         "and in the nucleus of mass P", .def = "1"),
    REAL("mixing", 0, "R", COMMAND_TRAIN_ACCEPT, accept.mixing, 0, 0.99,
         "share of the model's own tokens among the candidates that the draft model reads", .def = "0.15"),
    REAL("reject-weight", 0, "W", COMMAND_TRAIN_ACCEPT, accept.w_reject, 0.01, 1000,
         "what a rejection weighs in the loss", .def = "6"),
    CALL("blocks", 0, "D,D,...", COMMAND_TRAIN_ACCEPT, set_blocks,
         "residual blocks of the head; of several the best head is written", .def = "3"),
    WHOLE("passes", 0, "N", COMMAND_TRAIN_ACCEPT, accept.passes, 1, 10000, "times that each candidate is learnt from",
          .def = "3"),
    WHOLE("drafts", 0, "N", COMMAND_TRAIN_PROFILE, profile.drafts, 1, 32, "drafts of a round", .def = "5"),
    WHOLE("similarity-bins", 0, "N", COMMAND_TRAIN_PROFILE, profile.s_bins, 1, 32,
          "of the similarity of draft and companion, at most", .def = "16"),
    WHOLE("acceptance-bins", 0, "N", COMMAND_TRAIN_PROFILE, profile.a_bins, 1, 32,
          "of the companion's acceptance of a draft, at most", .def = "12"),
    /* ---- plot ---- */
    TEXT("out", 'o', "FILE", COMMAND_PLOT, plot.out, "the figure's file, which ends in .svg, .pdf or .png",
         .takes = TAKES_FILE),
    TEXT("width", 0, "LENGTH", COMMAND_PLOT, plot.width, "how wide it is, in mm, cm, in or pt: 85mm is a column's",
         .without = "as the kind wants it"),
    WHOLE("from", 0, "N", COMMAND_PLOT, plot.from, 0, UINT32_MAX, "the first position (layers) or round",
          .without = "the first"),
    WHOLE("to", 0, "N", COMMAND_PLOT, plot.to, 0, UINT32_MAX, "the last one", .without = "the last that has room"),
    WHOLE("run", 0, "N", COMMAND_PLOT | COMMAND_DIFF, plot.run, 1, UINT32_MAX, "which run of a trace with several",
          .without = "the last with a round"),
    WHOLE("seq", 0, "N", COMMAND_PLOT, plot.seq, 1, UINT32_MAX, "one sequence of a batch, from 1",
          .without = "the first, or all that can be counted together"),
    WHOLE("seq", 0, "N", COMMAND_DIFF, plot.seq, 1, UINT32_MAX, "one sequence of a batch, from 1, in both",
          .without = "the first; of one trace with two settings, both"),
    SWITCH("scope", 0, COMMAND_DIFF, scope, "beside each other on the screen, in step by token; no table",
           .more =
               "The runs must have gone on from the same prompt, by the same model. Both are replayed at once: texts, "
               "rounds and measures left and right, who was faster where, and where the texts part."),
    TEXT("measure", 0, "NAME", COMMAND_PLOT, plot.measure, "what a grid shows",
         WORDS(measure_words, COUNT(measure_words)), .without = "speedup"),
    TEXT("axes", 0, "X,Y", COMMAND_PLOT, plot.axes, "which two measures a pareto shows",
         .without = "verification_rate,discard_rate",
         .more = "Of those that --measure knows, for example acceptance_rate,speedup."),
    TEXT("caption", 0, "TEXT", COMMAND_PLOT, plot.caption,
         "in the place of the line with model, policy, knobs, machine"),
    /* ---- all ---- */
    SAY("list-policies", 0, GENERATES, say_policies, "names, papers and knobs"),
    SAY("list-presets", 0, GENERATES, say_presets, "settings that were saved under a name"),
    SAY("help", 'h', COMMAND_ALL, options_help, "this"),
    SAY("version", 'V', COMMAND_ALL, say_version, "the version"),
};
const size_t n_option_rows = sizeof option_rows / sizeof *option_rows;
