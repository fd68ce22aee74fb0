/* Functions that panels share: the selection, marks of changes, a round in one line, the measures up to the cursor. */
#include "tui/panels/panel.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

bool
panel_open(const struct panel_ops *ops, void **state)
{
    *state = NULL;
    if (ops->state_size == 0)
        return true;
    *state = calloc(1, ops->state_size);
    return *state != NULL;
}

void
panel_close(const struct panel_ops *ops, void *state)
{
    if (state != NULL && ops->close != NULL)
        ops->close(state);
    free(state);
}

bool
panel_command(const struct view *v, const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return v->host->command(v->host->user, line);
}

void
panel_print(const struct view *v, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->host->say(v->host->user, text);
}

int
panel_scroll(int top, int at, int n, int room)
{
    if (room < 1 || n <= room)
        return 0;
    top = at < top ? at : at >= top + room ? at - room + 1 : top;
    return top < 0 ? 0 : top > n - room ? n - room : top;
}

const char *
panel_word(const struct scope *s, token_t token)
{
    static const char blanks[] = "␣␣␣␣␣␣␣␣";
    const char *text = scope_text(s, token);
    const size_t spaces = strspn(text, " "), sign = strlen("␣");
    if (spaces == 0 || text[spaces] != '\0')
        return spaces > 0 ? text + 1 : text;
    return spaces * sign < sizeof blanks ? blanks + sizeof blanks - 1 - spaces * sign : blanks;
}

/* ---- the selection ---- */

uint32_t
selection_round(const struct view *v)
{
    const struct scope_column *c = v->selection->follow ? NULL : scope_column(v->scope, v->selection->pos);
    return c != NULL && c->fate != FATE_PROMPT && c->fate != FATE_PREFILL ? c->round : 0;
}

bool
selection_in_round(const struct view *v, const struct scope_round *r)
{
    return selection_round(v) == r->number && r->number > 0;
}

void
selection_to_round(const struct view *v, uint32_t round)
{
    const uint32_t pos = scope_round_position(v->scope, round);
    if (pos >= scope_now(v->scope)->length)
        return;
    v->selection->pos = pos;
    v->selection->follow = false;
}

void
selection_to_place(struct selection *selection, const struct scope_place *place)
{
    selection->pos = place->pos;
    selection->follow = false;
    if (place->layer == 0)
        return;
    selection->layer = place->layer;
    selection->model = MODEL_TARGET;
}

void
selection_move(const struct view *v, long rounds)
{
    const struct scope *s = v->scope;
    uint32_t round = selection_round(v), next;
    if (v->selection->follow) { /* the first step back is to the newest round */
        if (rounds >= 0 || (round = scope_round_before(s, UINT32_MAX)) == 0)
            return;
        rounds++;
    }
    for (; rounds < 0 && (next = scope_round_before(s, round)) != 0; rounds++)
        round = next;
    for (; rounds > 0 && (next = scope_round_after(s, round)) != 0; rounds--)
        round = next;
    if (rounds > 0)
        v->selection->follow = true;
    else if (round > 0)
        selection_to_round(v, round);
}

bool
selection_key(const struct view *v, int key, long page)
{
    const struct step by = input_step(key, page);
    if (by.down != 0)
        selection_move(v, -by.down);
    else if (key == INPUT_HOME)
        v->selection->follow = true;
    else if (key == INPUT_END)
        selection_to_round(v, 1);
    else
        return false;
    return true;
}

/* The next older segment of the sequence in focus, from `back` on; NULL: there is none. */
static const struct segment *
next_older(const struct view *v, uint32_t *back)
{
    const struct segment *s;
    while ((s = segments_at(scope_now(v->scope)->segments, (*back)++)) != NULL &&
           !segment_concerns(s, scope_focus(v->scope)))
        ;
    return s;
}

const struct segment *
selection_segment(const struct view *v, uint32_t *last)
{
    const struct scope_column *c = scope_column(v->scope, v->selection->pos);
    const uint32_t round = v->selection->follow ? UINT32_MAX : c != NULL ? c->round : 0;
    uint32_t back = 0;
    const struct segment *s = next_older(v, &back), *older;
    *last = UINT32_MAX;
    while (s != NULL && s->first_round > round) {
        older = next_older(v, &back);
        if (older == NULL || older->run != s->run)
            break;
        *last = s->first_round - 1;
        s = older;
    }
    return s;
}

/* True if the settings of the shown sequence changed. */
static bool
is_change(const struct scope *scope, const struct segment *s)
{
    return s->n_changes > 0 && segment_concerns(s, scope_focus(scope));
}

const struct segment *
mark_of_round(const struct scope *scope, uint32_t round)
{
    const struct segment *s;
    for (uint32_t back = 0; (s = segments_at(scope_now(scope)->segments, back)) != NULL; back++) {
        if (s->run != scope_now(scope)->run || s->first_round < round)
            return NULL;
        if (s->first_round == round)
            return is_change(scope, s) ? s : NULL;
    }
    return NULL;
}

void
marks_find(struct marks *marks, const struct scope *scope, const struct segments *all,
           int (*place)(const void *user, const struct segment *), const void *user)
{
    const struct segments *shown = scope_now(scope)->segments;
    const struct segment *s, *newest = segments_at(shown, 0);
    marks->n = 0;
    for (uint32_t back = 0; (s = segments_at(all != NULL ? all : shown, back)) != NULL && marks->n < MARKS_MOST;
         back++) {
        if (all != NULL && newest != NULL && s->number <= newest->number)
            return;
        const int x = s->run == scope_now(scope)->run && is_change(scope, s) ? place(user, s) : -1;
        if (x >= 0)
            marks->mark[marks->n++] = (struct mark){.x = x, .segment = s};
    }
}

void
marks_draw_tick(const struct canvas *c, int y, int x)
{
    canvas_under(c, y, x, ROLE_LINE, "┊");
}

/* Returns how many columns from x on contain only glyphs of a line or a bar. */
static int
room_at(const struct canvas *c, int y, int x, int end)
{
    static const char *const own[] = {"─", "░", "█", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "-", ".", "#", " "};
    int n = 0;
    for (; x + n < end; n++) {
        const struct grid_cell *there = grid_at(c->grid, c->y + y, c->x + x + n);
        bool free = false;
        for (size_t i = 0; there != NULL && i < sizeof own / sizeof own[0]; i++)
            free = free || strcmp(there->text, own[i]) == 0;
        if (!free)
            break;
    }
    return n;
}

void
marks_draw(const struct marks *marks, const struct scope *scope, const struct canvas *c, int y, int end, enum role role)
{
    char text[256];
    end = end > c->cols ? c->cols : end;
    for (int i = 0; i < marks->n; i++) {
        const struct mark *m = &marks->mark[i];
        int room = m->x < end ? room_at(c, y, m->x, end) : 0;
        if (room < 1)
            continue;
        canvas_text(c, y, m->x, role, "┊");
        segment_text(m->segment, scope_info(scope), true, text, sizeof text);
        if (room > text_width(text) + 1)
            canvas_text(c, y, m->x + 1, role, text);
        else if (room >= 8)
            canvas_word(c, y, m->x + 1, room - 2, role, MARK_NONE, text);
        end = m->x < end ? m->x : end;
    }
}

const struct fate_style fate_styles[] = {[FATE_NONE] = {ROLE_DIM, MARK_NONE},
                                         [FATE_PROMPT] = {ROLE_PROMPT, MARK_NONE},
                                         [FATE_PREFILL] = {ROLE_TEXT, MARK_NONE},
                                         [FATE_GHOST] = {ROLE_DRAFT, MARK_NONE},
                                         [FATE_ACCEPTED] = {ROLE_ACCEPTED, MARK_NONE},
                                         [FATE_REJECTED] = {ROLE_REJECTED, MARK_STRUCK},
                                         [FATE_CORRECTION] = {ROLE_CORRECTION, MARK_UNDERLINED},
                                         [FATE_BONUS] = {ROLE_BONUS, MARK_BOLD}};

int
round_number(const struct view *v, const struct canvas *c, int y, int width, const struct scope_round *r)
{
    const bool here = selection_in_round(v, r);
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    const enum role role = here ? ROLE_TITLE : r->whole ? ROLE_TEXT : ROLE_DIM;
    return 1 + canvas_print(c, y, 1, role, "%*u ", width, (unsigned)r->number);
}

uint32_t
round_drafts(const struct scope_round *r)
{
    return r->end.drafted > r->n_drafts ? r->end.drafted : r->n_drafts;
}

void
round_marks(const struct canvas *c, int y, int x, int width, const struct scope_round *r)
{
    const int room = width - 1; /* one column for the target's own token */
    int at = 0;
    const uint32_t n = round_drafts(r);
    for (uint32_t i = 0; i < n && at < room; i++, at++) {
        const struct scope_draft *d = &r->drafts[i < r->n_drafts ? i : 0];
        const bool more = at == room - 1 && i + 1 < n;
        if (more)
            canvas_text(c, y, x + at, ROLE_DIM, "…");
        else if (i >= r->n_drafts)
            canvas_text(c, y, x + at, i < r->end.accepted ? ROLE_ACCEPTED : ROLE_REJECTED,
                        i < r->end.accepted ? "■" : "□");
        else if (d->accepted > 0)
            canvas_text(c, y, x + at, ROLE_ACCEPTED, "■");
        else if (d->accepted == 0)
            canvas_text(c, y, x + at, ROLE_REJECTED, d->main_line ? "□" : "▫");
        else
            canvas_text(c, y, x + at, ROLE_DRAFT, d->main_line ? "○" : "◦");
    }
    if (r->last == SOURCE_CORRECTION)
        canvas_text(c, y, x + at, ROLE_CORRECTION, "◆");
    else if (r->last == SOURCE_BONUS)
        canvas_text(c, y, x + at, ROLE_BONUS, "+");
}

void
round_reason(const struct round_event *e, char out[ROUND_REASON])
{
    const char *reason = strcmp(e->stop_reason, "difficult") == 0 ? "low confidence" : e->stop_reason;
    printable_text(reason, strlen(reason), out, ROUND_REASON);
}

void
aggregated_close(void *state)
{
    struct aggregated *p = state;
    if (p->layers > 0)
        aggregates_close(&p->own);
}

static uint32_t
round_at(const struct scope *s, uint32_t pos)
{
    const struct scope_column *c = scope_column(s, pos);
    return c != NULL ? c->round : 0;
}

const struct aggregates *
aggregated_now(struct aggregated *p, const struct view *v, const char **why)
{
    const struct scope *s = v->scope;
    *why = "out of memory for what is counted";
    if (p->layers == 0 && aggregates_open(&p->own, scope_info(s)->layers))
        p->layers = scope_info(s)->layers;
    if (p->layers == 0)
        return NULL;
    if (scope_now(s)->window == WINDOW_RUN)
        return scope_run_aggregates(s);
    uint32_t last;
    const struct segment *here = selection_segment(v, &last);
    if (scope_now(s)->window == WINDOW_SEGMENT && (here == NULL || last == UINT32_MAX))
        return scope_segment_aggregates(s);
    uint32_t first = here != NULL ? here->first_round : 1;
    if (scope_now(s)->window == WINDOW_LATEST) {
        last = v->selection->follow ? scope_now(s)->round : round_at(s, v->selection->pos);
        first = last > METRICS_WINDOW ? last - METRICS_WINDOW + 1 : 1;
    }
    scope_aggregate(s, first, last, &p->own);
    *why = "no longer in memory";
    const bool gone = last > 0 && scope_rounds(s) > 0 && scope_round_back(s, last) == scope_rounds(s);
    return gone ? NULL : &p->own;
}

void
aggregated_ticks(const struct canvas *c, int y, int rows, double low, double high)
{
    const int ticks = rows >= 9 ? 4 : 2;
    for (int i = 0; i < rows; i++)
        canvas_text(c, y + i, AGGREGATED_LEFT - 1, ROLE_DIM, "│");
    for (int i = 0; i <= ticks; i++) {
        const int at = y + rows - 1 - (int)lrint((double)i / ticks * (rows - 1));
        const double value = low + (high - low) * i / ticks;
        canvas_print(c, at, 0, ROLE_DIM, high > 10 ? "%*.0f" : "%*.2f", AGGREGATED_LEFT - 2, value);
        canvas_text(c, at, AGGREGATED_LEFT - 1, ROLE_DIM, "┤");
    }
}

void
aggregated_numbers(const struct canvas *c, int y, const char *name, int n, int wide, const double *value,
                   const char *format)
{
    canvas_word(c, y, 0, AGGREGATED_LEFT - 1, ROLE_DIM, MARK_NONE, name);
    for (int i = 0, next = 0; i < n; i++) {
        char text[24];
        if (isnan(value[i]) || i * wide < next)
            continue;
        const int length = snprintf(text, sizeof text, format, value[i]);
        const bool narrow = length >= wide && text[1] == '.'; /* ".93", "1.0" */
        text[narrow && text[0] == '1' ? 3 : length] = '\0';
        canvas_text(c, y, AGGREGATED_LEFT + i * wide, ROLE_TEXT, narrow && text[0] == '0' ? text + 1 : text);
        next = i * wide + length - narrow + 1;
    }
}

void
aggregated_bar(const struct canvas *c, int x, int width, double share, enum role role)
{
    const int top = (int)lrint(share * 8 * c->rows);
    for (int y = 0; y < c->rows; y++) {
        const int here = top - 8 * (c->rows - 1 - y);
        for (int k = 0; k < width && here > 0; k++)
            canvas_text(c, y, x + k, role, canvas_level((double)(here > 8 ? 8 : here) / 8 - 0.01));
    }
}

void
aggregated_note(void *state, const struct view *v, char *out, int n)
{
    (void)state;
    uint32_t last;
    const struct segment *here = scope_now(v->scope)->window == WINDOW_SEGMENT ? selection_segment(v, &last) : NULL;
    char letter[8];
    if (here == NULL) {
        scope_window_name(v->scope, out, (size_t)n);
        return;
    }
    segment_letter(here->number, letter);
    snprintf(out, (size_t)n, "segment %s", letter);
}

/* ---- panels of races and of scores ---- */

#define WIDEST    1.5 /* an interval reaches so many times the speed, at most, before it is cut */
#define TICK_COLS 8   /* columns between two numbers on the axis, at least */

enum role
speed_role(struct comparison c)
{
    return c.verdict == DIFFERENCE_MORE ? ROLE_OK : c.verdict == DIFFERENCE_LESS ? ROLE_ERROR : ROLE_DIM;
}

static int
axis_place(const struct speed_axis *a, double speed)
{
    const int x = (int)lrint((speed - a->low) / (a->high - a->low) * (a->cols - 1));
    return x < 0 ? 0 : x >= a->cols ? a->cols - 1 : x;
}

void
speed_axis_include(struct speed_axis *a, struct comparison of, bool whole)
{
    const double low = whole ? fmax(of.low, of.value / WIDEST) : of.value,
                 high = whole ? fmin(of.high, of.value * WIDEST) : of.value;
    a->low = fmin(a->low, fmax(floor(low * 4 - 0.5) / 4, 0));
    a->high = fmax(a->high, ceil(high * 4 + 0.5) / 4);
}

void
speed_axis_draw(const struct speed_axis *a, const struct canvas *c)
{
    double step = 0.5;
    while ((a->high - a->low) / step * TICK_COLS > a->cols)
        step *= 2;
    for (double tick = ceil(a->low / step) * step; tick <= a->high; tick += step) {
        char text[16];
        const int width = snprintf(text, sizeof text, "%.1f", tick);
        int x = axis_place(a, tick) - width / 2;
        x = x < 0 ? 0 : x + width > a->cols ? a->cols - width : x;
        canvas_text(c, 0, a->x + x, ROLE_DIM, text);
    }
}

void
speed_axis_interval(const struct speed_axis *a, const struct canvas *c, int y, struct comparison of, bool whole,
                    enum role role)
{
    canvas_text(c, y, a->x + axis_place(a, 1), ROLE_DIM, "│");
    if (whole) {
        const int from = axis_place(a, of.low), to = axis_place(a, of.high);
        for (int x = from; x <= to; x++)
            canvas_text(c, y, a->x + x, ROLE_DIM, "─");
        if (from < to) {
            canvas_text(c, y, a->x + from, ROLE_DIM, of.low < a->low ? "◂" : "├");
            canvas_text(c, y, a->x + to, ROLE_DIM, of.high > a->high ? "▸" : "┤");
        }
    }
    canvas_text(c, y, a->x + axis_place(a, of.value), role, "●");
}

int
panel_engine(const struct canvas *c, int y, enum other_engine engine, const char *command)
{
    char text[PANEL_COMMAND], *rest = text;
    const char *note = engine_folder_note(command);
    const int x = canvas_print(c, y++, 0, ROLE_TITLE, "%s %s", engine_names[engine], engine_versions[engine]) + 2;
    if (note != NULL)
        canvas_word(c, y - 1, x, c->cols - x, ROLE_DIM, MARK_NONE, note);
    snprintf(text, sizeof text, "%s", command);
    for (char *line; (line = strsep(&rest, "\n")) != NULL && y < c->rows;) {
        const struct canvas below = canvas_inside(c, y, 2, c->rows - y, c->cols - 2);
        y += canvas_paragraph(&below, ROLE_TEXT, line);
    }
    return y;
}
