/* Lanes opened and closed: a sequence's tokens, and instances of all policies. */
#include <stdlib.h>

#include "engine/session/engine_kept.h"
#include "engine/session/session_internal.h"

static uint32_t
at_a_time(const struct session *s) /* two settings take turns */
{
    return s->batch ? s->n_lanes : 1;
}

/* Every policy is opened, so that the screen and the trace know the declarations of all. */
static bool
open_policies(struct session *s, const struct policy_ops *const *registry, uint32_t n, struct err *err)
{
    if (n > POLICIES_MOST)
        return err_set(err, ERR_WORK, "%u policies are too many: a session opens %d", (unsigned)n, POLICIES_MOST);
    s->info.policies = calloc(n, sizeof *s->info.policies);
    s->info.start_values = calloc((size_t)n * POLICY_KNOBS, sizeof *s->info.start_values);
    if (s->info.policies == NULL || s->info.start_values == NULL)
        return err_set(err, ERR_WORK, "out of memory opening the policies");
    struct policy *first = s->lanes[0].policies;
    for (uint32_t i = 0; i < n; i++) {
        s->info.n_policies = i + 1; /* closed even when opening fails half-way */
        if (!policy_open(&first[i], registry[i], &s->model, &s->info.sampling, err))
            return false;
        engine_recall(s->engine, &first[i], at_a_time(s));
        first[i].info.missing = engine_missing(s->engine, registry[i]->needs);
        s->info.policies[i] = first[i].info;
    }
    for (uint32_t l = 1; l < s->open_lanes; l++)
        for (uint32_t i = 0; i < n; i++)
            if (!policy_open_beside(&s->lanes[l].policies[i], &first[i], &s->model, &s->info.sampling, err))
                return false;
    return true;
}

bool
session_open_lanes(struct session *s, const struct policy_ops *const *registry, struct err *err)
{
    uint32_t n = 0;
    while (registry[n] != NULL)
        n++;
    s->lanes = calloc(s->open_lanes, sizeof *s->lanes);
    bool ok = s->lanes != NULL;
    for (uint32_t i = 0; i < s->open_lanes && ok; i++) {
        struct lane *l = &s->lanes[i];
        l->session = s;
        l->over = true;
        l->state.lane = l;
        l->tokens = calloc((size_t)s->info.ctx + 2, sizeof *l->tokens);
        l->policies = calloc(n, sizeof *l->policies);
        l->state.temperature = calloc((size_t)s->model.layers + 1, sizeof *l->state.temperature);
        ok = l->tokens != NULL && l->policies != NULL && l->state.temperature != NULL;
    }
    if (!ok)
        return err_set(err, ERR_WORK, "out of memory for a context of %u tokens; lower --ctx", (unsigned)s->info.ctx);
    return open_policies(s, registry, n, err);
}

void
session_close_lanes(struct session *s)
{
    for (uint32_t i = s->lanes != NULL ? s->open_lanes : 0; i-- > 0;) { /* the first one's policies are shared from */
        struct lane *l = &s->lanes[i];
        for (uint32_t p = 0; p < s->info.n_policies && l->policies != NULL; p++) {
            if (i == 0)
                engine_keep(s->engine, &l->policies[p], at_a_time(s));
            policy_close(&l->policies[p]);
        }
        free(l->policies);
        free(l->tokens);
        free(l->state.temperature);
    }
    free(s->lanes);
}
