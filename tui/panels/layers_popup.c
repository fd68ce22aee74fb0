/* A cell opened: its five best tokens, and how every layer of its model ranks the token that the last one says. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/layers.h"

static void
draw_top(const struct scope *s, const struct canvas *c, const struct scope_cell *cell)
{
    const int bar = c->cols > 34 ? c->cols - 26 : c->cols > 24 ? c->cols - 18 : 0;
    const int word = c->cols - 7 - bar - (bar > 0);
    for (int i = 0; i < GUESS_TOP; i++) {
        if (cell->top[i] == TOKEN_NONE)
            continue;
        const struct canvas left = canvas_inside(c, i, 0, 1, word);
        canvas_print(&left, 0, 0, i == 0 ? ROLE_TITLE : ROLE_TEXT, "%s", layers_word(s, cell->top[i]));
        canvas_print(c, i, word + 1, ROLE_TEXT, "%.3f", (double)cell->top_p[i]);
        if (bar > 0)
            canvas_bar(c, i, c->cols - bar, bar, (double)cell->top_p[i], ROLE_KNOB);
    }
}

/* A bar a layer, full height for the best rank, which is told as 1, and one step less for each doubling. */
static void
draw_ranks(const struct scope *s, const struct canvas *c, int y, enum layer_model model, const struct scope_cell *cells,
           token_t final, int at_layer)
{
    const int layers = (int)scope_model_layers(s, model);
    const int shown = layers < c->cols ? layers : c->cols;
    int first = 0, stays = 0;
    char name[16], since[16];
    for (int l = 1; l <= layers; l++) {
        const int32_t rank = layers_rank(&cells[l], final);
        if (rank == 0 && first == 0)
            first = l;
        if (rank != 0 && cells[l].known)
            stays = 0;
        else if (rank == 0 && stays == 0)
            stays = l;
    }
    for (int i = 0; i < shown; i++) {
        const int layer = shown > 1 ? 1 + (int)((int64_t)i * (layers - 1) / (shown - 1)) : layers;
        const int32_t rank = layers_rank(&cells[layer], final);
        const int step = rank < 0 ? -1 : (int)log2f(1 + (float)rank);
        const enum role role = layer == at_layer ? ROLE_FOCUS
                               : rank < 0        ? ROLE_DIM
                               : rank == 0       ? ROLE_OK
                                                 : ROLE_SERIES_1;
        canvas_text(c, y, i, role, rank < 0 ? "·" : canvas_level((7.5 - step) / 8));
    }
    if (first > 0)
        canvas_print(c, y + 1, 0, ROLE_DIM, stays > 0 ? "first at %s, stays from %s" : "first at %s, later not",
                     layers_name(model, first, name), layers_name(model, stays, since));
    else
        canvas_text(c, y + 1, 0, ROLE_DIM, "first at no layer that was probed");
}

void
layers_popup(const struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    const struct scope *s = v->scope;
    const struct selection *sel = v->selection;
    const struct scope_column *column = scope_column(s, sel->pos);
    const struct scope_cell *cells = scope_model_cells(s, sel->model, sel->pos);
    const int layer = sel->layer, layers = (int)scope_model_layers(s, sel->model);
    if (column == NULL || layer < 1 || layer > layers || c->rows < 3 || c->cols < 24)
        return;
    /* Below the rows where there is room, else over them, on the side where the cursor is not. */
    int at = 0;
    for (int i = 0; i < p->n_columns; i++)
        if (p->column[i].pos == sel->pos)
            at = p->column[i].x;
    char title[160], name[16], deepest[16];
    snprintf(title, sizeof title, "%s at %u '%.60s'", layers_name(sel->model, layer, name), (unsigned)sel->pos,
             layers_word(s, column->token));
    struct canvas inside;
    if (p->spare_rows >= LAYERS_BELOW) {
        inside = canvas_inside(c, p->spare_y + 1, 1, LAYERS_BELOW - 1, c->cols > 80 ? 78 : c->cols - 2);
        for (int x = 0; x < c->cols; x++)
            canvas_text(c, p->spare_y, x, ROLE_BORDER, "─");
        canvas_print(c, p->spare_y, 1, ROLE_TITLE, " %s ", title);
    } else {
        const int width = c->cols / 2 > 52 ? 52 : c->cols / 2 < 24 ? 24 : c->cols / 2;
        const int height = c->rows < LAYERS_POPUP ? c->rows : LAYERS_POPUP;
        const struct canvas box =
            canvas_inside(c, c->rows > height + 2 ? 2 : 0, at > c->cols / 2 ? 0 : c->cols - width, height, width);
        canvas_clear(&box);
        canvas_box(&box, title, "Esc", true);
        inside = canvas_inside(&box, 1, 2, box.rows - 2, box.cols - 4);
    }
    const bool gone = sel->pos < scope_first_cells(s);
    if (cells == NULL || !cells[layer].known) {
        canvas_text(&inside, 0, 0, ROLE_DIM, gone ? "no longer in memory" : "this layer was not probed here");
        if (v->live && !gone)
            canvas_text(&inside, 1, 0, ROLE_DIM, "(:probe all probes every layer)");
    } else {
        draw_top(s, &inside, &cells[layer]);
    }
    const token_t final = scope_model_final(s, sel->model, column);
    if (final == TOKEN_NONE) {
        canvas_text(&inside, GUESS_TOP, 0, ROLE_DIM, "the last layer has no prediction yet");
    } else if (cells != NULL) {
        canvas_print(&inside, GUESS_TOP, 0, ROLE_DIM, "rank of '%s' in %s..%s", layers_word(s, final),
                     layers_name(sel->model, 1, name), layers_name(sel->model, layers, deepest));
        draw_ranks(s, &inside, GUESS_TOP + 1, sel->model, cells, final, layer);
    }
}
