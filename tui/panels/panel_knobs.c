/* Sliders for what the policy declares. Nothing here changes a knob: it asks with `:set`, shows what was asked for as
 * pending, and believes only the event that says it was applied. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/panels/knobs_grid.h"
#include "tui/panels/knobs_settings.h"
#include "tui/panels/landscape.h"
#include "tui/terminal/input.h"

#define TYPED 16

struct knobs_panel {
    uint32_t focus, top;
    char policy[16]; /* whose knobs the fields below are about */
    bool pending[POLICY_KNOBS];
    double asked[POLICY_KNOBS];
    uint32_t due[POLICY_KNOBS]; /* scope_knob_events() when all that was asked for has come */
    char typed[TYPED];          /* a value being typed; "": none */
    bool typing;
    int rows; /* of sliders, as drawn last */
    struct knobs_grid grid;
};

static void *
open_knobs(void)
{
    return calloc(1, sizeof(struct knobs_panel));
}

/* Another policy's knobs are other knobs; what was asked for and came is no longer pending. */
static void
settle(struct knobs_panel *p, const struct view *v)
{
    const struct policy_info *policy = scope_policy(v->scope);
    if (strcmp(p->policy, policy->name) != 0) {
        memset(p->pending, 0, sizeof p->pending);
        p->focus = p->top = 0;
        p->typing = false;
        memcpy(p->policy, policy->name, sizeof p->policy);
    }
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        if (p->pending[i] && (scope_knob(v->scope, i) == p->asked[i] || scope_knob_events(v->scope, i) >= p->due[i]))
            p->pending[i] = false;
}

/* What the slider stands at: the value asked for, or the one in force. */
static double
shown(const struct knobs_panel *p, const struct view *v, uint32_t i)
{
    return p->pending[i] ? p->asked[i] : scope_knob(v->scope, i);
}

static void
ask(struct knobs_panel *p, const struct view *v, uint32_t i, double value)
{
    const struct knob *k = &scope_policy(v->scope)->knobs[i];
    char text[40], line[96];
    if (!v->live) {
        v->host->say(v->host->user, "a replay shows what the knobs were; they can't be moved");
        return;
    }
    value = fmin(fmax(value, k->min), k->max);
    if (!knob_check(k, value, &value, NULL) || value == shown(p, v, i))
        return;
    knob_format(k, value, text, sizeof text);
    snprintf(line, sizeof line, "set %s %s", k->name, text);
    if (!v->host->command(v->host->user, line))
        return;
    const uint32_t came = scope_knob_events(v->scope, i);
    p->due[i] = (p->pending[i] ? p->due[i] : came) + 1;
    p->asked[i] = value;
    p->pending[i] = true;
}

static double
step_of(const struct knob *k)
{
    return k->step > 0 ? k->step : k->kind == KNOB_REAL ? (k->max - k->min) / 100 : 1;
}

static void
step(struct knobs_panel *p, const struct view *v, uint32_t i, int by)
{
    const struct knob *k = &scope_policy(v->scope)->knobs[i];
    if (k->kind == KNOB_CHOICE) { /* round and round */
        const int n = (int)k->max + 1, at = (int)shown(p, v, i) + (by > 0 ? 1 : n - 1);
        ask(p, v, i, at % n);
    } else {
        ask(p, v, i, shown(p, v, i) + by * step_of(k));
    }
}

/* ---- drawing ---- */

struct places {
    int name, slider, value, best; /* columns */
    int sliders;                   /* rows */
    int help, help_rows;           /* row, -1: none */
    int extra;                     /* row of probe and sampling, -1: none */
};

#define VALUE_COLUMNS 8
#define BEST_COLUMNS  19 /* "best dynamic: 1.46×" */
#define BEST_FROM     64 /* columns of the panel, where that has room */

static bool
has_symbol(const struct knob *k)
{
    return k->symbol[0] != '\0' && strcmp(k->symbol, k->name) != 0;
}

static int
longest_help(const struct policy_info *policy, int cols)
{
    const struct canvas one = {.cols = cols - 2};
    int most = 1;
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        const int rows = canvas_paragraph(&one, ROLE_DIM, policy->knobs[i].help);
        most = rows > most ? rows : most;
    }
    return most;
}

static struct places
arrange(const struct view *v, int rows, int cols)
{
    const struct policy_info *policy = scope_policy(v->scope);
    struct places a = {.name = 6, .value = VALUE_COLUMNS, .help = -1, .extra = -1};
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        const struct knob *k = &policy->knobs[i];
        const int width = text_width(k->name) + (has_symbol(k) ? text_width(k->symbol) + 1 : 0);
        a.name = width > a.name ? width : a.name;
    }
    a.name = a.name > cols / 2 ? cols / 2 : a.name;
    a.best = v->landscape != NULL && v->landscape->tokens > 0 && cols >= BEST_FROM ? BEST_COLUMNS : 0;
    a.slider = cols - 1 - a.name - 1 - 1 - a.value - a.best;
    if (a.slider < 5)
        a.slider = 0;
    const int n = (int)policy->n_knobs;
    a.sliders = rows;
    if (rows >= 3 && rows > n) /* the help of the one in focus; more sliders go before it */
        a.help = --a.sliders;
    if (a.help >= 0 && a.sliders > n)
        a.extra = --a.sliders;
    else if (rows >= 4 && a.help < 0)
        a.help = --a.sliders;
    a.sliders = a.sliders > n ? n : a.sliders;
    a.help_rows = 1;
    for (int spare = rows - a.sliders - 1 - (a.extra >= 0); a.help >= 0 && spare > 0; spare--) {
        if (a.help_rows >= longest_help(policy, cols))
            break;
        a.help_rows++; /* as many as the longest takes, so that nothing moves with the focus */
        a.help--;
        a.extra -= a.extra >= 0;
    }
    return a;
}

static double
fraction(const struct knob *k, double value)
{
    return k->max > k->min ? (value - k->min) / (k->max - k->min) : 0;
}

static void
draw_knob(const struct knobs_panel *p, const struct view *v, const struct canvas *c, int y, uint32_t i,
          const struct places *a)
{
    const struct knob *k = &scope_policy(v->scope)->knobs[i];
    const bool focus = v->focused && p->focus == i, pending = p->pending[i];
    const double value = shown(p, v, i);
    char text[40];
    canvas_text(c, y, 0, ROLE_FOCUS, focus ? "▸" : " ");
    const struct canvas name = canvas_inside(c, y, 1, 1, a->name);
    int x = 0;
    if (has_symbol(k))
        x = canvas_print(&name, 0, 0, focus ? ROLE_FOCUS : ROLE_KNOB, "%s ", k->symbol);
    canvas_text(&name, 0, x, focus ? ROLE_FOCUS : ROLE_TEXT, k->name);
    x = 1 + a->name + 1;
    const struct landscape_strip *strip = knobs_strip(v, i);
    if (a->slider > 0 && strip != NULL)
        landscape_draw_strip(strip, c, y, x, a->slider, fraction(k, value), pending ? ROLE_KNOB_PENDING : ROLE_TITLE);
    else if (a->slider > 0)
        canvas_slider(c, y, x, a->slider, fraction(k, value), fraction(k, k->def),
                      pending ? ROLE_KNOB_PENDING : ROLE_KNOB);
    x += a->slider + 1;
    if (focus && p->typing) {
        canvas_print(c, y, x, ROLE_CURSOR, "%s_", p->typed);
        return;
    }
    knob_format(k, value, text, sizeof text);
    const int used = canvas_text(c, y, x, pending ? ROLE_KNOB_PENDING : ROLE_TEXT, text);
    if (pending)
        canvas_text(c, y, x + used, ROLE_KNOB_PENDING, "…");
    if (strip == NULL || a->best == 0)
        return;
    landscape_best(v->landscape, scope_policy(v->scope), i, text, sizeof text);
    canvas_text(c, y, x + a->value, ROLE_DIM, text);
}

static void
draw_knobs(void *state, const struct view *v, const struct canvas *c)
{
    struct knobs_panel *p = state;
    const struct policy_info *policy = scope_policy(v->scope);
    settle(p, v);
    const struct places a = arrange(v, c->rows, c->cols);
    if (p->focus >= policy->n_knobs)
        p->focus = policy->n_knobs > 0 ? policy->n_knobs - 1 : 0;
    if (p->focus < p->top)
        p->top = p->focus;
    if (a.sliders > 0 && p->focus >= p->top + (uint32_t)a.sliders)
        p->top = p->focus - (uint32_t)a.sliders + 1;
    if (p->top + (uint32_t)a.sliders > policy->n_knobs)
        p->top = policy->n_knobs - (uint32_t)a.sliders;
    p->rows = a.sliders;
    if (knobs_grid_open(v)) {
        knobs_grid_draw(&p->grid, v, c);
        return;
    }
    if (policy->n_knobs == 0) {
        canvas_print(c, 0, 1, ROLE_DIM, "%s has no knobs", policy->name);
        knobs_draw_settings(v, c, c->rows > 2 ? 2 : 1);
        return;
    }
    for (int y = 0; y < a.sliders; y++)
        draw_knob(p, v, c, y, p->top + (uint32_t)y, &a);
    if (a.extra >= 0)
        knobs_draw_settings(v, c, a.extra);
    const struct canvas help = canvas_inside(c, a.help, 1, a.help_rows, c->cols - 2);
    if (a.help >= 0 && v->focused)
        canvas_paragraph(&help, ROLE_DIM, policy->knobs[p->focus].help);
}

static void
note_knobs(void *state, const struct view *v, char *out, int n)
{
    const struct knobs_panel *p = state;
    const struct policy_info *policy = scope_policy(v->scope);
    if (!v->live)
        snprintf(out, (size_t)n, "as they were");
    else if (p->focus < policy->n_knobs && knobs_note_foretold(v, p->focus, out, (size_t)n))
        return;
    else if (p->rows > 0 && (uint32_t)p->rows < policy->n_knobs)
        snprintf(out, (size_t)n, "%u–%u of %u", (unsigned)p->top + 1, (unsigned)p->top + (unsigned)p->rows,
                 (unsigned)policy->n_knobs);
}

/* ---- keys ---- */

static bool
type_key(struct knobs_panel *p, const struct view *v, int key)
{
    if (!p->typing && key == INPUT_ENTER) {
        p->typing = true;
        p->typed[0] = '\0';
        return true;
    }
    if (!p->typing)
        return false;
    const size_t n = strlen(p->typed);
    if ((key >= '0' && key <= '9') || key == '.' || key == 'e' || key == '-') {
        if (n + 1 < sizeof p->typed) {
            p->typed[n] = (char)key;
            p->typed[n + 1] = '\0';
        }
        return true;
    }
    if (key == INPUT_BACKSPACE || key == INPUT_DELETE) {
        if (n > 0)
            p->typed[n - 1] = '\0';
        p->typing = n > 0;
        return true;
    }
    p->typing = false;
    if (key == INPUT_ENTER && n > 0) {
        const struct knob *k = &scope_policy(v->scope)->knobs[p->focus];
        double value;
        struct err err = {0};
        if (knob_parse(k, p->typed, &value, &err))
            ask(p, v, p->focus, value);
        else
            v->host->say(v->host->user, err.text);
        return true;
    }
    return key == INPUT_ESCAPE || key == INPUT_ENTER;
}

static bool
key_knobs(void *state, const struct view *v, int key)
{
    struct knobs_panel *p = state;
    const struct policy_info *policy = scope_policy(v->scope);
    if (policy->n_knobs == 0)
        return false;
    settle(p, v);
    const struct knob *k = &policy->knobs[p->focus < policy->n_knobs ? p->focus : 0];
    if (knobs_grid_open(v))
        return knobs_grid_key(&p->grid, v, key);
    if (k->kind != KNOB_CHOICE && v->live && type_key(p, v, key))
        return true;
    switch (key) {
    case 'k':
    case INPUT_UP: p->focus -= p->focus > 0; return true;
    case 'j':
    case INPUT_DOWN: p->focus += p->focus + 1 < policy->n_knobs; return true;
    case 'h':
    case INPUT_LEFT: step(p, v, p->focus, -1); return true;
    case 'l':
    case INPUT_RIGHT: step(p, v, p->focus, 1); return true;
    case INPUT_SHIFT_LEFT: step(p, v, p->focus, -10); return true;
    case INPUT_SHIFT_RIGHT: step(p, v, p->focus, 10); return true;
    case INPUT_HOME: ask(p, v, p->focus, k->min); return true;
    case INPUT_END: ask(p, v, p->focus, k->max); return true;
    case '=': ask(p, v, p->focus, k->def); return true;
    case INPUT_ENTER:
        if (k->kind != KNOB_CHOICE)
            return false;
        step(p, v, p->focus, 1);
        return true;
    default: return false;
    }
}

static bool
mouse_knobs(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct knobs_panel *p = state;
    const struct policy_info *policy = scope_policy(v->scope);
    if (policy->n_knobs == 0 || knobs_grid_open(v))
        return false;
    settle(p, v);
    const struct places a = arrange(v, c->rows, c->cols);
    /* A drag that leaves its row goes on moving the same knob. */
    if (action != MOUSE_DRAG) {
        if (y < 0 || y >= a.sliders || p->top + (uint32_t)y >= policy->n_knobs || action == MOUSE_RELEASE)
            return false;
        p->focus = p->top + (uint32_t)y;
        p->typing = false;
    }
    const struct knob *k = &policy->knobs[p->focus];
    const int from = 1 + a.name + 1, track = a.slider - 2;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        step(p, v, p->focus, action == MOUSE_WHEEL_UP ? 1 : -1);
    } else if (action == MOUSE_DOUBLE) {
        ask(p, v, p->focus, k->def);
    } else if (track > 1 && (action == MOUSE_DRAG || (x >= from && x < from + a.slider))) {
        const double at = fmin(fmax((double)(x - from - 1) / (track - 1), 0), 1);
        ask(p, v, p->focus, k->min + at * (k->max - k->min));
    }
    return true;
}

static bool
command_knobs(void *state, const struct view *v, const char *verb, const char *rest)
{
    struct knobs_panel *p = state;
    if (strcmp(verb, "what-if") != 0 || rest[0] != '\0')
        return false;
    settle(p, v);
    knobs_grid_ask(&p->grid, v, p->focus);
    return true;
}

static const struct key_help keys[] = {
    {"↑ ↓", "choose a knob"},
    {"← →", "one step; with Shift ten; a choice goes round"},
    {"Home End", "least and most"},
    {"Enter", "type a value; Enter sets it, Esc leaves it"},
    {"=", "back to the default (┼)"},
    {"▁▄█", "the track: the modelled speedup that the last tokens would have had at every value, ● the one in force"},
    {"w", "this knob and the next as a grid: arrows move, Enter takes both values, Esc leaves"},
    {"mouse", "drag, wheel; double click for the default"},
    {NULL, NULL},
};

const struct panel_ops panel_knobs = {
    .name = "knobs",
    .title = "knobs",
    .brief = "← → turn  ↑ ↓ knob  Enter type  = default",
    .first_focus = true,
    .place = PANEL_BOTTOM,
    .weight = 3,
    .min_cols = 22,
    .keys = keys,
    .open = open_knobs,
    .close = free,
    .draw = draw_knobs,
    .note = note_knobs,
    .key = key_knobs,
    .mouse = mouse_knobs,
    .command = command_knobs,
};
