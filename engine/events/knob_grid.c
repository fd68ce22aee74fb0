#include "engine/events/knob_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
number(const char **at, char end, double *out)
{
    char *stop;
    *out = strtod(*at, &stop);
    if (stop == *at || *stop != end || !isfinite(*out))
        return false;
    *at = stop + 1;
    return true;
}

bool
knob_axis_parse(struct knob_axis *a, const char *text, const char *who, struct err *err)
{
    double to = 0;
    const char *equals = strchr(text, '='), *at = equals != NULL ? equals + 1 : text;
    *a = (struct knob_axis){.text = text};
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof a->name || !number(&at, ':', &a->from) ||
        !number(&at, ':', &to) || !number(&at, '\0', &a->step) || !(a->step > 0) || !(to >= a->from))
        return err_set(err, ERR_USAGE, "%s %.60s: KNOB=from:to:step is wanted, as in %s exit_layer=2:8:2", who, text,
                       who);
    memcpy(a->name, text, (size_t)(equals - text));
    const double points = floor((to - a->from) / a->step + 1e-9) + 1;
    if (!(points <= KNOB_GRID_MOST))
        return err_set(err, ERR_USAGE, "%s %.60s: that is %.0f points; %d are possible, take a larger step", who, text,
                       points, KNOB_GRID_MOST);
    a->n = (uint32_t)points;
    return true;
}

bool
knob_axis_check(const struct knob_axis *a, const struct knob *k, const char *policy, const char *who, struct err *err)
{
    if (k->kind == KNOB_CHOICE)
        return err_set(err, ERR_USAGE, "%s %.60s: %s is a choice by name, which has no steps; set it", who, a->text,
                       k->name);
    for (uint32_t i = 0; i < a->n; i++) {
        const double value = a->from + i * a->step;
        double got;
        struct err inner = {0};
        if (!knob_check(k, value, &got, &inner))
            return err_set(err, ERR_USAGE, "%s %.60s: policy %s: %.200s", who, a->text, policy, inner.text);
        if (fabs(got - value) > 1e-9 * (1 + fabs(value)))
            return err_set(err, ERR_USAGE, "%s %.60s: %s goes in steps of %.9g from %.9g, %.9g is between them", who,
                           a->text, k->name, k->step, k->min, value);
    }
    return true;
}

double
knob_axis_value(const struct knob_axis *a, const struct knob *k, uint32_t i)
{
    double value = NAN;
    knob_check(k, a->from + i * a->step, &value, NULL);
    return value;
}

uint32_t
knob_grid_points(const struct knob_axis *const *axes, size_t n)
{
    uint32_t points = 1;
    for (size_t i = 0; i < n; i++)
        if ((points *= axes[i]->n) > KNOB_GRID_MOST)
            return KNOB_GRID_MOST + 1;
    return points;
}

void
knob_grid_at(const struct knob_axis *const *axes, size_t n, uint32_t point, uint32_t *at)
{
    for (size_t i = n; i-- > 0; point /= axes[i]->n)
        at[i] = point % axes[i]->n;
}
