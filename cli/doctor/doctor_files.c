/* Doctor's checks of the terminal, of models and of the user's files. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/doctor/doctor.h"
#include "cli/options/options.h"
#include "engine/base/file_read.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"
#include "engine/synthetic/model_open.h"
#include "kernels/base/plural.h"
#include "tui/terminal/terminal.h"

/* ---- terminal: type, size, colours, characters, mouse ---- */

/* Below the first size the scope is cramped; below the second it shows only a message. */
#define ROOMY_ROWS 24
#define ROOMY_COLS 80
#define LEAST_ROWS 10
#define LEAST_COLS 40

#define RICH_TYPE "set TERM to what your terminal is, e.g. export TERM=xterm-256color"

/* Returns false if nothing else can be checked. */
static bool
check_type(struct findings *f, const struct terminal_facts *t)
{
    const char *type = t->type != NULL ? t->type : "";
    if (!isatty(STDOUT_FILENO)) {
        doctor_add(f, FINDING_NOTE, "terminal",
                   "run this in the terminal that you mean; without one there is `specscope run`",
                   "standard output is no terminal, so there is none to look at");
        return false;
    }
    if (!t->known || !t->places) {
        doctor_add(f, FINDING_BAD, "terminal", RICH_TYPE, "terminal type \"%.40s\" %s", type,
                   t->known ? "cannot place the cursor, so the scope cannot be shown" : "is not in terminfo here");
        return false;
    }
    if (t->stands_in != NULL) {
        doctor_add(f, FINDING_NOTE, "terminal", RICH_TYPE,
                   "type \"%.40s\" is not in terminfo here; the terminal answers, and is used as %s", type,
                   t->stands_in);
        return true;
    }
    doctor_add(f, FINDING_OK, "terminal", NULL, "%.40s%s", type, getenv("TMUX") != NULL ? ", in tmux" : "");
    return true;
}

static void
check_size(struct findings *f, const struct terminal_facts *t)
{
    if (t->rows == 0 || t->cols == 0)
        doctor_add(f, FINDING_NOTE, "size", "stty rows 40 cols 120", "the terminal doesn't say how large it is");
    else if (t->rows < LEAST_ROWS || t->cols < LEAST_COLS)
        doctor_add(f, FINDING_BAD, "size", "make it larger, or its letters smaller",
                   "%dx%d is too small: %dx%d is the least", t->cols, t->rows, LEAST_COLS, LEAST_ROWS);
    else if (t->rows < ROOMY_ROWS || t->cols < ROOMY_COLS)
        doctor_add(f, FINDING_NOTE, "size", "from 80x24 up panels have frames, from 120x36 up most are side by side",
                   "%dx%d is small", t->cols, t->rows);
    else
        doctor_add(f, FINDING_OK, "size", NULL, "%dx%d", t->cols, t->rows);
}

static void
check_colours(struct findings *f, const struct terminal_facts *t)
{
    const char *more = "if yours has 24-bit colour: export COLORTERM=truecolor";
    if (getenv("TMUX") != NULL && t->colours < 256)
        more = "set -g default-terminal tmux-256color in ~/.tmux.conf";
    else if (getenv("TMUX") != NULL)
        more = "if the terminal around tmux has 24-bit colour: set -as terminal-features ',*:RGB' in ~/.tmux.conf and "
               "export COLORTERM=truecolor";
    else if (t->type != NULL && strncmp(t->type, "screen", 6) == 0)
        more = "GNU screen before version 5 has no more; tmux has 24-bit colour";
    else if (t->type != NULL && strcmp(t->type, "linux") == 0)
        more = "the console has no more; a terminal in a window has";
    if (t->direct_said || t->direct_type || t->direct_told)
        doctor_add(f, FINDING_OK, "colours", NULL, "24-bit (%s)",
                   t->direct_said   ? "COLORTERM says so"
                   : t->direct_type ? "terminfo says so"
                                    : "the terminal says so");
    else if (t->colours >= 256)
        doctor_add(f, FINDING_NOTE, "colours", more, "256 of them, so scales have steps");
    else if (t->colours >= 8)
        doctor_add(f, FINDING_NOTE, "colours", more, "%d of them, so scales are coarse", t->colours);
    else
        doctor_add(f, FINDING_NOTE, "colours", RICH_TYPE, "none: the scope tells things apart by letters and marks");
}

static void
check_characters(struct findings *f)
{
    const char *all = getenv("LC_ALL");
    if (terminal_choose_locale())
        doctor_add(f, FINDING_OK, "characters", NULL, "UTF-8");
    else if (all != NULL && (strcmp(all, "C") == 0 || strcmp(all, "POSIX") == 0))
        doctor_add(f, FINDING_NOTE, "characters", "unset LC_ALL, or export LC_ALL=C.UTF-8",
                   "ASCII alone, as LC_ALL=%s asks for", all);
    else
        doctor_add(f, FINDING_NOTE, "characters", "install a UTF-8 locale and set LANG to it",
                   "ASCII alone: the system has no C.UTF-8, and LANG names no UTF-8 locale");
}

void
doctor_terminal(struct findings *f)
{
    struct terminal_facts t;
    terminal_look(&t);
    if (check_type(f, &t)) {
        check_size(f, &t);
        check_colours(f, &t);
        if (t.mouse)
            doctor_add(f, FINDING_OK, "mouse", NULL, "clicks, drags and the wheel");
        else
            doctor_add(f, FINDING_NOTE, "mouse", RICH_TYPE,
                       "this terminal type has none; every place has a key as well");
    }
    check_characters(f);
}

/* ---- models: the bundled one with its heads, and those in the caches of other programs ---- */

/* Models are where `make install` or a package installed them, or in the source tree. */
static void
check_bundled(struct findings *f)
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
        doctor_add(f, FINDING_NOTE, "bundled", again, "the bundled model can't be used: %.300s", err.text);
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
        doctor_add(f, FINDING_NOTE, "bundled", again, "%.200s lacks %.150s", data_dir(), missing);
    else
        doctor_add(f, FINDING_OK, "bundled", NULL, "%s, %" PRIu32 " layer%s, with heads, helpers and themes in %.200s",
                   m->name, m->desc.n_layers, plural(m->desc.n_layers), data_dir());
    model_close(m);
}

struct seen {
    size_t hub, ollama, files; /* by the names that they have; files are LM Studio's and llama.cpp's */
    size_t run, fit;
    char why[200]; /* reason why the first unusable model does not run */
};

static bool
check_model(void *user, const char *name, const char *path)
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
    check_bundled(f);
    struct seen seen = {0};
    struct err err = {0};
    if (!model_places_list(check_model, &seen, &err))
        doctor_add(f, FINDING_NOTE, "models", "`specscope models` lists them", "%s", err.text);
    const size_t n = seen.hub + seen.ollama + seen.files;
    if (n == 0)
        doctor_add(f, FINDING_OK, "models", "any .gguf file or Hugging Face folder will do: specscope MODEL",
                   "none in the caches of Hugging Face, Ollama, LM Studio and llama.cpp");
    else
        doctor_add(
            f, seen.run > 0 ? FINDING_OK : FINDING_NOTE, "models",
            seen.run < n ? "`specscope models` says what the others are" : NULL,
            "%zu of Hugging Face's cache, %zu of Ollama's, %zu of LM Studio's and llama.cpp's; %zu run, %zu with "
            "their whole context in memory%s",
            seen.hub, seen.ollama, seen.files, seen.run, seen.fit, seen.why);
}

/* ---- the user's files: config, presets, history, traces ---- */

static void
check_config(struct findings *f)
{
    char path[1024];
    struct options o;
    struct err err = {0};
    if (config_path(path, sizeof path, "config.json") == NULL) {
        doctor_add(f, FINDING_NOTE, "config", "set HOME", "neither HOME nor XDG_CONFIG_HOME says where it would be");
        return;
    }
    if (!file_exists(path)) {
        doctor_add(f, FINDING_OK, "config", NULL, "none; it would be %s", path);
        return;
    }
    options_init(&o, COMMAND_SCOPE);
    if (options_config_file(&o, &err))
        doctor_add(f, FINDING_OK, "config", NULL, "%s is read", path);
    else
        doctor_add(f, FINDING_BAD, "config", "correct it, or move it away", "%s", err.text);
    options_free(&o);
}

/* Can a file be created at `path`, with its folders? On failure errno has the reason. */
static bool
can_make(const char *path)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return false;
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        slash[slash == folder ? 1 : 0] = '\0';
        if (access(folder, F_OK) == 0 || strcmp(folder, "/") == 0)
            return access(folder, W_OK | X_OK) == 0;
    }
    return false;
}

/* Checks the history of prompts, one per line, that the scope keeps between runs. */
static void
check_history(struct findings *f)
{
    static const char topic[] = "history";
    char path[1024], *text = NULL;
    size_t n = 0, lines = 0;
    struct err err = {0};
    if (state_place(path, sizeof path, "prompts") == NULL) {
        doctor_add(f, FINDING_NOTE, topic, "set HOME", "nothing is remembered: neither HOME nor XDG_STATE_HOME is set");
        return;
    }
    if (!file_exists(path)) {
        if (can_make(path))
            doctor_add(f, FINDING_OK, topic, NULL, "no prompts yet; they will be in %s", path);
        else
            doctor_add(f, FINDING_NOTE, topic, "make its folder writable, or set XDG_STATE_HOME",
                       "%s cannot be made: %s", path, strerror(errno));
        return;
    }
    if (!file_text(path, (size_t)64 << 20, &text, &n, &err)) {
        doctor_add(f, FINDING_NOTE, topic, "move it away", "%s", err.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    free(text);
    if (access(path, W_OK) == 0)
        doctor_add(f, FINDING_OK, topic, NULL, "%zu prompt%s in %s", lines, plural(lines), path);
    else
        doctor_add(f, FINDING_NOTE, topic, "make it writable", "%s: nothing new is remembered: %s", path,
                   strerror(errno));
}

#define LITTLE ((uint64_t)200 << 20) /* bytes: three minutes of a run that probes every layer, at full speed */

static void
check_traces(struct findings *f)
{
    char folder[PATH_MAX], size[24];
    struct statvfs about;
    if (getcwd(folder, sizeof folder) == NULL)
        snprintf(folder, sizeof folder, ".");
    if (access(".", W_OK | X_OK) != 0) {
        doctor_add(f, FINDING_NOTE, "traces", "name another folder: --trace /tmp/NAME",
                   "%s, this folder, cannot be written: %s", folder, strerror(errno));
        return;
    }
    if (statvfs(".", &about) != 0)
        return;
    const uint64_t room = (uint64_t)about.f_bavail * about.f_frsize;
    doctor_add(f, room < LITTLE ? FINDING_NOTE : FINDING_OK, "traces",
               room < LITTLE ? "a trace of all layers grows by a megabyte a second: name another disk's folder" : NULL,
               "%s in this folder", memory_text(size, room));
}

void
doctor_files(struct findings *f)
{
    check_config(f);
    check_history(f);
    check_traces(f);
}
