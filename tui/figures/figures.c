/* The table of kinds; drawing a figure from its inputs, with its caption, into a file. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utf8proc.h>

#include "base/plural.h"
#include "base/program.h"
#include "base/utf8.h"
#include "tui/figures/figure_kind.h"

/* ---- the caption ---- */

__attribute__((format(printf, 3, 4))) static void
append(char *out, size_t size, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

char *
caption_settings(const struct record_setting *s, char *out, size_t size)
{
    snprintf(out, size, "%s", s->policy->name);
    for (uint32_t i = 0; i < s->policy->n_knobs; i++) {
        const struct knob *k = &s->policy->knobs[i];
        char value[32];
        knob_format(k, s->knobs[i], value, sizeof value);
        append(out, size, "%s %s %s", i == 0 ? ":" : ",", k->symbol[0] != '\0' ? k->symbol : k->name, value);
    }
    return out;
}

static void
append_sampling(const struct run_info *info, char *out, size_t size)
{
    if (!(info->sampling.temperature > 0)) {
        append(out, size, "greedy");
        return;
    }
    append(out, size, "temperature %.3g", (double)info->sampling.temperature);
    if (info->sampling.top_k > 0)
        append(out, size, ", top-k %u", (unsigned)info->sampling.top_k);
    if (info->sampling.top_p < 1)
        append(out, size, ", top-p %.3g", (double)info->sampling.top_p);
    append(out, size, ", seed %llu", (unsigned long long)info->seed);
}

/* Prints the settings and the rounds. */
static void
append_run(const struct figure *f, const struct record *r, char *out, size_t size)
{
    char settings[300];
    const struct run_info *info = r->info;
    const bool rounds = f->shown_from == 0; /* else some of them are shown */
    const uint32_t from = rounds ? r->rounds[0].number : f->shown_from;
    const uint32_t to = rounds ? r->rounds[r->n_rounds - 1].number : f->shown_to;
    const struct record_setting *setting = record_setting(r, from);
    append(out, size, "%s%s", caption_settings(setting, settings, sizeof settings),
           setting->trained ? ", trained heads" : "");
    size_t changes = 0;
    for (size_t i = 0; i < r->n_changes; i++)
        changes += r->changes[i].round > from && r->changes[i].round <= to;
    if (changes > 0)
        append(out, size, ", then %zu change%s", changes, plural(changes));
    bool helped = false; /* an auxiliary model may be unused */
    for (size_t i = 0; i < r->n_drafts && !helped; i++)
        helped = r->drafts[i].exit_layer < 0;
    for (int i = 0; i < AUX_MODELS && helped; i++)
        if (info->aux[i].name[0] != '\0')
            append(out, size, ", %s %s", aux_names[i], info->aux[i].name);
    append(out, size, "; rounds %u to %u", (unsigned)from, (unsigned)to);
    if (f->o->seq >= 0)
        append(out, size, "; sequence %u", (unsigned)f->o->seq + 1);
    if (r->run > 1)
        append(out, size, " of run %u", (unsigned)r->run);
}

/* Prints the model, the sampling and the machine. */
static void
append_machine(const struct record *r, char *out, size_t size)
{
    const struct run_info *info = r->info;
    const char *const backend = info->backend, *const isa = info->isa; /* may be absent in other programs' traces */
    append(out, size, "%s, %u layer%s%s%s; ", info->model_name, (unsigned)info->layers, plural(info->layers),
           info->types[0] != '\0' ? ", " : "", info->types);
    append_sampling(info, out, size);
    if (backend[0] != '\0' || isa[0] != '\0')
        append(out, size, "; %s%s%s%s%s", backend, backend[0] != '\0' && isa[0] != '\0' ? " " : "", isa,
               info->host[0] != '\0' ? " on " : "", info->host);
}

static void
append_table(const struct bench_table *t, char *out, size_t size)
{
    const size_t model = bench_table_column(t, "model"), machine = bench_table_column(t, "machine");
    const char *name = strrchr(t->path, '/');
    if (model < t->n_columns)
        append(out, size, "%s; ", t->line[0].field[model]);
    if (machine < t->n_columns)
        append(out, size, "%s; ", t->line[0].field[machine]);
    append(out, size, "%zu line%s of %s", t->n_lines, plural(t->n_lines), name != NULL ? name + 1 : t->path);
}

static bool
is_stop(const char *text)
{
    uint32_t code;
    if (utf8_character(text, strlen(text), &code) == 0)
        return false;
    const utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    return kind == UTF8PROC_CATEGORY_PO || kind == UTF8PROC_CATEGORY_PE || kind == UTF8PROC_CATEGORY_PF;
}

/* Returns the bytes up to a possible line end: after a word, or after a wide character (no spaces separate these) and
 * its stop. */
static size_t
next_break(const char *text)
{
    size_t n = strspn(text, " ");
    uint32_t code;
    while (text[n] != '\0' && text[n] != ' ') {
        const size_t bytes = utf8_character(text + n, strlen(text + n), &code);
        n += bytes > 0 ? bytes : 1;
        if (bytes > 0 && utf8proc_charwidth((utf8proc_int32_t)code) == 2 && !is_stop(text + n))
            break;
    }
    return n;
}

/* Draws a text in lines of the figure's width, broken between words. Returns the y below them. */
static double
draw_lines(struct drawing *d, double x, double y, double width, struct lettering l, const char *text)
{
    char line[800] = "";
    while (*text != '\0') {
        size_t n = 0, fits = 0;
        while (text[n] != '\0') {
            n += next_break(text + n);
            if (n >= sizeof line)
                break;
            memcpy(line, text, n);
            line[n] = '\0';
            if (fits > 0 && lettering_width(&l, line) > width)
                break;
            fits = n;
        }
        if (fits == 0)
            fits = sizeof line - 1;
        memcpy(line, text, fits);
        line[fits] = '\0';
        l.room = width;
        drawing_text(d, x, y + l.size, l, line);
        y += l.size * 1.3;
        text += fits;
        text += strspn(text, " ");
    }
    return y;
}

#define INPUTS_MOST 12 /* described one by one */
#define TEXT        1200

/* Draws one paragraph per input, and common settings once at the end. */
static double
caption_inputs(const struct figure *f, double y, struct lettering letters)
{
    char first[TEXT] = "", text[TEXT], machine[TEXT];
    bool same = true;
    for (size_t i = 0; i < f->n_inputs; i++) {
        machine[0] = '\0';
        if (!f->input[i].is_table && f->input[i].score == NULL)
            append_machine(&f->input[i].record, machine, sizeof machine);
        if (i == 0)
            memcpy(first, machine, sizeof first);
        same = same && strcmp(first, machine) == 0;
    }
    for (size_t i = 0; i < f->n_inputs && i < INPUTS_MOST; i++) {
        const struct figure_input *in = &f->input[i];
        text[0] = '\0';
        if (f->n_inputs > 1)
            append(text, sizeof text, "%c: ", (char)('A' + i));
        if (in->score != NULL)
            append(text, sizeof text, "%s; %s", in->score->model, in->score->texts);
        else if (in->is_table)
            append_table(&in->table, text, sizeof text);
        else
            append_run(f, &in->record, text, sizeof text);
        append(text, sizeof text, ".");
        if (!in->is_table && in->score == NULL && (!same || f->n_inputs == 1)) {
            append(text, sizeof text, " ");
            append_machine(&in->record, text, sizeof text);
            append(text, sizeof text, ".");
        }
        if (f->n_inputs == 1)
            append(text, sizeof text, " specscope %s.", SPECSCOPE_VERSION);
        y = draw_lines(f->d, 1, y, f->width - 2, letters, text);
    }
    if (f->n_inputs == 1)
        return y;
    snprintf(text, sizeof text, "%s%s%s%sspecscope %s.", f->n_inputs > INPUTS_MOST ? "… and further ones. " : "",
             same && first[0] != '\0' ? "All: " : "", same ? first : "", same && first[0] != '\0' ? ". " : "",
             SPECSCOPE_VERSION);
    return draw_lines(f->d, 1, y, f->width - 2, letters, text);
}

/* Draws the caption below all: the note, then model, policy, knobs and machine of every input. Sets the drawing's
 * height. */
static void
caption_draw(struct figure *f)
{
    const struct lettering letters = LETTERS(SIZE_CAPTION, INK_LIGHT);
    double y = f->y + 5;
    if (f->note[0] != '\0')
        y = draw_lines(f->d, 1, y, f->width - 2, LETTERS(SIZE_CAPTION, INK), f->note);
    if (f->o->caption != NULL)
        y = draw_lines(f->d, 1, y, f->width - 2, letters, f->o->caption);
    else
        y = caption_inputs(f, y, letters);
    f->d->height = y + 2;
}

/* ---- kinds and files ---- */

#define ADDRESS(kind) &figure_##kind,
static const struct figure_kind *const kinds[] = {FIGURE_KINDS(ADDRESS) NULL};

static const struct figure_kind *
kind_named(const char *name)
{
    for (size_t i = 0; kinds[i] != NULL; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const char *
figure_kind_what(const char *name)
{
    const struct figure_kind *kind = kind_named(name);
    return kind != NULL ? kind->what : NULL;
}

bool
figure_length(const char *text, double *points, struct err *err)
{
    static const struct {
        const char *name;
        double points;
    } units[] = {{"mm", MM}, {"cm", 10 * MM}, {"in", 72}, {"pt", 1}};
    char *end;
    const double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text; i++)
        if (strcmp(end, units[i].name) == 0 && number * units[i].points >= 10 * MM &&
            number * units[i].points <= 2000 * MM) {
            *points = number * units[i].points;
            return true;
        }
    return err_set(err, ERR_USAGE, "the width '%.40s': 10mm to 2000mm is possible, in mm, cm, in or pt, as in 85mm",
                   text);
}

/* ---- inputs ---- */

static bool
is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool
check_inputs(const struct figure_kind *k, const char *const *inputs, size_t n, struct err *err)
{
    if (n < k->least || n > k->most) {
        if (k->least == k->most)
            return err_set(err, ERR_USAGE, "%s is made from %s, not %zu", k->name,
                           k->least == 2 ? "two traces"
                           : k->tables   ? "one CSV file of a benchmark"
                           : k->scores   ? "one JSON file of scores"
                                         : "one trace",
                           n);
        return err_set(err, ERR_USAGE, "%s is made from %zu to %zu inputs, not %zu", k->name, k->least, k->most, n);
    }
    for (size_t i = 0; i < n; i++) {
        const bool folder = is_folder(inputs[i]);
        if (folder && !k->traces)
            return err_set(err, ERR_USAGE, "%s is a trace, but %s is made from the %s: %s %s", inputs[i], k->name,
                           k->scores ? "JSON of scores" : "CSV of a sweep", program_name(),
                           k->scores ? "score --texts FILE --json FILE" : "bench --grid KNOB=from:to:step --csv FILE");
        struct stat s;
        if (!folder && k->traces && !k->tables && stat(inputs[i], &s) == 0)
            return err_set(err, ERR_USAGE, "%s is a file, but %s is made from a trace, a folder: %s run --trace DIR",
                           inputs[i], k->name, program_name());
    }
    return true;
}

static bool
check_options(const struct figure_kind *k, const struct figure_options *o, struct err *err)
{
    const struct {
        const char *name, *of;
        bool given, fits;
    } rows[] = {
        {"--from and --to", "a range", o->from >= 0 || o->to >= 0, k->range != RANGE_OF_NOTHING},
        {"--measure", "a measure", o->measure != NULL, k == &figure_grid},
        {"--axes", "two measures", o->axes != NULL, k == &figure_pareto},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given && !rows[i].fits)
            return err_set(err, ERR_USAGE, "%s: %s has no use for %s", rows[i].name, k->name, rows[i].of);
    if (o->from >= 0 && o->to >= 0 && o->from > o->to)
        return err_set(err, ERR_USAGE, "--from %lld is beyond --to %lld", (long long)o->from, (long long)o->to);
    const double width = o->width > 0 ? o->width : k->width * MM;
    if (width < k->narrow * MM - 1e-6)
        return err_set(err, ERR_USAGE, "%s needs a width of %.0fmm at least, not %.0fmm", k->name, k->narrow,
                       width / MM);
    return true;
}

static uint32_t
round_of(int64_t given, uint32_t otherwise)
{
    return given < 0 ? otherwise : given > UINT32_MAX ? UINT32_MAX : (uint32_t)given;
}

static bool
open_input(const struct figure *f, struct figure_input *in, struct err *err)
{
    const struct figure_options *o = f->o;
    if (!is_folder(in->path) && f->kind->tables) {
        in->is_table = true;
        return bench_table_open(&in->table, in->path, err);
    }
    if (f->kind->scores)
        return score_read_file(in->path, &in->score, err);
    const bool rounds = f->kind->range == RANGE_OF_ROUNDS;
    const struct record_wanted want = {
        .run = o->run,
        .seq = o->seq < 0 && f->kind->one_sequence ? 0 : o->seq,
        .from = rounds ? round_of(o->from, 0) : 0,
        .to = rounds ? round_of(o->to, UINT32_MAX) : UINT32_MAX,
        .scope = f->kind->scope,
        .scope_to = round_of(o->to, UINT32_MAX),
    };
    return record_open(&in->record, in->path, &want, err);
}

/* ---- the whole ---- */

static bool
draw_inputs(struct drawing *d, const struct figure_kind *kind, const char *const *inputs, size_t n,
            const struct figure_options *o, struct err *err)
{
    struct figure_input *input = calloc(n, sizeof *input);
    struct figure f = {.kind = kind, .o = o, .input = input, .n_inputs = n, .d = d, .width = d->width};
    bool ok = input != NULL || err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < n && ok; i++) {
        input[i].path = inputs[i];
        ok = open_input(&f, &input[i], err);
    }
    ok = ok && kind->draw(&f, err);
    if (ok)
        caption_draw(&f);
    for (size_t i = 0; i < n && input != NULL; i++) {
        record_close(&input[i].record);
        bench_table_close(&input[i].table);
        free(input[i].score);
    }
    free(input);
    return ok && (!d->no_memory || err_set(err, ERR_WORK, "out of memory for the figure"));
}

bool
figure_draw(struct drawing *d, const char *kind, const char *const *inputs, size_t n, const struct figure_options *o,
            struct err *err)
{
    const struct figure_kind *k = kind_named(kind);
    *d = (struct drawing){.width = o->width > 0 ? o->width : k != NULL ? k->width * MM : 0};
    if (k == NULL) {
        char names[160] = "";
        for (size_t i = 0; kinds[i] != NULL; i++)
            append(names, sizeof names, "%s%s", i == 0 ? "" : kinds[i + 1] == NULL ? " and " : ", ", kinds[i]->name);
        return err_set(err, ERR_USAGE, "there is no figure '%.40s'; there are %s", kind, names);
    }
    return check_inputs(k, inputs, n, err) && check_options(k, o, err) && draw_inputs(d, k, inputs, n, o, err);
}

bool
figure_make(const char *file, const char *kind, const char *const *inputs, size_t n, const struct figure_options *o,
            char note[FIGURE_NOTE], struct err *err)
{
    struct drawing d = {0};
    enum render_format format;
    const bool ok = render_format_of(file, &format, err) && figure_draw(&d, kind, inputs, n, o, err) &&
                    render_file(&d, format, file, note, err);
    drawing_close(&d);
    return ok;
}
