/* Which kinds there are, and how one is made: inputs in, shapes, file out. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tui/figures/figure_kind.h"
#include "tui/figures/render.h"

#define KINDS(K)                                                                                                       \
    K(layers)                                                                                                          \
    K(series)                                                                                                          \
    K(exits)                                                                                                           \
    K(reliability)                                                                                                     \
    K(mask)                                                                                                            \
    K(grid)                                                                                                            \
    K(pareto)                                                                                                          \
    K(versus)

#define ADDRESS(kind) &figure_##kind,
#define NAME(kind)    #kind,
static const struct figure_kind *const kinds[] = {KINDS(ADDRESS) NULL};
const char *const figure_kind_names[] = {KINDS(NAME) NULL};

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
                                         : "one trace",
                           n);
        return err_set(err, ERR_USAGE, "%s is made from %zu to %zu inputs, not %zu", k->name, k->least, k->most, n);
    }
    for (size_t i = 0; i < n; i++) {
        const bool folder = is_folder(inputs[i]);
        if (folder && !k->traces)
            return err_set(err, ERR_USAGE,
                           "%s is a trace, but %s is made from the CSV of a sweep: specscope bench --grid "
                           "KNOB=from:to:step --csv FILE",
                           inputs[i], k->name);
        struct stat s;
        if (!folder && !k->tables && stat(inputs[i], &s) == 0)
            return err_set(err, ERR_USAGE,
                           "%s is a file, but %s is made from a trace, a folder: specscope run --trace DIR", inputs[i],
                           k->name);
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
    const bool rounds = f->kind->range == RANGE_OF_ROUNDS;
    const struct record_wanted want = {
        .run = o->run,
        .seq = o->seq < 0 && f->kind->one_sequence ? (int64_t)o->focus : o->seq,
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
    }
    free(input);
    return ok && (drawing_whole(d) || err_set(err, ERR_WORK, "out of memory for the figure"));
}

bool
figure_draw(struct drawing *d, const char *kind, const char *const *inputs, size_t n, const struct figure_options *o,
            struct err *err)
{
    const struct figure_kind *k = kind_named(kind);
    drawing_open(d, o->width > 0 ? o->width : k != NULL ? k->width * MM : 0);
    if (k == NULL) {
        char names[160] = "";
        for (size_t i = 0; figure_kind_names[i] != NULL; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     i == 0                             ? ""
                     : figure_kind_names[i + 1] == NULL ? " and "
                                                        : ", ",
                     figure_kind_names[i]);
        return err_set(err, ERR_USAGE, "there is no figure '%.40s'; there are %s", kind, names);
    }
    return check_inputs(k, inputs, n, err) && check_options(k, o, err) && draw_inputs(d, k, inputs, n, o, err);
}

bool
figure_make(const char *file, const char *kind, const char *const *inputs, size_t n, const struct figure_options *o,
            char note[FIGURE_NOTE], struct err *err)
{
    _Static_assert(FIGURE_NOTE >= RENDER_NOTE, "a file's note is a figure's");
    struct drawing d = {0};
    enum render_format format;
    const bool ok = render_format_of(file, &format, err) && figure_draw(&d, kind, inputs, n, o, err) &&
                    render_file(&d, format, file, note, err);
    drawing_close(&d);
    return ok;
}
