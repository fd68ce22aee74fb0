/* Fills in a policy's command of another engine, a template with placeholders:
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

#define MOST_RATES   64
#define TARGET_PLACE "<target>"

#define FOLDER       "HF_FOLDER"
#define DRAFT_FOLDER "HF_DRAFT_FOLDER"

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

/* The values of a preset's file are not checked, and are written into quoted text: only digits and signs are
 * accepted. */
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

const char *
engine_folder_note(const char *command)
{
    const bool contains = strstr(command, FOLDER) != NULL || strstr(command, DRAFT_FOLDER) != NULL;
    return contains ? FOLDER ", " DRAFT_FOLDER ": the models' Hugging Face folders, in place of the GGUF files" : NULL;
}

/* ---- templates ---- */

struct filling {
    enum other_engine engine;
    const struct policy_ops *policy;
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

static bool
options_only(const struct filling *f)
{
    return f->models->target != NULL && f->models->target[0] == '\0';
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
    else if (!options_only(f) && is_number(f->preset->sampling[SAMPLING_TEMPERATURE]))
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
    const char *command = f->policy->command[f->engine];
    if (command != NULL && options_only(f) && (command = strstr(command, TARGET_PLACE)) != NULL)
        command += strlen(TARGET_PLACE);
    if (command == NULL)
        fprintf(out, "no equivalent: %s",
                f->policy->no_command != NULL ? f->policy->no_command : "its form of this policy is not known");
    else if (f->n > 0 && policy_is_baseline(f->policy->name))
        fputs("no equivalent: there are no drafts to accept", out);
    else if (f->n > 0 && forms[f->engine].rates == NULL)
        fputs("no equivalent: it cannot accept drafts at given rates", out);
    else
        put_command(out, f, command);
}

size_t
engine_flags(enum other_engine engine, const struct policy_ops *policy, const struct preset *preset,
             const struct engine_models *models, const double *unconditional, uint32_t n, char *out, size_t room)
{
    const struct filling filling = {engine, policy, preset, models, unconditional, n};
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
