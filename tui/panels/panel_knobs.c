/* Sliders for what the policy declares, and for how tokens are drawn. Nothing here changes a knob: it asks with `:set`, and shows
 * the requested value as pending until an event says that it is in force. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/panels/knobs.h"
#include "tui/panels/landscape.h"
#include "tui/terminal/input.h"

static void *
open_knobs(void)
{
    return calloc(1, sizeof(struct knobs_panel));
}

static void
ask(const struct view *v, uint32_t i, double value)
{
    const struct knobs_item it = knobs_item(v, i);
    const struct knob *k = it.knob;
    char text[40], line[96];
    if (!v->live) {
        v->host->say(v->host->user, "a replay cannot change a knob: it shows a recorded run");
        return;
    }
    value = fmin(fmax(value, k->min), k->max);
    if (!knob_check(k, value, &value, NULL) || value == it.requested)
        return;
    knob_format(k, value, text, sizeof text);
    snprintf(line, sizeof line, "set %s %s", k->name, text);
    v->host->command(v->host->user, line);
}

static void
step(const struct view *v, uint32_t i, int by)
{
    const struct knobs_item it = knobs_item(v, i);
    if (it.knob->kind == KNOB_CHOICE) { /* round and round */
        const int n = (int)it.knob->max + 1, at = (int)it.requested + (by > 0 ? 1 : n - 1);
        ask(v, i, at % n);
    } else {
        ask(v, i, it.requested + by * it.step);
    }
}

static void
draw_knobs(void *state, const struct view *v, const struct canvas *c)
{
    struct knobs_panel *p = state;
    knobs_settle(p, v);
    knobs_draw(p, v, c);
}

static void
note_knobs(void *state, const struct view *v, char *out, int n)
{
    const struct knobs_panel *p = state;
    if (knobs_is_policys(v, p->focus) && knobs_note_foretold(v, p->focus, out, (size_t)n) && out[0] != '\0')
        return;
    if (!v->live)
        snprintf(out, (size_t)n, "as they were");
    else
        knobs_say_seen(p, v, out, (size_t)n);
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
    if (key >= ' ' && key < INPUT_UP) /* no part of a number, and no command either */
        return true;
    p->typing = false;
    if (key == INPUT_ENTER && n > 0) {
        const struct knob *k = knobs_item(v, p->focus).knob;
        double value;
        struct err err = {0};
        if (knob_parse(k, p->typed, &value, &err))
            ask(v, p->focus, value);
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
    knobs_settle(p, v);
    if (p->focus >= knobs_items(v))
        p->focus = 0;
    const struct knobs_item it = knobs_item(v, p->focus);
    if (knobs_grid_open(v))
        return knobs_grid_key(&p->grid, v, key);
    if (it.knob->kind != KNOB_CHOICE && v->live && type_key(p, v, key))
        return true;
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
        if (it.knob->kind != KNOB_CHOICE)
            return false;
        step(v, p->focus, 1);
        return true;
    default: return false;
    }
}

static bool
mouse_knobs(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct knobs_panel *p = state;
    if (knobs_grid_open(v))
        return false;
    knobs_settle(p, v);
    const struct knobs_places a = knobs_arrange(v, c->rows, c->cols);
    /* A drag that leaves its row goes on moving the same knob. */
    if (action != MOUSE_DRAG) {
        const int i = y >= 0 && y < a.seen ? knobs_item_at(v, p->top + y) : -1;
        if (i < 0 || action == MOUSE_RELEASE)
            return false;
        p->focus = (uint32_t)i;
        p->typing = false;
    }
    const struct knobs_item it = knobs_item(v, p->focus);
    const int from = 1 + a.name + 1, track = a.slider - 2;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        step(v, p->focus, action == MOUSE_WHEEL_UP ? 1 : -1);
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
    knobs_settle(p, v);
    knobs_grid_ask(&p->grid, v, knobs_is_policys(v, p->focus) ? p->focus : 0);
    return true;
}

static const char *
brief_knobs(const struct view *v)
{
    return knobs_grid_open(v) ? "←↑↓→ point  Enter set both  w close" : "← → change  ↑ ↓ knob  Enter type  = default";
}

static const struct key_help keys[] = {
    {"↑ ↓", "choose a knob"},
    {"← →", "one step; with Shift ten; a choice goes round"},
    {"Home End", "least and most of the slider; more can be typed where there is more"},
    {"Enter", "type a value; Enter sets it, Esc leaves it"},
    {"=", "back to the default (┼)"},
    {"▁▄█", "the track: the modelled speedup that the last tokens would have had at every value, ● the one in force"},
    {"w", "this knob and the next as a grid, ● in force, ★ the best: arrows move, with Shift and PgUp PgDn by ten; "
          "Enter sets "
          "both, Esc leaves"},
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
    .open = open_knobs,
    .close = free,
    .draw = draw_knobs,
    .note = note_knobs,
    .key = key_knobs,
    .mouse = mouse_knobs,
    .command = command_knobs,
};
