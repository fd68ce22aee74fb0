#include "tui/figures/bench_table.h"

#include <csv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/program.h"

#define TABLE_BYTES ((size_t)16 << 20)

/* All fields, each terminated, and the number of fields of each line. */
struct reading {
    char *out;
    size_t used, n_fields, n_columns, in_line, lines;
    bool uneven;
};

static void
add_field(void *field, size_t n, void *user)
{
    struct reading *r = user;
    for (size_t i = 0; i < n; i++) /* a field is never longer than in the file, so all of them fit */
        r->out[r->used++] = ((const char *)field)[i] == '\0' ? '?' : ((const char *)field)[i];
    r->out[r->used++] = '\0';
    r->n_fields++;
    r->in_line++;
}

static void
add_line(int end, void *user)
{
    struct reading *r = user;
    (void)end;
    if (r->lines++ == 0)
        r->n_columns = r->in_line;
    r->uneven = r->uneven || r->in_line != r->n_columns;
    r->in_line = 0;
}

static bool
parse(struct reading *r, const char *text, size_t n, const char *path, struct err *err)
{
    struct csv_parser csv;
    if (csv_init(&csv, CSV_STRICT) != 0)
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    const bool fine =
        csv_parse(&csv, text, n, add_field, add_line, r) == n && csv_fini(&csv, add_field, add_line, r) == 0;
    csv_free(&csv);
    if (!fine)
        return err_set(err, ERR_WORK, "%s: line %zu is no CSV", path, r->lines + 1);
    if (r->uneven)
        return err_set(err, ERR_WORK, "%s: its lines have different numbers of fields", path);
    return true;
}

/* "exit_layer=2 gamma=4", cut up in place. */
static void
split_settings(struct bench_line *line, char *text)
{
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word != NULL && line->n_settings < BENCH_SETTINGS;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        struct bench_setting *s = &line->setting[line->n_settings++];
        char *end;
        *s = (struct bench_setting){.name = word, .text = equals + 1};
        s->value = strtod(s->text, &end);
        if (end == s->text || *end != '\0' || !isfinite(s->value))
            s->value = NAN;
    }
}

static bool
fill(struct bench_table *t, const struct reading *r, struct err *err)
{
    t->fields = calloc(r->n_fields + 1, sizeof *t->fields);
    t->line = calloc(r->lines + 1, sizeof *t->line);
    char *copies = malloc(r->used + 1); /* params, cut up */
    if (t->fields == NULL || t->line == NULL || copies == NULL) {
        free(copies);
        return err_set(err, ERR_WORK, "%s: out of memory", t->path);
    }
    memcpy(copies, r->out, r->used);
    const char *at = r->out;
    for (size_t i = 0; i < r->n_fields; i++, at += strlen(at) + 1)
        t->fields[i] = at;
    t->column = t->fields;
    t->n_columns = r->n_columns;
    t->n_lines = r->lines > 0 ? r->lines - 1 : 0;
    t->copies = copies;
    const size_t policy = bench_table_column(t, "policy"), params = bench_table_column(t, "params");
    if (policy == SIZE_MAX || params == SIZE_MAX)
        return err_set(err, ERR_USAGE,
                       "%s: no table of a benchmark: it has no columns policy and params; `%s "
                       "bench --grid KNOB=from:to:step --csv FILE` writes one",
                       t->path, program_name());
    const size_t category = bench_table_column(t, "category"), lines = t->n_lines;
    t->n_lines = 0;
    for (size_t i = 0; i < lines; i++) {
        const char **field = t->fields + (i + 1) * t->n_columns;
        if (category != SIZE_MAX && field[category][0] != '\0')
            continue; /* a part of the prompts of another line */
        struct bench_line *line = &t->line[t->n_lines++];
        line->field = field;
        line->policy = line->field[policy];
        line->params = line->field[params];
        split_settings(line, copies + (line->params - r->out));
    }
    return t->n_lines > 0 || err_set(err, ERR_USAGE, "%s: there is no line below its head", t->path);
}

bool
bench_table_open(struct bench_table *t, const char *path, struct err *err)
{
    *t = (struct bench_table){.path = path};
    char *text;
    size_t n;
    if (!file_text(path, TABLE_BYTES, &text, &n, err))
        return false;
    struct reading r = {.out = malloc(2 * n + 2)};
    t->bytes = r.out;
    const bool ok = (r.out != NULL || err_set(err, ERR_WORK, "%s: out of memory", path)) &&
                    parse(&r, text, n, path, err) && fill(t, &r, err);
    free(text);
    return ok;
}

void
bench_table_close(struct bench_table *t)
{
    free(t->bytes);
    free(t->copies);
    free(t->line);
    free(t->fields);
    *t = (struct bench_table){0};
}

size_t
bench_table_column(const struct bench_table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->column[i] != NULL && strcmp(t->column[i], name) == 0)
            return i;
    return SIZE_MAX;
}

double
bench_table_value(const struct bench_table *t, size_t line, size_t column)
{
    char *end;
    const char *text = column < t->n_columns ? t->line[line].field[column] : "";
    const double value = strtod(text, &end);
    return end == text || *end != '\0' ? (double)NAN : value;
}

const struct bench_setting *
bench_line_setting(const struct bench_line *line, const char *name)
{
    for (size_t i = 0; i < line->n_settings; i++)
        if (strcmp(line->setting[i].name, name) == 0)
            return &line->setting[i];
    return NULL;
}

/* ---- named measures ---- */

#define ROW(column, title, sign, member, clocked, and)                                                                 \
    {                                                                                                                  \
        .name = (column), .label = (title), .better = (sign), .at = offsetof(struct measures, member),                 \
        .timed = (clocked), .estimated = (and)                                                                         \
    }
#define OF_ONE(column, title, sign, member) ROW(column, title, sign, member, false, offsetof(struct estimates, member))

const struct named_measure named_measures[] = {
    ROW("tok_per_s", "tokens/s", 1, tokens_per_s, true, offsetof(struct estimates, tokens_per_s)),
    ROW("speedup", "speedup over autoregressive", 1, speedup, true, MEASURE_OF_TWO),
    OF_ONE("modelled_speedup", "modelled speedup", 1, modelled),
    OF_ONE("tokens_per_round", "tokens/round", 1, tokens_per_round),
    OF_ONE("acceptance_rate", "acceptance", 1, acceptance_rate),
    OF_ONE("per_token_acceptance", "acceptance per token", 1, per_token_acceptance),
    OF_ONE("etpl", "tokens per layer (eTPL)", 1, etpl),
    OF_ONE("discard_rate", "drafts discarded per token", -1, discard_rate),
    OF_ONE("verification_rate", "verifications per token", -1, verification_rate),
    {.name = NULL},
};

const struct named_measure *
measure_named(const char *name)
{
    for (const struct named_measure *m = named_measures; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

double
measure_value(const struct named_measure *m, const struct measures *of)
{
    double value;
    memcpy(&value, (const char *)of + m->at, sizeof value);
    return value;
}

struct estimate
measure_estimate(const struct named_measure *m, const struct estimates *of, struct estimate baseline)
{
    struct estimate e;
    if (m->estimated == MEASURE_OF_TWO)
        return estimate_quotient(of->tokens_per_s, baseline);
    memcpy(&e, (const char *)of + m->estimated, sizeof e);
    return e;
}

const char *
measure_names(char *out, size_t size)
{
    size_t used = 0;
    for (const struct named_measure *m = named_measures; m->name != NULL && used < size; m++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", m->name);
    return out;
}
