/* What has a slider, and what it stands at. */
#include <stdio.h>
#include <string.h>

#include "engine/events/settings.h"
#include "tui/panels/knobs.h"
#include "tui/panels/landscape.h"

uint32_t
knobs_items(const struct view *v)
{
    return scope_policy(v->scope)->n_knobs + SAMPLING_KNOBS;
}

bool
knobs_is_policys(const struct view *v, uint32_t i)
{
    return i < scope_policy(v->scope)->n_knobs;
}

static struct knobs_item
policys(const struct view *v, uint32_t i)
{
    const struct knob *k = &scope_policy(v->scope)->knobs[i];
    const double span = k->max - k->min, value = scope_knob(v->scope, i);
    const uint32_t policy = (uint32_t)(scope_policy(v->scope) - scope_info(v->scope)->policies);
    return (struct knobs_item){.knob = k,
                               .least = k->min,
                               .most = k->max,
                               .step = k->step > 0            ? k->step
                                       : k->kind == KNOB_REAL ? span / 100
                                                              : 1,
                               .symbol = strcmp(k->symbol, k->name) != 0 ? k->symbol : "",
                               .value = value,
                               .requested = v->requested != NULL ? v->requested->value[policy][i] : value};
}

struct knobs_item
knobs_item(const struct view *v, uint32_t i)
{
    const uint32_t n = scope_policy(v->scope)->n_knobs;
    if (i < n)
        return policys(v, i);
    const int which = i - n < SAMPLING_KNOBS ? (int)(i - n) : SAMPLING_KNOBS - 1;
    const struct sampling_span *span = &sampling_spans[which];
    uint64_t seed;
    const struct sampling *s = scope_sampling(v->scope, &seed);
    const double value = sampling_knob_get(s, seed, which);
    const struct settings *r = v->requested;
    return (struct knobs_item){.knob = &sampling_knobs[which],
                               .least = span->least,
                               .most = span->most,
                               .step = span->step,
                               .symbol = which == SAMPLING_TEMPERATURE ? sampling_knobs[which].symbol : "",
                               .value = value,
                               .requested = r != NULL ? sampling_knob_get(&r->sampling, r->seed, which) : value,
                               .idle = which != SAMPLING_TEMPERATURE && !(s->temperature > 0)};
}

void
knobs_help(const struct view *v, uint32_t i, char out[KNOBS_HELP])
{
    const char *why = knobs_is_policys(v, i) && v->landscape != NULL ? v->landscape->why : "";
    snprintf(out, KNOBS_HELP, "%s%s%s", knobs_item(v, i).knob->help, why[0] != '\0' ? " · " : "", why);
}

void
knobs_settle(struct knobs_panel *p, const struct view *v)
{
    const struct policy_info *policy = scope_policy(v->scope);
    if (strcmp(p->policy, policy->name) == 0)
        return;
    p->focus = 0;
    p->top = 0;
    p->typing = false;
    memcpy(p->policy, policy->name, sizeof p->policy);
}
