#include "traces/pair_info.h"

#include <stdlib.h>
#include <string.h>

static bool
comparable(const struct saved_run *a, const struct saved_run *b, struct err *err)
{
    const struct run_info *x = a->info, *y = b->info;
    static const char advice[] = "so they can't go in step; specscope diff compares them without --scope";
    if (x->model_hash != y->model_hash || x->layers != y->layers || x->vocab != y->vocab)
        return err_set(err, ERR_USAGE, "%s and %s are of different models (%.40s, %.40s), %s", a->folder, b->folder,
                       x->model_name, y->model_name, advice);
    return a->prompt_hash == b->prompt_hash ||
           err_set(err, ERR_USAGE, "%s and %s went on from different prompts, %s", a->folder, b->folder, advice);
}

static bool
declared_alike(const struct policy_info *a, const struct policy_info *b)
{
    bool alike = a->n_knobs == b->n_knobs && a->n_series == b->n_series;
    for (uint32_t i = 0; alike && i < a->n_knobs; i++) {
        const struct knob *x = &a->knobs[i], *y = &b->knobs[i];
        alike = strcmp(x->name, y->name) == 0 && x->kind == y->kind && (x->kind != KNOB_CHOICE || x->max == y->max);
        for (int c = 0; alike && x->kind == KNOB_CHOICE && c <= (int)x->max; c++)
            alike = strcmp(x->choices[c], y->choices[c]) == 0;
    }
    for (uint32_t i = 0; alike && i < a->n_series; i++) {
        const struct series *x = &a->series[i], *y = &b->series[i];
        alike = strcmp(x->key, y->key) == 0 && x->form == y->form && x->rows == y->rows && x->cols == y->cols;
    }
    return alike;
}

/* A slider that has room for both. */
static void
widen(struct policy_info *p, const struct policy_info *other)
{
    for (uint32_t i = 0; i < p->n_knobs; i++) {
        struct knob *k = &p->knobs[i];
        const struct knob *o = &other->knobs[i];
        k->min = o->min < k->min ? o->min : k->min;
        k->max = o->max > k->max ? o->max : k->max;
        k->step = o->step < k->step ? o->step : k->step;
    }
}

static bool
runs_under(const struct saved_run *s, uint32_t policy)
{
    return s->used[policy] || s->begin.policy == policy;
}

/* The place of each of the second one's policies in the common list. */
static bool
join_policies(struct pair_info *p, const struct saved_run *first, const struct saved_run *second, uint32_t *place,
              struct err *err)
{
    const struct run_info *a = first->info, *b = second->info;
    uint32_t n = a->n_policies;
    memcpy(p->policies, a->policies, n * sizeof *p->policies);
    for (uint32_t i = 0; i < b->n_policies; i++) {
        const struct policy_info *known = run_info_policy(a, b->policies[i].name);
        place[i] = known != NULL ? (uint32_t)(known - a->policies) : n;
        if (known == NULL)
            p->policies[n++] = b->policies[i];
        else if (declared_alike(known, &b->policies[i]))
            widen(&p->policies[place[i]], &b->policies[i]);
        else if (runs_under(second, i) && !runs_under(first, place[i]))
            p->policies[place[i]] = b->policies[i];
        else if (runs_under(second, i))
            return err_set(err, ERR_USAGE,
                           "%s and %s declare policy %s differently (versions %s and %s), so they can't be beside each "
                           "other on the screen; specscope diff compares them without --scope",
                           first->folder, second->folder, known->name, a->version, b->version);
    }
    p->run[0].n_policies = p->run[1].n_policies = n;
    return true;
}

static void
start_values(struct pair_info *p, const struct saved_run *first, const struct saved_run *second, const uint32_t *place)
{
    for (uint32_t i = 0; i < p->run[0].n_policies * POLICY_KNOBS; i++)
        p->values[0][i] = p->values[1][i] = p->policies[i / POLICY_KNOBS].knobs[i % POLICY_KNOBS].def;
    for (uint32_t i = 0; i < first->info->n_policies; i++)
        if (declared_alike(&p->policies[i], &first->info->policies[i]))
            memcpy(&p->values[0][i * POLICY_KNOBS], &first->begin.values[i * POLICY_KNOBS],
                   POLICY_KNOBS * sizeof *first->begin.values);
    for (uint32_t i = 0; i < second->info->n_policies; i++)
        if (declared_alike(&p->policies[place[i]], &second->info->policies[i]))
            memcpy(&p->values[1][place[i] * POLICY_KNOBS], &second->begin.values[i * POLICY_KNOBS],
                   POLICY_KNOBS * sizeof *second->begin.values);
}

static const char *
name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : folder;
}

/* What the screen is told of each: its own run's, as it stood at the beginning, with the common list of policies. */
static void
describe(struct pair_info *p, const struct saved_run *first, const struct saved_run *second, const uint32_t *place)
{
    const uint32_t other = place[second->begin.policy];
    for (int i = 0; i < 2; i++) {
        struct run_info *info = &p->run[i];
        const struct saved_run *of = i == 0 ? first : second;
        const struct saved_settings *begin = &of->begin;
        const struct policy_info *policy = &p->policies[i == 0 ? begin->policy : other];
        info->policies = p->policies;
        info->start_values = p->values[i];
        memcpy(info->policy, policy->name, sizeof info->policy);
        info->sampling = begin->sampling;
        info->seed = begin->seed;
        info->sequences = info->prompts = 1;
        info->saved_as = name_of(of->folder);
        if (begin->prompt != NULL) {
            info->prompt = begin->prompt;
            info->prompt_len = strlen(begin->prompt);
        }
    }
    if (p->run[1].ctx > p->run[0].ctx)
        p->run[0].ctx = p->run[1].ctx;
    p->run[0].beside = &p->run[1];
    versus_print(&p->policies[other], &p->values[0][other * POLICY_KNOBS], &p->values[1][other * POLICY_KNOBS],
                 p->versus);
}

bool
pair_info_open(struct pair_info *p, const struct saved_run *first, const struct saved_run *second, struct err *err)
{
    const size_t most = (size_t)first->info->n_policies + second->info->n_policies;
    *p = (struct pair_info){.run = {*first->info, *second->info}};
    if (!comparable(first, second, err))
        return false;
    uint32_t *place = calloc(most, sizeof *place);
    p->policies = calloc(most, sizeof *p->policies);
    p->values[0] = calloc(most * POLICY_KNOBS, sizeof *p->values[0]);
    p->values[1] = calloc(most * POLICY_KNOBS, sizeof *p->values[1]);
    bool ok = place != NULL && p->policies != NULL && p->values[0] != NULL && p->values[1] != NULL;
    if (!ok)
        err_set(err, ERR_WORK, "out of memory for two traces");
    ok = ok && join_policies(p, first, second, place, err);
    if (ok) {
        start_values(p, first, second, place);
        describe(p, first, second, place);
    }
    free(place);
    return ok;
}

void
pair_info_close(struct pair_info *p)
{
    free(p->policies);
    free(p->values[0]);
    free(p->values[1]);
    *p = (struct pair_info){0};
}
