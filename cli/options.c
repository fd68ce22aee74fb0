#include "cli/options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "policies/policy.h"

const char default_policy[] = "specbound";
const char default_prompt[] = "A baker sent Ruby to market with a leather fork. \"Bring me an oven for it,\" said the "
                              "baker, \"and do not stop on the way.\" In the park she met";

enum option_id {
    OPT_PROMPT,
    OPT_FILE,
    OPT_PROMPTS,
    OPT_CHAT,
    OPT_SYSTEM,
    OPT_TOKENS,
    OPT_CTX,
    OPT_POLICY,
    OPT_SET,
    OPT_POLICY_STATE,
    OPT_TEMP,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_SEED,
    OPT_IGNORE_EOS,
    OPT_BACKEND,
    OPT_ISA,
    OPT_EXACT,
    OPT_QUANTIZE,
    OPT_SYNTH,
    OPT_GPU,
    OPT_PROBE,
    OPT_HEADS,
    OPT_HEAD,
    OPT_THREADS,
    OPT_TRACE,
    OPT_THEME,
    OPT_SCRIPT,
    OPT_PACE,
    OPT_QUIT_AT_END,
    OPT_JSON,
    OPT_CSV,
    OPT_GRID,
    OPT_REPEAT,
    OPT_STEPS,
    OPT_SPEED,
    OPT_LIST_POLICIES,
    OPT_HELP,
    OPT_VERSION,
    N_OPTIONS
};

#define GENERATES (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH)
#define SCREEN    (COMMAND_SCOPE | COMMAND_REPLAY)
#define ALL       (GENERATES | COMMAND_REPLAY)

static const struct option_row {
    const char *name;
    char letter;
    const char *argument; /* NULL: a switch */
    int commands;
    const char *help;
} rows[N_OPTIONS] = {
    [OPT_PROMPT] = {"prompt", 'p', "TEXT", GENERATES, "what to go on from"},
    [OPT_FILE] = {"file", 'f', "FILE", GENERATES, "the prompt from a file; - is stdin"},
    [OPT_PROMPTS] = {"prompts", 0, "FILE.jsonl", GENERATES,
                     "prompts from Spec-Bench's `turns` (the scope takes the first)"},
    [OPT_CHAT] = {"chat", 0, NULL, GENERATES,
                  "prompts are turns of a dialogue, as the model's chat template writes them"},
    [OPT_SYSTEM] = {"system", 0, "TEXT", GENERATES,
                    "what the dialogue is told first (the template's own); with it, --chat"},
    [OPT_TOKENS] = {"tokens", 'n', "N", GENERATES, "tokens to generate; 0: to the end of the context (256)"},
    [OPT_CTX] = {"ctx", 'c', "N", GENERATES, "context in tokens (the model's own)"},
    [OPT_POLICY] = {"policy", 0, "NAME", GENERATES, "how to draft (specbound); bench: repeatable"},
    [OPT_SET] = {"set", 0, "KNOB=VALUE", GENERATES, "set a knob of the policy; repeatable"},
    [OPT_POLICY_STATE] = {"policy-state", 0, "DIR", GENERATES,
                          "where policies keep what they learn about a model, for the next run"},
    [OPT_TEMP] = {"temp", 0, "T", GENERATES, "sampling temperature; 0 is greedy (0)"},
    [OPT_TOP_K] = {"top-k", 0, "K", GENERATES, "sample among the K likeliest; 0: all (0)"},
    [OPT_TOP_P] = {"top-p", 0, "P", GENERATES, "sample from the nucleus of mass P (1)"},
    [OPT_SEED] = {"seed", 0, "N", GENERATES, "of the random numbers (1)"},
    [OPT_IGNORE_EOS] = {"ignore-eos", 0, NULL, GENERATES, "go on after an end of sequence"},
    [OPT_BACKEND] = {"backend", 0, "NAME", GENERATES, "auto, cpu, cuda, or check (auto: a GPU if there is one)"},
    [OPT_ISA] = {"isa", 0, "NAME", GENERATES,
                 "force a CPU instruction set: reference, avx2, avx512, avx512vnni, neon, …"},
    [OPT_EXACT] = {"exact", 0, NULL, GENERATES, "F32 weights, activations and KV: slow, oracle-grade"},
    [OPT_QUANTIZE] = {"quantize", 0, "TYPE", GENERATES, "weights in F32, F16 or BF16 become TYPE when loaded: q8_0"},
    [OPT_SYNTH] =
        {"synth", 0, "SHAPE[:TYPE],K,A", GENERATES,
         "no model but random weights in a real one's shape, of whose drafts from layer K a share A is accepted"},
    [OPT_GPU] = {"gpu", 0, "N", GENERATES, "which GPU, numbered from 0 (the first that will do)"},
    [OPT_PROBE] = {"probe", 0, "MODE", GENERATES, "layers shown: off, policy's own, all (scope: all; else policy)"},
    [OPT_HEADS] = {"heads", 0, "FILE", GENERATES,
                   "trained heads, of `specscope train heads`; none (MODEL.heads.safetensors, if it is there)"},
    [OPT_HEAD] = {"head", 0, "MODE", GENERATES,
                  "what looks at layers: lens, trained, policy: as its paper has it (policy); bench: repeatable"},
    [OPT_THREADS] = {"threads", 't', "N", GENERATES, "CPU threads (all cores)"},
    [OPT_TRACE] = {"trace", 0, "DIR", COMMAND_SCOPE | COMMAND_RUN, "write a trace into a new folder"},
    [OPT_THEME] = {"theme", 0, "NAME", SCREEN, "dark, light, cividis, mono, or a file"},
    [OPT_SCRIPT] = {"script", 0, "FILE", SCREEN, "run a file of ':' commands"},
    [OPT_PACE] = {"pace", 0, "N", COMMAND_SCOPE,
                  "tokens a second at most; 0: as fast as it goes (bundled model: 25; else 0)"},
    [OPT_QUIT_AT_END] = {"quit-at-end", 0, NULL, COMMAND_SCOPE, "leave when the run is over"},
    [OPT_JSON] = {"json", 0, "FILE", COMMAND_RUN | COMMAND_BENCH, "results as JSON; - is stdout"},
    [OPT_CSV] = {"csv", 0, "FILE", COMMAND_BENCH, "results as CSV; - is stdout"},
    [OPT_GRID] = {"grid", 0, "KNOB=a:b:step", COMMAND_BENCH, "sweep a knob and name the best; repeatable: the product"},
    [OPT_REPEAT] = {"repeat", 0, "N", COMMAND_BENCH, "passes over the prompts, policies in turn (3)"},
    [OPT_STEPS] = {"steps", 0, NULL, COMMAND_BENCH, "measure steps instead: rows together, probes against layers"},
    [OPT_SPEED] = {"speed", 0, NULL, COMMAND_BENCH,
                   "measure speed instead: loading, a prompt of 512 tokens, -n tokens one by one"},
    [OPT_LIST_POLICIES] = {"list-policies", 0, NULL, GENERATES, "names, papers and knobs"},
    [OPT_HELP] = {"help", 'h', NULL, ALL, "this"},
    [OPT_VERSION] = {"version", 'V', NULL, ALL, "the version"},
};

void
options_help(enum command command, FILE *f)
{
    static const struct {
        enum command command;
        const char *usage, *what;
    } usages[] = {
        {COMMAND_SCOPE, "[options] [MODEL]", "watch a model generate, layer by layer, and tune how it speculates"},
        {COMMAND_RUN, "run [options] [MODEL]", "generate without the scope: text to stdout, a summary to stderr"},
        {COMMAND_REPLAY, "replay [options] TRACE", "the scope on a saved trace"},
        {COMMAND_BENCH, "bench [options] [MODEL]", "policies side by side on the same prompts"},
    };
    for (size_t i = 0; i < sizeof usages / sizeof *usages; i++)
        if (usages[i].command == command)
            fprintf(f, "usage: specscope %s\n%s\n\n", usages[i].usage, usages[i].what);
    if (command != COMMAND_REPLAY)
        fputs("MODEL is a .gguf file or a Hugging Face folder; without it the bundled model is used.\n\n", f);
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(rows[i].commands & (int)command))
            continue;
        char left[48], letter[8] = "    ";
        if (rows[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, rows[i].name, rows[i].argument != NULL ? " " : "",
                 rows[i].argument != NULL ? rows[i].argument : "");
        fprintf(f, "  %-27s %s\n", left, rows[i].help);
    }
    if (command == COMMAND_SCOPE)
        fputs("\nother commands: specscope run, replay, bench, info, tokenize, train; each has --help\n"
              "defaults are read from $XDG_CONFIG_HOME/specscope/config.json: {\"policy\": \"layerskip\", \"theme\": "
              "\"light\", …}\n",
              f);
}

static void
list_policies(void)
{
    const struct model_info usual = {.layers = 32, .width = 4096, .vocab = 32000, .rho = 0.65}; /* a 7B model's shape */
    const struct policy_args args = {0};
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct policy p = {.ops = policy_registry[i]};
        printf("%-12s%s%s%s\n", p.ops->name, p.ops->title, p.ops->paper[0] != '\0' ? "; " : "", p.ops->paper);
        if (p.ops->open(&p, &usual, &args, NULL))
            for (uint32_t k = 0; k < p.info.n_knobs; k++) {
                char value[32];
                knob_format(&p.info.knobs[k], p.info.knobs[k].def, value, sizeof value);
                printf("    %-14s%-10s%s\n", p.info.knobs[k].name, value, p.info.knobs[k].help);
            }
        if (p.ops->close != NULL)
            p.ops->close(&p);
    }
    puts("(defaults for a model of 32 layers; they scale with the model)");
}

/* ---- values ---- */

static bool
whole(const char *name, const char *text, uint64_t most, uint64_t *out, struct err *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v > most)
        return err_set(err, ERR_USAGE, "--%s %.40s: a whole number from 0 to %llu is wanted", name, text,
                       (unsigned long long)most);
    *out = v;
    return true;
}

static bool
count(const char *name, const char *text, uint64_t most, uint32_t *out, struct err *err)
{
    uint64_t v;
    if (!whole(name, text, most, &v, err))
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool
real(const char *name, const char *text, double low, double high, float *out, struct err *err)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= low && v <= high))
        return err_set(err, ERR_USAGE, "--%s %.40s: a number from %g to %g is wanted", name, text, low, high);
    *out = (float)v;
    return true;
}

static bool
set_prompt(struct options *o, const char *text, size_t len, struct err *err)
{
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return err_set(err, ERR_WORK, "out of memory for the prompt");
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (memchr(copy, '\0', len) != NULL) {
        free(copy);
        return err_set(err, ERR_USAGE, "the prompt holds a NUL byte; is that a text file?");
    }
    free(o->prompt);
    o->prompt = copy;
    o->prompt_len = len;
    return true;
}

static bool
set_prompt_file(struct options *o, const char *path, struct err *err)
{
    char *text;
    size_t len;
    if (!file_read(path, &text, &len, err))
        return false;
    while (len > 0 && text[len - 1] == '\n') /* an editor's last newline is not meant */
        len--;
    bool ok = set_prompt(o, text, len, err);
    free(text);
    return ok;
}

static bool
set_knob(struct options *o, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    struct knob_setting k = {0};
    if (equals == NULL || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= sizeof k.name ||
        strlen(equals + 1) >= sizeof k.text)
        return err_set(err, ERR_USAGE, "--set %.40s: KNOB=VALUE is wanted, as in --set tau=0.6", text);
    memcpy(k.name, text, (size_t)(equals - text));
    memcpy(k.text, equals + 1, strlen(equals + 1) + 1);
    for (size_t i = 0; i < o->n_set; i++)
        if (strcmp(o->set[i].name, k.name) == 0) { /* the last one counts */
            memmove(&o->set[i], &o->set[i + 1], (--o->n_set - i) * sizeof k);
            o->n_config_set -= i < o->n_config_set;
        }
    if (o->n_set == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--set: more than %d settings", OPTIONS_MOST);
    o->set[o->n_set++] = k;
    return true;
}

static bool
add_grid(struct options *o, const char *text, struct err *err)
{
    if (o->n_grid == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--grid: more than %d of them", OPTIONS_MOST);
    o->grid[o->n_grid++] = text;
    return true;
}

static bool
set_policy(struct options *o, const char *name, struct err *err)
{
    for (size_t i = 0; policy_registry[i] != NULL; i++)
        if (strcmp(policy_registry[i]->name, name) == 0) {
            if (o->command != COMMAND_BENCH)
                o->n_policies = 0; /* the last one counts */
            if (o->n_policies < OPTIONS_MOST)
                o->policies[o->n_policies++] = policy_registry[i]->name;
            return true;
        }
    return err_set(err, ERR_USAGE, "--policy %.32s is not known; see --list-policies", name);
}

static bool
set_probe(struct options *o, const char *name, struct err *err)
{
    for (int i = 0; i < PROBE_MODES; i++)
        if (strcmp(name, probe_mode_names[i]) == 0) {
            o->probe = (enum probe_mode)i;
            o->probe_given = true;
            return true;
        }
    return err_set(err, ERR_USAGE, "--probe %.32s is not known; there are off, policy and all", name);
}

static bool
set_head(struct options *o, const char *name, struct err *err)
{
    for (int i = 0; i < HEAD_MODES; i++)
        if (strcmp(name, head_mode_names[i]) == 0) {
            if (o->command != COMMAND_BENCH)
                o->n_heads_given = 0; /* the last one counts */
            for (size_t k = 0; k < o->n_heads_given; k++)
                if (o->heads_given[k] == (enum head_mode)i)
                    return true;
            o->heads_given[o->n_heads_given++] = (enum head_mode)i;
            return true;
        }
    return err_set(err, ERR_USAGE, "--head %.32s is not known; there are lens, trained and policy", name);
}

static bool
set(struct options *o, int which, const char *text, struct err *err)
{
    uint32_t n = 0;
    switch ((enum option_id)which) {
    case OPT_PROMPT: return set_prompt(o, text, strlen(text), err);
    case OPT_FILE: return set_prompt_file(o, text, err);
    case OPT_PROMPTS: o->prompts_file = text; return true;
    case OPT_TOKENS: return count("tokens", text, UINT32_MAX / 2, &o->tokens, err);
    case OPT_CTX: return count("ctx", text, 1u << 24, &o->ctx, err);
    case OPT_POLICY: return set_policy(o, text, err);
    case OPT_SET: return set_knob(o, text, err);
    case OPT_POLICY_STATE: o->policy_state = text; return true;
    case OPT_TEMP: return real("temp", text, 0, 100, &o->sampling.temperature, err);
    case OPT_TOP_K: return count("top-k", text, 1u << 24, &o->sampling.top_k, err);
    case OPT_TOP_P: return real("top-p", text, 1e-6, 1, &o->sampling.top_p, err);
    case OPT_SEED: return whole("seed", text, UINT64_MAX, &o->seed, err);
    case OPT_IGNORE_EOS: o->ignore_eos = true; return true;
    case OPT_BACKEND:
        o->backend = text;
        o->backend_given = true;
        return true;
    case OPT_ISA: o->backend_options.isa = text; return true;
    case OPT_EXACT: o->backend_options.exact = true; return true;
    case OPT_QUANTIZE:
        o->quantize = strcasecmp(text, "q8_0") == 0;
        return o->quantize || err_set(err, ERR_USAGE, "--quantize %.32s is not known; there is q8_0", text);
    case OPT_SYNTH: o->synth = text; return true;
    case OPT_CHAT: o->chat = true; return true;
    case OPT_SYSTEM:
        o->system = text;
        o->chat = true;
        return true;
    case OPT_GPU:
        if (!count("gpu", text, 1024, &n, err))
            return false;
        o->backend_options.gpu = (int)n;
        return true;
    case OPT_PROBE: return set_probe(o, text, err);
    case OPT_HEADS: o->heads = text; return true;
    case OPT_HEAD: return set_head(o, text, err);
    case OPT_THREADS: return count("threads", text, 1024, &o->backend_options.threads, err);
    case OPT_TRACE: o->trace = text; return true;
    case OPT_THEME: o->theme = text; return true;
    case OPT_SCRIPT: o->script = text; return true;
    case OPT_PACE: return real("pace", text, 0, 1e6, &o->pace, err);
    case OPT_QUIT_AT_END: o->quit_at_end = true; return true;
    case OPT_JSON: o->json = text; return true;
    case OPT_CSV: o->csv = text; return true;
    case OPT_GRID: return add_grid(o, text, err);
    case OPT_REPEAT:
        return count("repeat", text, 1000, &o->repeat, err) &&
               (o->repeat > 0 || err_set(err, ERR_USAGE, "--repeat 0: one pass is the least"));
    case OPT_STEPS: o->steps = true; return true;
    case OPT_SPEED: o->speed = true; return true;
    case OPT_LIST_POLICIES:
        list_policies();
        o->finished = true;
        return true;
    case OPT_HELP:
        options_help(o->command, stdout);
        o->finished = true;
        return true;
    case OPT_VERSION:
        puts("specscope " SPECSCOPE_VERSION);
        o->finished = true;
        return true;
    case N_OPTIONS: break;
    }
    return err_set(err, ERR_USAGE, "an option without a meaning");
}

/* ---- config file ---- */

static bool
config_value(struct options *o, int which, const cJSON *value, const char *path, struct err *err)
{
    char number[32];
    const char *text = NULL;
    if (rows[which].argument == NULL) {
        if (!cJSON_IsBool(value))
            return err_set(err, ERR_USAGE, "%s: \"%s\" must be true or false", path, rows[which].name);
        return cJSON_IsTrue(value) ? set(o, which, NULL, err) : true;
    }
    if (cJSON_IsNumber(value)) {
        snprintf(number, sizeof number, "%.15g", value->valuedouble);
        text = number;
    } else if (cJSON_IsString(value)) {
        text = value->valuestring;
    }
    if (text == NULL)
        return err_set(err, ERR_USAGE, "%s: \"%s\" must be a string or a number", path, rows[which].name);
    if (o->n_owned == sizeof o->owned / sizeof *o->owned || (o->owned[o->n_owned] = strdup(text)) == NULL)
        return err_set(err, ERR_WORK, "%s: too many entries", path);
    struct err inner = {0};
    if (!set(o, which, o->owned[o->n_owned++], &inner))
        return err_set(err, inner.kind, "%s: %.300s", path, inner.text);
    return true;
}

bool
options_config(struct options *o, const char *path, const char *json, size_t len, struct err *err)
{
    cJSON *root = cJSON_ParseWithLength(json, len);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return err_set(err, ERR_USAGE, "%s: not a JSON object; see `man specscope`", path);
    }
    bool ok = true;
    for (const cJSON *item = root->child; item != NULL && ok; item = item->next) {
        int which = 0;
        while (which < N_OPTIONS && strcmp(rows[which].name, item->string) != 0)
            which++;
        if (which == N_OPTIONS || which >= OPT_LIST_POLICIES)
            ok = err_set(err, ERR_USAGE, "%s: \"%.40s\" is no option; the names are those of --help", path,
                         item->string);
        else if (!(rows[which].commands & (int)o->command))
            continue; /* another command's default */
        else if (cJSON_IsArray(item)) {
            for (const cJSON *v = item->child; v != NULL && ok; v = v->next)
                ok = config_value(o, which, v, path, err);
        } else
            ok = config_value(o, which, item, path, err);
    }
    cJSON_Delete(root);
    return ok;
}

static bool
read_config(struct options *o, struct err *err)
{
    char path[1024];
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    if (xdg != NULL && xdg[0] == '/')
        snprintf(path, sizeof path, "%s/specscope/config.json", xdg);
    else if (home != NULL)
        snprintf(path, sizeof path, "%s/.config/specscope/config.json", home);
    else
        return true;
    if (!file_exists(path))
        return true;
    char *json;
    size_t len;
    if (!file_read(path, &json, &len, err))
        return false;
    bool ok = options_config(o, path, json, len, err);
    free(json);
    return ok;
}

/* ---- command line ---- */

/* A policy given by a flag takes the place of the config file's; another one has no use for the settings there. */
static void
forget_config_policy(struct options *o, const char *flag)
{
    const char *before = o->n_policies > 0 ? o->policies[0] : default_policy;
    if (o->command == COMMAND_BENCH || strcmp(flag, before) != 0) {
        o->n_set -= o->n_config_set;
        memmove(o->set, o->set + o->n_config_set, o->n_set * sizeof *o->set);
        o->n_config_set = 0;
    }
    o->n_policies = 0;
}

bool
options_read(struct options *o, enum command command, int argc, char **argv, struct err *err)
{
    *o = (struct options){.command = command,
                          .tokens = 256,
                          .repeat = 3,
                          .pace = -1,
                          .seed = 1,
                          .sampling = {.top_p = 1},
                          .backend = "auto",
                          .backend_options = {.gpu = -1},
                          .probe = command == COMMAND_SCOPE ? PROBE_ALL : PROBE_POLICY};
    if (!read_config(o, err))
        return false;
    o->n_config_set = o->n_set;
    const char *config_synth = o->synth;
    bool policy_given = false;
    struct option longs[N_OPTIONS + 1];
    char shorts[2 * N_OPTIONS + 2] = "+:";
    size_t n_longs = 0, n_shorts = 2;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(rows[i].commands & (int)command))
            continue;
        longs[n_longs++] = (struct option){rows[i].name, rows[i].argument != NULL, NULL, 256 + i};
        if (rows[i].letter) {
            shorts[n_shorts++] = rows[i].letter;
            if (rows[i].argument != NULL)
                shorts[n_shorts++] = ':';
        }
    }
    longs[n_longs] = (struct option){0};
    shorts[n_shorts] = '\0';
    optind = 0;
    opterr = 0;
    for (;;) { /* options and operands may be mixed */
        int at = optind > 0 ? optind : 1;
        int c = getopt_long(argc, argv, shorts, longs, NULL);
        if (c == -1) {
            bool last = optind >= argc || optind > at; /* the end, or "--": what follows are operands */
            int end = last ? argc : optind + 1;
            for (; optind < end; optind++) {
                if (o->model != NULL)
                    return err_set(err, ERR_USAGE, "'%.60s': one %s is enough; see --help", argv[optind],
                                   command == COMMAND_REPLAY ? "trace" : "model");
                o->model = argv[optind];
            }
            if (last)
                break;
            continue;
        }
        if (c == '?')
            return err_set(err, ERR_USAGE, "option %.60s is not known; see --help", argv[optind > at ? at : optind]);
        if (c == ':')
            return err_set(err, ERR_USAGE, "option %.60s needs a value; see --help", argv[optind - 1]);
        int which = c - 256;
        for (int i = 0; i < N_OPTIONS && c < 256; i++)
            if (rows[i].letter == c)
                which = i;
        if (which == OPT_POLICY && !policy_given) {
            policy_given = true;
            forget_config_policy(o, optarg);
        }
        if (!set(o, which, optarg, err))
            return false;
        if (o->finished)
            return true;
    }
    if (o->synth == config_synth && o->model != NULL)
        o->synth = NULL; /* a flag wins, and so does a model */
    return o->synth == NULL || o->model == NULL ||
           err_set(err, ERR_USAGE, "--synth %.60s makes a model; leave '%.60s' out", o->synth, o->model);
}

void
options_free(struct options *o)
{
    free(o->prompt);
    for (size_t i = 0; i < o->n_owned; i++)
        free(o->owned[i]);
    o->prompt = NULL;
    o->n_owned = 0;
}
