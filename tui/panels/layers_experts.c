/* Layers × experts of a mixture: the experts of a token's row at each layer, or how often each expert was chosen. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/layers.h"

#define GAP       2  /* columns between the strip of experts and the text beside it */
#define BESIDE    18 /* least columns of that text */
#define NARROW    48 /* a panel with fewer columns has no such text */
#define WIDEST    3  /* columns of an expert */
#define OF_EXPERT 8  /* columns of "127 .41 " */

struct strip {        /* of a layer's experts, from left to right */
    int x, cells;     /* columns are cells * wide */
    int wide;         /* columns of a cell */
    uint32_t fold, n; /* fold: experts in a cell; n: all experts */
    int beside, room; /* column and width of the text beside it; 0: none */
};

/* Computes the widest strip that fits: up to WIDEST columns for an expert, or several experts in a column. */
static struct strip
strip_of(uint32_t n, int cols)
{
    struct strip t = {.x = LAYERS_LABEL, .wide = 1, .fold = 1, .n = n};
    const int room = cols - LAYERS_LABEL > 0 ? cols - LAYERS_LABEL : 1;
    const int mine = cols >= NARROW ? room - GAP - BESIDE : room;
    while (t.wide < WIDEST && (int64_t)n * (t.wide + 1) <= mine)
        t.wide++;
    while ((n + t.fold - 1) / t.fold > (uint32_t)mine)
        t.fold++;
    t.cells = (int)((n + t.fold - 1) / t.fold);
    t.beside = t.x + t.cells * t.wide + GAP;
    t.room = cols >= NARROW ? cols - t.beside : 0;
    return t;
}

/* Draws a cell; level: 0 to 1, or below 0 for the glyph `none`. */
static void
draw_level(const struct canvas *c, int y, const struct strip *t, int cell, double level, const char *none)
{
    const int x = t->x + cell * t->wide, wide = t->wide > 1 ? t->wide - 1 : 1;
    for (int i = 0; i < wide; i++)
        if (level >= 0)
            canvas_styled(c, y, x + i, ROLE_TEXT, (float)level, MARK_INK, canvas_level(level));
        else if (i == 0)
            canvas_styled(c, y, x, ROLE_DIM, NAN, MARK_NONE, none);
}

/* ---- where the row went ---- */

static float
heaviest(const struct scope_experts *went)
{
    float most = 0;
    for (uint32_t i = 0; i < went->n; i++)
        most = went->weight[i] > most ? went->weight[i] : most;
    return most;
}

static void
draw_weights(const struct scope *s, const struct canvas *c, const struct strip *t, int y, uint32_t layer,
             const struct scope_experts *went)
{
    const float most = heaviest(went);
    for (int cell = 0; cell < t->cells; cell++) {
        const uint32_t first = (uint32_t)cell * t->fold, last = first + t->fold < t->n ? first + t->fold : t->n;
        double level = -1;
        bool ever = false;
        for (uint32_t i = 0; i < went->n; i++) {
            const double mine = most > 0 ? (double)(went->weight[i] / most) : 0;
            if (went->expert[i] >= first && went->expert[i] < last && mine > level)
                level = mine;
        }
        for (uint32_t e = first; e < last && !ever; e++)
            ever = scope_expert_chosen(s, layer, e) > 0;
        draw_level(c, y, t, cell, level, ever ? "·" : " ");
    }
}

/* Writes experts and weights, "17 .41  3 .22", as many as fit. */
static int
draw_weights_text(const struct canvas *c, int y, int x, int room, enum role role, const struct scope_experts *went)
{
    int used = 0;
    for (uint32_t i = 0; i < went->n && used + OF_EXPERT <= room + 1; i++) {
        char text[32], weight[16];
        snprintf(weight, sizeof weight, "%.2f", (double)went->weight[i]);
        snprintf(text, sizeof text, "%u %s", (unsigned)went->expert[i], weight[0] == '0' ? weight + 1 : weight);
        canvas_text(c, y, x + used, role, text);
        used += OF_EXPERT;
    }
    return used;
}

/* ---- how often each was chosen ---- */

/* Draws how often experts were chosen: half height is an even share, full height twice that or more. */
static void
draw_load(const struct scope *s, const struct canvas *c, const struct strip *t, int y, uint32_t layer, enum role role)
{
    const uint64_t rows = scope_expert_rows(s, layer);
    uint64_t all = 0, most = 0;
    uint32_t busiest = 0, ever = 0;
    for (uint32_t e = 0; e < t->n; e++) {
        const uint64_t n = scope_expert_chosen(s, layer, e);
        all += n;
        ever += n > 0;
        if (n > most) {
            most = n;
            busiest = e;
        }
    }
    if (rows == 0 || all == 0)
        return;
    const double even = (double)all / t->n;
    for (int cell = 0; cell < t->cells; cell++) {
        const uint32_t first = (uint32_t)cell * t->fold, last = first + t->fold < t->n ? first + t->fold : t->n;
        uint64_t n = 0;
        for (uint32_t e = first; e < last; e++)
            n += scope_expert_chosen(s, layer, e);
        const double share = (double)n / (even * (last - first)) / 2;
        draw_level(c, y, t, cell, n > 0 ? (share < 1 ? share : 1) : -1, " ");
    }
    if (t->room >= BESIDE)
        canvas_print(c, y, t->beside, role, "%u/%u  %u %.1f×", (unsigned)ever, (unsigned)t->n, (unsigned)busiest,
                     (double)most / even);
}

/* ---- above and below ---- */

/* Draws the experts that the verification of the position's round read. */
static void
draw_round(const struct view *v, const struct canvas *c, int y, const struct scope_column *column, uint32_t used)
{
    const struct scope *s = v->scope;
    const struct scope_round *r = column != NULL ? scope_round_numbered(s, column->round) : NULL;
    if (r == NULL || !r->whole || !(r->end.verify_experts > 0))
        return;
    int drafts = 0;
    for (uint32_t i = 0; i < r->n_drafts; i++)
        drafts += r->drafts[i].accepted >= 0;
    int x = canvas_print(c, y, 0, ROLE_TEXT, "round %u verified 1 + %d: %.1f experts a layer", (unsigned)r->number,
                         drafts, (double)r->end.verify_experts);
    if (used > 0)
        x += canvas_fit(c, y, x, ROLE_TEXT, ", %.1f× one row's", (double)r->end.verify_experts / used);
    const double run = metrics_verify_experts(&scope_now(s)->metrics);
    if (!isnan(run))
        canvas_fit(c, y, x, ROLE_DIM, "  (run: %.1f)", run);
}

uint32_t
layers_experts_position(const struct view *v)
{
    const struct scope *s = v->scope;
    const uint32_t committed = scope_now(s)->committed;
    return !v->selection->follow ? v->selection->pos : committed > 0 ? committed - 1 : 0;
}

void
layers_experts(struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    const struct scope *s = v->scope;
    const struct selection *sel = v->selection;
    const bool readout = c->rows >= 6;
    const uint32_t pos = layers_experts_position(v);
    const struct scope_column *column = scope_column(s, pos);
    uint32_t used;
    const struct strip t = strip_of(scope_expert_count(s, &used), c->cols);
    bool known = p->load;
    if (p->load)
        canvas_print(c, 0, 0, ROLE_TITLE,
                     c->cols >= 50 ? "how often each of %u experts was chosen so far%s"
                                   : "each of %u experts: how often%s",
                     (unsigned)t.n, t.room >= BESIDE ? "; ever, busiest" : "");
    else if (column != NULL)
        canvas_print(c, 0, 0, ROLE_TITLE, "%u '%s' went to %u of %u experts a layer", (unsigned)pos,
                     panel_word(s, column->token), (unsigned)used, (unsigned)t.n);
    if (readout)
        draw_round(v, c, 1, column, used);
    for (int row = 0; row < p->n_rows; row++) {
        const uint32_t layer = (uint32_t)p->row[row].layer;
        const struct scope_experts went = scope_experts(s, pos, layer);
        const bool here = !sel->follow && sel->model == MODEL_TARGET && sel->layer == (int32_t)layer;
        if (here)
            canvas_text(c, p->row[row].y, LAYERS_LABEL - 1, ROLE_FOCUS, "▸");
        if (p->load)
            draw_load(s, c, &t, p->row[row].y, layer, here ? ROLE_TITLE : ROLE_DIM);
        if (p->load || went.n == 0)
            continue;
        known = true;
        draw_weights(s, c, &t, p->row[row].y, layer, &went);
        draw_weights_text(c, p->row[row].y, t.beside, t.room, here ? ROLE_TITLE : ROLE_TEXT, &went);
    }
    if (!known) {
        const int y = p->n_rows > 0 ? p->row[0].y : 2;
        canvas_text(c, y, LAYERS_LABEL, ROLE_DIM, "the experts of this token are not known");
        canvas_text(c, y + 1, LAYERS_LABEL, ROLE_DIM,
                    v->live ? ":probe all records them, except for prompts" : "(not recorded for prompts)");
    }
    if (!readout || sel->follow) {
        canvas_text(c, c->rows - 1, 0, ROLE_DIM, readout && v->focused ? "arrows point at a token and a layer" : "");
        return;
    }
    const struct scope_experts went = scope_experts(s, pos, (uint32_t)sel->layer);
    char name[16];
    const int x = canvas_print(c, c->rows - 1, 0, ROLE_TITLE, "%s  ", layers_name(MODEL_TARGET, sel->layer, name));
    if (went.n == 0)
        canvas_text(c, c->rows - 1, x, ROLE_DIM, "no experts, or not known");
    else
        draw_weights_text(c, c->rows - 1, x, c->cols - x, ROLE_TEXT, &went);
}
