/* Which positions are on the screen, and what cells say. */
#include <stdio.h>

#include "tui/panels/layers.h"

static int
column_width(const struct layers_panel *p, const struct scope *s, uint32_t pos)
{
    const struct scope_column *c = scope_column(s, pos);
    int width = c != NULL ? text_width(layers_word(s, c->token)) : 0;
    if (c != NULL && c->rejected != TOKEN_NONE && c->fate == FATE_CORRECTION &&
        2 + text_width(layers_word(s, c->rejected)) > width)
        width = 2 + text_width(layers_word(s, c->rejected)); /* said in the second row */
    for (int i = 0; i < p->n_rows; i++) {
        const enum layer_model model = p->row[i].model;
        const int layer = p->row[i].layer;
        const struct scope_cell *cells = scope_model_cells(s, model, pos), *cell = cells != NULL ? &cells[layer] : NULL;
        if (cell == NULL)
            continue;
        const int spurious = scope_model_spurious(s, model, pos, (uint32_t)layer);
        const int left =
            model == MODEL_TARGET && c != NULL && layers_beyond(s, c, layer) && cell->probed_by != PROBED_POLICY;
        const int here = cell->known ? text_width(layers_word(s, cell->token)) + spurious + left + p->mono : 0;
        width = here > width ? here : width;
    }
    const int least = p->max_width < LAYERS_MIN_WIDTH ? p->max_width : LAYERS_MIN_WIDTH;
    return width < least ? least : width > p->max_width ? p->max_width : width;
}

/* The first position of those that fit into `room` and end with `last`. */
static uint32_t
first_before(const struct layers_panel *p, const struct scope *s, uint32_t last, int room)
{
    uint32_t first = last;
    room -= column_width(p, s, last) + 1;
    while (first > scope_first(s)) {
        room -= column_width(p, s, first - 1) + 1;
        if (room < 0)
            break;
        first--;
    }
    return first;
}

static void
lay_out(struct layers_panel *p, const struct scope *s, int cols)
{
    int x = LAYERS_LABEL;
    p->n_columns = 0;
    for (uint32_t pos = p->left; pos < scope_now(s)->length && p->n_columns < LAYERS_COLUMNS; pos++) {
        const int width = column_width(p, s, pos);
        if (x + width > cols)
            break;
        p->column[p->n_columns].pos = pos;
        p->column[p->n_columns].x = x;
        p->column[p->n_columns].width = width;
        p->n_columns++;
        x += width + 1;
    }
}

/* Where the columns end while they follow: as far as drafts reach. While a round drafts, as far as the last one did, so
 * that the columns don't run to and fro with every rejection. A function of the scope alone: live and replayed pictures
 * are the same. */
static uint32_t
newest(const struct scope *s)
{
    uint32_t last = scope_now(s)->length - 1;
    const struct scope_round *open = scope_round(s, 0), *before = scope_round(s, 1);
    if (open == NULL || open->whole || before == NULL)
        return last;
    for (uint32_t i = 0; i < before->n_drafts; i++)
        if (before->drafts[i].pos > last && before->drafts[i].pos < last + VERIFY_NODES)
            last = before->drafts[i].pos;
    return last;
}

void
layers_columns(struct layers_panel *p, const struct scope *s, const struct selection *sel, int cols)
{
    const int room = cols - LAYERS_LABEL + 1;
    const uint32_t length = scope_now(s)->length;
    p->n_columns = 0;
    if (length == 0 || room < 2)
        return;
    const uint32_t cursor = sel->pos < length ? sel->pos : length - 1;
    if (sel->follow || !p->placed || p->left < scope_first(s) || p->left >= length)
        p->left = first_before(p, s, newest(s), room);
    p->placed = !sel->follow;
    if (p->placed && cursor < p->left)
        p->left = cursor;
    lay_out(p, s, cols);
    if (p->placed && (p->n_columns == 0 || cursor > p->column[p->n_columns - 1].pos)) {
        p->left = first_before(p, s, cursor, room);
        lay_out(p, s, cols);
    }
}

/* ---- what cells say ---- */

const char *
layers_word(const struct scope *s, token_t token)
{
    const char *text = scope_text(s, token);
    return text[0] == ' ' && text[1] != '\0' ? text + 1 : text[0] == ' ' ? "␣" : text;
}

int
layers_exit(const struct scope_column *c)
{
    if (c->fate == FATE_GHOST || c->fate == FATE_ACCEPTED || c->fate == FATE_REJECTED)
        return c->exit_layer > 0 ? c->exit_layer : 0;
    return c->rejected != TOKEN_NONE && c->rejected_exit > 0 ? c->rejected_exit : 0;
}

bool
layers_beyond(const struct scope *s, const struct scope_column *c, int layer)
{
    const int exit = layers_exit(c);
    return exit > 0 && layer > exit && layer < (int)scope_info(s)->layers;
}

int32_t
layers_rank(const struct scope_cell *cell, token_t final)
{
    if (!cell->known || final == TOKEN_NONE)
        return -1;
    if (cell->token == final)
        return 0;
    if (cell->rank_final >= 0)
        return cell->rank_final;
    for (int32_t i = 0; i < GUESS_TOP; i++)
        if (cell->top[i] == final)
            return i;
    return cell->top[0] == TOKEN_NONE ? -1 : GUESS_TOP;
}

const char *
layers_name(enum layer_model model, int layer, char out[16])
{
    static const char letters[LAYER_MODELS] = {'L', 'd', 'c'};
    snprintf(out, 16, "%c%d", letters[model], layer);
    return out;
}
