/* Models: the bundled one with what belongs to it, and those that other programs keep here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/doctor/doctor.h"
#include "engine/base/plural.h"
#include "engine/model/memory.h"
#include "engine/model/model_places.h"
#include "engine/synthetic/model_look.h"
#include "engine/synthetic/model_open.h"

/* Where `make install` or a package put them, or the source tree. */
static void
say_bundled(struct findings *f)
{
    static const char *const beside[] = {"models/fables-q8_0.heads.safetensors",
                                         "models/fables-draft-q8_0.gguf",
                                         "models/fables-draft-q8_0.accept.safetensors",
                                         "models/fables-companion-q8_0.gguf",
                                         "models/fables-q8_0.profile.json",
                                         "models/prompts.jsonl",
                                         "themes/dark.json"};
    const char *again = "install it again, or name a model: specscope MODEL";
    struct model *m;
    struct err err = {0};
    if (!model_open_with(&m, bundled_model_path(), &(struct model_options){0}, &err)) {
        doctor_say(f, FINDING_NOTE, "bundled", again, "the bundled model can't be used: %.300s", err.text);
        return;
    }
    char missing[300] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", data_dir(), beside[i]);
        if (!file_exists(path) && length < sizeof missing)
            length +=
                (size_t)snprintf(missing + length, sizeof missing - length, "%s%s", length > 0 ? ", " : "", beside[i]);
    }
    if (length > 0)
        doctor_say(f, FINDING_NOTE, "bundled", again, "%.200s lacks %.150s", data_dir(), missing);
    else
        doctor_say(f, FINDING_OK, "bundled", NULL, "%s, %" PRIu32 " layer%s, with heads, helpers and themes in %.200s",
                   m->name, m->desc.n_layers, plural(m->desc.n_layers), data_dir());
    model_close(m);
}

struct seen {
    size_t hub, ollama, files; /* by the names that they have; files are LM Studio's and llama.cpp's */
    size_t run, fit;
    char why[200]; /* the first that doesn't run doesn't */
};

static bool
look_at(void *user, const char *name, const char *path)
{
    struct seen *s = user;
    struct model_look look;
    if (strncmp(name, "hf:", 3) == 0)
        s->hub++;
    else if (strncmp(name, "ollama:", 7) == 0)
        s->ollama++;
    else
        s->files++;
    model_look(&look, path, memory_available());
    s->run += look.runs;
    s->fit += look.runs && look.ctx == look.ctx_train;
    if (!look.runs && s->why[0] == '\0')
        snprintf(s->why, sizeof s->why, "; %.60s doesn't: %.120s", name, look.why);
    return true;
}

void
doctor_models(struct findings *f)
{
    say_bundled(f);
    struct seen seen = {0};
    struct err err = {0};
    if (!model_places_list(look_at, &seen, &err))
        doctor_say(f, FINDING_NOTE, "models", "`specscope models` lists them", "%s", err.text);
    const size_t n = seen.hub + seen.ollama + seen.files;
    if (n == 0)
        doctor_say(f, FINDING_OK, "models", "any .gguf file or Hugging Face folder will do: specscope MODEL",
                   "none in the caches of Hugging Face, Ollama, LM Studio and llama.cpp");
    else
        doctor_say(
            f, seen.run > 0 ? FINDING_OK : FINDING_NOTE, "models",
            seen.run < n ? "`specscope models` says what the others are" : NULL,
            "%zu of Hugging Face's cache, %zu of Ollama's, %zu of LM Studio's and llama.cpp's; %zu run, %zu with "
            "their whole context in memory%s",
            seen.hub, seen.ollama, seen.files, seen.run, seen.fit, seen.why);
}
