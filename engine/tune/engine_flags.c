/* Commands of other engines. A template contains placeholders:
 *
 *   <target> <draft>       a model, as a word for the shell
 *   <draft:json>           as a JSON string inside single quotes
 *   <target:py> <draft:py> as a Python string
 *   <sampling>             the sampling, in the engine's form
 *   <sampled:text>         the text, for a preset whose temperature is above 0; chain-sampled: and whose topk is 1
 *   <rates:k> <rates:a|b>  the acceptance rates, where they are given, for drafts of knob k's length, or of the larger one
 *   <k> <k+1> <n_max+k>    a knob, or a sum of two terms
 *
 * The names of options were read from these sources:
 *   llama.cpp 0.5.0      common/arg.cpp, common/speculative.cpp, common/ngram-map.cpp and docs/speculative.md, as packed with
 *                        llama-cpp-python 0.3.36; --spec-synth-rates: pull request 27711 of ggml-org/llama.cpp
 *   vLLM 0.33.0          vllm/config/speculative.py, vllm/engine/arg_utils.py, vllm/v1/spec_decode/
 *   SGLang 0.5.23        sglang/srt/arg_groups/fields/spec.py, arg_groups/speculative_hook.py, environ.py,
 *                        kernels/jit/csrc/ngram_corpus/
 *   transformers 5.24.0  generation/configuration_utils.py, generation/candidate_generator.py, modeling_layers.py */
#include "engine/tune/engine_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define ANY        ENGINES /* in a rule: all engines that no earlier rule names */
#define MOST_RATES 64

#define FOLDER       "HF_FOLDER"
#define DRAFT_FOLDER "HF_DRAFT_FOLDER"

#define LLAMA     "llama-server -m <target>"
#define VLLM      "vllm serve <target><sampling>"
#define SGLANG    "<rates:k>python3 -m sglang.launch_server --model-path <target>"
#define LOAD      "model = AutoModelForCausalLM.from_pretrained(<target:py>)\n"
#define LOAD_BOTH LOAD "draft = AutoModelForCausalLM.from_pretrained(<draft:py>)\n"
#define DRAFTS(model, length, schedule, threshold)                                                                     \
    model ".generation_config.update(num_assistant_tokens=" length ", num_assistant_tokens_schedule='" schedule        \
          "', assistant_confidence_threshold=" threshold ")\n"
/* vLLM and SGLang draft the likeliest token without these, also when sampling. */
#define VLLM_SAMPLES   "<sampled:, \"draft_sample_method\": \"probabilistic\">"
#define SGLANG_SAMPLES "<chain-sampled: --speculative-use-rejection-sampling>"
#define EXIT           "model.generate(**inputs, assistant_early_exit=<exit_layer><sampling>)"

static const struct rule {
    enum other_engine engine;
    const char *policy;
    const char *command; /* NULL: no equivalent */
    const char *note;    /* engine_note() */
} rules[] = {
    {ENGINE_LLAMA_CPP, "ar", LLAMA "<sampling>", NULL},
    {ENGINE_VLLM, "ar", VLLM, NULL},
    {ENGINE_SGLANG, "ar", "python3 -m sglang.launch_server --model-path <target>", NULL},
    {ENGINE_TRANSFORMERS, "ar", LOAD "model.generate(**inputs<sampling>)", NULL},

    {ENGINE_LLAMA_CPP, "sd",
     LLAMA " --spec-type draft-simple --spec-draft-model <draft> --spec-draft-n-max <k> --spec-draft-n-min 0"
           " --spec-draft-p-min 0<rates:k><sampling>",
     NULL},
    {ENGINE_VLLM, "sd",
     VLLM " --speculative-config '{\"method\": \"draft_model\", \"model\": <draft:json>,"
          " \"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
     NULL},
    {ENGINE_SGLANG, "sd",
     SGLANG " --speculative-algorithm STANDALONE --speculative-draft-model-path <draft> --speculative-num-steps <k>"
            " --speculative-eagle-topk 1 --speculative-num-draft-tokens <k+1>",
     NULL},
    {ENGINE_TRANSFORMERS, "sd",
     LOAD_BOTH DRAFTS("draft", "<k>", "constant", "0") "model.generate(**inputs, assistant_model=draft<sampling>)",
     NULL},

    {ENGINE_LLAMA_CPP, "ngram",
     LLAMA " --spec-type ngram-simple --spec-ngram-simple-size-n <n_min> --spec-ngram-simple-size-m <k>"
           "<rates:k><sampling>",
     "it looks for the last n_min tokens only, at their latest occurrence, and drafts at least n_min tokens or none"},
    {ENGINE_VLLM, "ngram",
     VLLM " --speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": <k>,"
          " \"prompt_lookup_max\": <n_max>, \"prompt_lookup_min\": <n_min><rates:k>}'",
     "it takes the earliest occurrence of the longest match"},
    {ENGINE_SGLANG, "ngram",
     SGLANG " --speculative-algorithm NGRAM --speculative-num-draft-tokens <k+1>"
            " --speculative-ngram-min-bfs-breadth 1 --speculative-ngram-max-bfs-breadth 1"
            " --speculative-ngram-match-type BFS --speculative-ngram-max-trie-depth <n_max+k>",
     "it also drafts after matches shorter than n_min, and from other requests; match=frequent is its match type PROB"},
    {ENGINE_TRANSFORMERS, "ngram",
     LOAD "model.generate(**inputs, prompt_lookup_num_tokens=<k>, max_matching_ngram_size=<n_max><sampling>)",
     "it also drafts after matches shorter than n_min, and takes the earliest occurrence"},

    {ENGINE_LLAMA_CPP, "ngram+sd",
     LLAMA
     " --spec-type ngram-simple,draft-simple --spec-ngram-simple-size-n <n_min> --spec-ngram-simple-size-m <copied>"
     " --spec-draft-model <draft> --spec-draft-n-max <k> --spec-draft-n-min 0 --spec-draft-p-min 0<rates:copied|k>"
     "<sampling>",
     "it looks for the last n_min tokens only, at their latest occurrence, and copies at least n_min tokens or none"},
    {ANY, "ngram+sd", NULL, "it has one drafter at a time; see ngram and sd"},

    {ENGINE_VLLM, "suffix",
     VLLM " --speculative-config '{\"method\": \"suffix\", \"num_speculative_tokens\": <k>,"
          " \"suffix_decoding_max_tree_depth\": <depth+k>, \"suffix_decoding_max_spec_factor\": <spec_factor>,"
          " \"suffix_decoding_min_token_prob\": <min_prob>, \"suffix_decoding_max_cached_requests\": 0<rates:k>}'",
     "it needs the package arctic-inference==0.1.1, and its drafts are chains"},
    {ANY, "suffix", NULL, "its drafts from earlier text have neither spec_factor nor min_prob; see ngram"},

    {ENGINE_TRANSFORMERS, "layerskip", LOAD DRAFTS("model", "<gamma>", "constant", "0") EXIT,
     "the model must support early exit"},
    {ENGINE_TRANSFORMERS, "fsm", LOAD DRAFTS("model", "<gamma>", "heuristic", "0") EXIT,
     "the model must support early exit; the length grows by 2, and without the limit gamma_max"},
    {ENGINE_TRANSFORMERS, "dv", LOAD DRAFTS("model", "<w_max>", "constant", "<th>") EXIT,
     "the model must support early exit; the threshold stays at th"},
    {ANY, "layerskip", NULL, "it cannot draft with the target's first layers"},
    {ANY, "fsm", NULL, "it cannot draft with the target's first layers"},
    {ANY, "dv", NULL, "it cannot draft with the target's first layers"},

    {ENGINE_LLAMA_CPP, "eagle",
     LLAMA " --spec-type draft-eagle3 --spec-draft-model <draft> --spec-draft-n-max <k> --spec-draft-n-min 0"
           " --spec-draft-p-min 0<rates:k><sampling>",
     "it drafts chains"},
    {ENGINE_VLLM, "eagle",
     VLLM " --speculative-config '{\"method\": \"eagle3\", \"model\": <draft:json>,"
          " \"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
     "it drafts chains"},
    {ENGINE_SGLANG, "eagle",
     SGLANG " --speculative-algorithm EAGLE3 --speculative-draft-model-path <draft> --speculative-num-steps <k>"
            " --speculative-eagle-topk <topk> --speculative-num-draft-tokens <nodes+1>" SGLANG_SAMPLES,
     "with topk 1 it sets the number of draft tokens to k + 1"},
    {ENGINE_TRANSFORMERS, "eagle", NULL, "it cannot draft with an EAGLE-3 head"},
    {ENGINE_LLAMA_CPP, "mtp",
     LLAMA " --spec-type draft-mtp --spec-draft-n-max <k> --spec-draft-n-min 0 --spec-draft-p-min 0<rates:k><sampling>",
     NULL},
    {ENGINE_VLLM, "mtp",
     VLLM " --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
     NULL},
    {ENGINE_SGLANG, "mtp",
     SGLANG " --speculative-algorithm EAGLE --speculative-num-steps <k> --speculative-eagle-topk 1"
            " --speculative-num-draft-tokens <k+1>" SGLANG_SAMPLES,
     NULL},
    {ENGINE_TRANSFORMERS, "mtp", LOAD "model.generate(**inputs, use_mtp=True<sampling>)",
     "it drafts one token with each of the model's layers for this, whatever k is"},

    {ANY, "del", NULL, "it cannot choose an exit layer in each round"},
    {ANY, "specbound", NULL, "it cannot choose an exit layer for each token"},
    {ANY, "swift", NULL, "it cannot skip sublayers in drafts"},
    {ANY, "specdecpp", NULL, "it has no acceptance head for a draft model"},
    {ANY, "sv", NULL, "it has no companion model"},
};

static const struct rule *
rule_of(enum other_engine engine, const char *policy)
{
    static const struct rule unknown = {ANY, "", NULL, "its form of this policy is not known"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if ((rules[i].engine == engine || rules[i].engine == ANY) && strcmp(rules[i].policy, policy) == 0)
            return &rules[i];
    return &unknown;
}

/* ---- words ---- */

static void
put_json(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c == '"' || *c == '\\' || *c == '\'') /* the JSON is in single quotes */
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    fputc('"', out);
}

static void
put_python(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c == '\'' || *c == '\\')
            fprintf(out, "\\x%02x", *c);
        else
            fputc(*c, out);
    fputc('\'', out);
}

/* A file of Ollama's has no ending. */
static bool
is_gguf(const char *path)
{
    const size_t n = strlen(path);
    return (n >= 5 && strcasecmp(path + n - 5, ".gguf") == 0) || strstr(path, "/blobs/sha256-") != NULL;
}

/* path: NULL for the word `name`; folder: the word in place of a GGUF file, or NULL if the engine reads these. */
static void
put_model(FILE *out, const char *path, const char *name, const char *folder, const char *form)
{
    const char *text = path == NULL ? name : folder != NULL && is_gguf(path) ? folder : path;
    if (form == NULL)
        put_shell_word(out, text);
    else if (strcmp(form, "json") == 0)
        put_json(out, text);
    else
        put_python(out, text);
}

/* The values of a preset's file are not checked, and are written into quoted text: only digits and signs are accepted. */
static bool
is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789.+-e")] == '\0';
}

/* ---- sampling ---- */

/* Writes a knob if the preset sets it. */
static void
put_knob(FILE *out, const struct preset *p, int knob, const char *format)
{
    if (is_number(p->sampling[knob]))
        fprintf(out, format, p->sampling[knob]);
}

static void
put_llama_sampling(FILE *out, const struct preset *p, bool greedy)
{
    put_knob(out, p, SAMPLING_TEMPERATURE, " --temp %s");
    if (greedy)
        return;
    put_knob(out, p, SAMPLING_TOP_K, " --top-k %s");
    put_knob(out, p, SAMPLING_TOP_P, " --top-p %s");
    fputs(" --min-p 0", out); /* the default is 0.05 */
}

static void
put_vllm_sampling(FILE *out, const struct preset *p, bool greedy)
{
    put_knob(out, p, SAMPLING_TEMPERATURE,
             " --generation-config vllm --override-generation-config '{\"temperature\": %s");
    /* the engine's default is all tokens, as with top-k 0 */
    if (!greedy && strtod(p->sampling[SAMPLING_TOP_K], NULL) > 0)
        put_knob(out, p, SAMPLING_TOP_K, ", \"top_k\": %s");
    if (!greedy)
        put_knob(out, p, SAMPLING_TOP_P, ", \"top_p\": %s");
    fputs("}'", out);
}

static void
put_transformers_sampling(FILE *out, const struct preset *p, bool greedy)
{
    fprintf(out, ", do_sample=%s", greedy ? "False" : "True");
    if (greedy)
        return;
    put_knob(out, p, SAMPLING_TEMPERATURE, ", temperature=%s");
    put_knob(out, p, SAMPLING_TOP_K, ", top_k=%s");
    put_knob(out, p, SAMPLING_TOP_P, ", top_p=%s");
}

/* ---- acceptance rates ---- */

static void
put_list(FILE *out, const char *separator, const double *rates, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%s%.4g", i > 0 ? separator : "", rates[i]);
}

static void
put_llama_rates(FILE *out, const double *rates, uint32_t n)
{
    fputs(" --spec-synth-rates ", out);
    put_list(out, ",", rates, n);
}

static void
put_vllm_rates(FILE *out, const double *rates, uint32_t n)
{
    fputs(", \"rejection_sample_method\": \"synthetic\", \"synthetic_acceptance_rates\": [", out);
    put_list(out, ", ", rates, n);
    fputc(']', out);
}

/* SGLang's option is the mean number of tokens a round, the target's own included. */
static void
put_sglang_rates(FILE *out, const double *rates, uint32_t n)
{
    double length = 1;
    for (uint32_t i = 0; i < n; i++)
        length += rates[i];
    fprintf(out, "SGLANG_SIMULATE_ACC_LEN=%.4g ", length);
}

/* ---- engines ---- */

static const struct form {
    void (*sampling)(FILE *, const struct preset *, bool greedy); /* NULL: set in each request */
    void (*rates)(FILE *, const double *rates, uint32_t n);       /* NULL: acceptance cannot be given */
} forms[ENGINES] = {[ENGINE_LLAMA_CPP] = {put_llama_sampling, put_llama_rates},
                    [ENGINE_VLLM] = {put_vllm_sampling, put_vllm_rates},
                    [ENGINE_SGLANG] = {NULL, put_sglang_rates},
                    [ENGINE_TRANSFORMERS] = {put_transformers_sampling, NULL}};

const char *const engine_names[ENGINES] = {"llama.cpp", "vLLM", "SGLang", "transformers"};
const char *const engine_versions[ENGINES] = {"0.5.0", "0.33.0", "0.5.23", "5.24.0"};

bool
engine_has_policy(enum other_engine engine, const char *policy)
{
    return rule_of(engine, policy)->command != NULL;
}

const char *
engine_note(enum other_engine engine, const char *policy)
{
    return rule_of(engine, policy)->note;
}

const char *
engine_folder_note(const char *command)
{
    const bool contains = strstr(command, FOLDER) != NULL || strstr(command, DRAFT_FOLDER) != NULL;
    return contains ? FOLDER ", " DRAFT_FOLDER ": the models' Hugging Face folders, in place of the GGUF files" : NULL;
}

/* ---- templates ---- */

struct filling {
    enum other_engine engine;
    const struct preset *preset;
    const struct engine_models *models;
    const double *unconditional; /* (n) */
    uint32_t n;
};

static const char *
preset_text(const struct preset *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_set; i++)
        if (strcmp(p->set[i].name, name) == 0)
            return is_number(p->set[i].text) ? p->set[i].text : NULL;
    return NULL;
}

/* Returns a knob as text; NULL: the preset does not set it. n_min is at most n_max, which other engines require. */
static const char *
knob_text(const struct preset *p, const char *name)
{
    const char *text = preset_text(p, name), *most = preset_text(p, "n_max");
    const bool over =
        strcmp(name, "n_min") == 0 && text != NULL && most != NULL && strtol(text, NULL, 10) > strtol(most, NULL, 10);
    return over ? most : text;
}

/* Reads a knob or a number. Returns false if the preset does not set the knob. */
static bool
number_of(const struct preset *p, const char *term, long *out)
{
    const char *text = is_number(term) ? term : knob_text(p, term);
    *out = text != NULL ? strtol(text, NULL, 10) : 0;
    return text != NULL;
}

static void
put_capitals(FILE *out, const char *name)
{
    for (; *name != '\0'; name++)
        fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
}

/* Writes a knob, or the sum of two terms; `plus` is NULL or the second one. */
static void
put_term(FILE *out, const struct preset *p, const char *term, const char *plus)
{
    const char *text = knob_text(p, term);
    long a, b;
    if (plus == NULL && text != NULL) {
        fputs(text, out);
    } else if (plus != NULL && number_of(p, term, &a) && number_of(p, plus, &b)) {
        fprintf(out, "%ld", a + b);
    } else {
        put_capitals(out, term);
        if (plus != NULL) {
            fputc('+', out);
            put_capitals(out, plus);
        }
    }
}

/* Writes the rates of as many drafts as the knob has, the largest one of "a|b"; all rates if the preset sets none. */
static void
put_rates(FILE *out, const struct filling *f, char *knobs)
{
    double rates[MOST_RATES], before = 1;
    long wanted = 0, length;
    if (f->n == 0)
        return;
    for (char *knob; (knob = strsep(&knobs, "|")) != NULL;)
        wanted = number_of(f->preset, knob, &length) && length > wanted ? length : wanted;
    if (wanted == 0)
        wanted = f->n;
    const uint32_t n = wanted < 1 ? 1 : wanted > MOST_RATES ? MOST_RATES : (uint32_t)wanted;
    for (uint32_t i = 0; i < n; i++) {
        const double rate = i < f->n ? f->unconditional[i] : 0;
        before = rate >= before ? before : rate > 0 ? rate : 0; /* NAN becomes 0 */
        rates[i] = before;
    }
    forms[f->engine].rates(out, rates, n);
}

/* Returns whether the preset samples; chain: and drafts no trees. */
static bool
is_sampled(const struct preset *p, bool chain)
{
    const char *temperature = p->sampling[SAMPLING_TEMPERATURE];
    long breadth;
    return is_number(temperature) && strtod(temperature, NULL) > 0 &&
           !(chain && number_of(p, "topk", &breadth) && breadth > 1);
}

static void
put_placeholder(FILE *out, const struct filling *f, char *name)
{
    char *form = strchr(name, ':'), *plus = strchr(name, '+');
    const bool reads_gguf = f->engine == ENGINE_LLAMA_CPP;
    if (form != NULL)
        *form++ = '\0';
    if (plus != NULL)
        *plus++ = '\0';
    if (strcmp(name, "target") == 0)
        put_model(out, f->models->target, "TARGET", reads_gguf ? NULL : FOLDER, form);
    else if (strcmp(name, "draft") == 0)
        put_model(out, f->models->draft, "DRAFT", reads_gguf ? NULL : DRAFT_FOLDER, form);
    else if (strcmp(name, "rates") == 0)
        put_rates(out, f, form);
    else if (strcmp(name, "sampled") == 0 || strcmp(name, "chain-sampled") == 0)
        fputs(is_sampled(f->preset, name[0] == 'c') ? form : "", out);
    else if (strcmp(name, "sampling") != 0)
        put_term(out, f->preset, name, plus);
    else if (is_number(f->preset->sampling[SAMPLING_TEMPERATURE]))
        forms[f->engine].sampling(out, f->preset, strtod(f->preset->sampling[SAMPLING_TEMPERATURE], NULL) <= 0);
}

static void
put_command(FILE *out, const struct filling *f, const char *command)
{
    for (const char *c = command; *c != '\0'; c++) {
        char name[80];
        const size_t n = *c == '<' ? strcspn(c + 1, ">") : 0;
        if (n == 0) {
            fputc(*c, out);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)n, c + 1);
        put_placeholder(out, f, name);
        c += n + 1;
    }
}

static void
put_text(FILE *out, const struct filling *f)
{
    const struct rule *rule = rule_of(f->engine, f->preset->policy);
    const char *missing = NULL;
    if (rule->command == NULL)
        missing = rule->note;
    else if (f->n > 0 && strcmp(f->preset->policy, "ar") == 0)
        missing = "there are no drafts to accept";
    else if (f->n > 0 && forms[f->engine].rates == NULL)
        missing = "it cannot accept drafts at given rates";
    if (missing != NULL)
        fprintf(out, "no equivalent: %s", missing);
    else
        put_command(out, f, rule->command);
}

size_t
engine_flags(enum other_engine engine, const struct preset *preset, const struct engine_models *models,
             const double *unconditional, uint32_t n, char *out, size_t room)
{
    const struct filling filling = {engine, preset, models, unconditional, n};
    char *text = NULL;
    size_t length = 0;
    if (room > 0)
        out[0] = '\0';
    FILE *file = open_memstream(&text, &length);
    if (file == NULL)
        return 0;
    put_text(file, &filling);
    const bool whole = fclose(file) == 0;
    if (whole && length < room)
        memcpy(out, text, length + 1);
    free(text);
    return whole ? length : 0;
}
