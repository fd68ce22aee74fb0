/* The block of a block drafter (DFlash, DSpark) in the layers × tokens panel: a row for each draft, with the drafter's
 * first choices, its choice without the Markov head's bias, the forecast of the confidence head, and what happened. */
#include "tui/panels/layers.h"

#include <math.h>
#include <stdio.h>

#define BLOCK_MARK   2  /* columns of a draft's fate as a glyph */
#define BLOCK_CHOICE 12 /* least columns of a choice, most are BLOCK_WIDEST */
#define BLOCK_WIDEST 22
#define BLOCK_BIAS   16
#define BLOCK_SURE   7
#define BLOCK_FATE   24
#define BLOCK_STEADY 16 /* rounds whose longest block decides the number of rows, so that they do not jump */

struct shown_block {
    const struct scope_block *b; /* NULL: the round has none */
    const struct scope_round *r; /* NULL: not in memory */
    uint32_t number;             /* of the round */
    uint32_t rejected;           /* index of the first rejected draft; SCOPE_BLOCK: none */
};

struct outcome {
    const char *mark, *text;
    enum role role;
    token_t draft, target; /* TOKEN_NONE: none was proposed; unknown, or it is another text's */
};

/* The drafted token of a position that was committed, else the first one. */
static const struct scope_draft *
draft_at(const struct scope_round *r, uint32_t pos)
{
    const struct scope_draft *found = NULL;
    for (uint32_t i = 0; r != NULL && i < r->n_drafts; i++)
        if (r->drafts[i].pos == pos && (found == NULL || (found->accepted < 1 && r->drafts[i].accepted > 0)))
            found = &r->drafts[i];
    return found;
}

static struct shown_block
block_at(const struct scope *s, uint32_t number)
{
    struct shown_block k = {scope_block(s, number), scope_round_numbered(s, number), number, SCOPE_BLOCK};
    for (uint32_t i = k.b != NULL ? k.b->n : 0; i-- > 0;) {
        const struct scope_draft *d = draft_at(k.r, k.b->first + i);
        k.rejected = d != NULL && d->accepted == 0 ? i : k.rejected;
    }
    return k;
}

static struct shown_block
shown(const struct view *v)
{
    const struct scope *s = v->scope;
    const struct scope_column *c = v->selection->follow ? NULL : scope_column(s, v->selection->pos);
    uint32_t number = c != NULL ? c->round : 0;
    const struct scope_round *r; /* the newest round may not have drafted yet, and the last one of a text may not */
    for (uint32_t back = 0; c == NULL && number == 0 && back < BLOCK_STEADY && (r = scope_round(s, back)) != NULL;
         back++)
        number = scope_block(s, r->number) != NULL ? r->number : 0;
    return block_at(s, number);
}

int
layers_block_rows(const struct view *v)
{
    const struct shown_block k = shown(v);
    uint32_t n = k.b != NULL ? k.b->n : 0;
    for (uint32_t back = 0; back < BLOCK_STEADY; back++) {
        const struct scope_round *r = scope_round(v->scope, back);
        const struct scope_block *b = r != NULL ? scope_block(v->scope, r->number) : NULL;
        n = b != NULL && b->n > n ? b->n : n;
    }
    return (int)n;
}

/* What a policy compares with its threshold: the forecast, or the probability of the first choice. */
static float
confidence_of(const struct scope_block_row *row)
{
    return !isnan(row->confidence) ? row->confidence : row->head[row->head[1].known].top_p[0];
}

static struct outcome
outcome_of(const struct scope *s, const struct shown_block *k, uint32_t i)
{
    const uint32_t pos = k->b->first + i;
    const struct scope_draft *d = draft_at(k->r, pos);
    const struct scope_column *c = scope_column(s, pos);
    struct outcome o = {"·", "not proposed", ROLE_DIM, d != NULL ? d->token : TOKEN_NONE, TOKEN_NONE};
    if (d == NULL) { /* the first one after the drafts ended the block */
        if (k->r != NULL && confidence_of(&k->b->row[i]) < k->r->end.threshold)
            o.text = "below the threshold";
        return o;
    }
    if (i <= k->rejected && c != NULL && pos < scope_now(s)->committed && c->round == k->number)
        o.target = c->token;
    if (d->accepted > 0)
        o = (struct outcome){"✓", "accepted", ROLE_ACCEPTED, d->token, o.target};
    else if (d->accepted == 0)
        o = (struct outcome){"✗", i > k->rejected ? "after a rejection" : "rejected",
                             i > k->rejected ? ROLE_DIM : ROLE_REJECTED, d->token, o.target};
    else if (!k->r->whole)
        o = (struct outcome){"◌", "drafted", ROLE_DRAFT, d->token, TOKEN_NONE};
    else
        o.text = k->r->end.cut > 0 ? "after the end" : "not verified";
    return o;
}

/* A probability in three columns. */
static const char *
share_text(float p, char out[8])
{
    snprintf(out, 8, "%.2f", (double)p);
    if (!(p >= 0 && p < 0.995f))
        return p >= 0.995f ? "1.0" : "";
    return out + 1;
}

static void
draw_choice(const struct scope *s, const struct canvas *c, int y, int x, int width, unsigned marks, token_t token,
            float p)
{
    char text[8];
    canvas_heat(c, y, x, width - 5, p, marks, panel_word(s, token));
    canvas_text(c, y, x + width - 4, ROLE_DIM, share_text(p, text));
}

/* Is the first choice with the Markov bias another one than without it? */
static bool
changed(const struct scope_block_row *row)
{
    return row->head[0].known && row->head[1].known && row->head[0].top[0] != row->head[1].top[0];
}

struct block_parts { /* columns of the parts of a row; 0: the part is left out */
    int choices, choice, bias, sure, fate;
};

static struct block_parts
parts_of(const struct scope_block *b, int cols)
{
    struct block_parts at = {.fate = BLOCK_FATE};
    for (uint32_t i = 0; i < b->n; i++) {
        at.bias = b->row[i].head[1].known ? BLOCK_BIAS : at.bias;
        at.sure = isnan(scope_block_confidence(b, b->first + i)) ? at.sure : BLOCK_SURE;
    }
    int room = cols - LAYERS_LABEL - BLOCK_MARK;
    int *const optional[] = {&at.fate, &at.bias, &at.sure};
    for (int i = 0; i < 3 && room - at.fate - at.bias - at.sure < (i == 0 ? 3 : 1) * BLOCK_CHOICE; i++)
        *optional[i] = 0;
    room -= at.fate + at.bias + at.sure;
    at.choices = room / BLOCK_CHOICE < 1                ? 1
                 : room / BLOCK_CHOICE > PREDICTION_TOP ? PREDICTION_TOP
                                                        : room / BLOCK_CHOICE;
    at.choice = room / at.choices > BLOCK_WIDEST ? BLOCK_WIDEST : room / at.choices;
    return at;
}

static void
draw_row(const struct scope *s, const struct canvas *c, const struct shown_block *k, uint32_t i, int y,
         const struct block_parts *at)
{
    const struct scope_block_row *row = &k->b->row[i];
    const struct outcome o = outcome_of(s, k, i);
    const int head = row->head[1].known;
    int x = LAYERS_LABEL + BLOCK_MARK;
    if (!row->head[head].known)
        return;
    canvas_text(c, y, LAYERS_LABEL, o.role, o.mark);
    for (int j = 0; j < at->choices && row->head[head].top[j] != TOKEN_NONE; j++) {
        const token_t token = row->head[head].top[j];
        const unsigned marks =
            (token == o.target ? MARK_BOLD : 0U) | (j > 0 && token == o.draft ? MARK_UNDERLINED : 0U);
        draw_choice(s, c, y, x + j * at->choice, at->choice, marks, token, row->head[head].top_p[j]);
    }
    x += at->choices * at->choice;
    if (at->bias > 0 && changed(row)) {
        canvas_text(c, y, x, ROLE_WARN, "≠");
        draw_choice(s, c, y, x + 2, at->bias - 2, MARK_NONE, row->head[0].top[0], row->head[0].top_p[0]);
    }
    x += at->bias;
    if (at->sure > 0 && !isnan(row->confidence)) {
        char text[8];
        canvas_print(c, y, x, ROLE_DIM, "c");
        canvas_heat(c, y, x + 2, 4, row->confidence, MARK_NONE, share_text(row->confidence, text));
    }
    x += at->sure;
    if (at->fate > 0 && o.target != TOKEN_NONE && i == k->rejected)
        canvas_print(c, y, x, ROLE_CORRECTION, "rejected: '%s'", panel_word(s, o.target));
    else if (at->fate > 0)
        canvas_text(c, y, x, o.role, o.text);
}

void
layers_block(const struct layers_panel *p, const struct view *v, const struct canvas *c)
{
    const struct shown_block k = shown(v);
    const struct selection *sel = v->selection;
    const struct block_parts at = k.b != NULL ? parts_of(k.b, c->cols) : (struct block_parts){0};
    for (int row = 0; row < p->n_rows; row++) {
        const uint32_t i = (uint32_t)p->row[row].layer - 1;
        const int y = p->row[row].y;
        if (p->row[row].model != MODEL_BLOCK)
            continue;
        if (!sel->follow && sel->model == MODEL_BLOCK && sel->layer == p->row[row].layer)
            canvas_text(c, y, LAYERS_LABEL - 1, ROLE_FOCUS, "▸");
        if (k.b != NULL && i < k.b->n)
            draw_row(v->scope, c, &k, i, y, &at);
        else if (k.b == NULL && i == 0)
            canvas_text(c, y, LAYERS_LABEL, ROLE_DIM, "no block was drafted here, or it is no longer in memory");
    }
}

void
layers_block_summary(const struct view *v, const struct canvas *c, int y, int x)
{
    const struct shown_block k = shown(v);
    const struct canvas left = canvas_inside(c, y, 0, 1, c->cols - 10); /* the key that hides it follows */
    uint32_t accepted = 0, biased = 0;
    if (k.b == NULL || k.r == NULL)
        return;
    for (uint32_t i = 0; i < k.b->n; i++) {
        const struct scope_draft *d = draft_at(k.r, k.b->first + i);
        accepted += d != NULL && d->accepted > 0;
        biased += changed(&k.b->row[i]);
    }
    if (k.r->whole)
        x += canvas_fit(&left, 0, x, ROLE_TEXT, "round %u: %u of %u accepted ", (unsigned)k.number, (unsigned)accepted,
                        (unsigned)k.b->n);
    else
        x += canvas_fit(&left, 0, x, ROLE_TEXT, "round %u ", (unsigned)k.number);
    if (biased > 0)
        canvas_fit(&left, 0, x, ROLE_WARN, "≠ %u by the bias ", (unsigned)biased);
}

/* The selected row; NULL: there is none. */
static const struct scope_block_row *
selected(const struct view *v, const struct shown_block *k)
{
    const uint32_t i = (uint32_t)v->selection->layer - 1;
    const struct scope_block_row *row = k->b != NULL && i < k->b->n ? &k->b->row[i] : NULL;
    return row != NULL && (row->head[0].known || row->head[1].known) ? row : NULL;
}

/* Draws confidence and fate of the selected row from column x on. */
static void
draw_fate(const struct view *v, const struct canvas *c, int y, int x, const struct shown_block *k,
          const struct scope_block_row *row)
{
    const struct outcome o = outcome_of(v->scope, k, (uint32_t)(row - k->b->row));
    if (!isnan(row->confidence))
        x += canvas_fit(c, y, x, ROLE_TEXT, "confidence %.2f  ", (double)row->confidence);
    x += canvas_fit(c, y, x, o.role, "%s", o.text);
    if (o.target != TOKEN_NONE && o.target != o.draft)
        canvas_fit(c, y, x, ROLE_CORRECTION, ", the target's is '%s'", panel_word(v->scope, o.target));
}

void
layers_block_readout(const struct view *v, const struct canvas *c, int y)
{
    const struct shown_block k = shown(v);
    const struct scope_block_row *row = selected(v, &k);
    if (row == NULL) {
        canvas_text(c, y, 0, ROLE_DIM, "no draft of a block is here");
        return;
    }
    const int head = row->head[1].known;
    int x = canvas_fit(c, y, 0, ROLE_TITLE, "round %u +%d '%s' %.2f  ", (unsigned)k.number, (int)v->selection->layer,
                       panel_word(v->scope, row->head[head].top[0]), (double)row->head[head].top_p[0]);
    if (changed(row))
        x += canvas_fit(c, y, x, ROLE_TEXT, "without the bias '%s' %.2f  ", panel_word(v->scope, row->head[0].top[0]),
                        (double)row->head[0].top_p[0]);
    draw_fate(v, c, y, x, &k, row);
}

void
layers_block_popup(const struct view *v, const struct canvas *c)
{
    const struct shown_block k = shown(v);
    const struct scope_block_row *row = selected(v, &k);
    if (row == NULL) {
        canvas_text(c, 0, 0, ROLE_DIM, "no draft of a block is here");
        return;
    }
    const bool both = row->head[0].known && row->head[1].known;
    const int width = both ? c->cols / 2 - 1 : c->cols;
    const struct canvas list = canvas_inside(c, both, 0, PREDICTION_TOP, width),
                        without = canvas_inside(c, 1, c->cols - width, PREDICTION_TOP, width);
    const int head = row->head[1].known;
    layers_top(v->scope, &list, row->head[head].top, row->head[head].top_p);
    if (both) {
        canvas_text(c, 0, 0, ROLE_DIM, "with bias");
        canvas_text(c, 0, c->cols - width, ROLE_DIM, "without");
        layers_top(v->scope, &without, row->head[0].top, row->head[0].top_p);
    }
    draw_fate(v, c, PREDICTION_TOP + both, 0, &k, row);
}
