/* Sliders for the policy's knobs and for sampling. The panel requests changes with `:set` and shows the requested value
 * as pending until an event confirms it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"
#include "tui/panels/landscape.h"

struct knobs_panel {
    uint32_t focus;  /* index of the focused item */
    int top, seen;   /* the first visible line, and the number of visible lines, as drawn last */
    char policy[16]; /* the policy of the fields below */
    struct landscape_cursor grid;
};

/* An item with a slider: a knob of the policy, or, after these, one of sampling. */
struct knobs_item {
    const struct knob *knob; /* its bounds limit typed values, */
    double least, most;      /* these limit the slider */
    double step;             /* of the slider */
    const char *symbol;      /* before the name; "": none */
    double value;            /* the current value */
    double requested;        /* the value from the next round on */
    bool idle;               /* it has no effect while decoding is greedy */
};

/* The item's help, and for a policy's knob the reason why there is no forecast. */
#define KNOBS_HELP 200

/* The lines from top to bottom: the policy's knobs (or that it has none), other settings, sampling. Those from
 * knobs_panel.top on are visible as far as they fit. */
struct knobs_places {
    int name, slider, value, best; /* columns */
    int lines, seen;               /* all lines, and visible ones */
    int help, help_rows;           /* row, -1: none */
};

static uint32_t
knobs_items(const struct view *v)
{
    return scope_policy(v->scope)->n_knobs + SAMPLING_KNOBS;
}

/* false: one of sampling */
static bool
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

static struct knobs_item
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

static void
knobs_help(const struct view *v, uint32_t i, char out[KNOBS_HELP])
{
    const char *why = knobs_is_policys(v, i) && v->landscape != NULL ? v->landscape->why : "";
    snprintf(out, KNOBS_HELP, "%s%s%s", knobs_item(v, i).knob->help, why[0] != '\0' ? " · " : "", why);
}

/* resets the panel after a change of policy */
static void
reset_for_policy(struct knobs_panel *p, const struct view *v)
{
    const struct policy_info *policy = scope_policy(v->scope);
    if (strcmp(p->policy, policy->name) == 0)
        return;
    p->focus = 0;
    p->top = 0;
    memcpy(p->policy, policy->name, sizeof p->policy);
}

#define VALUE_COLUMNS 8
#define BEST_COLUMNS  25 /* "best dynamic: 1.46× ±0.03" */
#define MODELLED      8  /* columns of " (1.58×)" */
#define BEST_FROM     64 /* least columns of the panel with such a text */
#define NAMES_FROM    40 /* and with the full names of sampling */
#define LEAST_SLIDER  5
#define LEAST_NAME    8

/* Returns the lines of the policy's knobs, or 1 for the line that it has none. */
static int
policy_lines(const struct view *v)
{
    const int n = (int)scope_policy(v->scope)->n_knobs;
    return n > 0 ? n : 1;
}

static int
knobs_line_of(const struct view *v, uint32_t i)
{
    const uint32_t n = scope_policy(v->scope)->n_knobs;
    return i < n ? (int)i : policy_lines(v) + 1 + (int)(i - n);
}

/* -1: the line has no slider */
static int
knobs_item_at(const struct view *v, int line)
{
    const int n = (int)scope_policy(v->scope)->n_knobs, above = policy_lines(v) + 1;
    if (line >= above)
        return line < above + SAMPLING_KNOBS ? n + line - above : -1;
    return line < n ? line : -1;
}

/* Without the reasons for missing forecasts, so that a replay's sliders have the same places as the run's. */
static int
longest_help(const struct view *v, int cols)
{
    const struct canvas one = {.cols = cols - 2};
    int most = 1;
    for (uint32_t i = 0; i < knobs_items(v); i++) {
        const int rows = canvas_paragraph(&one, ROLE_DIM, knobs_item(v, i).knob->help);
        most = rows > most ? rows : most;
    }
    return most;
}

/* With few columns only the policy's names decide the width. */
static int
longest_name(const struct view *v, int cols)
{
    const uint32_t n = scope_policy(v->scope)->n_knobs;
    int most = 6;
    for (uint32_t i = 0; i < (n > 0 && cols < NAMES_FROM ? n : knobs_items(v)); i++) {
        const struct knobs_item it = knobs_item(v, i);
        const int width = text_width(it.knob->name) + (it.symbol[0] != '\0' ? text_width(it.symbol) + 1 : 0);
        most = width > most ? width : most;
    }
    return most;
}

/* Returns the columns of the longest value of the policy's sliders, and of the mark of a pending value. */
static int
longest_value(const struct view *v)
{
    const struct policy_info *p = scope_policy(v->scope);
    int most = 5; /* sampling's values are not longer, except for a seed */
    for (uint32_t i = 0; i < p->n_knobs; i++) {
        const struct knob *k = &p->knobs[i];
        const double some[] = {k->max, k->def, k->min + k->step, k->max - k->step};
        for (int j = 0; j < (k->kind == KNOB_CHOICE ? (int)k->max + 1 : 4); j++) {
            char text[40];
            knob_format(k, k->kind == KNOB_CHOICE ? j : some[j], text, sizeof text);
            most = text_width(text) > most ? text_width(text) : most;
        }
    }
    return most + 1;
}

static struct knobs_places
knobs_arrange(const struct view *v, int rows, int cols)
{
    const int n = policy_lines(v);
    struct knobs_places a = {.name = longest_name(v, cols), .value = VALUE_COLUMNS, .help = -1};
    a.name = a.name > cols / 2 ? cols / 2 : a.name;
    a.best = v->landscape != NULL && v->landscape->tokens > 0 && cols >= BEST_FROM ? BEST_COLUMNS : 0;
    if (a.best > 0 && v->landscape->now.in_time && cols >= BEST_FROM + MODELLED)
        a.best += MODELLED;
    if (cols < NAMES_FROM && n > 0) {
        const int longest = longest_value(v);
        a.value = longest < VALUE_COLUMNS ? longest : VALUE_COLUMNS;
    }
    a.slider = cols - 1 - a.name - 1 - 1 - a.value - a.best;
    if (a.slider < LEAST_SLIDER && a.name - (LEAST_SLIDER - a.slider) >= LEAST_NAME) {
        a.name -= LEAST_SLIDER - a.slider; /* names are shortened before sliders are omitted */
        a.slider = LEAST_SLIDER;
    }
    if (a.slider < LEAST_SLIDER)
        a.slider = 0;
    a.lines = n + 1 + SAMPLING_KNOBS;
    a.seen = rows;
    if ((rows >= 3 && rows > n) || rows >= 4) { /* the focused knob's help comes before more sliders */
        /* as many rows as the longest help needs, so that nothing moves with the focus; they come before sampling */
        const int spare = rows - n - 1, longest = longest_help(v, cols);
        a.help_rows = spare < 1 ? 1 : spare < longest ? spare : longest;
        a.help = rows - a.help_rows;
        a.seen = a.help;
    }
    a.seen = a.seen > a.lines ? a.lines : a.seen;
    return a;
}

static void
knobs_scroll(struct knobs_panel *p, const struct view *v, const struct knobs_places *a)
{
    if (p->focus >= knobs_items(v))
        p->focus = knobs_items(v) - 1;
    const int line = p->focus > 0 ? knobs_line_of(v, p->focus) : 0; /* with the first item also the line above it */
    if (line < p->top)
        p->top = line;
    if (a->seen > 0 && knobs_line_of(v, p->focus) >= p->top + a->seen)
        p->top = knobs_line_of(v, p->focus) - a->seen + 1;
    if (p->top + a->seen > a->lines)
        p->top = a->lines - a->seen;
    p->seen = a->seen;
}

/* Writes "1–8 of 11", the visible sliders as drawn last; nothing if all are visible. */
static void
write_visible(const struct knobs_panel *p, const struct view *v, char *out, size_t n)
{
    int first = -1, last = -1;
    for (int y = 0; y < p->seen; y++) {
        const int i = knobs_item_at(v, p->top + y);
        first = first < 0 ? i : first;
        last = i >= 0 ? i : last;
    }
    if (first >= 0 && (uint32_t)(last - first) + 1 < knobs_items(v))
        snprintf(out, n, "%d–%d of %u", first + 1, last + 1, (unsigned)knobs_items(v));
}

static void
knobs_draw_settings(const struct view *v, const struct canvas *c, int y)
{
    uint64_t seed;
    const struct sampling *sampling = scope_sampling(v->scope, &seed);
    const char *probe = scope_now(v->scope)->probe;
    int x = canvas_print(c, y, 1, ROLE_DIM, "probe %s", probe[0] != '\0' ? probe : "–") + 1;
    if (scope_head(v->scope)[0] != '\0')
        x += canvas_print(c, y, x, ROLE_DIM, " · %s%s", scope_head(v->scope),
                          strcmp(scope_head(v->scope), "trained") == 0 ? " heads" : "");
    if (!(sampling->temperature > 0)) {
        canvas_text(c, y, x, ROLE_DIM, " · greedy");
        return;
    }
    x += canvas_print(c, y, x, ROLE_DIM, " · T %.3g", (double)sampling->temperature);
    if (sampling->top_k > 0)
        x += canvas_print(c, y, x, ROLE_DIM, " · top-k %u", (unsigned)sampling->top_k);
    if (sampling->top_p < 1)
        x += canvas_print(c, y, x, ROLE_DIM, " · top-p %.3g", (double)sampling->top_p);
    canvas_print(c, y, x, ROLE_DIM, " · seed %llu", (unsigned long long)seed);
}

static double
fraction(const struct knobs_item *it, double value)
{
    return it->most > it->least ? fmin(fmax((value - it->least) / (it->most - it->least), 0), 1) : 0;
}

static void
draw_name(const struct canvas *c, const struct knobs_item *it, bool focus)
{
    int x = 0;
    if (it->symbol[0] != '\0')
        x = canvas_print(c, 0, 0, focus ? ROLE_FOCUS : ROLE_KNOB, "%s ", it->symbol);
    canvas_word(c, 0, x, c->cols - x, focus ? ROLE_FOCUS : it->idle ? ROLE_DIM : ROLE_TEXT, MARK_NONE, it->knob->name);
}

static void
draw_item(const struct knobs_panel *p, const struct view *v, const struct canvas *c, int y, uint32_t i,
          const struct knobs_places *a)
{
    const struct knobs_item it = knobs_item(v, i);
    const bool focus = v->focused && p->focus == i, pending = it.requested != it.value;
    const double value = it.requested;
    char text[64];
    canvas_text(c, y, 0, ROLE_FOCUS, focus ? "▸" : " ");
    const struct canvas name = canvas_inside(c, y, 1, 1, a->name);
    draw_name(&name, &it, focus);
    int x = 1 + a->name + 1;
    const struct landscape_strip *strip = knobs_is_policys(v, i) ? landscape_strip_of(v, i) : NULL;
    if (a->slider > 0 && strip != NULL)
        landscape_draw_strip(strip, c, y, x, a->slider, fraction(&it, value), pending ? ROLE_KNOB_PENDING : ROLE_TITLE);
    else if (a->slider > 0)
        canvas_slider(c, y, x, a->slider, fraction(&it, value), fraction(&it, it.knob->def),
                      pending   ? ROLE_KNOB_PENDING
                      : it.idle ? ROLE_DIM
                                : ROLE_KNOB);
    x += a->slider + 1;
    knob_format(it.knob, value, text, sizeof text);
    const int used = canvas_text(c, y, x, pending ? ROLE_KNOB_PENDING : it.idle ? ROLE_DIM : ROLE_TEXT, text);
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
    reset_for_policy(p, v);
    const struct knobs_places a = knobs_arrange(v, c->rows, c->cols);
    knobs_scroll(p, v, &a);
    if (landscape_grid_is_open(v)) {
        landscape_grid_draw(&p->grid, v, c);
        return;
    }
    const int settings = knobs_line_of(v, scope_policy(v->scope)->n_knobs) - 1; /* the line above sampling */
    for (int y = 0; y < a.seen; y++) {
        const int i = knobs_item_at(v, p->top + y);
        if (i >= 0)
            draw_item(p, v, c, y, (uint32_t)i, &a);
        else if (p->top + y == settings)
            knobs_draw_settings(v, c, y);
        else
            canvas_print(c, y, 1, ROLE_DIM, "%s has no knobs", scope_policy(v->scope)->name);
    }
    if (p->top > 0)
        canvas_text(c, 0, c->cols - 1, ROLE_DIM, "↑");
    if (a.seen > 0 && p->top + a.seen < a.lines)
        canvas_text(c, a.seen - 1, c->cols - 1, ROLE_DIM, "↓");
    const struct canvas help = canvas_inside(c, a.help, 1, a.help_rows, c->cols - 2);
    char text[KNOBS_HELP];
    knobs_help(v, p->focus, text);
    if (a.help >= 0 && v->focused)
        canvas_paragraph(&help, ROLE_DIM, text);
}

static void
ask(const struct view *v, uint32_t i, double value)
{
    const struct knobs_item it = knobs_item(v, i);
    const struct knob *k = it.knob;
    char text[40];
    if (!v->live) {
        panel_print(v, "a replay cannot change a knob: it shows a recorded run");
        return;
    }
    value = fmin(fmax(value, k->min), k->max);
    if (!knob_check(k, value, &value, NULL) || value == it.requested)
        return;
    knob_format(k, value, text, sizeof text);
    panel_command(v, "set %s %s", k->name, text);
}

static void
step(const struct view *v, uint32_t i, int by)
{
    const struct knobs_item it = knobs_item(v, i);
    if (it.knob->kind == KNOB_CHOICE) { /* after the last choice comes the first */
        const int n = (int)it.knob->max + 1, at = (int)it.requested + (by > 0 ? 1 : n - 1);
        ask(v, i, at % n);
    } else {
        ask(v, i, it.requested + by * it.step);
    }
}

static void
note_knobs(void *state, const struct view *v, char *out, int n)
{
    const struct knobs_panel *p = state;
    if (knobs_is_policys(v, p->focus) && landscape_note(v, p->focus, out, (size_t)n) && out[0] != '\0')
        return;
    if (!v->live)
        snprintf(out, (size_t)n, "as they were");
    else
        write_visible(p, v, out, (size_t)n);
}

/* ---- keys ---- */

static bool
key_knobs(void *state, const struct view *v, int key)
{
    struct knobs_panel *p = state;
    reset_for_policy(p, v);
    if (p->focus >= knobs_items(v))
        p->focus = 0;
    const struct knobs_item it = knobs_item(v, p->focus);
    if (landscape_grid_is_open(v))
        return landscape_grid_key(&p->grid, v, key);
    switch (key) {
    case 'k':
    case INPUT_UP: p->focus -= p->focus > 0; return true;
    case 'j':
    case INPUT_DOWN: p->focus += p->focus + 1 < knobs_items(v); return true;
    case 'h':
    case INPUT_LEFT: step(v, p->focus, -1); return true;
    case 'l':
    case INPUT_RIGHT: step(v, p->focus, 1); return true;
    case INPUT_SHIFT_LEFT: step(v, p->focus, -10); return true;
    case INPUT_SHIFT_RIGHT: step(v, p->focus, 10); return true;
    case INPUT_HOME: ask(v, p->focus, it.least); return true;
    case INPUT_END: ask(v, p->focus, it.most); return true;
    case '=': ask(v, p->focus, it.knob->def); return true;
    case INPUT_ENTER:
        if (it.knob->kind == KNOB_CHOICE)
            step(v, p->focus, 1);
        else if (v->live)
            panel_command(v, "command set %s ", it.knob->name); /* the user types the value */
        return it.knob->kind == KNOB_CHOICE || v->live;
    default: return false;
    }
}

static bool
mouse_knobs(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct knobs_panel *p = state;
    if (landscape_grid_is_open(v))
        return false;
    reset_for_policy(p, v);
    const struct knobs_places a = knobs_arrange(v, c->rows, c->cols);
    /* a drag that leaves its row still moves the same knob */
    if (action != MOUSE_DRAG) {
        const int i = y >= 0 && y < a.seen ? knobs_item_at(v, p->top + y) : -1;
        if (i < 0 || action == MOUSE_RELEASE)
            return false;
        p->focus = (uint32_t)i;
    }
    const struct knobs_item it = knobs_item(v, p->focus);
    const int from = 1 + a.name + 1, track = a.slider - 2;
    if (mouse_wheel(action) != 0) {
        step(v, p->focus, -mouse_wheel(action));
    } else if (action == MOUSE_DOUBLE) {
        ask(v, p->focus, it.knob->def);
    } else if (track > 1 && (action == MOUSE_DRAG || (x >= from && x < from + a.slider))) {
        const double at = fmin(fmax((double)(x - from - 1) / (track - 1), 0), 1) * (it.most - it.least);
        ask(v, p->focus, it.least + round(at / it.step) * it.step);
    }
    return true;
}

static bool
command_knobs(void *state, const struct view *v, const char *verb, const char *rest)
{
    struct knobs_panel *p = state;
    if (strcmp(verb, "what-if") != 0 || rest[0] != '\0')
        return false;
    reset_for_policy(p, v);
    landscape_grid_ask(&p->grid, v, knobs_is_policys(v, p->focus) ? p->focus : 0);
    return true;
}

static const char *
brief_knobs(const struct view *v)
{
    return landscape_grid_is_open(v) ? "←↑↓→ point  Enter set both  w close"
           : v->live                 ? "← → change  ↑ ↓ knob  Enter type  = default"
                                     : "↑ ↓ knob";
}

static const struct key_help keys[] = {
    {"↑ ↓", "choose a knob"},
    {"← →", "one step; with Shift ten; a choice starts again after its end"},
    {"Home End", "least and largest value of the slider; larger ones can be typed"},
    {"Enter", "type a value: :set with the knob's name"},
    {"=", "back to the default (┼)"},
    {"▁▄█", "the track: the speedup that the last tokens would have had at every value, cold below 1 × and warm above; "
            "● the one in force"},
    {"w", "this knob and the next as a grid, ● in force, ★ the best: arrows move, with Shift and PgUp PgDn by ten; "
          "Enter sets both, Esc leaves"},
    {"mouse", "drag, wheel; double click for the default"},
    {NULL, NULL},
};

const struct panel_ops panel_knobs = {
    .name = "knobs",
    .title = "knobs",
    .brief_now = brief_knobs,
    .first_focus = true,
    .place = PANEL_BOTTOM,
    .weight = 3,
    .min_cols = 22,
    .keys = keys,
    .state_size = sizeof(struct knobs_panel),
    .draw = draw_knobs,
    .note = note_knobs,
    .key = key_knobs,
    .mouse = mouse_knobs,
    .command = command_knobs,
};
