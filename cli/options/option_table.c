#include "cli/options/option_table.h"

#include <float.h>

#include "kernels/cpu/isa.h"

#define PROMPTED  (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH)
#define GENERATES (PROMPTED | COMMAND_TUNE | COMMAND_VERDICT)
#define OPENS     (GENERATES | COMMAND_SCORE) /* a model, with its drafters */
#define LIVE      (COMMAND_SCOPE | COMMAND_CONNECT)
#define SCREEN    (LIVE | COMMAND_REPLAY | COMMAND_DIFF)
#define TRACED    (LIVE | COMMAND_RUN | COMMAND_TUNE)
#define SERVED    (COMMAND_RUN | COMMAND_CONNECT | COMMAND_TUNE | COMMAND_VERDICT) /* commands that may use a server */
#define TRAINS    (COMMAND_TRAIN_HEADS | COMMAND_TRAIN_EAGLE | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE)
#define ANSWERED  (COMMAND_TRAIN_HEADS | COMMAND_TRAIN_EAGLE)    /* the model answers prompts, as chat messages */
#define DRAFTED   (COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE) /* and an auxiliary model drafts its answers */

#define SIBLING(role) "NAME-" role "-TYPE.gguf"
#define SELF(file)                                                                                                     \
    "It has the model's vocabulary. 'self:E' is the model's own layers 1 to E; not for `info`. Without the "           \
    "option `" file "` beside `NAME-TYPE.gguf` is used where something needs it, unless it is missing or its "         \
    "vocabulary is another one."

#define REPLACES "An existing file is replaced only if it is empty or already holds such results."

#define MEMBER(m)      .at = offsetof(struct options, m), .size = sizeof((struct options *)0)->m
#define COUNT(list)    (sizeof list / sizeof *list)
#define WORDS(list, n) .words = list, .n_words = n
/* Name, letter, argument, commands, member or function, bounds, help; then other members. */
#define ROW(t, n, l, a, c, ...)                                                                                        \
    {                                                                                                                  \
        .type = t, .name = n, .letter = l, .argument = a, .commands = c, __VA_ARGS__                                   \
    }
#define SWITCH(n, l, c, m, ...)    ROW(OPTION_SWITCH, n, l, NULL, c, MEMBER(m), .help = __VA_ARGS__)
#define PRINT(n, l, c, f, ...)     ROW(OPTION_PRINT, n, l, NULL, c, .print = f, .help = __VA_ARGS__)
#define CALL(n, l, a, c, f, ...)   ROW(OPTION_CALL, n, l, a, c, .set = f, .help = __VA_ARGS__)
#define TEXT(n, l, a, c, m, ...)   ROW(OPTION_TEXT, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define LIST(n, l, a, c, m, ...)   ROW(OPTION_LIST, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define CHOICE(n, l, a, c, m, ...) ROW(OPTION_CHOICE, n, l, a, c, MEMBER(m), .help = __VA_ARGS__)
#define WHOLE(n, l, a, c, m, from, to, ...)                                                                            \
    ROW(OPTION_WHOLE, n, l, a, c, MEMBER(m), .least = from, .most = to, .help = __VA_ARGS__)
#define REAL(n, l, a, c, m, from, to, ...)                                                                             \
    ROW(OPTION_REAL, n, l, a, c, MEMBER(m), .low = from, .high = to, .help = __VA_ARGS__)

const char knobs_policy[] = "specbound";
const char default_prompt[] = "A baker sent Ruby to market with a leather fork. \"Bring me an oven for it,\" said the "
                              "baker, \"and do not stop on the way.\" In the park she met";

static const char *const backend_words[] = {"auto", "cpu", "cuda"};
#define WORD(name) #name,
static const char *const isa_words[] = {"auto", CPU_ISAS_X86(WORD) CPU_ISAS_ARM(WORD) "reference"};
static const char *const quantize_words[] = {"none", "q8_0"};
static const char *const heads_words[] = {"none"};
static const char *const aux_words[] = {"none"};
static const char *const theme_words[] = {"dark", "light", "cividis", "mono"};
static const char *const measure_words[] = {
    "tok_per_s", "speedup",      "modelled_speedup", "tokens_per_round", "acceptance_rate", "per_token_acceptance",
    "etpl",      "discard_rate", "verification_rate"};
static const char *const trace_probe_words[] = {"all", "policy", "off"};
static const char *const server_words[] = {"llama-server", "vllm", "sglang"};
static const char *const kind_words[] = {"affine", "full"};

static void
print_version(enum command command)
{
    (void)command;
    puts("specscope " SPECSCOPE_VERSION);
}

const struct option_row option_rows[] = {
    /* ---- prompt and length ---- */
    CALL("prompt", 'p', "TEXT", PROMPTED | COMMAND_CONNECT, set_prompt, "prompt to continue"),
    CALL("file", 'f', "FILE", PROMPTED | COMMAND_CONNECT, set_prompt_file, "file with the prompt; - is stdin",
         .takes = TAKES_FILE),
    TEXT("prompts", 0, "FILE.jsonl", GENERATES | COMMAND_CONNECT, prompts_file,
         "prompts in Spec-Bench's form, one from each line", .takes = TAKES_FILE,
         .more = "A prompt is the first of a line's `turns`. The scope runs the prompts one after the other."),
    CALL("batch", 0, "N|FILE.jsonl", PROMPTED, set_batch, "number of sequences at a time, or prompts for 8",
         .takes = TAKES_FILE,
         .more = "The sequences draft in step and are verified together. With --prompts they continue its prompts: "
                 "when one ends the next takes its place. Without it, all continue the one prompt. The first sequence "
                 "draws with --seed, each other one with a seed made from --seed and its number, which --json "
                 "contains. A run with that seed alone gives the same text (sampled under `sv`, and under `swift` "
                 "after a sequence that it learned from: a text of the same distribution)."),
    SWITCH("chat", 0, OPENS | COMMAND_CONNECT, chat.on, "prompts as chat messages",
           .more = "Prompts are messages of a dialogue in the form of the model's chat template, up to where the model "
                   "answers; so are prompts that are typed later, which continue the dialogue. The template is Jinja "
                   "and runs as in transformers. If it fails, a line gives the reason, or the template's own message. "
                   "A model without a template gets its prompts unchanged, and a line reports this. `tune` and "
                   "`score` imply --chat if the model has a template, and so do the options below."),
    TEXT("system", 0, "TEXT", OPENS | COMMAND_CONNECT | ANSWERED, chat.system, "system message",
         .more = "Without it, the template's own system message is used, if it has one."),
    CALL("chat-var", 0, "NAME=VALUE", OPENS | ANSWERED, set_chat_variable, "chat variable", .repeats = true,
         .more = "A variable of the chat template, such as `enable_thinking=false`, `reasoning_effort=low`, "
                 "`date_string=\"26 Jul 2024\"`. The value is JSON, or else a text. `messages`, a list of objects with "
                 "`role` and `content`, is the dialogue before the prompts."),
    CALL("tools", 0, "FILE.json", OPENS, set_tools, "JSON list of tools", .takes = TAKES_FILE),
    CALL("chat-template", 0, "NAME|FILE", OPENS | ANSWERED, set_chat_template,
         "chat template, by name or as a Jinja file (default)", .takes = TAKES_FILE,
         .more = "A file has a `/` or a `.` in its name. `specscope info` lists a model's templates. Without the "
                 "option the template is `tool_use` with --tools where the model has it, else `default`."),
    SWITCH("chat-special", 0, OPENS, chat.special, "control tokens in messages",
           .more = "Control tokens that messages contain are recognised. Without the option the text of messages "
                   "(--system, prompts, `messages`) is plain text: `</s>` in a prompt cannot end a turn. Without "
                   "--chat prompts are read as `tokenize` reads them: control tokens count."),
    CALL("chat-date", 0, "DATE", OPENS, set_chat_date, "date for templates", .without = "today",
         .more = "A date is `YYYY-MM-DD` or `YYYY-MM-DD HH:MM`."),
    WHOLE("tokens", 'n', "N", PROMPTED | COMMAND_CONNECT, tokens, 0, UINT32_MAX / 2,
          "tokens to generate; 0: up to the end of the context", .def = "256"),
    WHOLE("tokens", 'n', "N", COMMAND_TUNE | COMMAND_VERDICT, tokens, 2, UINT32_MAX / 2,
          "tokens to generate from each prompt", .def = "128"),
    WHOLE("ctx", 'c', "N", OPENS, ctx, 0, 1u << 24, "context length", .without = "model's"),
    /* ---- how ---- */
    CALL("policy", 0, "NAME", COMMAND_SCOPE | COMMAND_RUN, set_policy, "policy of --list-policies, or auto",
         .takes = TAKES_POLICY, .without = POLICY_AUTO,
         .more =
             "With 'auto' a draft model that was given drafts (`sd`, `eagle`, `dspark`, `dflash`); else a model "
             "with trained heads runs `specbound`, and one with layers for multi-token prediction `mtp`. Every other "
             "run begins with plain decoding. After 64 tokens the costs of steps are measured and layers are "
             "probed, and a policy that is clearly faster by forecast takes over; a line and the trace contain "
             "the choice. It needs greedy decoding of one sequence. With --set, and without --policy, the policy is "
             "`specbound`."),
    CALL("policy", 0, "NAME", COMMAND_VERDICT, set_policy, "the server's policy", .takes = TAKES_POLICY),
    CALL("policy", 0, "NAME", COMPARES, set_policy, "policy to measure besides ar", .repeats = true,
         .takes = TAKES_POLICY, .without = "all"),
    CALL("set", 0, "KNOB=VALUE", PROMPTED | COMMAND_VERDICT | COMMAND_SCORE, set_knob, "value of a knob of the policy",
         .repeats = true, .takes = TAKES_KNOB),
    TEXT("versus", 0, "SETTING", COMMAND_SCOPE | COMMAND_RUN, versus,
         "second setting, in step: 'POLICY KNOB=VALUE ...'", .takes = TAKES_POLICY,
         .more = "Both settings continue the same prompt, in step by token. They take turns round by round on one "
                 "engine, so that their times are comparable. Knobs that are not named are as in the first setting; "
                 "'head=lens' or 'head=trained' among them chooses the second one's head. `run` writes the text once "
                 "and compares the two on standard error."),
    CALL("preset", 0, "NAME", PROMPTED, set_preset, "saved settings, by name",
         .more = "A preset contains policy, knobs, head and sampling. In the scope `:preset save NAME` writes it to "
                 "`$XDG_CONFIG_HOME/specscope/presets/NAME.json`. Options after --preset override it."),
    REAL("temp", 0, "T", GENERATES | COMMAND_CONNECT, sampling.temperature, 0, 100, "sampling temperature; 0 is greedy",
         .def = "0"),
    WHOLE("top-k", 0, "K", GENERATES | COMMAND_CONNECT, sampling.top_k, 0, 1u << 24, "tokens kept; 0: all", .def = "0",
          .more = "Tokens are sampled from the K most likely ones."),
    REAL("top-p", 0, "P", GENERATES | COMMAND_CONNECT, sampling.top_p, 1e-6, 1, "nucleus probability", .def = "1"),
    SWITCH("ignore-eos", 0, GENERATES | COMMAND_CONNECT, ignore_eos, "no stop at an end token"),
    /* ---- model and backend ---- */
    SWITCH("exact", 0, OPENS, backend_options.exact, "F32 for all values; slow",
           .more = "Weights, activations, keys and values are in F32, as a reference."),
    TEXT("isa", 0, "NAME", OPENS, backend_options.isa, "CPU instruction set", WORDS(isa_words, COUNT(isa_words)),
         .without = "auto"),
    WHOLE("gpu", 0, "N", OPENS, backend_options.gpu, 0, 1024, "GPU number", .without = "first usable",
          .more = "GPUs are numbered from 0."),
    TEXT("synth", 0, "SHAPE[:TYPE],K,A", GENERATES | COMMAND_INFO, synth,
         "random weights; a share A of layer K's drafts is accepted", .takes = TAKES_SHAPE,
         .more = "The weights have the shape of a real model, and no file is read. A is from 0.3 to 0.97: the layers "
                 "after K change few predictions. This measures what speculation gains at real sizes; the text is not "
                 "language. Types: 'f32', 'f16', 'bf16', 'q8_0' (the default), 'q4_0', 'q4_k', 'q6_k'."),
    LIST("lora", 0, "FILE[:SCALE]", OPENS | COMMAND_INFO | TRAINS, lora, "adapter to merge into the model",
         .repeats = true, .model = true, .takes = TAKES_FILE,
         .more =
             "A LoRA adapter: a folder as PEFT writes it, the safetensors file in it, or a GGUF file, whatever the "
             "model's own format. It is merged when the model is loaded, scaled by SCALE, from -100 to 100. Merged "
             "matrices in blocks are stored as F16. Trained heads and profiles of the model alone do not apply then."),
    CHOICE("quantize", 0, "TYPE", OPENS | COMMAND_INFO, quantize, "type of loaded F32, F16 and BF16 weights",
           WORDS(quantize_words, COUNT(quantize_words)), .def = "none"),
    TEXT("backend", 0, "NAME", OPENS | TRAINS, backend, "compute backend", WORDS(backend_words, COUNT(backend_words)),
         .without = "auto",
         .more = "With 'auto' an NVIDIA GPU computes if there is a usable one, the plug-in `specscope-cuda.so` is "
                 "there and the model fits; else the CPU, and a line gives the reason. Without the option that line is "
                 "printed only where a part that is installed should have worked."),
    WHOLE("threads", 't', "N", OPENS | TRAINS, backend_options.threads, 0, 1024, "CPU threads", .without = "adaptive",
          .more = "A given number is fixed; without the option the number adapts to the machine's load."),
    WHOLE("seed", 0, "N", GENERATES | COMMAND_CONNECT | TRAINS, seed, 0, UINT64_MAX, "random seed", .def = "1"),
    TEXT("draft", 0, "MODEL", OPENS | COMMAND_INFO | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE, aux[AUX_DRAFT],
         "model, EAGLE-3 head or block drafter, or self:E", .model = true, .takes = TAKES_FILE,
         WORDS(aux_words, COUNT(aux_words)), .without = SIBLING("draft"), .more = SELF(SIBLING("draft"))),
    TEXT("companion", 0, "MODEL", OPENS | COMMAND_INFO | COMMAND_TRAIN_PROFILE, aux[AUX_COMPANION],
         "companion model, or self:E", .model = true, .takes = TAKES_FILE, WORDS(aux_words, COUNT(aux_words)),
         .without = SIBLING("companion"),
         .more = "A third model, which `sv` compares drafts with. " SELF(SIBLING("companion"))),
    TEXT("accept", 0, "FILE", OPENS, accept_head, "acceptance head for `specdecpp`", .takes = TAKES_FILE,
         WORDS(heads_words, COUNT(heads_words)), .without = "DRAFT.accept.safetensors",
         .more = "`specscope train accept` writes it. Without the option the file beside the draft model `DRAFT.gguf` "
                 "is used, if it exists. A head of another draft model is refused."),
    TEXT("profile", 0, "FILE", OPENS, profile_file, "profile for `sv`", .takes = TAKES_FILE,
         WORDS(heads_words, COUNT(heads_words)), .without = "MODEL.profile.json",
         .more = "`specscope train profile` writes it. Without the option the file beside the model is used, if it "
                 "exists. A profile is of one target, draft and companion, and of one temperature; that of other "
                 "models is refused."),
    /* ---- servers ---- */
    TEXT("server", 0, "URL", COMMAND_VERDICT, server.url, "running server whose drafts are compared"),
    TEXT("server", 0, "URL", COMMAND_RUN, server.url, "running server that generates, instead of a model",
         .more = "A llama-server, a vLLM server (its rounds are counted with --per-request-spec-decode-metrics "
                 "detailed) or an SGLang server. Prompts are sent as token ids, which the server makes. The server's "
                 "own speculation drafts."),
    TEXT("server", 0, "URL", COMMAND_TUNE, server.url, "running server; refused, because --launch is necessary",
         .more = "No server turns its speculation off for one request."),
    TEXT("server-kind", 0, "KIND", SERVED, server.kind, "kind of the server", WORDS(server_words, COUNT(server_words)),
         .without = "the server is asked"),
    TEXT("key-env", 0, "NAME", SERVED, server.key_env, "environment variable with the server's key",
         .more = "The key is sent to the server alone and written nowhere."),
    TEXT("key-file", 0, "FILE", SERVED, server.key_file, "file with the server's key", .takes = TAKES_FILE),
    /* ---- layers and heads ---- */
    CALL("probe", 0, "MODE", COMMAND_SCOPE, set_probe, "layers shown", WORDS(probe_mode_names, PROBE_MODES),
         .def = "10%",
         .more = "'all' probes every layer at every position. 'N%' does so as long as it takes at most N% of the time: "
                 "at the first positions, then at 64 positions at a time, and at the last ones when the engine waits. "
                 "'policy' shows only the layers that the policy reads anyway."),
    CALL("probe", 0, "MODE", COMMAND_RUN, set_probe, "layers that a trace contains",
         WORDS(probe_mode_names, PROBE_MODES), .def = "policy"),
    CALL("probe", 0, "MODE", COMMAND_BENCH, set_probe, "layers probed besides the policy's",
         WORDS(probe_mode_names, PROBE_MODES), .def = "off"),
    TEXT("vocab-counts", 0, "FILE", OPENS, vocab_counts, "counts for `draft_vocab`", .takes = TAKES_FILE,
         .more = "A draft vocabulary begins with the tokens that were counted most often. `specscope train heads` "
                 "writes the file. Without the option it begins with the lowest ids."),
    TEXT("heads", 0, "FILE", OPENS, heads, "trained heads", .takes = TAKES_FILE, WORDS(heads_words, COUNT(heads_words)),
         .without = "MODEL.heads.safetensors",
         .more = "`specscope train heads` writes them. Without the option the file beside `MODEL.gguf`, or beside the "
                 "folder `MODEL`, is used, if it exists. Heads of another model are refused."),
    CALL("head", 0, "MODE", COMMAND_SCOPE | COMMAND_RUN, set_head, "head that reads layers",
         WORDS(head_mode_names, HEAD_MODES), .without = "policy",
         .more = "'lens' is the model's own head, 'trained' the trained one. 'policy' is the head of the policy's "
                 "paper: the trained one for `specbound`, the lens for all others. Verification always uses the "
                 "model's own head, so the text is the same."),
    CALL("head", 0, "MODE", COMMAND_BENCH, set_head, "head that reads layers", .repeats = true,
         WORDS(head_mode_names, HEAD_MODES), .without = "policy"),
    /* ---- run, tune, the scope, replay ---- */
    TEXT("trace", 0, "DIR", TRACED, trace, "new folder for a trace", .takes = TAKES_FOLDER),
    CALL("trace-max", 0, "SIZE", TRACED, set_trace_max, "size limit, such as 200M",
         .more = "K, M and G are 2^10, 2^20 and 2^30 bytes. Without the option only the disk limits a trace. A full "
                 "trace ends after a whole round and replays up to there, and the run continues. The limit also "
                 "applies to the events that the scope keeps for `:export`."),
    CALL("trace-probe", 0, "WHICH|N", TRACED, set_trace_probe, "probed layers in a trace",
         WORDS(trace_probe_words, COUNT(trace_probe_words)), .def = "all",
         .more = "'policy' are those that the policy or the verification read. A number N adds the others in every Nth "
                 "round. 'off' is none. Layers are most of a trace's bytes."),
    TEXT("theme", 0, "NAME", SCREEN, theme, "colours", .takes = TAKES_FILE, WORDS(theme_words, COUNT(theme_words))),
    TEXT("script", 0, "FILE", SCREEN, script, "file of ':' commands", .takes = TAKES_FILE,
         .more = "A live run then starts paused."),
    REAL("pace", 0, "N", COMMAND_SCOPE, pace, 0, 1e6, "tokens a second at most; 0: no limit",
         .without = "bundled model: 25; else 0"),
    SWITCH("follow", 0, COMMAND_REPLAY, follow, "trace that another process is writing",
           .more =
               "As `tail -F`, it waits for TRACE/run.json, then shows what the trace contains and what is added, round "
               "by round, until the trace is closed. Any program may write it; docs/traces.md describes the format."),
    SWITCH("once", 0, LIVE, once, "no automatic next prompt",
           .more = "Without it, the next prompt of the list, --prompts or those that come with the program, starts "
                   "five seconds later unless a key is pressed; not after a prompt of your own (-p or typed), in a "
                   "batch, on a server without --prompts, with --script or with --quit-at-end."),
    SWITCH("quit-at-end", 0, LIVE, quit_at_end, "exit when the run ends"),
    TEXT("json", 0, "FILE", COMMAND_RUN | COMMAND_BENCH | COMMAND_TUNE | COMMAND_SCORE | COMMAND_DIFF, json,
         "file for results as JSON; - is stdout", .takes = TAKES_FILE, .more = REPLACES),
    TEXT("csv", 0, "FILE", COMMAND_RUN | COMMAND_BENCH | COMMAND_TUNE | COMMAND_SCORE, csv,
         "file for results as CSV; - is stdout", .takes = TAKES_FILE,
         .more = "A line is a policy or a point of a grid, over all prompts or (`category`) over those of a category; "
                 "of tune and score, a setting. " REPLACES),
    /* ---- bench ---- */
    LIST("grid", 0, "KNOB=a:b:step", COMMAND_BENCH, grid, "values of a knob to sweep", .repeats = true,
         .takes = TAKES_KNOB,
         .more =
             "Several options sweep the product of their knobs, 1000 points at most, in every policy that has them. "
             "The table is sorted by speedup, and each policy's best points by speedup and by eTPL are named."),
    WHOLE("repeat", 0, "N", COMMAND_BENCH, repeat, 1, 1000, "passes over prompts", .def = "3",
          .more = "In each pass the policies take turns."),
    SWITCH("steps", 0, COMMAND_BENCH, steps, "times of single steps",
           .more = "It measures forward passes of several rows, and probes against layers, instead of policies: after "
                   "64 rows, or near the end of a context of -c tokens."),
    SWITCH("speed", 0, COMMAND_BENCH, speed, "loading and token times",
           .more = "It measures loading, a prompt of 512 tokens and -n tokens one by one, instead of policies. Engines "
                   "are compared by these three numbers. Decoding begins with an empty context."),
    /* ---- tune ---- */
    CALL("time", 0, "TIME", COMMAND_TUNE, set_time, "time to find the setting: 90s, 5m or 1h", .def = "5m",
         .more = "The race ends when one setting is left, when the others are at most 2% slower, when the prompts are "
                 "used up, or after three quarters of this time. The rest is for the held-out prompts. With a slow "
                 "model fewer settings race, over fewer tokens."),
    CALL("time", 0, "TIME", COMMAND_SCORE, set_time, "time to read texts: 90s, 5m or 1h", .without = "no limit"),
    TEXT("texts", 0, "FILE", COMMAND_SCORE | COMMAND_TUNE, texts, "finished conversations, or a trace; - is stdin",
         .takes = TAKES_FILE,
         .more =
             "Each line is a conversation as JSON: a list `messages`, `conversations` as ShareGPT has them, a log of "
             "a server with `request` and `response` or of its batches, `prompt` with `completion`, `response`, "
             "`output` or `answer`, or `text`. A `category` is optional. The file may also be one JSON list, plain "
             "text or a trace, and has at most 64 MiB."),
    TEXT("save", 0, "NAME", COMMAND_TUNE, save, "preset to write; --preset NAME uses it"),
    TEXT("drafts", 0, "DIR|hf|ollama", COMMAND_TUNE | COMMAND_SCORE, drafts,
         "draft models to compare: a folder, or a program's cache",
         .more = "Each model in the folder or the cache of Hugging Face or Ollama is a draft model, if its vocabulary "
                 "matches the target's, it is smaller and it fits into memory. The policies that need a draft model "
                 "race or are scored with each of them. The other models are counted by reason.",
         .takes = TAKES_FOLDER),
    TEXT("launch", 0, "COMMAND", COMMAND_TUNE, launch, "server to tune, with {flags}, instead of a model",
         .more = "A command of a shell for llama-server, vLLM or SGLang, such as `'llama-server -m MODEL {flags}'`. "
                 "The tuner starts it with each setting's options in place of {flags}, on a free port of this machine, "
                 "and ends it. Policies are those that the engine has; `eagle`, `dspark`, `dflash` and `mtp` race if "
                 "--policy names them. "
                 "--draft is a path for the server. The result is the command of the fastest setting."),
    /* ---- info ---- */
    WHOLE("ctx", 'c', "N", COMMAND_INFO, ctx, 1, 1u << 28, "context length for the memory of keys and values"),
    SWITCH("json", 0, COMMAND_INFO | COMMAND_DOCTOR, as_json, "JSON output"),
    /* ---- tokenize ---- */
    SWITCH("decode", 0, COMMAND_TOKENIZE, tokenize.decode, "text from token ids"),
    SWITCH("no-special", 0, COMMAND_TOKENIZE, tokenize.no_special, "control tokens in the text as plain text"),
    SWITCH("no-bos", 0, COMMAND_TOKENIZE, tokenize.no_bos, "no token at the beginning of the text"),
    SWITCH("no-eos", 0, COMMAND_TOKENIZE, tokenize.no_eos, "no token at the end of the text"),
    SWITCH("pieces", 0, COMMAND_TOKENIZE, tokenize.pieces, "text of each token after its id"),
    /* ---- train ---- */
    TEXT("model", 'm', "MODEL", TRAINS, model, ".gguf file or Hugging Face folder", .model = true, .takes = TAKES_FILE,
         .without = "bundled"),
    TEXT("text", 0, "FILE", ANSWERED, train.text, "plain text to train on, 64 MiB at most",
         .more = "Every 16th window is held out.", .takes = TAKES_FILE),
    TEXT("text", 0, "FILE", DRAFTED, train.text, "plain text with prompts, 64 MiB at most",
         .more = "Prompts are parts of the text.", .takes = TAKES_FILE),
    TEXT("prompts", 0, "FILE.jsonl", COMMAND_TRAIN_PROFILE, prompts_file,
         "prompts in Spec-Bench's form instead of --text", .takes = TAKES_FILE),
    TEXT("prompts", 0, "FILE.jsonl", ANSWERED, prompts_file, "prompts in Spec-Bench's form that the model answers",
         .takes = TAKES_FILE, .more = "Prompts are chat messages if the model has a chat template."),
    TEXT("out", 0, "FILE", COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT, train.out, "safetensors file to write",
         .takes = TAKES_FILE),
    TEXT("out", 0, "PATH", COMMAND_TRAIN_EAGLE, train.out, "NAME.gguf, or a folder for safetensors",
         .more = "A GGUF file has the architecture `eagle3` of llama.cpp, with a copy of the vocabulary if the model "
                 "is a GGUF file, too. A folder has the form of SpecForge.",
         .model = true, .takes = TAKES_FILE),
    TEXT("out", 0, "FILE", COMMAND_TRAIN_PROFILE, train.out, "JSON file to write", .takes = TAKES_FILE),
    CALL("kind", 0, "KIND", COMMAND_TRAIN_HEADS, set_head_kind, "type of head", WORDS(kind_words, COUNT(kind_words)),
         .def = "affine",
         .more = "'affine' transforms the hidden state h to h + A h + b before the model's own head; 'full' is a "
                 "matrix of its own."),
    TEXT("layers", 0, "LIST", COMMAND_TRAIN_HEADS, train.layers, "layers to train, such as 4:16:4 or 4,8,12",
         .more = "first:last:step, or layers with commas between them. Layers without a head use the lens.",
         .without = "all, or 8 of more than 16"),
    WHOLE("draft-vocab", 0, "N", COMMAND_TRAIN_HEADS, train.draft_vocab, 0, UINT32_MAX,
          "most frequent tokens, which affine heads learn; 0: all", .def = "4096",
          .more = "The counts that order the tokens are written to OUT.counts, for --vocab-counts."),
    REAL("minutes", 0, "N", COMMAND_TRAIN_EAGLE, train.minutes, 0.01, 1e6, "time, of which answers take half at most",
         .def = "30"),
    WHOLE("draft-vocab", 0, "N", COMMAND_TRAIN_EAGLE, train.draft_vocab, 1, UINT32_MAX,
          "tokens that the head can draft, the most frequent ones", .def = "4096"),
    WHOLE("tokens", 0, "N", COMMAND_TRAIN_EAGLE, train.tokens, 1, UINT64_C(1) << 40,
          "tokens to train on, in five passes, instead of --minutes", .without = "by time"),
    REAL("rate", 0, "R", COMMAND_TRAIN_EAGLE, train.rate, DBL_MIN, 1, "learning rate, which falls to 0",
         .def = "0.002"),
    WHOLE("batch", 0, "N", COMMAND_TRAIN_EAGLE, train.batch, 1, 1 << 20, "tokens in a step", .def = "1024"),
    WHOLE("tokens", 0, "N", COMMAND_TRAIN_HEADS, train.tokens, 1, UINT64_C(1) << 40,
          "tokens to train on, repeating the text as needed", .def = "200000"),
    WHOLE("tokens", 0, "N", DRAFTED, train.tokens, 1, UINT64_C(1) << 30, "tokens of all answers", .def = "20000"),
    REAL("rate", 0, "R", COMMAND_TRAIN_HEADS, train.rate, DBL_MIN, 1, "learning rate, which falls to 0",
         .def = "0.0003"),
    REAL("rate", 0, "R", COMMAND_TRAIN_ACCEPT, train.rate, DBL_MIN, 1, "learning rate, which falls to 0 along a cosine",
         .def = "0.001"),
    WHOLE("batch", 0, "N", COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT, train.batch, 1, 1 << 16, "tokens in a step",
          .def = "256"),
    WHOLE("window", 0, "N", ANSWERED, train.window, 8, 1 << 20, "tokens of a window of the text",
          .without = "512, or its context"),
    WHOLE("prompt-tokens", 0, "N", ANSWERED, answers.prompt, 2, 1 << 16,
          "tokens of a prompt, at most; longer messages are omitted", .def = "512"),
    WHOLE("response", 0, "N", ANSWERED, answers.response, 1, 1 << 16, "tokens of an answer, at most", .def = "256"),
    WHOLE("at-once", 0, "N", ANSWERED, answers.at_once, 1, 64, "answers that share a pass over the weights",
          .def = "16"),
    REAL("temp", 0, "T", ANSWERED, answers.sampling.temperature, 0, 100, "sampling temperature of answers; 0 is greedy",
         .def = "0"),
    WHOLE("prompt-tokens", 0, "N", DRAFTED, answers.prompt, 2, 1 << 16, "tokens of a prompt, at most", .def = "48"),
    WHOLE("response", 0, "N", DRAFTED, answers.response, 1, 1 << 16, "tokens of an answer, at most", .def = "64"),
    WHOLE("at-once", 0, "N", DRAFTED, answers.at_once, 1, 64, "answers that share a pass over the weights", .def = "8",
          .more = "Each is the same whatever shares its passes: more of them are faster and take more memory."),
    REAL("temp", 0, "T", DRAFTED, answers.sampling.temperature, 0, 100,
         "sampling temperature of answers and drafts; 0 is greedy", .def = "1"),
    WHOLE("top-k", 0, "K", ANSWERED | DRAFTED, answers.sampling.top_k, 0, 1u << 24, "most likely tokens kept; 0: all",
          .def = "0"),
    REAL("top-p", 0, "P", ANSWERED | DRAFTED, answers.sampling.top_p, 1e-6, 1, "nucleus probability", .def = "1"),
    REAL("mixing", 0, "R", COMMAND_TRAIN_ACCEPT, accept.mixing, 0, 0.99,
         "share of the target's tokens among the candidates", .def = "0.15"),
    REAL("reject-weight", 0, "W", COMMAND_TRAIN_ACCEPT, accept.w_reject, 0.01, 1000,
         "weight of a rejection in the loss", .def = "6"),
    CALL("blocks", 0, "D,D,...", COMMAND_TRAIN_ACCEPT, set_blocks,
         "residual blocks of the head; the best of several is kept", .def = "3"),
    WHOLE("passes", 0, "N", COMMAND_TRAIN_ACCEPT, accept.passes, 1, 10000, "passes over the candidates", .def = "3"),
    WHOLE("drafts", 0, "N", COMMAND_TRAIN_PROFILE, profile.drafts, 1, 32, "drafts of a round", .def = "5"),
    WHOLE("similarity-bins", 0, "N", COMMAND_TRAIN_PROFILE, profile.s_bins, 1, 32,
          "most bins of the similarity of draft and companion", .def = "16"),
    WHOLE("acceptance-bins", 0, "N", COMMAND_TRAIN_PROFILE, profile.a_bins, 1, 32,
          "most bins of the companion's acceptance", .def = "12"),
    /* ---- plot ---- */
    TEXT("out", 'o', "FILE", COMMAND_PLOT, plot.out, "file of the figure: .svg, .pdf or .png", .takes = TAKES_FILE),
    TEXT("width", 0, "LENGTH", COMMAND_PLOT, plot.width, "width in mm, cm, in or pt; a column has 85mm",
         .without = "depends on KIND"),
    WHOLE("from", 0, "N", COMMAND_PLOT, plot.from, 0, UINT32_MAX, "first position (layers) or round",
          .without = "first"),
    WHOLE("to", 0, "N", COMMAND_PLOT, plot.to, 0, UINT32_MAX, "last position or round", .without = "last that fits"),
    WHOLE("run", 0, "N", COMMAND_PLOT | COMMAND_DIFF, plot.run, 1, UINT32_MAX, "run of a trace with several",
          .without = "last with a round"),
    WHOLE("seq", 0, "N", COMMAND_PLOT, plot.seq, 1, UINT32_MAX, "sequence of a batch, from 1",
          .without = "first, or all"),
    WHOLE("seq", 0, "N", COMMAND_DIFF, plot.seq, 1, UINT32_MAX, "sequence of a batch, from 1, in both",
          .without = "first; both of one trace"),
    SWITCH("scope", 0, COMMAND_DIFF, scope, "both traces side by side on the screen",
           .more = "No table is printed. Both runs must have continued the same prompt with the same model. They are "
                   "replayed in step by token: the screen shows texts, rounds and measures left and right, which run "
                   "was faster where, and where the texts differ."),
    TEXT("measure", 0, "NAME", COMMAND_PLOT, plot.measure, "measure of a grid",
         WORDS(measure_words, COUNT(measure_words)), .without = "speedup"),
    TEXT("axes", 0, "X,Y", COMMAND_PLOT, plot.axes, "the two measures of a pareto",
         .without = "verification_rate,discard_rate",
         .more = "Any two that --measure accepts, for example acceptance_rate,speedup."),
    TEXT("caption", 0, "TEXT", COMMAND_PLOT, plot.caption, "text instead of model, policy, knobs and machine"),
    /* ---- all ---- */
    PRINT("list-policies", 0, OPENS, policies_list, "policies and their knobs"),
    PRINT("list-presets", 0, GENERATES, presets_list, "saved presets"),
    PRINT("help", 'h', COMMAND_ALL, options_help, "this help"),
    PRINT("version", 'V', COMMAND_ALL, print_version, "program version"),
};
const size_t n_option_rows = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= ROWS_MOST, "arrays of flags have ROWS_MOST elements");
