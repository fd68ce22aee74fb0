/* Layers × tokens: a column for each position, a row for each layer, the deepest first: predictions, confidence, exits.
 * The layers of auxiliary models are above the target's. */
#include "tui/panels/layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define LAYERS_POPUP 10 /* rows of an opened cell over the layers */

/* Returns the background's intensity: confidence, entropy, divergence from the last layer, or the rank of the final
 * token (rank 1 is the most intense, as in the opened cell). */
static float
heat_of(enum layers_channel channel, const struct scope_cell *cell, token_t final)
{
    const int32_t rank = layers_rank(cell, final);
    switch (channel) {
    case SHOW_CONFIDENCE: return cell->confidence;
    case SHOW_ENTROPY: return cell->entropy / 6; /* nats: at the end of the scale a prediction is worthless */
    case SHOW_KL: return cell->kl_final / 8;
    case SHOW_RANK: return rank < 0 ? NAN : 1 - log2f(1 + (float)rank) / 10;
    case SHOW_CHANNELS: break;
    }
    return NAN;
}

#define COLUMN_WORD 80 /* bytes */

/* Returns the text of a position's token. Of a token that ends a character whose first bytes are those of the tokens
 * before, it begins with this character. */
static const char *
column_word(const struct scope *s, const struct scope_column *column, char out[COLUMN_WORD])
{
    char joined[3 + 16];
    uint32_t n, at = 3, code;
    const char *bytes = scope_bytes(s, column->token, &n);
    const bool inside = n > 0 && ((unsigned char)bytes[0] & 0xc0) == 0x80;
    if (!inside || n > sizeof joined - at)
        return panel_word(s, column->token);
    memcpy(joined + at, bytes, n);
    const uint32_t end = at + n;
    for (uint32_t pos = column->pos; pos > 0 && at > 0 && ((unsigned char)joined[at] & 0xc0) == 0x80; pos--) {
        const struct scope_column *before = scope_column(s, pos - 1);
        if (before == NULL || (bytes = scope_bytes(s, before->token, &n)) == NULL)
            break;
        while (n > 0 && at > 0 && ((unsigned char)joined[at] & 0xc0) == 0x80)
            joined[--at] = bytes[--n];
    }
    if (utf8_character(joined + at, end - at, &code) <= 3 - at)
        return panel_word(s, column->token);
    printable_text(joined + at, end - at, out, COLUMN_WORD);
    return out;
}

/* Draws the position's fate as a glyph, which is readable without colours. */
static void
draw_fate(const struct scope *s, const struct canvas *c, int x, int width, const struct scope_column *column)
{
    char text[24] = "";
    const int exit = column->exit_layer > 0 && column->exit_layer < (int)scope_info(s)->layers ? column->exit_layer : 0;
    int used = 0;
    switch (column->fate) {
    case FATE_NONE: break;
    case FATE_PROMPT: canvas_word(c, 1, x, width, ROLE_DIM, MARK_NONE, "·"); return;
    case FATE_PREFILL: canvas_word(c, 1, x, width, ROLE_DIM, MARK_NONE, "▸"); return;
    case FATE_GHOST: snprintf(text, sizeof text, "◌%.0d", exit); break;
    case FATE_ACCEPTED: snprintf(text, sizeof text, "✓%.0d", exit); break;
    case FATE_REJECTED: snprintf(text, sizeof text, "✗%.0d", exit); break;
    case FATE_BONUS: snprintf(text, sizeof text, "+"); break;
    case FATE_CORRECTION: snprintf(text, sizeof text, "◆"); break;
    }
    used = canvas_word(c, 1, x, width, fate_styles[column->fate].role, MARK_NONE, text);
    if (column->rejected == TOKEN_NONE || column->fate == FATE_ACCEPTED || column->fate == FATE_REJECTED)
        return;
    used += canvas_word(c, 1, x + used, width - used, ROLE_REJECTED, MARK_NONE, "✗");
    canvas_word(c, 1, x + used, width - used, ROLE_REJECTED, MARK_STRUCK, panel_word(s, column->rejected));
}

static void
draw_cell(const struct layers_panel *p, const struct scope *s, const struct canvas *c, int row, int x, int width,
          uint32_t pos, bool cursor)
{
    const enum layer_model model = p->row[row].model;
    const int layer = p->row[row].layer, y = p->row[row].y;
    if (model == MODEL_BLOCK) /* its rows are not divided into positions */
        return;
    const struct scope_column *column = scope_column(s, pos);
    const struct scope_cell *cells = scope_model_cells(s, model, pos);
    const bool beyond = model == MODEL_TARGET && column != NULL && layers_beyond(s, column, layer);
    unsigned marks = cursor ? MARK_CURSOR : MARK_NONE;
    if (cursor)
        canvas_text(c, y, x - 1, ROLE_FOCUS, "▸");
    if (cells == NULL || !cells[layer].known) {
        if (beyond) {
            canvas_heat(c, y, x, width, NAN, marks | MARK_EXITED, "");
        } else {
            canvas_heat(c, y, x, width, NAN, marks, "");
            /* this layer was not probed, or the column was dropped */
            canvas_styled(c, y, x, ROLE_DIM, NAN, marks, pos < scope_first_cells(s) ? "┈" : "·");
        }
        return;
    }
    const struct scope_cell *cell = &cells[layer];
    if (scope_model_spurious(s, model, pos, (uint32_t)layer))
        marks |= MARK_SPURIOUS;
    const token_t final = column != NULL ? scope_model_final(s, model, column) : TOKEN_NONE;
    const float heat = heat_of(p->channel, cell, final);
    const bool agrees = cell->token == final && layer < (int)scope_model_layers(s, model);
    if (agrees)
        marks |= MARK_BOLD;
    const char *word = panel_word(s, cell->token);
    const bool lacked = layers_lacked(cell) && width > 2;
    if (beyond && cell->probed_by != PROBED_POLICY && width > 1) { /* probed only by the scope, after the exit */
        if (p->under)
            canvas_heat(c, y, x, width - 1, heat, marks | MARK_FADED, word);
        else
            canvas_block(c, y, x, width - 1, ROLE_EXITED, marks, word);
        canvas_styled(c, y, x + width - 1, ROLE_EXITED, NAN, marks & MARK_CURSOR, "▒");
    } else {
        canvas_heat(c, y, x, width - lacked, heat, marks, word);
        if (lacked)
            canvas_styled(c, y, x + width - 1, ROLE_DIM, NAN, marks & MARK_CURSOR, "∉");
    }
}

/* The name of a layer; the only one of a source that does not tell the others is the output. */
static const char *
name_of(const struct scope *s, enum layer_model model, int layer, char out[16])
{
    if (model != MODEL_TARGET || scope_info(s)->layers > 1)
        return layers_name(model, layer, out);
    return "out";
}

static void
draw_label(const struct layers_panel *p, const struct scope *s, const struct canvas *c, int row)
{
    const enum layer_model model = p->row[row].model;
    const int layer = p->row[row].layer, y = p->row[row].y;
    const bool target = model == MODEL_TARGET, exit = target && layer == scope_exit_layer(s);
    char name[16], text[16];
    if (target && (layer != (int)scope_info(s)->layers || layer >= 100))
        snprintf(name, sizeof name, "%.1s%d", run_info_kind(scope_info(s), (uint32_t)layer), layer);
    else
        snprintf(name, sizeof name, "%s", name_of(s, model, layer, text));
    /* layers between this row and the one above are not shown */
    const bool gap =
        model != MODEL_BLOCK && row > 0 && p->row[row - 1].model == model && p->row[row - 1].layer != layer + 1;
    if (gap && p->line_y != y - 1)
        canvas_text(c, y, 0, ROLE_DIM, "┆");
    canvas_print(c, y, strlen(name) > 3 ? 0 : 1, exit ? ROLE_TITLE : ROLE_DIM, "%3s%s", name, exit ? "►" : "");
}

/* Returns the columns at the right that show how often layers agree with the target's last one: of two heads, or of
 * one, if any layer was compared; 0: none. */
static int
shares_width(const struct layers_panel *p, const struct scope *s, int cols)
{
    bool any = false;
    if (cols < LAYERS_SHARES_FROM)
        return 0;
    if (scope_head(s)[0] != '\0')
        return LAYERS_SHARES;
    for (int row = 0; row < p->n_rows; row++)
        any = any || (p->row[row].model != MODEL_BLOCK &&
                      !isnan(scope_model_agreement(s, p->row[row].model, (uint32_t)p->row[row].layer)));
    return any ? LAYERS_SHARES / 2 : 0;
}

/* Draws how often each layer's first choice was that of the target's last layer, by the lens and the trained head; the
 * current head is brighter. Auxiliary models, and models without trained heads, have only the lens. */
static void
draw_shares(const struct layers_panel *p, const struct scope *s, const struct canvas *c, int width)
{
    const struct canvas side = canvas_inside(c, 0, c->cols - width + 1, c->rows, width - 1);
    const bool trained = strcmp(scope_head(s), "trained") == 0, both = scope_head(s)[0] != '\0';
    const uint32_t layers = scope_info(s)->layers;
    if (both) {
        canvas_print(&side, 0, 0, ROLE_DIM, layers < 100 ? "same token as L%u" : "same as L%u", (unsigned)layers);
        canvas_text(&side, 1, 1, trained ? ROLE_DIM : ROLE_TITLE, "lens");
        canvas_text(&side, 1, 8, trained ? ROLE_TITLE : ROLE_DIM, "trained");
    } else {
        canvas_text(&side, 0, 0, ROLE_DIM, "same as");
        canvas_print(&side, 1, 2, ROLE_DIM, "L%u", (unsigned)layers);
    }
    for (int row = 0; row < p->n_rows; row++) {
        const bool target = p->row[row].model == MODEL_TARGET;
        if (p->row[row].model == MODEL_BLOCK)
            continue;
        const uint32_t layer = (uint32_t)p->row[row].layer;
        for (int head = 0; head < (target && both ? 2 : 1); head++) {
            const double share =
                target ? scope_agreement(s, layer, head) : scope_model_agreement(s, p->row[row].model, layer);
            if (!isnan(share) && !(target && layer == layers))
                canvas_print(&side, p->row[row].y, head * 9, !target || (head == 1) == trained ? ROLE_TEXT : ROLE_DIM,
                             "%4.0f%%", share * 100);
        }
    }
}

/* Draws the edges below the layers of auxiliary models, with their names. */
static void
draw_edges(const struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    for (int model = 0; model < LAYER_MODELS; model++) {
        if (p->edge_y[model] < 0)
            continue;
        for (int x = 0; x < c->cols; x++)
            canvas_text(c, p->edge_y[model], x, ROLE_BORDER, "─");
        char name[80];
        const char *from = scope_model_name(v->scope, (enum layer_model)model);
        printable_text(from, strlen(from), name, sizeof name);
        const int x =
            1 + canvas_print(c, p->edge_y[model], 1, ROLE_TITLE, " %s %s %s ", "▲", layer_model_names[model], name);
        if (model == MODEL_BLOCK)
            layers_block_summary(v, c, p->edge_y[model], x);
        if (v->focused && model != MODEL_COMPANION && c->cols >= LAYERS_SHARES_FROM)
            canvas_text(c, p->edge_y[model], c->cols - 10, ROLE_DIM, " d hides ");
    }
}

static void
draw_line(const struct layers_panel *p, const struct scope *s, const struct canvas *c)
{
    if (p->line_y < 0)
        return;
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, p->line_y, x, ROLE_LINE, "╌");
    canvas_print(c, p->line_y, 1, ROLE_LINE, " d_max %d ", (int)scope_d_max(s));
}

/* True if a layer of the target up to `last` has a prediction at this position. */
static bool
probed_at(const struct scope *s, uint32_t pos, uint32_t last)
{
    const struct scope_cell *cells = scope_cells(s, pos);
    bool known = false;
    for (uint32_t l = 1; cells != NULL && l <= last; l++)
        known = known || cells[l].known;
    return known;
}

/* False if the scope probes layers in a share of the time, and has not done so at this position: the last layer's
 * prediction is that of the verification. */
static bool
is_probed(const struct scope *s, uint32_t pos)
{
    return probed_at(s, pos, scope_info(s)->layers - (probe_is_share(scope_now(s)->probe)));
}

/* Returns the cell that is described without a cursor: the newest token with predictions, at its exit layer. */
static struct selection
newest_exit(const struct scope *s)
{
    const uint32_t committed = scope_now(s)->committed;
    struct selection newest = {.pos = committed > 0 ? committed - 1 : 0};
    for (uint32_t back = 1; back <= VERIFY_NODES && back <= committed; back++)
        if (is_probed(s, committed - back)) {
            newest.pos = committed - back;
            break;
        }
    const struct scope_column *column = scope_column(s, newest.pos);
    newest.layer = column != NULL && column->fate == FATE_ACCEPTED && column->exit_layer > 0
                       ? column->exit_layer
                       : (int32_t)scope_info(s)->layers;
    return newest;
}

#define DIFFERS 0.05f /* from this difference on both probabilities are shown */

/* Is the prediction over the draft vocabulary another one than that over all tokens? */
static bool
differs_in_drafts(const struct scope_cell *cell)
{
    return cell->draft_vocab > 0 && (layers_lacked(cell) || fabsf(cell->draft_confidence - cell->confidence) > DIFFERS);
}

/* Draws a line about a cell. */
static void
draw_readout(const struct layers_panel *p, const struct view *v, const struct canvas *c, int y)
{
    const struct selection *sel = v->selection;
    const struct scope *s = v->scope;
    const struct scope_column *column = scope_column(s, sel->pos);
    if (column == NULL || p->n_rows == 0)
        return;
    if (sel->model == MODEL_BLOCK) {
        layers_block_readout(v, c, y);
        return;
    }
    int x = canvas_fit(c, y, 0, ROLE_TITLE, "%u '%s'", (unsigned)sel->pos, panel_word(s, column->token));
    const struct scope_cell *cells = scope_model_cells(s, sel->model, sel->pos);
    const int layer = sel->layer;
    char name[16];
    if (layer < 1 || layer > (int)scope_model_layers(s, sel->model))
        return;
    const char *kind = sel->model == MODEL_TARGET ? run_info_kind(scope_info(s), (uint32_t)layer) : "";
    if (cells == NULL || !cells[layer].known) {
        canvas_fit(c, y, x, ROLE_DIM, "  %s %s", name_of(s, sel->model, layer, name),
                   sel->pos < scope_first_cells(s) ? "no longer in memory" : "not probed");
        return;
    }
    const struct scope_cell *cell = &cells[layer];
    const int32_t rank = layers_rank(cell, scope_model_final(s, sel->model, column));
    x += canvas_fit(c, y, x, ROLE_TEXT, "  %s '%s' %.2f", name_of(s, sel->model, layer, name),
                    panel_word(s, cell->token), (double)cell->confidence);
    if (differs_in_drafts(cell))
        x += canvas_fit(c, y, x, ROLE_TEXT, "  in S '%s' %.2f", panel_word(s, cell->draft_token),
                        (double)cell->draft_confidence);
    if (kind[0] != '\0')
        x += canvas_fit(c, y, x, ROLE_DIM, "  %s", kind);
    if (!isnan(cell->annealed))
        x += canvas_fit(c, y, x, ROLE_DIM, " (annealed %.2f)", (double)cell->annealed);
    if (!isnan(cell->entropy))
        x += canvas_fit(c, y, x, ROLE_TEXT, "  H %.2f", (double)cell->entropy);
    if (!isnan(cell->kl_final) && scope_info(s)->layers > 1)
        x += canvas_fit(c, y, x, ROLE_TEXT, "  KL %.2f", (double)cell->kl_final);
    if (rank >= 0 && scope_info(s)->layers > 1)
        x += canvas_fit(c, y, x, ROLE_TEXT, "  rank %s%d", rank == PREDICTION_TOP && cell->rank_final < 0 ? "≥ " : "",
                        (int)rank + 1);
    if (scope_model_spurious(s, sel->model, sel->pos, (uint32_t)layer))
        x += canvas_fit(c, y, x, ROLE_SPURIOUS, "  spurious");
    if (column->siblings > 0)
        canvas_fit(c, y, x, ROLE_DIM, "  %u siblings", (unsigned)column->siblings);
}

void
layers_top(const struct scope *s, const struct canvas *c, const token_t top[PREDICTION_TOP],
           const float top_p[PREDICTION_TOP])
{
    const int bar = c->cols > 34 ? c->cols - 26 : c->cols > 24 ? c->cols - 18 : 0;
    const int word = c->cols - 7 - bar - (bar > 0);
    for (int i = 0; i < PREDICTION_TOP; i++) {
        if (top[i] == TOKEN_NONE)
            continue;
        const struct canvas left = canvas_inside(c, i, 0, 1, word);
        canvas_print(&left, 0, 0, i == 0 ? ROLE_TITLE : ROLE_TEXT, "%s", panel_word(s, top[i]));
        canvas_print(c, i, word + 1, ROLE_TEXT, "%.3f", (double)top_p[i]);
        if (bar > 0)
            canvas_bar(c, i, c->cols - bar, bar, (double)top_p[i], ROLE_KNOB);
    }
}

/* Draws a bar for each layer: full height is rank 1, and each doubling of the rank is one step less. */
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

/* Opens the place of an opened cell: below the rows if there is room, otherwise over them, on the side without the
 * cursor. */
static struct canvas
popup_frame(const struct layers_panel *p, const struct canvas *c, uint32_t pos, const char *title)
{
    int at = 0;
    for (int i = 0; i < p->n_columns; i++)
        if (p->column[i].pos == pos)
            at = p->column[i].x;
    if (p->spare_rows >= LAYERS_BELOW) {
        for (int x = 0; x < c->cols; x++)
            canvas_text(c, p->spare_y, x, ROLE_BORDER, "─");
        canvas_print(c, p->spare_y, 1, ROLE_TITLE, " %s ", title);
        return canvas_inside(c, p->spare_y + 1, 1, LAYERS_BELOW - 1, c->cols - 2);
    }
    const int width = c->cols / 2 > 52 ? 52 : c->cols / 2 < 24 ? 24 : c->cols / 2;
    const int height = c->rows < LAYERS_POPUP ? c->rows : LAYERS_POPUP;
    const struct canvas box =
        canvas_inside(c, c->rows > height + 2 ? 2 : 0, at > c->cols / 2 ? 0 : c->cols - width, height, width);
    canvas_clear(&box);
    canvas_box(&box, title, "Esc", true);
    return canvas_inside(&box, 1, 2, box.rows - 2, box.cols - 4);
}

static void
layers_popup(const struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    const struct scope *s = v->scope;
    const struct selection *sel = v->selection;
    const struct scope_column *column = scope_column(s, sel->pos);
    const int layer = sel->layer, layers = (int)scope_model_layers(s, sel->model);
    const bool block = sel->model == MODEL_BLOCK;
    if (column == NULL || layer < 1 || (layer > layers && !block) || c->rows < 3 || c->cols < 24)
        return;
    char title[160], name[16], deepest[16];
    if (block)
        snprintf(title, sizeof title, "draft %d of round %u", layer, (unsigned)column->round);
    else
        snprintf(title, sizeof title, "%s at %u '%.60s'", name_of(s, sel->model, layer, name), (unsigned)sel->pos,
                 panel_word(s, column->token));
    const struct canvas inside = popup_frame(p, c, sel->pos, title);
    if (block) {
        layers_block_popup(v, &inside);
        return;
    }
    const struct scope_cell *cells = scope_model_cells(s, sel->model, sel->pos);
    const bool gone = sel->pos < scope_first_cells(s);
    if (cells == NULL || !cells[layer].known) {
        const char *probe = scope_now(s)->probe;
        canvas_text(&inside, 0, 0, ROLE_DIM,
                    gone                                                      ? "no longer in memory"
                    : sel->model != MODEL_TARGET || is_probed(s, column->pos) ? "this layer was not probed here"
                    : probed_at(s, column->pos, scope_info(s)->layers)        ? "only the last layer was probed"
                                                                              : "no layer was probed at this position");
        if (!gone && probe_is_share(probe))
            canvas_print(&inside, 1, 0, ROLE_DIM, "(at most %s of the time)", probe);
        if (v->live && !gone && probe[0] != '\0' && strcmp(probe, "all") != 0)
            canvas_text(&inside, 2, 0, ROLE_DIM, "(:probe all probes every layer)");
    } else {
        layers_top(s, &inside, cells[layer].top, cells[layer].top_p);
    }
    const token_t final = scope_model_final(s, sel->model, column);
    if (layers <= 1)
        return;
    if (final == TOKEN_NONE) {
        canvas_text(&inside, PREDICTION_TOP, 0, ROLE_DIM, "the last layer has no prediction yet");
    } else if (cells != NULL) {
        canvas_print(&inside, PREDICTION_TOP, 0, ROLE_DIM, "rank of '%s' in %s..%s", panel_word(s, final),
                     layers_name(sel->model, 1, name), layers_name(sel->model, layers, deepest));
        draw_ranks(s, &inside, PREDICTION_TOP + 1, sel->model, cells, final, layer);
    }
}

static void
layers_draw(struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    const struct scope *s = v->scope;
    const int readout = c->rows >= 6;
    const struct selection *sel = v->selection;
    p->cols = c->cols;
    p->mono = c->grid->mono;
    const bool experts = p->experts && scope_expert_count(s, NULL) > 0;
    const int above = experts && !readout ? 1 : 2;
    layers_fold(p, v, above, c->rows - above - readout);
    if (experts) {
        p->n_columns = 0;
        for (int row = 0; row < p->n_rows; row++)
            draw_label(p, s, c, row);
        draw_line(p, s, c);
        layers_experts(p, v, c);
        return;
    }
    const int shares = shares_width(p, s, c->cols);
    layers_columns(p, s, sel, c->cols - shares);
    for (int row = 0; row < p->n_rows; row++)
        draw_label(p, s, c, row);
    for (int i = 0; i < p->n_columns; i++) {
        const uint32_t pos = p->column[i].pos;
        const int x = p->column[i].x, width = p->column[i].width;
        const struct scope_column *column = scope_column(s, pos);
        const bool here = !sel->follow && sel->pos == pos;
        const bool marked = scope_note_at(s, scope_focus(s), pos) != NULL;
        if (column != NULL) {
            const unsigned marks = (here ? MARK_CURSOR : 0U) | (marked ? MARK_BOLD | MARK_UNDERLINED : 0U) |
                                   (column->fate == FATE_REJECTED ? MARK_STRUCK : 0U);
            const bool none = column->token == TOKEN_NONE;
            const enum role role = !is_probed(s, pos)              ? ROLE_DIM
                                   : column->fate == FATE_ACCEPTED ? ROLE_TEXT
                                                                   : fate_styles[column->fate].role;
            char word[COLUMN_WORD];
            canvas_word(c, 0, x, width, role, marks, none ? "…" : column_word(s, column, word));
            draw_fate(s, c, x, width, column);
        }
        for (int row = 0; row < p->n_rows; row++)
            draw_cell(p, s, c, row, x, width, pos,
                      here && sel->model == p->row[row].model && sel->layer == p->row[row].layer);
    }
    layers_block(p, v, c);
    draw_edges(p, v, c);
    draw_line(p, s, c);
    if (shares > 0)
        draw_shares(p, s, c, shares);
    struct selection opened = sel->follow ? newest_exit(s) : *sel;
    struct view seen = *v;
    seen.selection = &opened;
    if (readout && v->focused && sel->follow)
        canvas_word(c, c->rows - 1, 0, c->cols, ROLE_DIM, MARK_NONE,
                    p->spare_rows >= LAYERS_BELOW ? "hjkl or arrows point at a cell"
                                                  : "hjkl or arrows point at a cell, Enter opens it");
    else if (readout)
        draw_readout(p, &seen, c, c->rows - 1);
    if (p->spare_rows >= LAYERS_BELOW || (p->popup && !sel->follow))
        layers_popup(p, &seen, c);
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
        v->selection->layers = (struct position_range){pos, pos + 1};
    else if (p->n_columns > 0)
        v->selection->layers = (struct position_range){p->column[0].pos, p->column[p->n_columns - 1].pos + 1};
}

/* All layers of the models that the policy needs, each with its edge, two lines above them, d_max, a line about a cell,
 * and the box; then an opened cell. */
static void
rows_layers(const struct view *v, int *good, int *more)
{
    *good = (int)scope_info(v->scope)->layers + 6;
    for (int model = MODEL_DRAFT; model < LAYER_MODELS; model++)
        if (scope_model_used(v->scope, (enum layer_model)model) &&
            scope_model_layers(v->scope, (enum layer_model)model) > 0)
            *good += 1 + (model == MODEL_BLOCK ? layers_block_rows(v)
                                               : (int)scope_model_layers(v->scope, (enum layer_model)model));
    *more = LAYERS_BELOW;
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
    char tokens[48] = "";
    const uint32_t all = scope_now(v->scope)->draft_vocab;
    const int knob = all > 0 ? policy_knob_index(scope_policy(v->scope), DRAFT_VOCAB) : -1;
    if (knob >= 0 && room) { /* the draft vocabulary: its base, and the recent tokens of the text */
        const uint32_t base = (uint32_t)fmin(scope_knob(v->scope, (uint32_t)knob), all);
        snprintf(tokens, sizeof tokens, "S %u + %u ── ", (unsigned)base, (unsigned)(all - base));
    }
    snprintf(out, (size_t)n, "%s%s%s%s", tokens, scales[p->channel], exited, spurious);
}

/* ---- the cursor ---- */

static void
point_at(const struct layers_panel *p, struct selection *sel, int row)
{
    sel->model = p->row[row].model;
    sel->layer = p->row[row].layer;
}

/* Places the cursor, at first on the exit layer of the newest position. False: there are no rows. */
static bool
place_cursor(struct layers_panel *p, const struct view *v)
{
    struct selection *sel = v->selection;
    const uint32_t length = scope_now(v->scope)->length;
    layers_fold(p, v, 2, p->lines); /* the rows drawn last may be outdated */
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
    if (!place_cursor(p, v))
        return;
    struct selection *sel = v->selection;
    const int row = layers_row(p, sel->model, sel->layer) + rows, layer = sel->layer - rows;
    if (sel->model == MODEL_TARGET && layer >= 1 && layer <= (int)scope_info(v->scope)->layers)
        sel->layer = layer; /* one that is not shown gets a row */
    else
        point_at(p, sel, row < 0 ? 0 : row >= p->n_rows ? p->n_rows - 1 : row);
    const long first = (long)scope_first(v->scope), last = (long)scope_now(v->scope)->length - 1;
    long pos = (long)sel->pos + columns;
    pos = pos < first ? first : pos > last ? last : pos;
    sel->pos = (uint32_t)pos;
}

/* Hides or shows the layers of auxiliary models. */
static void
show_alone(struct layers_panel *p, const struct view *v)
{
    bool any = false;
    for (int model = MODEL_DRAFT; model < LAYER_MODELS; model++)
        any = any || scope_model_layers(v->scope, (enum layer_model)model) > 0;
    if (!any) {
        panel_print(v, "this run has no draft model or companion with layers of its own");
        return;
    }
    p->alone = !p->alone;
    if (!v->selection->follow)
        place_cursor(p, v);
}

static void
show_experts(struct layers_panel *p, const struct view *v)
{
    if (scope_expert_count(v->scope, NULL) == 0) {
        panel_print(v, "this model is not known to be a mixture of experts");
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
    case '=': p->wider += LAYERS_WIDTH + p->wider < LAYERS_MAX_WIDTH; return true;
    case '-': p->wider -= LAYERS_WIDTH + p->wider > LAYERS_MIN_WIDTH; return true;
    case INPUT_ENTER: p->popup = !p->popup && place_cursor(p, v) && !shows_experts(p, v); return true;
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
    if (mouse_wheel(action) != 0) {
        move(p, v, 0, 2 * mouse_wheel(action));
        return true;
    }
    for (int row = 0; row < p->n_rows; row++)
        if (p->row[row].y == y && (shows_experts(p, v) || p->row[row].model == MODEL_BLOCK) && place_cursor(p, v)) {
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
            p->popup = place_cursor(p, v);
        return true;
    }
    return false;
}

/* Inactive if the only layer is the output, unless most tokens have its prediction. */
static bool
active_layers(const struct view *v)
{
    const struct scope_now *now = scope_now(v->scope);
    return scope_info(v->scope)->layers > 1 || 2 * now->outputs > now->emitted;
}

static const struct key_help keys[] = {
    {"h j k l, arrows", "move the cursor; PgUp PgDn by a page"},
    {"0 $ K J", "first and last position, top and bottom layer"},
    {"Enter", "the cell's five best tokens, and every layer's rank of the final one"},
    {"g", "after the exit: grey, or these layers' predictions; bold: the last layer's token"},
    {"f, End", "follow the newest position again"},
    {"c", "show confidence, entropy, KL to the final layer, rank of the final token"},
    {"E", "of a mixture of experts: the experts of the token's row at each layer; v: how often each expert was chosen"},
    {"d", "hide and show the layers of the draft model and the companion, and the block of a block drafter"},
    {"+1 +2 …", "a block: the first choices for each draft, ≠ the one without the Markov bias, c the confidence head"},
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
    .rows = rows_layers,
    .active = active_layers,
    .keys = keys,
    .state_size = sizeof(struct layers_panel),
    .draw = draw_layers,
    .note = note_layers,
    .key = key_layers,
    .mouse = mouse_layers,
};
