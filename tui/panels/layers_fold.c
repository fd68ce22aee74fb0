/* Which layers and which positions are on the screen. */
#include <string.h>

#include "tui/panels/layers.h"

/* Marks n of the candidates (m, ascending), evenly. */
static void
spread(const int *candidates, int m, int n, bool *chosen)
{
    for (int i = 0; i < n && m > 0; i++)
        chosen[candidates[n >= m ? (i < m ? i : m - 1) : (int)((2 * (int64_t)i + 1) * m / (2 * (int64_t)n))]] = true;
}

static int
count(const bool *chosen, int layers)
{
    int n = 0;
    for (int l = 1; l <= layers; l++)
        n += chosen[l];
    return n;
}

#define FOLD_LAYERS 4097

int
layers_choose(int layers, int rows, const int *must, int n_must, const bool *probed, int *out)
{
    bool chosen[FOLD_LAYERS] = {false};
    int candidates[FOLD_LAYERS], n = 0;
    if (layers >= FOLD_LAYERS)
        layers = FOLD_LAYERS - 1;
    for (int i = 0; i < n_must && n < rows; i++)
        if (must[i] >= 1 && must[i] <= layers && !chosen[must[i]]) {
            chosen[must[i]] = true;
            n++;
        }
    for (int pass = 0; pass < 2; pass++) {
        int m = 0;
        for (int l = 1; l <= layers; l++)
            if (!chosen[l] && probed[l] == (pass == 0))
                candidates[m++] = l;
        const int room = rows - count(chosen, layers);
        if (room > 0)
            spread(candidates, m, room, chosen);
    }
    n = 0;
    for (int l = layers; l >= 1 && n < rows; l--)
        if (chosen[l])
            out[n++] = l;
    return n;
}

void
layers_fold(struct layers_panel *p, const struct scope *s, int y, int lines)
{
    const int layers = (int)scope_info(s)->layers, d_max = scope_d_max(s);
    bool probed[FOLD_LAYERS];
    for (int l = 0; l <= layers && l < FOLD_LAYERS; l++)
        probed[l] = scope_probed(s, (uint32_t)l) > 0;
    const bool line = lines >= 6 && d_max >= 1 && d_max < layers;
    p->lines = lines;
    int rows = lines - line;
    rows = rows > LAYERS_ROWS ? LAYERS_ROWS : rows;
    const int must[] = {layers, 1, scope_exit_layer(s), d_max};
    p->n_rows = rows > 0 ? layers_choose(layers, rows, must, 4, probed, p->row_layer) : 0;
    p->line_y = -1;
    const int first = y;
    for (int i = 0; i < p->n_rows; i++) {
        if (line && p->line_y < 0 && p->row_layer[i] <= d_max)
            p->line_y = y++;
        p->row_y[i] = y++;
    }
    p->spare_y = y;
    p->spare_rows = first + lines - y;
}

/* ---- positions ---- */

static int
column_width(const struct layers_panel *p, const struct scope *s, uint32_t pos)
{
    const struct scope_column *c = scope_column(s, pos);
    const struct scope_cell *cells = scope_cells(s, pos);
    int width = c != NULL ? text_width(layers_word(s, c->token)) : 0;
    if (c != NULL && c->rejected != TOKEN_NONE && c->fate == FATE_CORRECTION &&
        2 + text_width(layers_word(s, c->rejected)) > width)
        width = 2 + text_width(layers_word(s, c->rejected)); /* said in the second row */
    for (int i = 0; i < p->n_rows && cells != NULL; i++) {
        const struct scope_cell *cell = &cells[p->row_layer[i]];
        const int spurious = scope_spurious(s, pos, (uint32_t)p->row_layer[i]);
        const int left = c != NULL && layers_beyond(s, c, p->row_layer[i]) && cell->probed_by != PROBED_POLICY;
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
    while (first > scope_first_cells(s)) {
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
    if (sel->follow || !p->placed || p->left < scope_first_cells(s) || p->left >= length)
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
