/* The whole run: a column a token, or several folded into one, two layers a cell; where drafts left, where they were rejected,
 * what was turned; what other panels show is bracketed, and they go where one points. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/plural.h"
#include "tui/panels/run.h"
#include "tui/terminal/input.h"

static void *
open_run(void)
{
    return calloc(1, sizeof(struct run_panel));
}

static void
close_run(void *state)
{
    struct run_panel *p = state;
    if (p != NULL)
        free(p->value);
    free(p);
}

static void
draw(void *state, const struct view *v, const struct canvas *c)
{
    run_draw(state, v, c);
}

static void
note_run(void *state, const struct view *v, char *out, int n)
{
    const struct run_panel *p = state;
    const char *exited = scope_draft_origin(v->scope) == DRAFTS_LAYERS ? " ── ░ exited" : "";
    if (p->fold > 1)
        snprintf(out, (size_t)n, "%u token%s a column%s ── ◆ correction", (unsigned)p->fold, plural(p->fold), exited);
    else
        snprintf(out, (size_t)n, "a column a token%s ── ◆ correction", exited);
}

static void
point_at(const struct run_panel *p, const struct view *v, long pos)
{
    const long first = (long)p->first, last = (long)scope_now(v->scope)->length - 1;
    if (last < first)
        return;
    v->selection->pos = (uint32_t)(pos < first ? first : pos > last ? last : pos);
    v->selection->follow = false;
}

/* The first move puts the cursor on the newest position. */
static void
move(const struct run_panel *p, const struct view *v, long columns)
{
    const struct selection *sel = v->selection;
    const long now = (long)scope_now(v->scope)->length - 1, by = columns * (long)p->fold;
    point_at(p, v, sel->follow ? now + (columns < -1 ? by : 0) : (long)sel->pos + by);
}

static bool
key_run(void *state, const struct view *v, int key)
{
    const struct run_panel *p = state;
    if (p->fold == 0) /* not drawn yet */
        return false;
    switch (key) {
    case 'h':
    case INPUT_LEFT: move(p, v, -1); return true;
    case 'l':
    case INPUT_RIGHT: move(p, v, 1); return true;
    case INPUT_SHIFT_LEFT:
    case INPUT_PAGE_UP: move(p, v, -10); return true;
    case INPUT_SHIFT_RIGHT:
    case INPUT_PAGE_DOWN: move(p, v, 10); return true;
    case '0':
    case INPUT_HOME: point_at(p, v, 0); return true;
    case '$': point_at(p, v, (long)scope_now(v->scope)->length); return true;
    case INPUT_END:
    case 'f': v->selection->follow = true; return true;
    default: return false;
    }
}

static bool
mouse_run(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    const struct run_panel *p = state;
    (void)c;
    (void)y;
    if (p->fold == 0 || action == MOUSE_RELEASE)
        return false;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        move(p, v, action == MOUSE_WHEEL_UP ? -2 : 2);
    else
        point_at(p, v, (long)p->first + (long)(x < RUN_LABEL ? 0 : x - RUN_LABEL) * (long)p->fold);
    return true;
}

static const struct key_help keys[] = {
    {"← →", "point at a token; with Shift ten columns at a time: all panels go there"},
    {"Home $", "the first, the last one"},
    {"f, End", "follow the newest position again"},
    {"click, drag", "point there"},
    {"─ └━┘", "what the text shows, what the layers show"},
    {NULL, NULL},
};

const struct panel_ops panel_run = {
    .name = "run",
    .title = "whole run",
    .brief = "← → point  f follow",
    .place = PANEL_MIDDLE,
    .alone = true,
    .weight = 4,
    .min_cols = 40,
    .keys = keys,
    .open = open_run,
    .close = close_run,
    .draw = draw,
    .note = note_run,
    .key = key_run,
    .mouse = mouse_run,
};
