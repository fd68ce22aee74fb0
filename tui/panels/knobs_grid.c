#include "tui/panels/knobs_grid.h"
#include "tui/panels/landscape.h"
#include "tui/scope/batch.h"

#include <stdio.h>
#include <string.h>

const struct landscape_strip *
knobs_strip(const struct view *v, uint32_t knob)
{
    const struct landscape *l = v->landscape;
    const bool told = l != NULL && l->tokens > 0 && strcmp(l->policy, scope_policy(v->scope)->name) == 0;
    return told && l->strip[knob].n > 1 ? &l->strip[knob] : NULL;
}

bool
knobs_grid_open(const struct view *v)
{
    return v->landscape != NULL && v->landscape->grid.open &&
           strcmp(v->landscape->policy, scope_policy(v->scope)->name) == 0;
}

bool
knobs_note_foretold(const struct view *v, uint32_t knob, char *out, size_t n)
{
    const struct landscape *l = v->landscape;
    if (knobs_grid_open(v))
        snprintf(out, n, "what if, %u tokens", (unsigned)l->tokens);
    else if (knobs_strip(v, knob) == NULL)
        return false;
    else if (l->seq != scope_focus(v->scope)) /* of the one in focus nothing is known yet */
        snprintf(out, n, "forecast for sequence %u", (unsigned)l->seq + 1);
    else
        landscape_best(l, scope_policy(v->scope), knob, out, n);
    return true;
}

/* On what is in force, when it opens. */
static void
place(struct knobs_grid *k, const struct view *v)
{
    const struct landscape_grid *g = &v->landscape->grid;
    if (k->placed || g->n[0] == 0)
        return;
    for (int i = 0; i < 2; i++)
        k->at[i] =
            landscape_nearest(&scope_policy(v->scope)->knobs[g->knob[i]], g->n[i], scope_knob(v->scope, g->knob[i]));
    k->placed = true;
}

void
knobs_grid_draw(struct knobs_grid *k, const struct view *v, const struct canvas *c)
{
    const struct landscape_grid *g = &v->landscape->grid;
    const double in_force[2] = {scope_knob(v->scope, g->knob[0]), scope_knob(v->scope, g->knob[1])};
    place(k, v);
    const struct canvas inside = canvas_inside(c, 0, 1, c->rows, c->cols - 2);
    landscape_draw_grid(v->landscape, scope_policy(v->scope), &inside, k->at, in_force);
}

static void
adopt(const struct knobs_grid *k, const struct view *v)
{
    const struct landscape_grid *g = &v->landscape->grid;
    for (int i = 0; i < 2; i++) {
        const struct knob *knob = &scope_policy(v->scope)->knobs[g->knob[i]];
        const double value = landscape_value(knob, g->n[i], k->at[i], v->landscape->values[g->knob[i]]);
        char text[40], line[96];
        if (value == scope_knob(v->scope, g->knob[i]))
            continue;
        knob_format(knob, value, text, sizeof text);
        snprintf(line, sizeof line, "set %s %s", knob->name, text);
        if (!v->host->command(v->host->user, line))
            return;
    }
    v->host->command(v->host->user, "what-if close");
}

static void
step(struct knobs_grid *k, const struct view *v, int axis, int by)
{
    const uint32_t n = v->landscape->grid.n[axis];
    const int64_t to = (int64_t)k->at[axis] + by;
    if (n > 0)
        k->at[axis] = to < 0 ? 0 : to >= n ? n - 1 : (uint32_t)to;
}

void
knobs_grid_ask(struct knobs_grid *k, const struct view *v, uint32_t knob)
{
    const struct policy_info *policy = scope_policy(v->scope);
    char line[96];
    k->placed = false;
    if (policy->n_knobs < 2) {
        v->host->say(v->host->user, "what-if wants two knobs to open a grid");
        return;
    }
    snprintf(line, sizeof line, "what-if %s %s", policy->knobs[knob].name,
             policy->knobs[(knob + 1) % policy->n_knobs].name);
    v->host->command(v->host->user, line);
}

bool
knobs_grid_key(struct knobs_grid *k, const struct view *v, int key)
{
    place(k, v);
    switch (key) {
    case 'h':
    case INPUT_LEFT: step(k, v, 0, -1); return true;
    case 'l':
    case INPUT_RIGHT: step(k, v, 0, 1); return true;
    case INPUT_SHIFT_LEFT: step(k, v, 0, -10); return true;
    case INPUT_SHIFT_RIGHT: step(k, v, 0, 10); return true;
    case 'j':
    case INPUT_DOWN: step(k, v, 1, -1); return true;
    case 'k':
    case INPUT_UP: step(k, v, 1, 1); return true;
    case INPUT_PAGE_DOWN: step(k, v, 1, -10); return true;
    case INPUT_PAGE_UP: step(k, v, 1, 10); return true;
    case INPUT_ENTER:
        if (k->placed)
            adopt(k, v);
        return true;
    case 'w':
    case INPUT_ESCAPE: v->host->command(v->host->user, "what-if close"); return true;
    default: return false;
    }
}
