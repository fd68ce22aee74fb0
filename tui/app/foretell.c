#include "tui/app/foretell.h"
#include "engine/base/clock.h"
#include "tui/scope/batch.h"

#include <math.h>
#include <string.h>

#define SLICE_US   1000
#define LOOK_US    1000000 /* between looks for a newer record, */
#define LOOK_BUSY  4000000 /* while the engine runs flat out, and then so many times what a landscape takes, */
#define BUSY_SHARE 400
#define LOOK_IDLE  100000 /* and while nothing moves */

bool
foretell_open(struct foretelling *f, const struct followed *run, struct err *err)
{
    return !follow_live(run) || layer_record_open(&f->record, run->info->layers, err);
}

void
foretell_close(struct foretelling *f)
{
    layer_record_close(&f->record);
}

void
foretell_grid(struct foretelling *f, uint32_t across, uint32_t up)
{
    f->grid = true;
    f->knob[0] = across;
    f->knob[1] = up;
    f->shown.grid = (struct landscape_grid){.open = true, .knob = {across, up}};
    f->working = false;
    f->next.policy[0] = '\0'; /* begin again */
}

void
foretell_grid_close(struct foretelling *f)
{
    f->grid = f->shown.grid.open = f->next.grid.open = false;
}

void
foretell_turn(struct foretelling *f, bool on)
{
    f->off = !on;
    f->shown = (struct landscape){0};
    f->working = f->grid = false;
    f->seen = 0;
}

/* Is what is shown, or under way, of other values? */
static bool
outdated(const struct foretelling *f, const struct followed *run, const struct policy_info *policy)
{
    if (strcmp(f->next.policy, policy->name) != 0)
        return true;
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        if (f->values[i] != scope_knob(run->scope, i))
            return true;
    return false;
}

static void
begin(struct foretelling *f, const struct followed *run, const struct policy_info *policy)
{
    if (strcmp(f->shown.policy, policy->name) != 0) { /* other knobs */
        f->grid = false;
        f->shown = (struct landscape){0};
    }
    f->next =
        (struct landscape){.seq = f->record.sequence, .grid = {.open = f->grid, .knob = {f->knob[0], f->knob[1]}}};
    memcpy(f->next.policy, policy->name, sizeof f->next.policy);
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        f->values[i] = scope_knob(run->scope, i);
        f->next.strip[i].n = landscape_points(&policy->knobs[i], LANDSCAPE_POINTS);
    }
    for (int i = 0; i < 2 && f->grid; i++)
        f->next.grid.n[i] = landscape_points(&policy->knobs[f->knob[i]], i == 0 ? LANDSCAPE_COLS : LANDSCAPE_ROWS);
    f->at = 0;
    f->took_us = 0;
    f->working = true;
}

static bool
ask(struct foretelling *f, const struct followed *run, const double *values, struct forecast *out)
{
    struct tally t;
    *out = (struct forecast){NAN, NAN, NAN, NAN, NAN};
    if (!session_what_if(run->source->session, f->next.policy, &f->record, values, &t))
        return false;
    *out = forecast_of(&t, run->info->layers, run->info->rho);
    f->next.tokens = (uint32_t)t.emitted;
    return true;
}

/* Work number `at`: how it stands, then all points of all strips, then the grid's. False: there is none left. */
static bool
work(struct foretelling *f, const struct followed *run, const struct policy_info *policy)
{
    double values[POLICY_KNOBS];
    memcpy(values, f->values, sizeof values);
    uint32_t at = f->at++;
    if (at == 0)
        return ask(f, run, values, &f->next.now); /* nothing to foretell */
    at--;
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        struct landscape_strip *s = &f->next.strip[i];
        if (at >= s->n) {
            at -= s->n;
            continue;
        }
        struct forecast forecast;
        values[i] = landscape_value(&policy->knobs[i], s->n, at);
        ask(f, run, values, &forecast);
        s->modelled[at] = forecast.modelled;
        if (forecast.modelled > s->modelled[s->best])
            s->best = at;
        return true;
    }
    struct landscape_grid *g = &f->next.grid;
    if (!g->open || at >= g->n[0] * g->n[1])
        return false;
    const uint32_t x = at % g->n[0], y = at / g->n[0];
    values[g->knob[0]] = landscape_value(&policy->knobs[g->knob[0]], g->n[0], x);
    values[g->knob[1]] = landscape_value(&policy->knobs[g->knob[1]], g->n[1], y);
    ask(f, run, values, &g->cell[y][x]);
    return true;
}

/* The record is to be of the sequence in focus. */
static void
ask_for_focus(struct foretelling *f, const struct followed *run)
{
    const struct control control = {.kind = CONTROL_WHAT_IF_OF, .seq = scope_focus(run->scope)};
    if (control.seq != f->asked && session_post(run->source->session, &control, NULL))
        f->asked = control.seq;
}

/* A newer record. */
static bool
look(struct foretelling *f, const struct followed *run, bool flat_out)
{
    const uint64_t now = clock_us(), busy = f->took_us * BUSY_SHARE > LOOK_BUSY ? f->took_us * BUSY_SHARE : LOOK_BUSY,
                   rest = flat_out             ? busy
                          : follow_moving(run) ? LOOK_US
                                               : LOOK_IDLE;
    if (f->looked_us != 0 && now - f->looked_us < rest)
        return false;
    f->looked_us = now;
    const uint64_t before = f->seen;
    f->seen = session_record(run->source->session, &f->record, before);
    return f->seen != before;
}

bool
foretell_step(struct foretelling *f, const struct followed *run, bool flat_out)
{
    if (!follow_live(run) || f->off)
        return false;
    const struct policy_info *policy = scope_policy(run->scope);
    ask_for_focus(f, run);
    const bool newer = !f->working && look(f, run, flat_out);
    if (f->seen == 0)
        return false;
    if (newer || outdated(f, run, policy))
        begin(f, run, policy);
    const uint64_t from = clock_us();
    const bool began = f->working;
    while (f->working && clock_us() < from + SLICE_US)
        f->working = work(f, run, policy);
    const bool done = began && !f->working;
    f->took_us += began ? clock_us() - from : 0;
    if (done)
        f->shown = f->next;
    return done;
}
