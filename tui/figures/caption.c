#include <stdarg.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/plural.h"
#include "engine/base/utf8.h"
#include "tui/figures/figure_kind.h"

__attribute__((format(printf, 3, 4))) static void
say(char *out, size_t size, const char *format, ...)
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
        say(out, size, "%s %s %s", i == 0 ? ":" : ",", k->symbol[0] != '\0' ? k->symbol : k->name, value);
    }
    return out;
}

static void
say_sampling(const struct run_info *info, char *out, size_t size)
{
    if (!(info->sampling.temperature > 0)) {
        say(out, size, "greedy");
        return;
    }
    say(out, size, "temperature %.3g", (double)info->sampling.temperature);
    if (info->sampling.top_k > 0)
        say(out, size, ", top-k %u", (unsigned)info->sampling.top_k);
    if (info->sampling.top_p < 1)
        say(out, size, ", top-p %.3g", (double)info->sampling.top_p);
    say(out, size, ", seed %llu", (unsigned long long)info->seed);
}

/* What was run. */
static void
say_run(const struct figure *f, const struct record *r, char *out, size_t size)
{
    char settings[300];
    const struct run_info *info = r->info;
    const bool rounds = f->shown_from == 0; /* else some of them are shown */
    const uint32_t from = rounds ? r->rounds[0].number : f->shown_from;
    const uint32_t to = rounds ? r->rounds[r->n_rounds - 1].number : f->shown_to;
    const struct record_setting *setting = record_setting(r, from);
    say(out, size, "%s%s", caption_settings(setting, settings, sizeof settings),
        setting->trained ? ", trained heads" : "");
    size_t turns = 0;
    for (size_t i = 0; i < r->n_turns; i++)
        turns += r->turns[i].round > from && r->turns[i].round <= to;
    if (turns > 0)
        say(out, size, ", then %zu turn%s", turns, plural(turns));
    bool helped = false; /* models that are there need not have been asked */
    for (size_t i = 0; i < r->n_drafts && !helped; i++)
        helped = r->drafts[i].exit_layer < 0;
    for (int i = 0; i < HELPERS && helped; i++)
        if (info->helpers[i].name[0] != '\0')
            say(out, size, ", %s %s", helper_names[i], info->helpers[i].name);
    say(out, size, "; rounds %u to %u", (unsigned)from, (unsigned)to);
    if (f->o->seq >= 0 || (f->o->focus > 0 && f->kind->one_sequence))
        say(out, size, "; sequence %u", (unsigned)(f->o->seq >= 0 ? f->o->seq : f->o->focus) + 1);
    if (r->run > 1)
        say(out, size, " of run %u", (unsigned)r->run);
}

/* With what, on what. */
static void
say_machine(const struct record *r, char *out, size_t size)
{
    const struct run_info *info = r->info;
    const char *const backend = info->backend, *const isa = info->isa; /* which others' traces may lack */
    say(out, size, "%s, %u layer%s%s%s; ", info->model_name, (unsigned)info->layers, plural(info->layers),
        info->types[0] != '\0' ? ", " : "", info->types);
    say_sampling(info, out, size);
    if (backend[0] != '\0' || isa[0] != '\0')
        say(out, size, "; %s%s%s%s%s", backend, backend[0] != '\0' && isa[0] != '\0' ? " " : "", isa,
            info->host[0] != '\0' ? " on " : "", info->host);
}

static void
say_table(const struct bench_table *t, char *out, size_t size)
{
    const size_t model = bench_table_column(t, "model"), machine = bench_table_column(t, "machine");
    const char *name = strrchr(t->path, '/');
    if (model < t->n_columns)
        say(out, size, "%s; ", t->line[0].field[model]);
    if (machine < t->n_columns)
        say(out, size, "%s; ", t->line[0].field[machine]);
    say(out, size, "%zu line%s of %s", t->n_lines, plural(t->n_lines), name != NULL ? name + 1 : t->path);
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

/* Bytes up to where a line may end: behind a word, or a wide character, among which there are no spaces, and the stop that follows. */
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

/* Lines as long as the figure is wide, cut between words. Returns the y below them. */
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

#define INPUTS_MOST 12 /* that are told one by one */
#define TEXT        1200

/* One paragraph an input; what all have in common once, at the end. */
static double
draw_inputs(const struct figure *f, double y, struct lettering letters)
{
    char first[TEXT] = "", text[TEXT], machine[TEXT];
    bool same = true;
    for (size_t i = 0; i < f->n_inputs; i++) {
        machine[0] = '\0';
        if (!f->input[i].is_table)
            say_machine(&f->input[i].record, machine, sizeof machine);
        if (i == 0)
            memcpy(first, machine, sizeof first);
        same = same && strcmp(first, machine) == 0;
    }
    for (size_t i = 0; i < f->n_inputs && i < INPUTS_MOST; i++) {
        const struct figure_input *in = &f->input[i];
        text[0] = '\0';
        if (f->n_inputs > 1)
            say(text, sizeof text, "%c: ", (char)('A' + i));
        if (in->is_table)
            say_table(&in->table, text, sizeof text);
        else
            say_run(f, &in->record, text, sizeof text);
        say(text, sizeof text, ".");
        if (!in->is_table && (!same || f->n_inputs == 1)) {
            say(text, sizeof text, " ");
            say_machine(&in->record, text, sizeof text);
            say(text, sizeof text, ".");
        }
        if (f->n_inputs == 1)
            say(text, sizeof text, " specscope %s.", SPECSCOPE_VERSION);
        y = draw_lines(f->d, 1, y, f->width - 2, letters, text);
    }
    if (f->n_inputs == 1)
        return y;
    snprintf(text, sizeof text, "%s%s%s%sspecscope %s.", f->n_inputs > INPUTS_MOST ? "… and further ones. " : "",
             same && first[0] != '\0' ? "All: " : "", same ? first : "", same && first[0] != '\0' ? ". " : "",
             SPECSCOPE_VERSION);
    return draw_lines(f->d, 1, y, f->width - 2, letters, text);
}

void
caption_draw(struct figure *f)
{
    const struct lettering letters = LETTERS(SIZE_CAPTION, INK_LIGHT);
    double y = f->y + 5;
    if (f->note[0] != '\0')
        y = draw_lines(f->d, 1, y, f->width - 2, LETTERS(SIZE_CAPTION, INK), f->note);
    if (f->o->caption != NULL)
        y = draw_lines(f->d, 1, y, f->width - 2, letters, f->o->caption);
    else
        y = draw_inputs(f, y, letters);
    f->d->height = y + 2;
}
