/* Options of the command line and the config file. option_table.h has one row for each; flags win over the config
 * file. */
#ifndef CLI_OPTIONS_OPTIONS_H
#define CLI_OPTIONS_OPTIONS_H

#include "engine/session/session.h"

#define OPTIONS_MOST 32 /* of a repeatable one */

enum command {
    COMMAND_SCOPE = 1,
    COMMAND_RUN = 2,
    COMMAND_REPLAY = 4,
    COMMAND_BENCH = 8,
    COMMAND_INFO = 16,
    COMMAND_TOKENIZE = 32,
    COMMAND_TRAIN = 64,
    COMMAND_COMPLETIONS = 128,
    COMMAND_TRAIN_HEADS = 256, /* of COMMAND_TRAIN, which has no options of its own */
    COMMAND_TRAIN_ACCEPT = 512,
    COMMAND_TRAIN_PROFILE = 1024,
    COMMAND_PLOT = 2048,
    COMMAND_DIFF = 4096,
    COMMAND_MODELS = 8192,
    COMMAND_DOCTOR = 16384,
    COMMAND_TUNE = 32768,
    COMMAND_TRAIN_EAGLE = 65536,
    COMMAND_CONNECT = 131072,
    COMMAND_VERDICT = 262144,
    COMMAND_SCORE = 524288,
    COMMAND_ALL = 1048575
};

/* Commands with several policies; all policies if none is given. */
#define COMPARES (COMMAND_BENCH | COMMAND_TUNE | COMMAND_SCORE)

struct option_list {
    const char *at[OPTIONS_MOST]; /* as given */
    size_t n;
};

/* Strings belong to argv, the registry or `owned`. Members have the table's defaults, or else zero. */
struct options {
    enum command command;
    /* the operand: a model, the trace folder of replay, or the shell of completions; NULL: none given */
    const char *model;
    struct option_list operands; /* of a command that takes several */
    const char *synth;           /* a synthetic model instead; NULL: none */
    char *prompt;                /* owned; NULL: none given */
    size_t prompt_len;
    const char *prompts_file; /* JSON lines */
    uint32_t batch;           /* sequences at a time; 0: one, and no batch */
    struct chat_setting chat; /* its texts from files are `owned` */
    struct chat_variable chat_variables[OPTIONS_MOST];
    struct tm chat_day;
    uint32_t tokens, ctx, repeat;
    struct option_list policies; /* one; several for bench and tune */
    bool policy_given;           /* by a flag, not by the config file */
    struct knob_setting set[OPTIONS_MOST];
    size_t n_set, n_config_set; /* the first ones are the config file's */
    const char *versus;         /* "POLICY KNOB=VALUE …", a second setting; NULL: none */
    double time_s;              /* of tune and score; 0: no limit */
    const char *texts;          /* finished texts: a file, "-" or the folder of a trace; NULL: none */
    const char *save;           /* name of a preset; NULL: none */
    const char *drafts;         /* a place of draft models; NULL: none */
    const char *launch;         /* the command of a server to tune; NULL: none */
    struct option_list grid;    /* KNOB=from:to:step */
    struct option_list lora;    /* FILE[:SCALE] */
    struct sampling sampling;
    uint64_t seed;
    bool ignore_eos, quit_at_end, once, follow, steps, speed, quantize;
    float pace;          /* tokens/s; 0: no bound; below 0: not given */
    const char *backend; /* NULL: not given */
    struct backend_options backend_options;
    enum probe_mode probe;
    uint32_t probe_percent;                 /* PROBE_SHARE */
    const char *accept_head;                /* a file, "none", or NULL: the one beside the draft model */
    const char *heads;                      /* a file, "none", or NULL: the one beside the model */
    const char *vocab_counts;               /* a file; NULL: none */
    enum head_mode heads_given[HEAD_MODES]; /* by --head, in order; several for bench alone */
    size_t n_heads_given;
    struct trace_bounds trace_bounds;
    const char *trace, *theme, *script, *json, *csv;
    bool as_json;
    struct {
        bool decode, no_special, no_bos, no_eos, pieces;
    } tokenize;
    struct {
        const char *text, *out, *layers; /* layers NULL: not given */
        enum head_kind kind;
        uint32_t draft_vocab;
        uint64_t tokens;
        double rate, minutes;
        uint32_t batch, window; /* window 0: 512, or the model's context */
    } train;
    const char *profile_file;    /* a file, "none", or NULL: the one beside the model */
    const char *aux[AUX_MODELS]; /* auxiliary models; NULL: none given */
    struct {
        uint32_t prompt, response; /* tokens */
        uint32_t at_once;
        struct sampling sampling;
    } answers; /* of the target, to prompts from a text */
    struct {
        double mixing, w_reject;
        uint32_t blocks[OPTIONS_MOST]; /* (n_blocks) a head for each */
        size_t n_blocks;
        uint32_t passes;
    } accept;
    struct {
        uint32_t drafts, s_bins, a_bins;
    } profile;
    struct {
        const char *out, *width, *measure, *axes, *caption; /* NULL: not given */
        uint64_t from, to, seq;                             /* UINT64_MAX: not given */
        uint32_t run;                                       /* 0: not given */
    } plot;
    struct {
        const char *url, *kind, *key_env, *key_file; /* NULL: not given */
    } server;
    bool scope;
    bool bare;       /* there were no arguments */
    bool finished;   /* --help, --version or --list-policies was printed */
    char *owned[64]; /* strings from the config file */
    size_t n_owned;
};

/* The table's defaults. */
void options_init(struct options *, enum command);
/* Sets defaults, reads the config file (for commands that use it), then argv. On failure *err has the reason
 * (ERR_USAGE). */
bool options_read(struct options *, enum command, int argc, char **argv, struct err *);
/* Reads the config file from memory (tests, fuzzing). */
bool options_config(struct options *, const char *path, const char *json, size_t len, struct err *);
/* Replaces the names of models (hf:…, ollama:…, bundled) by their files. Fails with one line. */
bool options_find_models(struct options *, struct err *);
void options_free(struct options *);

/* Reads the options, runs the command and returns the exit status: 0, 1 for a failure, 2 for bad usage, 128 + N after
 * signal N. */
int options_run(enum command, int argc, char **argv);

/* The default prompt, and the policy whose knobs --set sets without --policy. */
extern const char default_prompt[], knobs_policy[];

/* Reads $XDG_CONFIG_HOME/specscope/config.json, or ~/.config/specscope/config.json, if there is such a file. */
bool options_config_file(struct options *, struct err *);

#endif
