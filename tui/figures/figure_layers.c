/* SpecBound's Figure 1: each layer's prediction at each position, on a background of its confidence. Layers above the
 * exit are grey, and confident wrong predictions have a marked corner. */
#include <math.h>
#include <string.h>

#include "tui/figures/figure_kind.h"

#define LABELS       17.0 /* points left of the cells */
#define COLUMN       31.0 /* width of a column without a given range */
#define COLUMN_WORD  11.0 /* least width of a column with words */
#define COLUMN_MOST  60.0
#define COLUMN_LEAST 1.5

struct cells {
    const struct record *record;
    const struct scope *scope; /* the record's */
    struct drawing *d;
    uint32_t from, to;              /* positions, both shown */
    double x, y, column, row, head; /* head: room above the cells, up to the rounds */
    int layers;
};

static double
cell_x(const struct cells *c, uint32_t pos)
{
    return c->x + (pos - c->from) * c->column;
}

static double
cell_y(const struct cells *c, int layer)
{
    return c->y + (c->layers - layer) * c->row;
}

static double
letter_size(const struct cells *c)
{
    return fmin(5.8, c->row * 0.7);
}

/* Returns the exit layer of a draft; 0: none, or of another model. */
static int
exit_of(const struct scope_column *column)
{
    const bool draft = column->fate == FATE_ACCEPTED;
    return draft && column->exit_layer > 0                               ? column->exit_layer
           : column->rejected != TOKEN_NONE && column->rejected_exit > 0 ? column->rejected_exit
                                                                         : 0;
}

static void
draw_hatched(struct drawing *d, double x, double y, double width, double height)
{
    drawing_rect(d, x, y, width, height, FILL(GREY_BLOCK));
    for (int i = 1; i * 4 < width + height; i++) { /* from the left or the bottom edge up to the right */
        const double at = i * 4;
        const double x1 = fmax(0, at - height), y1 = fmin(height, at), x2 = fmin(width, at), y2 = fmax(0, at - width);
        drawing_line(d, x + x1, y + y1, x + x2, y + y2, STROKE(GREY_HATCH, .line = 0.4));
    }
}

static void
draw_corner(struct drawing *d, double right, double y, double size)
{
    drawing_path(d, (struct point[]){{right - size, y}, {right, y}, {right, y + size}}, 3, true, FILL(ALARM));
}

static void
draw_word(const struct cells *c, double x, double y, struct lettering l, const char *word)
{
    char text[64];
    l.anchor = ANCHOR_MIDDLE;
    l.room = c->column - 1.5;
    if (c->column >= COLUMN_WORD)
        drawing_text(c->d, x + c->column / 2, y, l, lettering_fit(&l, word, l.room * 1.25, text, sizeof text));
}

/* Is the cell above the exit, and not probed by the policy? */
static bool
is_left(const struct cells *c, uint32_t pos, int layer)
{
    const struct scope_cell *cells = scope_cells(c->scope, pos);
    const int exit = exit_of(scope_column(c->scope, pos));
    const bool asked = cells != NULL && cells[layer].known && cells[layer].probed_by == PROBED_POLICY;
    return exit > 0 && layer > exit && layer < c->layers && !asked;
}

static void
draw_cell(const struct cells *c, uint32_t pos, int layer)
{
    const struct scope_cell *cells = scope_cells(c->scope, pos);
    const double x = cell_x(c, pos), y = cell_y(c, layer);
    const bool left = is_left(c, pos, layer);
    if (cells == NULL || !cells[layer].known)
        return;
    const int32_t ground = ramp((double)cells[layer].confidence);
    if (!left)
        drawing_rect(c->d, x, y, c->column, c->row, FILL(ground));
    draw_word(c, x, y + c->row / 2 + letter_size(c) * 0.35, LETTERS(letter_size(c), left ? INK_LIGHT : ink_on(ground)),
              scope_text(c->scope, cells[layer].token));
    if (scope_spurious(c->scope, pos, (uint32_t)layer))
        draw_corner(c->d, x + c->column, y, fmin(3.2, c->row * 0.4));
}

static void
draw_column(const struct cells *c, uint32_t pos)
{
    for (int low = 1, high; low <= c->layers; low = high + 1) { /* adjacent layers are hatched together */
        for (high = low; is_left(c, pos, high);)
            high++;
        if (high > low)
            draw_hatched(c->d, cell_x(c, pos), cell_y(c, high - 1), c->column, (high - low) * c->row);
    }
    for (int layer = 1; layer <= c->layers; layer++)
        draw_cell(c, pos, layer);
}

/* Returns the policy's bound in the round of a position; 0: none. */
static int
bound_of(const struct cells *c, uint32_t pos)
{
    const uint32_t round = scope_column(c->scope, pos)->round;
    for (size_t i = 0; i < c->record->n_rounds; i++)
        if (c->record->rounds[i].number == round && c->record->rounds[i].end.d_max < c->layers)
            return c->record->rounds[i].end.d_max > 0 ? c->record->rounds[i].end.d_max : 0;
    return 0;
}

static void
draw_bound(const struct cells *c)
{
    for (uint32_t from = c->from, to; from <= c->to; from = to) {
        const int bound = bound_of(c, from);
        for (to = from + 1; to <= c->to && bound_of(c, to) == bound;)
            to++;
        if (bound > 0)
            drawing_line(c->d, cell_x(c, from), cell_y(c, bound), cell_x(c, to), cell_y(c, bound),
                         STROKE(INK, .line = 0.6, .dash = DASH_SHORT));
    }
}

static bool
has_bound(const struct cells *c)
{
    for (uint32_t pos = c->from; pos <= c->to; pos++)
        if (bound_of(c, pos) > 0)
            return true;
    return false;
}

static void
draw_grid(const struct cells *c)
{
    const double right = cell_x(c, c->to + 1), bottom = c->y + c->layers * c->row;
    for (int layer = 0; layer <= c->layers; layer++)
        drawing_line(c->d, c->x, c->y + layer * c->row, right, c->y + layer * c->row, STROKE(PAPER, .line = 0.35));
    for (uint32_t pos = c->from; pos <= c->to + 1 && c->column > 4; pos++)
        drawing_line(c->d, cell_x(c, pos), c->y, cell_x(c, pos), bottom, STROKE(PAPER, .line = 0.35));
    drawing_rect(c->d, c->x, c->y, right - c->x, bottom - c->y, STROKE(INK_LIGHT, .line = 0.4));
    for (uint32_t pos = c->from; pos <= c->to; pos++) {
        const int exit = exit_of(scope_column(c->scope, pos));
        if (exit > 0 && exit <= c->layers)
            drawing_rect(c->d, cell_x(c, pos), cell_y(c, exit), c->column, c->row, STROKE(INK, .line = 0.9));
    }
    draw_bound(c);
    for (int layer = 1; layer <= c->layers; layer++)
        if (c->row >= 5 || layer == 1 || layer % 4 == 0)
            drawing_print(c->d, c->x - 3, cell_y(c, layer) + c->row / 2 + letter_size(c) * 0.35,
                          LETTERS(letter_size(c), INK_LIGHT, .anchor = ANCHOR_RIGHT), "%d", layer);
}

static const char *
source_of(enum fate fate)
{
    switch (fate) {
    case FATE_PROMPT: return "prompt";
    case FATE_PREFILL: return "first";
    case FATE_ACCEPTED: return "draft";
    case FATE_CORRECTION: return "corrected";
    case FATE_BONUS: return "bonus";
    default: return "";
    }
}

/* Draws above the cells the text, the origin of each token, and the token drafted at its position. */
static void
draw_text(const struct cells *c)
{
    for (uint32_t pos = c->from; pos <= c->to; pos++) {
        const struct scope_column *column = scope_column(c->scope, pos);
        const double x = cell_x(c, pos);
        char text[64];
        draw_word(c, x, c->y - 14.5, LETTERS(6.4, INK, .bold = true), scope_text(c->scope, column->token));
        draw_word(c, x, c->y - 8.2, LETTERS(4.8, INK_LIGHT), source_of(column->fate));
        if (column->rejected == TOKEN_NONE || column->fate == FATE_ACCEPTED || c->column < COLUMN_WORD)
            continue;
        const struct lettering l = LETTERS(4.8, ALARM);
        draw_word(c, x, c->y - 2.4, l, scope_text(c->scope, column->rejected));
        const double half = lettering_width(&l, lettering_fit(&l, scope_text(c->scope, column->rejected),
                                                              c->column - 1.5, text, sizeof text)) /
                            2;
        drawing_line(c->d, x + c->column / 2 - half, c->y - 4, x + c->column / 2 + half, c->y - 4,
                     STROKE(ALARM, .line = 0.45));
    }
}

/* Draws above the columns which positions belong to each round. */
static void
draw_rounds(const struct cells *c)
{
    for (uint32_t from = c->from, to; from <= c->to; from = to + 1) {
        const struct scope_column *column = scope_column(c->scope, from);
        for (to = from; to < c->to && scope_column(c->scope, to + 1)->round == column->round;)
            to++;
        if (column->fate == FATE_PROMPT || column->fate == FATE_PREFILL)
            continue;
        const double x1 = cell_x(c, from) + 1, x2 = cell_x(c, to + 1) - 1, y = c->y - c->head;
        const struct lettering l = LETTERS(5, INK_LIGHT, .anchor = ANCHOR_MIDDLE, .room = x2 - x1);
        drawing_path(c->d, (struct point[]){{x1, y + 2}, {x1, y}, {x2, y}, {x2, y + 2}}, 4, false,
                     STROKE(INK_LIGHT, .line = 0.4));
        char text[32];
        snprintf(text, sizeof text, "round %u", (unsigned)column->round);
        if (lettering_width(&l, text) > x2 - x1)
            snprintf(text, sizeof text, "%u", (unsigned)column->round);
        if (lettering_width(&l, text) <= x2 - x1)
            drawing_text(c->d, (x1 + x2) / 2, y - 1.8, l, text);
    }
}

static double
draw_legend(const struct cells *c, double width)
{
    const struct lettering l = LETTERS(SIZE_TICK, INK_LIGHT);
    static const char *const words[] = {"left at this layer", "after the exit", "sure and wrong (spurious)",
                                        "bound d_max"};
    double x = c->x, y = c->y + c->layers * c->row + 6;
    x += ramp_legend(c->d, x, y, 44, "confidence", "0", "1") + 12;
    for (int i = 0; i < 4; i++) {
        if (i == 3 && !has_bound(c))
            break;
        const double wide = 9 + 3 + lettering_width(&l, words[i]);
        if (x + wide > width) {
            x = c->x;
            y += SIZE_TICK * 1.7;
        }
        if (i == 0)
            drawing_rect(c->d, x, y, 9, SIZE_TICK, STROKE(INK, .line = 0.9));
        else if (i == 1)
            draw_hatched(c->d, x, y, 9, SIZE_TICK);
        else if (i == 2)
            draw_corner(c->d, x + 8, y + 1, 4);
        else
            drawing_line(c->d, x, y + SIZE_TICK / 2, x + 9, y + SIZE_TICK / 2,
                         STROKE(INK, .line = 0.6, .dash = DASH_SHORT));
        drawing_text(c->d, x + 12, y + SIZE_TICK * 0.85, l, words[i]);
        x += wide + 12;
    }
    return y + SIZE_TICK;
}

/* Chooses the positions: the requested ones, or as many as fit after the prompt. */
static bool
choose_positions(const struct figure *f, struct cells *c, struct err *err)
{
    const struct record *r = &f->input->record;
    const uint32_t end = scope_now(c->scope)->committed;
    uint32_t first = 0;
    while (first < end && (scope_column(c->scope, first) == NULL || scope_column(c->scope, first)->fate == FATE_PROMPT))
        first++;
    const double room = f->width - LABELS - 1;
    const int64_t from = f->o->from >= 0 ? f->o->from : f->o->to >= 0 ? first : (int64_t)first + (first + 1 < end);
    const int64_t to = f->o->to >= 0 ? f->o->to : from + (int64_t)(room / COLUMN) - 1;
    if (from >= end)
        return err_set(err, ERR_USAGE, "%s: its text ends before position %lld; it has %u to %u", r->path,
                       (long long)from, (unsigned)first, (unsigned)end - 1);
    c->from = (uint32_t)from;
    c->to = to < end ? (uint32_t)to : end - 1;
    const uint32_t n = c->to - c->from + 1;
    c->column = fmin(room / n, COLUMN_MOST);
    bool asked = false;
    for (uint32_t pos = c->from; pos <= c->to; pos++) {
        const struct scope_cell *cells = scope_cells(c->scope, pos);
        for (int layer = 1; cells != NULL && layer < c->layers; layer++)
            asked = asked || cells[layer].known;
        if (scope_column(c->scope, pos) == NULL)
            return err_set(err, ERR_USAGE, "%s: the range is too long; take %u positions at most", r->path,
                           SCOPE_COLUMNS);
    }
    if (c->column < COLUMN_LEAST)
        return err_set(err, ERR_USAGE, "%u positions are too many for %.0fmm; take fewer with --to, or --width %.0fmm",
                       (unsigned)n, f->width / MM, ceil((n * COLUMN_LEAST + LABELS + 1) / MM));
    return asked ||
           err_set(err, ERR_USAGE, "%s: no layer but the last was asked at positions %u to %u; record with --probe all",
                   r->path, (unsigned)c->from, (unsigned)c->to);
}

static bool
draw_layers(struct figure *f, struct err *err)
{
    const struct record *r = &f->input->record;
    struct cells c = {.record = r, .scope = r->scope, .d = f->d, .x = LABELS, .layers = (int)r->info->layers};
    c.row = c.layers <= 24 ? 9.6 : c.layers <= 40 ? 7.4 : 4.6;
    if (!choose_positions(f, &c, err))
        return false;
    c.head = c.column < COLUMN_WORD ? 4 : 22;
    c.y = c.head + 7;
    for (uint32_t pos = c.from; pos <= c.to; pos++)
        draw_column(&c, pos);
    draw_grid(&c);
    draw_text(&c);
    draw_rounds(&c);
    drawing_text(f->d, 6.5, c.y + c.layers * c.row / 2,
                 LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE, .upwards = true), "layer");
    f->y = draw_legend(&c, f->width);
    f->shown_from = scope_column(c.scope, c.from)->round;
    f->shown_to = scope_column(c.scope, c.to)->round;
    f->shown_from = f->shown_from > 0 ? f->shown_from : 1; /* the prompt and the first token belong to no round */
    snprintf(f->note, sizeof f->note, "Each layer's most likely token at positions %u to %u, by the %s.",
             (unsigned)c.from, (unsigned)c.to,
             strcmp(scope_head(r->scope), "trained") == 0 ? "layer's trained head" : "model's own head");
    return true;
}

const struct figure_kind figure_layers = {
    .name = "layers",
    .what = "prediction of each layer at each position, as in SpecBound's Figure 1",
    .traces = true,
    .least = 1,
    .most = 1,
    .range = RANGE_OF_POSITIONS,
    .width = 178,
    .narrow = 40,
    .one_sequence = true,
    .scope = true,
    .draw = draw_layers,
};
