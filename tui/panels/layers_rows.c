/* Which layers and positions the layers × tokens panel shows, and how wide. */
#include "tui/panels/layers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
column_width(const struct layers_panel *p, const struct scope *s, uint32_t pos)
{
    const struct scope_column *c = scope_column(s, pos);
    int width = c != NULL ? text_width(panel_word(s, c->token)) : 0;
    if (c != NULL && c->rejected != TOKEN_NONE && c->fate == FATE_CORRECTION &&
        2 + text_width(panel_word(s, c->rejected)) > width)
        width = 2 + text_width(panel_word(s, c->rejected)); /* the second row shows it */
    for (int i = 0; i < p->n_rows; i++) {
        const enum layer_model model = p->row[i].model;
        const int layer = p->row[i].layer;
        const struct scope_cell *cells = model != MODEL_BLOCK ? scope_model_cells(s, model, pos) : NULL,
                                *cell = cells != NULL ? &cells[layer] : NULL;
        if (cell == NULL)
            continue;
        const int spurious = scope_model_spurious(s, model, pos, (uint32_t)layer);
        const int left =
            model == MODEL_TARGET && c != NULL && layers_beyond(s, c, layer) && cell->probed_by != PROBED_POLICY;
        const int lacked = layers_lacked(cell);
        const int here = cell->known ? text_width(panel_word(s, cell->token)) + spurious + left + lacked + p->mono : 0;
        width = here > width ? here : width;
    }
    const int most = LAYERS_WIDTH + p->wider;
    return width < LAYERS_MIN_WIDTH ? LAYERS_MIN_WIDTH : width > most ? most : width;
}

/* Returns the first of the positions up to `last` that fit into `room`. */
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

/* Returns the last shown position while the panel follows: the last draft, and during a round at least the last draft
 * of the round before, so that the columns do not move with every rejection. It depends only on the scope, so a replay
 * shows the same. */
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

/* ---- texts of cells ---- */

/* The position's exit layer; 0: none. */
static int
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
    for (int32_t i = 0; i < PREDICTION_TOP; i++)
        if (cell->top[i] == final)
            return i;
    return cell->top[0] == TOKEN_NONE ? -1 : PREDICTION_TOP;
}

const char *
layers_name(enum layer_model model, int layer, char out[16])
{
    static const char letters[LAYER_MODELS] = {'L', 'd', 'c', 'e', '+', 'm'};
    snprintf(out, 16, "%c%d", letters[model], layer);
    return out;
}

/* Chooses n more layers among the candidates, so that no part between two chosen layers has much larger steps than the
 * others. */
static void
spread(const bool *candidates, int layers, int n, bool *chosen)
{
    int first[RUN_LAYERS_MOST + 2], size[RUN_LAYERS_MOST + 2], more[RUN_LAYERS_MOST + 2], parts = 1;
    int of[RUN_LAYERS_MOST + 1], m = 0; /* the candidates, ascending */
    first[0] = 0;
    for (int l = 1; l <= layers; l++)
        if (chosen[l] && m > first[parts - 1])
            first[parts++] = m;
        else if (!chosen[l] && candidates[l])
            of[m++] = l;
    for (int i = 0; i < parts; i++) {
        size[i] = (i + 1 < parts ? first[i + 1] : m) - first[i];
        more[i] = 0;
    }
    for (n = n < m ? n : m; n > 0; n--) { /* the part with the largest steps gets one more */
        int best = -1;
        for (int i = 0; i < parts; i++)
            if (more[i] < size[i] && (best < 0 || (size[i] + 1) * (more[best] + 1) >= (size[best] + 1) * (more[i] + 1)))
                best = i;
        more[best]++;
    }
    for (int i = 0; i < parts; i++)
        for (int k = 1; k <= more[i]; k++)
            chosen[of[first[i] + (k * (size[i] + 1) + (more[i] + 1) / 2) / (more[i] + 1) - 1]] = true;
}

static int
count(const bool *chosen, int layers)
{
    int n = 0;
    for (int l = 1; l <= layers; l++)
        n += chosen[l];
    return n;
}

/* Chooses at most `rows` of the layers 1..layers: first those of must[] (0 and -1 are ignored), then evenly of the
 * probed layers, then of the others. Returns how many; out is descending. */
static int
layers_choose(int layers, int rows, const int *must, int n_must, const bool *probed, int *out)
{
    bool chosen[RUN_LAYERS_MOST + 1] = {false};
    int n = 0;
    layers = layers > (int)RUN_LAYERS_MOST ? (int)RUN_LAYERS_MOST : layers;
    for (int i = 0; i < n_must && n < rows; i++)
        if (must[i] >= 1 && must[i] <= layers && !chosen[must[i]]) {
            chosen[must[i]] = true;
            n++;
        }
    for (int pass = 0; pass < 2; pass++) {
        bool candidates[RUN_LAYERS_MOST + 1] = {false};
        for (int l = 1; l <= layers; l++)
            candidates[l] = probed[l] == (pass == 0);
        const int room = rows - count(chosen, layers);
        if (room > 0)
            spread(candidates, layers, room, chosen);
    }
    n = 0;
    for (int l = layers; l >= 1 && n < rows; l--)
        if (chosen[l])
            out[n++] = l;
    return n;
}

/* Shows a layer in place of the nearest of the n chosen ones that is none of must[], so that the cursor reaches every
 * layer and no other row changes. False: all are. */
static bool
choose_also(int layer, const int *must, int n_must, int *chosen, int n)
{
    int nearest = -1;
    for (int i = 0; i < n; i++) {
        bool free = true;
        if (chosen[i] == layer)
            return true;
        for (int k = 0; k < n_must; k++)
            free = free && must[k] != chosen[i];
        if (free && (nearest < 0 || abs(chosen[i] - layer) < abs(chosen[nearest] - layer)))
            nearest = i;
    }
    if (nearest < 0)
        return false;
    for (; nearest > 0 && chosen[nearest - 1] < layer; nearest--)
        chosen[nearest] = chosen[nearest - 1];
    for (; nearest < n - 1 && chosen[nearest + 1] > layer; nearest++)
        chosen[nearest] = chosen[nearest + 1];
    chosen[nearest] = layer;
    return true;
}

/* ---- the layers of models that help ---- */

/* True if the model has layers of its own, and the policy needs it or has used it at positions that may be shown. Their
 * number follows from the narrowest columns, because the columns drawn last depend on the result. */
static bool
in_view(const struct layers_panel *p, const struct view *v, enum layer_model model)
{
    const struct scope *s = v->scope;
    if (p->alone || p->experts || scope_model_layers(s, model) == 0)
        return false;
    if (scope_model_used(s, model))
        return true;
    const uint32_t most = (uint32_t)(p->cols / (LAYERS_MIN_WIDTH + 1)) + 1, length = scope_now(s)->length;
    const uint32_t from = p->placed && !v->selection->follow ? p->left : length > most ? length - most : 0;
    for (uint32_t pos = from; pos < from + most; pos++)
        if (scope_model_cells(s, model, pos) != NULL)
            return true;
    return false;
}

/* Returns how many of its layers have predictions. */
static int
layers_with_predictions(const struct scope *s, enum layer_model model)
{
    const int layers = (int)scope_model_layers(s, model);
    int n = 0;
    if (strcmp(scope_now(s)->probe, "all") == 0 || probe_is_share(scope_now(s)->probe))
        return layers;
    for (int l = 1; l <= layers; l++)
        n += scope_model_probed(s, model, (uint32_t)l) > 0;
    return n > 0 || strcmp(scope_now(s)->probe, "off") == 0 ? n : 1; /* the last layer, which drafts */
}

static void
mark_probed(const struct scope *s, enum layer_model model, int layers, bool probed[RUN_LAYERS_MOST + 1])
{
    for (int l = 0; l <= layers && l <= (int)RUN_LAYERS_MOST; l++)
        probed[l] = scope_model_probed(s, model, (uint32_t)l) > 0;
}

/* Returns how many rows an auxiliary model fills without its edge: its layers, or the positions of a block. */
static int
aux_rows(const struct view *v, enum layer_model model)
{
    return model == MODEL_BLOCK ? layers_block_rows(v) : layers_with_predictions(v->scope, model);
}

/* Adds an auxiliary model's rows and the edge below them, in at most `lines` rows. Returns the next y. */
static int
fold_aux_model(struct layers_panel *p, const struct view *v, enum layer_model model, int y, int lines)
{
    const struct scope *s = v->scope;
    const int layers = (int)scope_model_layers(s, model), all = aux_rows(v, model);
    const bool edge = lines >= 3 || lines > all;
    int rows = lines - edge < all ? lines - edge : all;
    rows = rows < LAYERS_ROWS - p->n_rows ? rows : LAYERS_ROWS - p->n_rows;
    if (rows <= 0)
        return y;
    bool probed[RUN_LAYERS_MOST + 1];
    int chosen[LAYERS_ROWS];
    mark_probed(s, model, layers, probed);
    const int must[] = {layers, probed[1] ? 1 : 0};
    const int n = model == MODEL_BLOCK ? rows : layers_choose(layers, rows, must, 2, probed, chosen);
    for (int i = 0; i < n; i++) {
        p->row[p->n_rows].model = model;
        p->row[p->n_rows].layer = model == MODEL_BLOCK ? i + 1 : chosen[i];
        p->row[p->n_rows++].y = y++;
    }
    if (edge)
        p->edge_y[model] = y++;
    return y;
}

/* Gives each auxiliary model a quarter of the rows, a block half of them, and the rows that the target's layers do not
 * need, the draft model first. */
static int
fold_aux_models(struct layers_panel *p, const struct view *v, int y, int lines, int target)
{
    /* from the top */
    static const enum layer_model models[] = {MODEL_COMPANION, MODEL_MTP, MODEL_BLOCK, MODEL_EAGLE, MODEL_DRAFT};
    enum { N = sizeof models / sizeof *models };
    int wanted[N], room[N], left = 0, spare = lines - target;
    for (int i = 0; i < N; i++) {
        wanted[i] = in_view(p, v, models[i]) ? aux_rows(v, models[i]) + 1 : 0; /* with its edge */
        left += wanted[i] > 1;
    }
    const int quarter = (lines + 1) / 4, half = left > 0 ? lines / (2 * left) : 0;
    const int share = quarter < half ? quarter : half;
    for (int i = 0; i < N; i++) {
        const int most = models[i] == MODEL_BLOCK ? half : share;
        room[i] = wanted[i] < most ? wanted[i] : most;
        spare -= room[i];
    }
    for (int i = N - 1; i >= 0; i--) {
        const int more = wanted[i] - room[i] < spare ? wanted[i] - room[i] : spare;
        room[i] += more > 0 ? more : 0;
        spare -= more > 0 ? more : 0;
    }
    for (int i = 0; i < N; i++)
        y = wanted[i] > 1 ? fold_aux_model(p, v, models[i], y, room[i]) : y;
    return y;
}

void
layers_fold(struct layers_panel *p, const struct view *v, int y, int lines)
{
    const struct scope *s = v->scope;
    const int layers = (int)scope_info(s)->layers, d_max = scope_d_max(s), first = y;
    bool probed[RUN_LAYERS_MOST + 1];
    int chosen[LAYERS_ROWS];
    const bool line = lines >= 6 && d_max >= 1 && d_max < layers;
    p->lines = lines;
    p->n_rows = 0;
    p->line_y = -1;
    for (int model = 0; model < LAYER_MODELS; model++)
        p->edge_y[model] = -1;
    y = fold_aux_models(p, v, y, lines, layers + line);
    int rows = lines - (y - first) - line;
    rows = rows < LAYERS_ROWS - p->n_rows ? rows : LAYERS_ROWS - p->n_rows;
    mark_probed(s, MODEL_TARGET, layers, probed);
    const int must[] = {layers, scope_exit_layer(s), d_max, 1};
    const int n = rows > 0 ? layers_choose(layers, rows, must, 4, probed, chosen) : 0;
    const struct selection *sel = v->selection;
    int kept = 4; /* fewer if there are few rows */
    while (!sel->follow && sel->model == MODEL_TARGET && sel->layer >= 1 && sel->layer <= layers && kept > 0 &&
           !choose_also(sel->layer, must, kept, chosen, n))
        kept--;
    for (int i = 0; i < n; i++) {
        if (line && p->line_y < 0 && chosen[i] <= d_max)
            p->line_y = y++;
        p->row[p->n_rows].model = MODEL_TARGET;
        p->row[p->n_rows].layer = chosen[i];
        p->row[p->n_rows++].y = y++;
    }
    p->spare_y = y;
    p->spare_rows = first + lines - y;
}

int
layers_row(const struct layers_panel *p, enum layer_model model, int layer)
{
    int at = -1;
    for (int i = 0; i < p->n_rows; i++) {
        if (p->row[i].model != model)
            continue;
        at = i;
        if (model == MODEL_BLOCK ? p->row[i].layer >= layer : p->row[i].layer <= layer)
            break;
    }
    if (at < 0 && model != MODEL_TARGET)
        return layers_row(p, MODEL_TARGET, INT_MAX);
    return at;
}
