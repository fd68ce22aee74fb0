/* The candidates of a benchmark: policies × points of their grids. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "engine/tune/knob_sweep.h"
#include "policies/registry.h"

#define GRID "--grid"

struct axis { /* --grid KNOB=a:b:step */
    struct knob_axis grid;
    bool taken; /* some policy has the knob */
};

bool
bench_append(struct bench *b, const struct bench_candidate *candidate, struct err *err)
{
    if (b->n_candidates == BENCH_CANDIDATES)
        return err_set(err, ERR_USAGE,
                       "the grid has more than %d points over all policies: take larger steps, fewer knobs, or name "
                       "one --policy",
                       BENCH_CANDIDATES);
    struct bench_candidate *more = realloc(b->candidates, (b->n_candidates + 1) * sizeof *more);
    if (more == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    b->candidates = more;
    struct bench_candidate *new = &more[b->n_candidates++];
    *new = *candidate;
    new->pass = calloc(b->o->repeat, sizeof *new->pass);
    new->first = calloc(b->n_texts, sizeof *new->first);
    if (b->paired)
        new->run = calloc(b->o->repeat * b->prompts.n, sizeof *new->run);
    return (new->pass != NULL &&new->first != NULL && (new->run != NULL || !b->paired)) ||
           err_set(err, ERR_WORK, "out of memory");
}

/* Appends a candidate for each point of the policy's axes. */
static bool
append_points(struct bench *b, const struct bench_candidate *plain, const struct knob_axis *const *axes, size_t n_axes,
              const struct knob *const *knobs, struct err *err)
{
    const uint32_t points = knob_grid_points(axes, n_axes);
    for (uint32_t point = 0; point < points; point++) {
        uint32_t at[OPTIONS_MOST];
        struct bench_candidate candidate = *plain;
        size_t used = strlen(candidate.point);
        knob_grid_at(axes, n_axes, point, at);
        for (size_t i = 0; i < n_axes; i++) {
            struct knob_setting *s = &candidate.set[candidate.n_set++];
            snprintf(s->name, sizeof s->name, "%s", knobs[i]->name);
            knob_format(knobs[i], knob_axis_value(axes[i], knobs[i], at[i]), s->text, sizeof s->text);
            if (used < sizeof candidate.point)
                used += (size_t)snprintf(candidate.point + used, sizeof candidate.point - used, "%s%s=%s",
                                         used > 0 ? " " : "", s->name, s->text);
        }
        if (!bench_append(b, &candidate, err))
            return false;
    }
    return true;
}

static bool
append_policy(struct bench *b, const struct policy *p, struct axis *axes, size_t n_axes, bool *taken, struct err *err)
{
    const struct policy_info *info = &p->info;
    struct bench_candidate candidate = {.policy = p->ops->name};
    const struct knob_axis *own[OPTIONS_MOST];
    const struct knob *knobs[OPTIONS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < n_axes; i++) {
        int index = policy_knob_index(info, axes[i].grid.name);
        if (index < 0)
            continue;
        axes[i].taken = true;
        own[n] = &axes[i].grid;
        knobs[n++] = &info->knobs[index];
        if (!knob_axis_check(&axes[i].grid, &info->knobs[index], p->ops->name, GRID, err))
            return false;
        for (size_t k = 0; k + 1 < n; k++)
            if (knobs[k] == knobs[n - 1])
                return err_set(err, ERR_USAGE, "--grid %.60s: the knob %s has a grid already", axes[i].grid.text,
                               knobs[k]->name);
    }
    for (size_t k = 0; k < b->o->n_set; k++) {
        int index = policy_knob_index(info, b->o->set[k].name);
        if (index < 0)
            continue;
        for (size_t i = 0; i < n; i++)
            if (knobs[i] == &info->knobs[index])
                return err_set(err, ERR_USAGE, "--set %s: that knob has a --grid; give one of them", b->o->set[k].name);
        taken[k] = true;
        candidate.set[candidate.n_set++] = b->o->set[k];
    }
    if (candidate.n_set + n > OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "policy %s: more than %d settings and grids", p->ops->name, OPTIONS_MOST);
    /* The heads side by side; to autoregressive decoding they are one. */
    const bool one = b->o->n_heads_given < 2 || policy_is_baseline(p->ops->name);
    bool ok = true;
    for (size_t i = 0; i < (one ? 1 : b->o->n_heads_given) && ok; i++) {
        candidate.head = b->o->n_heads_given > 0 ? b->o->heads_given[i] : HEADS_POLICY;
        if (!one)
            snprintf(candidate.point, sizeof candidate.point, "head=%s", head_mode_names[candidate.head]);
        ok = append_points(b, &candidate, own, n, knobs, err);
    }
    return ok;
}

/* `ar` first, then the requested policies, or all that can run. */
static size_t
list_policies(const struct options *o, const struct engine *e, const struct policy_ops **out)
{
    size_t n = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; policy_registry[i] != NULL && n < OPTIONS_MOST; i++) {
            bool asked = o->policies.n == 0 && engine_missing(e, policy_registry[i]->needs) == 0,
                 ar = policy_is_baseline(policy_registry[i]->name);
            for (size_t k = 0; k < o->policies.n; k++)
                asked = asked || strcmp(policy_registry[i]->name, o->policies.at[k]) == 0;
            if (ar ? pass == 0 : pass == 1 && asked)
                out[n++] = policy_registry[i];
        }
    return n;
}

bool
bench_candidates(struct bench *b, struct err *err)
{
    struct axis axes[OPTIONS_MOST] = {{.taken = false}};
    for (size_t i = 0; i < b->o->grid.n; i++)
        if (!knob_axis_parse(&axes[i].grid, b->o->grid.at[i], GRID, err))
            return false;
    const struct model_info model = engine_model_info(b->engine);
    const struct policy_ops *policies[OPTIONS_MOST];
    size_t n = list_policies(b->o, b->engine, policies);
    bool taken[OPTIONS_MOST] = {false}, ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct policy p;
        ok = policy_open(&p, policies[i], &model, &b->o->sampling, err) &&
             append_policy(b, &p, axes, b->o->grid.n, taken, err);
        policy_close(&p);
    }
    for (size_t k = 0; k < b->o->n_set && ok; k++)
        if (!taken[k])
            ok = err_set(err, ERR_USAGE, "--set %s: none of these policies has that knob; see --list-policies",
                         b->o->set[k].name);
    for (size_t i = 0; i < b->o->grid.n && ok; i++)
        if (!axes[i].taken)
            ok = err_set(err, ERR_USAGE, "--grid %.60s: none of these policies has that knob; see --list-policies",
                         axes[i].grid.text);
    return ok;
}

void
bench_candidates_free(struct bench *b)
{
    for (size_t i = 0; i < b->n_candidates; i++) {
        for (size_t p = 0; b->candidates[i].first != NULL && p < b->n_texts; p++)
            free(b->candidates[i].first[p].tokens);
        free(b->candidates[i].first);
        free(b->candidates[i].pass);
        free(b->candidates[i].run);
        acceptance_free(&b->candidates[i].acceptance);
        policy_memory_free(&b->candidates[i].memory);
    }
    free(b->candidates);
}
