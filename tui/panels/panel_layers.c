/* Layers × tokens: a column a position, a row a layer, the deepest on top; what each layer would have said, how sure it
 * was, and where the token left the model. Above the model's layers stand those of the models that help it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/panels/layers.h"
#include "tui/terminal/input.h"

static void *
open_layers(void)
{
    struct layers_panel *p = calloc(1, sizeof *p);
    if (p != NULL)
        p->max_width = 8;
    return p;
}

static bool
shows_experts(const struct layers_panel *p, const struct view *v)
{
    return p->experts && scope_expert_count(v->scope, NULL) > 0;
}

static void
draw_layers(void *state, const struct view *v, const struct canvas *c)
{
    const struct layers_panel *p = state;
    layers_draw(state, v, c);
    const uint32_t pos = layers_experts_position(v);
    if (shows_experts(p, v))
        v->selection->layers = (struct positions){pos, pos + 1};
    else if (p->n_columns > 0)
        v->selection->layers = (struct positions){p->column[0].pos, p->column[p->n_columns - 1].pos + 1};
}

static void
note_layers(void *state, const struct view *v, char *out, int n)
{
    const struct layers_panel *p = state;
    static const char *const scales[SHOW_CHANNELS] = {"p 0 ▁▂▃▄▅▆▇█ 1", "H 0 ▁▂▃▄▅▆▇█ 6 nats", "KL 0 ▁▂▃▄▅▆▇█ 8 nats",
                                                      "rank 1024 ▁▂▃▄▅▆▇█ 1"};
    if (shows_experts(p, v)) {
        snprintf(out, (size_t)n, "experts: %s",
                 p->load ? "▄ an even share  █ twice it" : "weight 0 ▁▂▃▄▅▆▇█ the heaviest's");
        return;
    }
    const bool exits = scope_draft_origin(v->scope) == DRAFTS_LAYERS, room = p->cols >= 62;
    const char *exited = !exits || p->cols < 48 ? "" : room ? " ── ▒ exited" : " ▒ exited";
    const char *spurious = p->cols < 48 ? "" : room ? " ── ▓ spurious" : " ▓ spurious";
    snprintf(out, (size_t)n, "%s%s%s", scales[p->channel], exited, spurious);
}

/* ---- the cursor ---- */

static void
point_at(const struct layers_panel *p, struct selection *sel, int row)
{
    sel->model = p->row[row].model;
    sel->layer = p->row[row].layer;
}

/* The first move puts the cursor on the newest position, where its token left the model. */
static bool
take_cursor(struct layers_panel *p, const struct view *v)
{
    struct selection *sel = v->selection;
    const uint32_t length = scope_now(v->scope)->length;
    layers_fold(p, v, 2, p->lines); /* what was drawn last may be long ago */
    if (length == 0 || p->n_rows == 0)
        return false;
    if (sel->follow || sel->pos >= length) {
        sel->pos = length - 1;
        sel->follow = false;
    }
    if (sel->layer < 1) {
        const struct scope_column *c = scope_column(v->scope, sel->pos);
        sel->layer = c != NULL && c->exit_layer > 0 ? c->exit_layer : (int32_t)scope_info(v->scope)->layers;
        sel->model = MODEL_TARGET;
    }
    point_at(p, sel, layers_row(p, sel->model, sel->layer));
    return true;
}

static void
move(struct layers_panel *p, const struct view *v, int rows, long columns)
{
    if (!take_cursor(p, v))
        return;
    struct selection *sel = v->selection;
    const int row = layers_row(p, sel->model, sel->layer) + rows;
    point_at(p, sel, row < 0 ? 0 : row >= p->n_rows ? p->n_rows - 1 : row);
    const long first = (long)scope_first(v->scope), last = (long)scope_now(v->scope)->length - 1;
    long pos = (long)sel->pos + columns;
    pos = pos < first ? first : pos > last ? last : pos;
    sel->pos = (uint32_t)pos;
}

/* The layers of models that help, and back. */
static void
show_alone(struct layers_panel *p, const struct view *v)
{
    const bool any = scope_model_layers(v->scope, MODEL_DRAFT) > 0 || scope_model_layers(v->scope, MODEL_COMPANION) > 0;
    if (!any) {
        v->host->say(v->host->user, "this run has no draft model or companion with layers of its own");
        return;
    }
    p->alone = !p->alone;
    if (!v->selection->follow)
        take_cursor(p, v);
}

static void
show_experts(struct layers_panel *p, const struct view *v)
{
    if (scope_expert_count(v->scope, NULL) == 0) {
        v->host->say(v->host->user, "this model is not known to be a mixture of experts");
        return;
    }
    p->experts = !p->experts;
    p->popup = false;
    if (p->experts && v->selection->model != MODEL_TARGET)
        v->selection->model = MODEL_TARGET;
}

static bool
key_layers(void *state, const struct view *v, int key)
{
    struct layers_panel *p = state;
    const long page = p->n_columns > 1 ? p->n_columns - 1 : 1, far = (long)1 << 24;
    switch (key) {
    case 'h':
    case INPUT_LEFT: move(p, v, 0, v->selection->follow ? 0 : -1); return true;
    case 'l':
    case INPUT_RIGHT: move(p, v, 0, 1); return true;
    case 'k':
    case INPUT_UP: move(p, v, v->selection->follow ? 0 : -1, 0); return true;
    case 'j':
    case INPUT_DOWN: move(p, v, v->selection->follow ? 0 : 1, 0); return true;
    case 'K': move(p, v, -LAYERS_ROWS, 0); return true;
    case 'J': move(p, v, LAYERS_ROWS, 0); return true;
    case 'g': p->under = !p->under; return true;
    case INPUT_PAGE_UP:
    case INPUT_SHIFT_LEFT: move(p, v, 0, -page); return true;
    case INPUT_PAGE_DOWN:
    case INPUT_SHIFT_RIGHT: move(p, v, 0, page); return true;
    case '0':
    case INPUT_HOME: move(p, v, 0, -far); return true;
    case '$': move(p, v, 0, far); return true;
    case INPUT_END:
    case 'f':
        p->popup = false;
        v->selection->follow = true;
        return true;
    case 'c':
        if (shows_experts(p, v))
            p->load = !p->load;
        else
            p->channel = (enum layers_channel)((p->channel + 1) % SHOW_CHANNELS);
        return true;
    case 'E': show_experts(p, v); return true;
    case 'd': show_alone(p, v); return true;
    case '+':
    case '=': p->max_width += p->max_width < LAYERS_MAX_WIDTH; return true;
    case '-': p->max_width -= p->max_width > LAYERS_MIN_WIDTH; return true;
    case INPUT_ENTER: p->popup = !p->popup && take_cursor(p, v) && !shows_experts(p, v); return true;
    case INPUT_ESCAPE:
        if (!p->popup)
            return false;
        p->popup = false;
        return true;
    default: return false;
    }
}

static bool
mouse_layers(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct layers_panel *p = state;
    (void)c;
    if (action == MOUSE_RELEASE)
        return false;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        move(p, v, 0, action == MOUSE_WHEEL_UP ? -2 : 2);
        return true;
    }
    for (int row = 0; shows_experts(p, v) && row < p->n_rows; row++)
        if (p->row[row].y == y && take_cursor(p, v)) {
            point_at(p, v->selection, row);
            return true;
        }
    for (int i = 0; i < p->n_columns; i++) {
        if (x < p->column[i].x || x >= p->column[i].x + p->column[i].width)
            continue;
        v->selection->pos = p->column[i].pos;
        v->selection->follow = false;
        for (int row = 0; row < p->n_rows; row++)
            if (p->row[row].y == y)
                point_at(p, v->selection, row);
        if (action == MOUSE_DOUBLE)
            p->popup = take_cursor(p, v);
        return true;
    }
    return false;
}

static const struct key_help keys[] = {
    {"h j k l, arrows", "move the cursor; PgUp PgDn by a page"},
    {"0 $ K J", "first and last position, top and bottom layer"},
    {"Enter", "the cell's five best tokens, and every layer's rank of the final one"},
    {"g", "after the exit: grey, or these layers' predictions"},
    {"f, End", "follow the newest position again"},
    {"c", "show confidence, entropy, KL to the final layer, rank of the final token"},
    {"E", "of a mixture of experts: where the token's row went at each layer; v: how often each expert was chosen"},
    {"d", "hide and show the layers of the draft model and the companion"},
    {"+ -", "wider and narrower columns"},
    {NULL, NULL},
};

const struct panel_ops panel_layers = {
    .name = "layers",
    .title = "layers × tokens",
    .brief = "v measure  g under grey  Enter cell  ←↑↓→ point",
    .place = PANEL_TOP,
    .weight = 4,
    .min_cols = 30,
    .keys = keys,
    .open = open_layers,
    .close = free,
    .draw = draw_layers,
    .note = note_layers,
    .key = key_layers,
    .mouse = mouse_layers,
};
