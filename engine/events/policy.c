/* Opens policies, declares their knobs and series, and converts knob values to and from text. */
#include "engine/events/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "engine/events/draft_vocab.h"
#include "engine/events/sampling_knobs.h"

#define NAME(role, name) [AUX_##role] = name,
const char *const aux_names[AUX_MODELS] = {AUX_ROLES(NAME)};
const char *const need_names[NEEDS_KINDS] = {AUX_ROLES(NAME) "accept_head", "profile", "markov_head"};
const char *const series_form_names[SERIES_FORMS] = {"line",  "band",   "bars",  "strip",  "grid", "mask",
                                                     "phase", "drafts", "marks", "choice", "edges"};

#define MAX_CELLS (1 << 20)

const struct policy_ops *
policy_named(const struct policy_ops *const *registry, const char *name)
{
    while (*registry != NULL && strcmp((*registry)->name, name) != 0)
        registry++;
    return *registry;
}

static bool
terminated(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

bool
knob_valid(const struct knob *k, struct err *err)
{
    if (!terminated(k->name, sizeof k->name) || !terminated(k->symbol, sizeof k->symbol) ||
        !terminated(k->help, sizeof k->help) || k->name[0] == '\0')
        return err_set(err, ERR_WORK, "a knob needs a name of 1 to %zu bytes", sizeof k->name - 1);
    for (enum recorded i = RECORDED_KNOB + 1; i < RECORDED_KINDS; i++)
        if (strcmp(k->name, recorded_names[i]) == 0 || strcmp(k->symbol, recorded_names[i]) == 0)
            return err_set(err, ERR_WORK, "no knob can be called %s: that is the name of a control", recorded_names[i]);
    const int sampling =
        sampling_knob_index(k->name) >= 0 ? sampling_knob_index(k->name) : sampling_knob_index(k->symbol);
    if (sampling >= 0)
        return err_set(err, ERR_WORK, "no knob can be called %s: every session has one", sampling_knobs[sampling].name);
    if (!isfinite(k->min) || !isfinite(k->max) || !isfinite(k->step) || !isfinite(k->def))
        return err_set(err, ERR_WORK, "knob %s: bounds, step and default must be finite numbers", k->name);
    if (k->min > k->max || k->step < 0 || k->def < k->min || k->def > k->max)
        return err_set(err, ERR_WORK, "knob %s: needs min <= default <= max and a step of 0 or more", k->name);
    if (k->kind != KNOB_REAL && (k->min != floor(k->min) || k->max != floor(k->max) || k->step != floor(k->step) ||
                                 k->def != floor(k->def) || fabs(k->min) > 1e9 || fabs(k->max) > 1e9))
        return err_set(err, ERR_WORK, "knob %s: bounds, step and default must be whole numbers", k->name);
    if (k->kind == KNOB_CHOICE) {
        if (k->choices == NULL || k->min != 0)
            return err_set(err, ERR_WORK, "knob %s: a choice needs names, numbered from 0", k->name);
        for (int i = 0; i <= (int)k->max; i++)
            if (k->choices[i] == NULL || k->choices[i][0] == '\0')
                return err_set(err, ERR_WORK, "knob %s: choice %d has no name", k->name, i);
    } else if (k->kind != KNOB_REAL && k->kind != KNOB_INTEGER) {
        return err_set(err, ERR_WORK, "knob %s: its kind is unknown", k->name);
    }
    return true;
}

static bool
fits_a_round(const struct series *s)
{
    if (s->form == SERIES_CHOICE) /* one column is for 0 drafts */
        return s->rows == 2 && s->cols <= VERIFY_NODES;
    return s->rows <= (s->form == SERIES_DRAFTS ? 2 : 1) && s->cols < VERIFY_NODES;
}

bool
series_valid(const struct series *s, struct err *err)
{
    if (!terminated(s->key, sizeof s->key) || !terminated(s->title, sizeof s->title) || s->key[0] == '\0')
        return err_set(err, ERR_WORK, "a series needs a key of 1 to %zu bytes", sizeof s->key - 1);
    if ((unsigned)s->form >= SERIES_FORMS)
        return err_set(err, ERR_WORK, "series %s: of no known form", s->key);
    if (s->rows < 1 || s->cols < 1 || s->rows > MAX_CELLS || s->cols > MAX_CELLS / s->rows)
        return err_set(err, ERR_WORK, "series %s: needs 1 to %d cells", s->key, MAX_CELLS);
    if (series_of_round(s) && !fits_a_round(s))
        return err_set(err, ERR_WORK, "series %s: needs 1 to %d drafts; drafts in 1 or 2 rows, marks in 1, choice in 2",
                       s->key, VERIFY_NODES - 1);
    if (s->form == SERIES_EDGES && s->rows > 1 && s->cols > 1)
        return err_set(err, ERR_WORK, "series %s: edges are of rows or of columns, so one of the two is 1", s->key);
    return true;
}

uint32_t
series_cells(const struct series *s)
{
    bool cells = s->form == SERIES_STRIP || s->form == SERIES_GRID || s->form == SERIES_MASK ||
                 s->form == SERIES_EDGES || series_of_round(s);
    return cells ? (uint32_t)(s->rows * s->cols) : 0;
}

bool
series_of_round(const struct series *s)
{
    return s->form == SERIES_DRAFTS || s->form == SERIES_MARKS || s->form == SERIES_CHOICE;
}

int
series_of_grid(const struct policy_info *info, uint32_t grid, enum series_form form, bool of_rows)
{
    for (uint32_t i = grid + 1; i < info->n_series && info->series[i].form != SERIES_GRID; i++) {
        const struct series *s = &info->series[i];
        if (s->form == form && (form != SERIES_EDGES || (of_rows ? s->rows == info->series[grid].rows && s->cols == 1
                                                                 : s->cols == info->series[grid].cols && s->rows == 1)))
            return (int)i;
    }
    return -1;
}

bool
series_judges(const struct policy_info *info, uint32_t index)
{
    const enum series_form form = info->series[index].form;
    return series_of_round(&info->series[index]) || form == SERIES_EDGES ||
           (form == SERIES_GRID && series_of_grid(info, index, SERIES_MARKS, false) >= 0);
}

/* ---- opening ---- */

/* Declares the knob draft_vocab if the policy has it. */
static bool
draft_vocab_knob(struct policy *p, const struct model_info *model)
{
    const uint32_t step = draft_vocab_step(model->vocab), steps = (model->vocab + step - 1) / step;
    return p->ops->draft_vocab == 0 ||
           (p->ops->draft_vocab == p->info.n_knobs &&
            policy_number(p, DRAFT_VOCAB, "|S|", 0, (double)steps * step, step, 0,
                          "tokens that heads for drafts compute, besides those of the text; 0: all"));
}

/* Opens an instance. `shared` belongs to the first instance; NULL: allocate it. */
static bool
open_instance(struct policy *p, const struct policy_ops *ops, void *shared, const struct model_info *model,
              const struct sampling *sampling, struct err *err)
{
    *p = (struct policy){.ops = ops, .shared = shared, .owns_shared = shared == NULL};
    snprintf(p->info.name, sizeof p->info.name, "%s", ops->name);
    snprintf(p->info.title, sizeof p->info.title, "%s", ops->title);
    snprintf(p->info.paper, sizeof p->info.paper, "%s", ops->paper);
    p->info.needs = ops->needs;
    if (model->layers < ops->least_layers)
        return err_set(err, ERR_WORK, "%s needs a model of %u layers or more, this one has %u", ops->name,
                       (unsigned)ops->least_layers, (unsigned)model->layers);
    if ((ops->state_size > 0 && (p->state = calloc(1, ops->state_size)) == NULL) ||
        (ops->shared_size > 0 && p->shared == NULL && (p->shared = calloc(1, ops->shared_size)) == NULL))
        return err_set(err, ERR_WORK, "out of memory opening %s", ops->name);
    if (err != NULL)
        err->kind = ERR_NONE;
    const bool ok = (ops->open == NULL || ops->open(p, model, sampling, err)) && draft_vocab_knob(p, model);
    if (!ok && err != NULL && err->kind == ERR_NONE)
        err_set(err, ERR_WORK, "%s declares a knob or a series that is not sound", ops->name);
    return ok;
}

bool
policy_open(struct policy *p, const struct policy_ops *ops, const struct model_info *model,
            const struct sampling *sampling, struct err *err)
{
    return open_instance(p, ops, NULL, model, sampling, err);
}

bool
policy_open_beside(struct policy *p, const struct policy *first, const struct model_info *model,
                   const struct sampling *sampling, struct err *err)
{
    return open_instance(p, first->ops, first->shared, model, sampling, err);
}

void
policy_close(struct policy *p)
{
    if (p->ops != NULL && p->ops->close != NULL && p->state != NULL)
        p->ops->close(p);
    free(p->state);
    if (p->owns_shared)
        free(p->shared);
    p->state = p->shared = NULL;
}

const char *
policy_missing(unsigned needs, char out[POLICY_MISSING])
{
    for (enum aux_role role = 0; role <= AUX_COMPANION; role++)
        if ((needs & NEEDS(role)) != 0) {
            const char *name = aux_names[role];
            snprintf(out, POLICY_MISSING, "a %s model: give one with --%s PATH or --%s self:E", name, name, name);
            return out;
        }
    if ((needs & NEEDS(AUX_BLOCK)) != 0)
        snprintf(out, POLICY_MISSING, "a block drafter (DFlash, DSpark) for this model: give one with --draft PATH");
    else if ((needs & NEEDS_MARKOV) != 0)
        snprintf(out, POLICY_MISSING, "a block drafter with a Markov head (DSpark): give one with --draft PATH");
    else if ((needs & NEEDS(AUX_EAGLE)) != 0)
        snprintf(out, POLICY_MISSING, "an EAGLE-3 head for this model: give one with --draft PATH");
    else if ((needs & NEEDS(AUX_MTP)) != 0)
        snprintf(out, POLICY_MISSING, "a layer for multi-token prediction (MTP) in this model's files");
    else if ((needs & NEEDS_ACCEPT_HEAD) != 0)
        snprintf(out, POLICY_MISSING, "an acceptance head: give one with --accept FILE; `%s train accept` makes it",
                 program_name());
    else
        snprintf(out, POLICY_MISSING,
                 "a profile of the three models: give one with --profile FILE; `%s train profile` makes it",
                 program_name());
    return out;
}

bool
policy_knob(struct policy *policy, const struct knob *k)
{
    struct policy_info *info = &policy->info;
    if (info->n_knobs >= POLICY_KNOBS || !knob_valid(k, NULL) || policy_knob_index(info, k->name) >= 0 ||
        policy_knob_index(info, k->symbol) >= 0)
        return false;
    policy->value[info->n_knobs] = k->def;
    info->knobs[info->n_knobs++] = *k;
    return true;
}

static bool
add_knob(struct policy *p, struct knob *k, const char *name, const char *symbol, const char *help)
{
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->symbol, sizeof k->symbol, "%s", symbol);
    snprintf(k->help, sizeof k->help, "%s", help);
    return policy_knob(p, k);
}

bool
policy_number(struct policy *p, const char *name, const char *symbol, double min, double max, double step, double def,
              const char *help)
{
    struct knob k = {.kind = step >= 1 ? KNOB_INTEGER : KNOB_REAL, .min = min, .max = max, .step = step, .def = def};
    return add_knob(p, &k, name, symbol, help);
}

bool
policy_choice(struct policy *p, const char *name, const char *symbol, const char *const *names, int def,
              const char *help)
{
    struct knob k = {.kind = KNOB_CHOICE, .max = -1, .step = 1, .def = def, .choices = names};
    for (int i = 0; names[i] != NULL; i++)
        k.max = i;
    return add_knob(p, &k, name, symbol, help);
}

bool
policy_series(struct policy *policy, const char *key, const char *title, enum series_form form, int rows, int cols)
{
    struct policy_info *info = &policy->info;
    struct series s = {.form = form, .rows = rows, .cols = cols};
    if (info->n_series >= POLICY_SERIES || strlen(key) >= sizeof s.key || strlen(title) >= sizeof s.title)
        return false;
    memcpy(s.key, key, strlen(key) + 1);
    memcpy(s.title, title, strlen(title) + 1);
    if (!series_valid(&s, NULL) || policy_series_index(info, key) >= 0)
        return false;
    info->series[info->n_series++] = s;
    return true;
}

int
policy_knob_index(const struct policy_info *info, const char *name)
{
    if (name[0] == '\0') /* a knob without a symbol */
        return -1;
    for (uint32_t i = 0; i < info->n_knobs; i++)
        if (strcmp(info->knobs[i].name, name) == 0 || strcmp(info->knobs[i].symbol, name) == 0)
            return (int)i;
    return -1;
}

int
policy_series_index(const struct policy_info *info, const char *key)
{
    for (uint32_t i = 0; i < info->n_series; i++)
        if (strcmp(info->series[i].key, key) == 0)
            return (int)i;
    return -1;
}

int
policy_series_of_form(const struct policy_info *info, enum series_form form)
{
    for (uint32_t i = 0; i < info->n_series; i++)
        if (info->series[i].form == form)
            return (int)i;
    return -1;
}

/* ---- values ---- */

static const char *
choice_list(const struct knob *k, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i <= (int)k->max && at < size; i++) {
        int n = snprintf(out + at, size - at, "%s%s", i == 0 ? "" : ", ", k->choices[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return out;
}

bool
knob_check(const struct knob *k, double value, double *out, struct err *err)
{
    if (!(value >= k->min && value <= k->max)) /* in this form NAN fails */
        return err_set(err, ERR_USAGE, "%s = %.9g: give a number from %.9g to %.9g", k->name, value, k->min, k->max);
    double step = k->kind == KNOB_CHOICE ? 1 : k->kind == KNOB_INTEGER && k->step < 1 ? 1 : k->step;
    if (step > 0)
        value = k->min + round((value - k->min) / step) * step;
    char text[40];
    snprintf(text, sizeof text, "%.9g", value);
    value = strtod(text, NULL);
    /* The last step and rounding to nine digits may exceed the bounds. */
    *out = value > k->max ? k->max : value < k->min ? k->min : value == 0 ? 0 : value;
    return true;
}

bool
knob_parse(const struct knob *k, const char *text, double *out, struct err *err)
{
    if (k->kind == KNOB_CHOICE) {
        for (int i = 0; i <= (int)k->max; i++)
            if (strcmp(k->choices[i], text) == 0) {
                *out = i;
                return true;
            }
        char list[200];
        return err_set(err, ERR_USAGE, "%s = %.40s: choose one of %s", k->name, text,
                       choice_list(k, list, sizeof list));
    }
    /* Digits, a point, an exponent: strtod would also accept "inf", "nan" and hexadecimal. */
    char *end = NULL;
    double value = 0;
    if (text[0] != '\0' && strspn(text, "0123456789+-.eE") == strlen(text))
        value = strtod(text, &end);
    if (end == NULL || end == text || *end != '\0')
        return err_set(err, ERR_USAGE, "%s = %.40s: give a number from %.9g to %.9g", k->name, text, k->min, k->max);
    if (k->kind == KNOB_INTEGER && value != floor(value))
        return err_set(err, ERR_USAGE, "%s = %.40s: give a whole number from %.9g to %.9g", k->name, text, k->min,
                       k->max);
    return knob_check(k, value, out, err);
}

void
knob_format(const struct knob *k, double value, char *out, size_t n)
{
    if (k->kind == KNOB_CHOICE && value >= 0 && value <= k->max)
        snprintf(out, n, "%s", k->choices[(int)value]);
    else
        snprintf(out, n, "%.9g", value);
}
