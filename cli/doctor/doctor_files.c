/* Doctor's checks of the terminal, of models and of the user's files. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/plural.h"
#include "base/program.h"
#include "cli/doctor/doctor.h"
#include "cli/options/commands.h"
#include "cli/options/options.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"
#include "engine/model/model_open.h"
#include "tui/app/layout.h"
#include "tui/terminal/terminal.h"

/* ---- terminal: type, size, colours, characters, mouse ---- */

#define RICH_TYPE "set TERM to the terminal's type, e.g. export TERM=xterm-256color"

/* Returns false if nothing else can be checked. */
static bool
check_type(struct findings *f, const struct terminal_facts *t)
{
    const char *type = t->type != NULL ? t->type : "";
    if (!isatty(STDOUT_FILENO))
        doctor_add(f, FINDING_NOTE, "terminal",
                   "standard output is no terminal; run doctor in the terminal to check it");
    else if (!t->known || !t->places)
        doctor_add(f, FINDING_BAD, "terminal", "type \"%.40s\" %s; " RICH_TYPE, type,
                   t->known ? "cannot place the cursor, so the scope cannot be shown" : "is not in terminfo here");
    else if (t->stands_in != NULL)
        doctor_add(f, FINDING_NOTE, "terminal",
                   "type \"%.40s\" is not in terminfo here, but the terminal answers, and is used as %s; " RICH_TYPE,
                   type, t->stands_in);
    else
        doctor_add(f, FINDING_OK, "terminal", "%.40s%s", type, getenv("TMUX") != NULL ? ", in tmux" : "");
    return isatty(STDOUT_FILENO) && t->known && t->places;
}

static void
check_size(struct findings *f, const struct terminal_facts *t)
{
    if (t->rows == 0 || t->cols == 0)
        doctor_add(f, FINDING_NOTE, "size", "the terminal does not report its size; stty rows 40 cols 120");
    else if (t->rows < LAYOUT_MIN_ROWS || t->cols < LAYOUT_MIN_COLS)
        doctor_add(f, FINDING_BAD, "size", "%dx%d is too small; %dx%d is the least", t->cols, t->rows, LAYOUT_MIN_COLS,
                   LAYOUT_MIN_ROWS);
    else if (t->rows < LAYOUT_BOXED_ROWS || t->cols < LAYOUT_BOXED_COLS)
        doctor_add(f, FINDING_NOTE, "size",
                   "%dx%d is small; panels have frames from %dx%d, most are side by side from 120x36", t->cols, t->rows,
                   LAYOUT_BOXED_COLS, LAYOUT_BOXED_ROWS);
    else
        doctor_add(f, FINDING_OK, "size", "%dx%d", t->cols, t->rows);
}

static void
check_colours(struct findings *f, const struct terminal_facts *t)
{
    const char *more = getenv("TMUX") == NULL ? "if the terminal has 24-bit colour: export COLORTERM=truecolor"
                       : t->colours < 256     ? "set -g default-terminal tmux-256color in ~/.tmux.conf"
                                          : "if the terminal around tmux has 24-bit colour: set -as terminal-features "
                                            "',*:RGB' in ~/.tmux.conf and export COLORTERM=truecolor";
    if (t->direct_said || t->direct_type || t->direct_answered)
        doctor_add(f, FINDING_OK, "colours", "24-bit (from %s)",
                   t->direct_said   ? "COLORTERM"
                   : t->direct_type ? "terminfo"
                                    : "the terminal's answer");
    else if (t->colours >= 8)
        doctor_add(f, FINDING_NOTE, "colours", "%d of them, so scales have steps; %s", t->colours, more);
    else
        doctor_add(f, FINDING_NOTE, "colours", "none, so letters and marks replace them; " RICH_TYPE);
}

static void
check_characters(struct findings *f)
{
    if (terminal_choose_locale())
        doctor_add(f, FINDING_OK, "characters", "UTF-8");
    else
        doctor_add(f, FINDING_NOTE, "characters",
                   "ASCII alone; unset LC_ALL, or set it to a UTF-8 locale of this system");
}

void
doctor_terminal(struct findings *f)
{
    struct terminal_facts t;
    terminal_inspect(&t);
    if (check_type(f, &t)) {
        check_size(f, &t);
        check_colours(f, &t);
        if (t.mouse)
            doctor_add(f, FINDING_OK, "mouse", "clicks, drags and the wheel");
        else
            doctor_add(f, FINDING_NOTE, "mouse", "this terminal type has none, but every place has a key; " RICH_TYPE);
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
                                         "models/fables-eagle-q8_0.gguf",
                                         "models/fables-block-q8_0.gguf",
                                         "models/fables-hybrid-q8_0.gguf",
                                         "models/prompts.jsonl",
                                         "themes/dark.json"};
    struct model *m;
    struct err err = {0};
    if (!model_open_with(&m, bundled_model_path(), &(struct model_options){0}, &err)) {
        doctor_add(f, FINDING_NOTE, "bundled", "%s", err.text);
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
        doctor_add(f, FINDING_NOTE, "bundled", "%.200s lacks %.150s; install specscope again", data_dir(), missing);
    else
        doctor_add(f, FINDING_OK, "bundled",
                   "%s, %" PRIu32 " layer%s, with heads, auxiliary models and themes in %.200s", m->name,
                   m->desc.n_layers, plural(m->desc.n_layers), data_dir());
    model_close(m);
}

struct seen {
    size_t n, run, fit; /* models found; those that run; those of them whose whole context fits into memory */
    char why[200];      /* why the first of the others does not run */
};

static bool
check_model(void *user, const char *name, const char *path)
{
    struct seen *s = user;
    struct model_summary summary;
    (void)name;
    model_summary(&summary, path, memory_available());
    if (s->n++ == s->run && !summary.runs)
        snprintf(s->why, sizeof s->why, "%.199s", summary.why);
    s->run += summary.runs;
    s->fit += summary.runs && summary.ctx == summary.ctx_train;
    return true;
}

void
doctor_models(struct findings *f)
{
    check_bundled(f);
    struct seen seen = {0};
    struct err err = {0};
    if (!model_locations_list(check_model, &seen, &err))
        doctor_add(f, FINDING_NOTE, "models", "%s", err.text);
    if (seen.n == 0)
        doctor_add(f, FINDING_OK, "models",
                   "none in the caches of Hugging Face, Ollama, LM Studio and llama.cpp; any .gguf file or Hugging "
                   "Face folder will do");
    else if (seen.run == 0)
        doctor_add(f, FINDING_NOTE, "models",
                   "%zu in the caches of other programs, none of which runs; the first: %s; `%s models` lists them",
                   seen.n, seen.why, program_name());
    else
        doctor_add(f, FINDING_OK, "models",
                   "%zu in the caches of other programs, of which %zu run, %zu with their whole context in memory; `%s "
                   "models` lists them",
                   seen.n, seen.run, seen.fit, program_name());
}

/* ---- the user's files: config, presets, history, traces ---- */

static void
check_config(struct findings *f)
{
    char path[1024];
    struct options o;
    struct err err = {0};
    if (config_path(path, sizeof path, "config.json") == NULL) {
        doctor_add(f, FINDING_NOTE, "config", "neither HOME nor XDG_CONFIG_HOME is set; set HOME");
        return;
    }
    if (!file_exists(path)) {
        doctor_add(f, FINDING_OK, "config", "none; it would be %s", path);
        return;
    }
    options_init(&o, COMMAND_SCOPE);
    if (options_config_file(&o, &err))
        doctor_add(f, FINDING_OK, "config", "%s is valid", path);
    else
        doctor_add(f, FINDING_BAD, "config", "%s; correct it, or move it away", err.text);
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
    char path[1024];
    if (state_path(path, sizeof path, "prompts") == NULL)
        doctor_add(f, FINDING_NOTE, "history", "no prompt is stored: neither HOME nor XDG_STATE_HOME is set; set HOME");
    else if (file_exists(path) ? access(path, R_OK | W_OK) == 0 : can_make(path))
        doctor_add(f, FINDING_OK, "history", "prompts are in %s", path);
    else
        doctor_add(f, FINDING_NOTE, "history", "%s cannot be written: %s; make it writable, or set XDG_STATE_HOME",
                   path, strerror(errno));
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
        doctor_add(f, FINDING_NOTE, "traces", "%s cannot be written: %s; name another folder: --trace /tmp/NAME",
                   folder, strerror(errno));
        return;
    }
    if (statvfs(".", &about) != 0)
        return;
    const uint64_t room = (uint64_t)about.f_bavail * about.f_frsize;
    doctor_add(f, room < LITTLE ? FINDING_NOTE : FINDING_OK, "traces", "%s free in this folder%s",
               memory_text(size, room),
               room < LITTLE ? "; a trace of all layers grows by a megabyte a second: name another disk's folder" : "");
}

void
doctor_files(struct findings *f)
{
    check_config(f);
    check_history(f);
    check_traces(f);
}
