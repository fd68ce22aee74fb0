/* Reads the command line and the config file into struct options, by the rows of option_table.c. */
#include "cli/options/options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/model/model_locations.h"

/* ---- options that cannot be combined ---- */

#define RIVALS 32

/* --name cannot be given with `others`; if `only` is set, it can be given with nothing else. */
struct conflict {
    unsigned commands;
    const char *name;
    bool only;
    const char *others[RIVALS];
    const char *why;
};

#define THE_MODEL                                                                                                      \
    "exact", "isa", "gpu", "synth", "lora", "quantize", "backend", "threads", "heads", "draft", "companion", "accept", \
        "profile", "vocab-counts", "json"
#define GENERATES (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH | COMMAND_CONNECT)

static const struct conflict conflicts[] = {
    {COMMAND_BENCH, "speed", false, {"steps"}, "they are two measurements; give one of them"},
    {COMMAND_BENCH,
     "speed",
     true,
     {THE_MODEL, "tokens", "ctx", "repeat"},
     "it measures no policy and no text; leave it out"},
    {COMMAND_BENCH, "steps", true, {THE_MODEL, "ctx"}, "it measures no policy and no text; leave it out"},
    {GENERATES, "prompt", false, {"file", "prompts"}, "both set the prompt; give one of them"},
    {GENERATES, "file", false, {"prompts"}, "both set the prompt; give one of them"},
    {COMMAND_TRAIN_HEADS | COMMAND_TRAIN_EAGLE | COMMAND_TRAIN_PROFILE,
     "text",
     false,
     {"prompts"},
     "both are sources of text; give one of them"},
    {COMMAND_TRAIN_EAGLE, "tokens", false, {"minutes"}, "both set the length of training; give one of them"},
    {COMMAND_TOKENIZE,
     "decode",
     false,
     {"no-special", "no-bos", "no-eos", "pieces"},
     "it applies to text, and --decode reads ids; leave it out"},
};

static bool
is_among(const char *const others[RIVALS], const char *name)
{
    for (int i = 0; i < RIVALS && others[i] != NULL; i++)
        if (strcmp(others[i], name) == 0)
            return true;
    return false;
}

/* given: (n_option_rows) the rows that flags named. */
static bool
option_given(const bool *given, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < n_option_rows && !found; i++)
        found = given[i] && strcmp(option_rows[i].name, name) == 0;
    return found;
}

/* Checks flags alone, because flags override the config file. False: *err names the two options (ERR_USAGE). */
static bool
options_agree(const struct options *o, const bool *given, struct err *err)
{
    for (const struct conflict *c = conflicts; c < conflicts + sizeof conflicts / sizeof *conflicts; c++) {
        if ((c->commands & o->command) == 0 || !option_given(given, c->name))
            continue;
        for (size_t i = 0; i < n_option_rows; i++) {
            const char *other = option_rows[i].name;
            if (given[i] && strcmp(other, c->name) != 0 && is_among(c->others, other) != c->only)
                return err_set(err, ERR_USAGE, "--%s beside --%s: %s", other, c->name, c->why);
        }
    }
    return true;
}

/* ---- the config file: a JSON object of options by their long names ---- */

static bool
set_value(struct options *o, const struct option_row *row, const cJSON *value, const char *path, struct err *err)
{
    char number[32];
    const char *text = NULL;
    if (row->argument == NULL) {
        if (!cJSON_IsBool(value))
            return err_set(err, ERR_USAGE, "%s: \"%s\" must be true or false", path, row->name);
        return cJSON_IsTrue(value) ? option_set(o, row, NULL, err) : true;
    }
    if (cJSON_IsNumber(value)) {
        snprintf(number, sizeof number, "%.15g", value->valuedouble);
        text = number;
    } else if (cJSON_IsString(value)) {
        text = value->valuestring;
    }
    if (text == NULL)
        return err_set(err, ERR_USAGE, "%s: \"%s\" must be a string or a number", path, row->name);
    if (o->n_owned == sizeof o->owned / sizeof *o->owned || (o->owned[o->n_owned] = strdup(text)) == NULL)
        return err_set(err, ERR_WORK, "%s: too many entries", path);
    struct err inner = {0};
    if (!option_set(o, row, o->owned[o->n_owned++], &inner))
        return err_set(err, inner.kind, "%s: %.300s", path, inner.text);
    return true;
}

/* One file serves all commands that read it, so a command ignores options of other commands. */
static bool
set_item(struct options *o, const cJSON *item, const char *path, struct err *err)
{
    unsigned commands = 0;
    for (size_t i = 0; i < n_command_rows; i++)
        commands |= command_rows[i].config ? (unsigned)command_rows[i].command : 0;
    const struct option_row *row = option_find(item->string, commands);
    if (row == NULL || row->type == OPTION_PRINT)
        return err_set(err, ERR_USAGE, "%s: \"%.40s\" is no option; the names are those of --help", path, item->string);
    row = option_find(item->string, o->command);
    if (row == NULL)
        return true;
    if (!cJSON_IsArray(item))
        return set_value(o, row, item, path, err);
    for (const cJSON *value = item->child; value != NULL; value = value->next)
        if (!set_value(o, row, value, path, err))
            return false;
    return true;
}

bool
options_config(struct options *o, const char *path, const char *json, size_t len, struct err *err)
{
    size_t wrong;
    cJSON *root;
    if (!json_read_typed(&root, json, len, &wrong))
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    if (wrong > 0)
        return err_set(err, ERR_USAGE, "%s: not valid JSON in line %zu; correct it there", path, wrong);
    bool ok = cJSON_IsObject(root) || err_set(err, ERR_USAGE, "%s: not a JSON object; see `man specscope`", path);
    for (const cJSON *item = ok ? root->child : NULL; item != NULL && ok; item = item->next)
        ok = set_item(o, item, path, err);
    cJSON_Delete(root);
    return ok;
}

bool
options_config_file(struct options *o, struct err *err)
{
    char path[1024];
    if (config_path(path, sizeof path, "config.json") == NULL)
        return true;
    if (!file_exists(path))
        return true;
    char *json;
    size_t len;
    if (!file_read(path, &json, &len, err))
        return false;
    const bool ok = options_config(o, path, json, len, err);
    free(json);
    o->n_config_set = o->n_set;
    return ok;
}

/* ---- names of models ---- */

#define WITH_MODELS                                                                                                    \
    (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH | COMMAND_TUNE | COMMAND_SCORE | COMMAND_INFO | COMMAND_TOKENIZE |    \
     COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE)

static bool
find_model(struct options *o, const char **model, struct err *err)
{
    char path[PATH_MAX];
    if (strcmp(*model, MODEL_BUNDLED) == 0 && !file_exists(MODEL_BUNDLED)) {
        *model = bundled_model_path();
        return true;
    }
    if (!model_find(*model, path, sizeof path, err))
        return false;
    if (strcmp(path, *model) == 0)
        return true;
    if (o->n_owned == sizeof o->owned / sizeof *o->owned || (o->owned[o->n_owned] = strdup(path)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for the name of a model");
    *model = o->owned[o->n_owned++];
    return true;
}

/* Returns whether a word of the command line names a model on this machine: a GGUF file, a folder with config.json,
 * hf:…, ollama:… or "bundled". */
static bool
word_is_model(const char *word)
{
    char path[PATH_MAX], config[PATH_MAX], magic[4];
    struct stat about;
    struct err unused;
    const bool cached = strncmp(word, "hf:", 3) == 0 || strncmp(word, "ollama:", 7) == 0;
    if (!cached && !file_exists(word))
        return strcmp(word, MODEL_BUNDLED) == 0;
    if (!model_find(word, path, sizeof path, &unused) || stat(path, &about) != 0)
        return false;
    if (S_ISDIR(about.st_mode))
        return (size_t)snprintf(config, sizeof config, "%s/config.json", path) < sizeof config && file_exists(config);
    FILE *f = S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
    const bool read = f != NULL && fread(magic, sizeof magic, 1, f) == 1;
    if (f != NULL)
        fclose(f);
    return read && memcmp(magic, "GGUF", sizeof magic) == 0;
}

/* Returns false for "none" and "self:6", which do not name a model. */
static bool
is_model(const char *aux)
{
    return aux != NULL && strcmp(aux, "none") != 0 && strncmp(aux, "self:", 5) != 0;
}

/* Returns whether the word is a mistyped command, such as "rnu", and not a model. */
static bool
is_no_command(const struct options *o)
{
    return o->command == COMMAND_SCOPE && strpbrk(o->model, "/.:") == NULL && strcmp(o->model, MODEL_BUNDLED) != 0 &&
           !file_exists(o->model);
}

/* Finds the model and the auxiliary models of commands that take models (engine/model/model_locations.h), and stores
 * their paths. */
bool
options_find_models(struct options *o, struct err *err)
{
    if (o->finished || (o->command & WITH_MODELS) == 0)
        return true;
    for (int i = 0; i < AUX_MODELS; i++)
        if (is_model(o->aux[i]) && !find_model(o, &o->aux[i], err))
            return false;
    if (o->model == NULL)
        return true;
    if (is_no_command(o)) {
        const char *names[ROWS_MOST + 1] = {NULL};
        char near[64];
        for (size_t i = 1; i < n_command_rows; i++)
            names[i - 1] = command_rows[i].name;
        const bool is_near = option_near(o->model, names, near, sizeof near)[0] != '\0';
        return err_set(err, ERR_USAGE, "'%.60s' is neither a command nor a model that is here%s", o->model,
                       is_near ? near : "; see --help");
    }
    return find_model(o, &o->model, err);
}

/* ---- the command line ---- */

#define LONG 256 /* getopt's values from here on are rows of the table */

/* Options of a command for getopt_long(). */
struct getopt_tables {
    struct option longs[ROWS_MOST + 1];
    char shorts[2 * ROWS_MOST + 3];
};

static void
make_tables(struct getopt_tables *t, enum command command)
{
    struct option *l = t->longs;
    char *s = t->shorts;
    *s++ = '+'; /* stop at an operand; distinguish a missing value from an unknown option */
    *s++ = ':';
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if ((row->commands & command) == 0)
            continue;
        *l++ = (struct option){row->name, row->argument != NULL, NULL, LONG + (int)i};
        if (row->letter != 0)
            *s++ = row->letter;
        if (row->letter != 0 && row->argument != NULL)
            *s++ = ':';
    }
    *l = (struct option){0};
    *s = '\0';
}

static const struct option_row *
row_of(int c, enum command command)
{
    if (c >= LONG)
        return &option_rows[c - LONG];
    const struct option_row *row = option_rows;
    while ((row->commands & command) == 0 || row->letter != c) /* getopt returns no other letters */
        row++;
    return row;
}

static bool
take_operand(struct options *o, const char *text, struct err *err)
{
    const struct command_row *command = command_row(o->command);
    if (command->several && o->operands.n < OPTIONS_MOST) {
        o->operands.at[o->operands.n++] = text;
        return true;
    }
    if (!command->takes_operand || command->several || o->model != NULL)
        return err_set(err, ERR_USAGE, "'%.60s': %s; see --help", text, command->too_many);
    o->model = text;
    return true;
}

/* A policy given by a flag replaces that of the config file. If it is another policy, the config file's knobs are
 * dropped. */
static void
forget_config_policy(struct options *o, const char *flag)
{
    const char *before = o->policies.n > 0 ? o->policies.at[0] : knobs_policy;
    if ((o->command & COMPARES) != 0 || strcmp(flag, before) != 0) {
        o->n_set -= o->n_config_set;
        memmove(o->set, o->set + o->n_config_set, o->n_set * sizeof *o->set);
        o->n_config_set = 0;
    }
    o->policies.n = 0;
    o->policy_given = true;
}

/* Reports words that getopt_long() refuses: an unknown or ambiguous name, or a switch with a value. */
static bool
refuse(const struct options *o, const char *text, struct err *err)
{
    char could[300] = "";
    const size_t n = strncmp(text, "--", 2) == 0 ? strcspn(text, "=") : 0;
    size_t found = 0;
    for (size_t i = 0; i < n_option_rows && n > 2; i++) {
        const char *name = option_rows[i].name;
        if ((option_rows[i].commands & o->command) == 0 || strncmp(text + 2, name, n - 2) != 0)
            continue;
        const size_t used = strlen(could);
        snprintf(could + used, sizeof could - used, "%s--%s", found++ > 0 ? ", " : "", name);
        if (name[n - 2] == '\0')
            return err_set(err, ERR_USAGE, "option --%s takes no value; see --help", name);
    }
    if (found == 1)
        return err_set(err, ERR_USAGE, "option %s takes no value; see --help", could);
    if (found > 1)
        return err_set(err, ERR_USAGE, "option %.60s may be one of %s", text, could);
    const char *names[ROWS_MOST + 1] = {NULL};
    char word[64] = "", near[64] = "";
    for (size_t i = 0, k = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & o->command) != 0)
            names[k++] = option_rows[i].name;
    if (n > 2)
        snprintf(word, sizeof word, "%.*s", (int)n - 2, text + 2);
    option_near(word, names, near, sizeof near);
    return near[0] != '\0' ? err_set(err, ERR_USAGE, "option %.60s is not known; did you mean --%s", text,
                                     near + strlen("; did you mean "))
                           : err_set(err, ERR_USAGE, "option %.60s is not known; see --help", text);
}

/* Options and operands may be mixed; all arguments after "--" are operands. */
static bool
read_arguments(struct options *o, int argc, char **argv, bool given[ROWS_MOST], struct err *err)
{
    struct getopt_tables tables;
    make_tables(&tables, o->command);
    bool policy_given = false;
    optind = 0;
    opterr = 0;
    while (!o->finished) {
        const int at = optind > 0 ? optind : 1;
        const int c = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
        if (c == -1) {
            const bool last = optind >= argc || optind > at; /* the end, or "--" */
            for (const int end = last ? argc : optind + 1; optind < end; optind++)
                if (!take_operand(o, argv[optind], err))
                    return false;
            if (last)
                return true;
            continue;
        }
        if (c == '?')
            return refuse(o, argv[optind > at ? at : optind], err);
        if (c == ':')
            return err_set(err, ERR_USAGE, "option %.60s needs a value; see --help", argv[optind - 1]);
        const struct option_row *row = row_of(c, o->command);
        if (optarg == argv[optind - 1] && !row->model && word_is_model(optarg))
            return err_set(err, ERR_USAGE,
                           "option --%s needs a value: the next word, %.200s, is a model; give %s first", row->name,
                           optarg, row->argument);
        given[row - option_rows] = true;
        if (strcmp(row->name, "policy") == 0 && !policy_given) {
            policy_given = true;
            forget_config_policy(o, optarg);
        }
        if (!option_set(o, row, optarg, err))
            return false;
    }
    return true;
}

/* Resolves options that affect each other; config: the options of the config file. */
static bool
combine(struct options *o, const struct options *config, bool prompt_given, struct err *err)
{
    o->chat.on = o->chat.on || o->chat.system != NULL || o->chat.tools != NULL || o->chat.n_variables > 0 ||
                 o->chat.name != NULL || o->chat.template.data != NULL || o->chat.day != NULL || o->chat.special ||
                 o->command == COMMAND_TRAIN_HEADS || o->command == COMMAND_TRAIN_EAGLE;
    o->chat.variables = o->chat_variables;
    if (prompt_given && o->prompts_file == config->prompts_file)
        o->prompts_file = NULL; /* a flag wins, */
    if (prompt_given && o->prompts_file != NULL)
        return err_set(err, ERR_USAGE, "--batch %.60s has prompts; leave the other prompt out", o->prompts_file);
    if (o->synth == config->synth && o->model != NULL)
        o->synth = NULL; /* and so does a model */
    if (o->synth != NULL && o->model != NULL)
        return err_set(err, ERR_USAGE, "--synth %.60s makes a model; leave '%.60s' out", o->synth, o->model);
    return true;
}

bool
options_read(struct options *o, enum command command, int argc, char **argv, struct err *err)
{
    options_init(o, command);
    o->bare = argc == 1;
    if (command_row(command)->config && !options_config_file(o, err))
        return false;
    const struct options config = *o;
    bool given[ROWS_MOST] = {false};
    return read_arguments(o, argc, argv, given, err) &&
           (o->finished || (options_agree(o, given, err) &&
                            combine(o, &config, option_given(given, "prompt") || option_given(given, "file"), err)));
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

int
options_run(enum command command, int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    int status = 0;
    bool ok = options_read(&o, command, argc, argv, &err) && options_find_models(&o, &err);
    if (ok && !o.finished)
        ok = command_row(command)->main(&o, &status, &err);
    else if (ok && fflush(stdout) != 0)
        ok = err_set(&err, ERR_WORK, "stdout: %s", strerror(errno));
    options_free(&o);
    return ok ? status : command_failed(&err);
}
