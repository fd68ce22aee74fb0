#include "cli/options/option_conflicts.h"

#include <string.h>

#define MOST 32

/* Beside --name what is listed is refused; or, with only, all else that the command knows. */
struct conflict {
    unsigned commands;
    const char *name;
    bool only;
    const char *others[MOST];
    const char *why;
};

#define THE_MODEL                                                                                                      \
    "exact", "isa", "gpu", "synth", "lora", "quantize", "backend", "threads", "heads", "draft", "companion", "accept", \
        "profile", "prefill", "json"
#define GENERATES (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH)

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
    {COMMAND_TRAIN_PROFILE, "text", false, {"prompts"}, "both are sources of prompts; give one of them"},
    {COMMAND_TOKENIZE,
     "decode",
     false,
     {"no-special", "no-bos", "no-eos", "pieces"},
     "it applies to text, and --decode reads ids; leave it out"},
};

static bool
is_among(const char *const others[MOST], const char *name)
{
    for (int i = 0; i < MOST && others[i] != NULL; i++)
        if (strcmp(others[i], name) == 0)
            return true;
    return false;
}

bool
option_given(const bool *given, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < n_option_rows && !found; i++)
        found = given[i] && strcmp(option_rows[i].name, name) == 0;
    return found;
}

bool
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
