/* The ledger: a row a segment of rounds under one setting, the newest first; what changed, what it brought, and by how
 * much it differs from the one that is pinned as reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/panels/ledger.h"
#include "tui/scope/batch.h"
#include "tui/terminal/input.h"
#include "tui/terminal/text.h"

struct ledger_panel {
    struct ledger_choice choice;
    uint32_t at;   /* the number of the segment in focus */
    bool scrolled; /* else the newest is */
    uint32_t pos;  /* the selected position that the focus followed last, */
    bool follow;   /* or that panels followed then */
    uint32_t top;  /* segments passed over at the top */
    int rows;      /* of segments, as drawn last */
};

static void *
open_ledger(void)
{
    struct ledger_panel *p = calloc(1, sizeof *p);
    if (p != NULL)
        p->follow = true;
    return p;
}

static const struct segments *
all(const struct view *v)
{
    return scope_segments(v->scope);
}

static bool
selection_moved(struct ledger_panel *p, const struct selection *s)
{
    const bool moved = s->follow != p->follow || (!s->follow && s->pos != p->pos);
    p->follow = s->follow;
    p->pos = s->pos;
    return moved;
}

/* The segment in focus: that of the selected position, once that moves. NULL: there is none at all. Segments that are gone take the
 * focus to the oldest that is held. */
static const struct segment *
focus(struct ledger_panel *p, const struct view *v, uint32_t *back)
{
    const struct segment *newest = segments_at(all(v), 0);
    const uint32_t held = segments_held(all(v));
    uint32_t last;
    if (newest == NULL)
        return NULL;
    if (selection_moved(p, v->selection)) {
        const struct segment *here = selection_segment(v, &last);
        p->scrolled = !v->selection->follow && here != NULL;
        p->at = here != NULL ? here->number : 0;
    }
    if (!p->scrolled || p->at > newest->number)
        p->at = newest->number;
    *back = newest->number - p->at;
    if (*back >= held) {
        *back = held - 1;
        p->at = newest->number - *back;
    }
    return segments_at(all(v), *back);
}

static void
draw_coming(const struct view *v, const struct canvas *c, int y, const struct segment *coming)
{
    char text[256];
    segment_text(coming, scope_info(v->scope), true, text, sizeof text);
    canvas_print(c, y, 0, ROLE_KNOB_PENDING, "   %s  takes effect from the next round", text);
}

static void
draw_ledger(void *state, const struct view *v, const struct canvas *c)
{
    struct ledger_panel *p = state;
    uint32_t back = 0;
    const struct segment *at = focus(p, v, &back), *coming = segments_coming(all(v));
    if (at == NULL) {
        canvas_text(c, 0, 0, ROLE_DIM, "no rounds yet");
        return;
    }
    p->choice.effects = v->effects;
    ledger_judge(&p->choice, v->scope);
    const struct ledger_columns columns = ledger_arrange(c->cols);
    int y = 0;
    if (c->rows >= 4)
        ledger_draw_heading(&p->choice, v->scope, &columns, c, y++);
    if (coming != NULL && c->rows >= 3)
        draw_coming(v, c, y++, coming);
    p->rows = c->rows - y;
    if (back < p->top)
        p->top = back;
    if (p->rows > 0 && back >= p->top + (uint32_t)p->rows)
        p->top = back - (uint32_t)p->rows + 1;
    const uint32_t held = segments_held(all(v));
    if (p->rows > 0 && p->top + (uint32_t)p->rows > held) /* more rows than below the top: none stays empty */
        p->top = held > (uint32_t)p->rows ? held - (uint32_t)p->rows : 0;
    for (uint32_t i = p->top; y < c->rows; i++, y++) {
        const struct segment *s = segments_at(all(v), i);
        if (s != NULL)
            ledger_draw_row(&p->choice, v->scope, s, &columns, c, y, s == at && (v->focused || !v->selection->follow));
    }
}

static void
note_ledger(void *state, const struct view *v, char *out, int n)
{
    struct ledger_panel *p = state;
    uint32_t back = 0;
    const struct segment *at = focus(p, v, &back);
    p->choice.effects = v->effects;
    if (at != NULL)
        ledger_say(&p->choice, v->scope, at, out, (size_t)n);
}

/* ---- keys ---- */

/* Takes the focus to a segment and the selection to its first round, if that is of the text that is shown. */
static void
point(struct ledger_panel *p, const struct view *v, const struct segment *s)
{
    p->at = s->number;
    p->scrolled = s != segments_at(all(v), 0);
    if (!p->scrolled)
        v->selection->follow = true;
    else if (s->run == scope_now(v->scope)->run && segment_concerns(s, scope_focus(v->scope)))
        selection_to_round(v, s->first_round);
    selection_moved(p, v->selection);
}

static void
move(struct ledger_panel *p, const struct view *v, long by)
{
    uint32_t back = 0;
    if (focus(p, v, &back) == NULL)
        return;
    const long held = (long)segments_held(all(v)), to = (long)back + by;
    const uint32_t now = (uint32_t)(to < 0 ? 0 : to >= held ? held - 1 : to);
    if (now != back || to < 0)
        point(p, v, segments_at(all(v), now));
}

static void
pin(struct ledger_panel *p, const struct segment *s)
{
    const bool unpin = p->choice.pinned && p->choice.reference == s->number;
    p->choice.pinned = !unpin;
    p->choice.reference = s->number;
}

/* A command about the segment in focus: "take", its letter, what follows. */
static bool
command_of(const struct view *v, const struct segment *s, const char *verb, const char *rest)
{
    char letter[8], line[64];
    segment_letter(s->number, letter);
    snprintf(line, sizeof line, "%s %s%s", verb, letter, rest);
    v->host->command(v->host->user, line);
    return true;
}

static bool
key_ledger(void *state, const struct view *v, int key)
{
    struct ledger_panel *p = state;
    uint32_t back = 0;
    const struct segment *at = focus(p, v, &back);
    const long page = p->rows > 1 ? p->rows - 1 : 1;
    if (at == NULL)
        return false;
    switch (key) {
    case 'j':
    case INPUT_DOWN: move(p, v, 1); return true;
    case 'k':
    case INPUT_UP: move(p, v, -1); return true;
    case INPUT_PAGE_DOWN: move(p, v, page); return true;
    case INPUT_PAGE_UP: move(p, v, -page); return true;
    case INPUT_HOME: move(p, v, -SEGMENTS); return true;
    case INPUT_END: move(p, v, SEGMENTS); return true;
    case INPUT_ENTER: pin(p, at); return true;
    case 'c': p->choice.modelled = !p->choice.modelled; return true;
    case 'a': return command_of(v, at, "take", "");
    case 's': return command_of(v, at, "command preset save", " ");
    case 'y': return command_of(v, at, "copy-command", "");
    default: return false;
    }
}

static bool
mouse_ledger(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct ledger_panel *p = state;
    (void)x;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        move(p, v, action == MOUSE_WHEEL_UP ? -1 : 1);
        return true;
    }
    const int row = y - (c->rows - p->rows);
    const struct segment *s = row >= 0 ? segments_at(all(v), p->top + (uint32_t)row) : NULL;
    if ((action != MOUSE_PRESS && action != MOUSE_DOUBLE) || s == NULL || y >= c->rows)
        return false;
    point(p, v, s);
    if (action == MOUSE_DOUBLE)
        pin(p, s);
    return true;
}

static bool
command_ledger(void *state, const struct view *v, const char *verb, const char *rest)
{
    struct ledger_panel *p = state;
    const struct segment *s = strcmp(verb, "pin") == 0 ? segments_named(all(v), rest) : NULL;
    if (s != NULL)
        p->choice = (struct ledger_choice){.pinned = true, .reference = s->number, .modelled = p->choice.modelled};
    return s != NULL;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "choose a row and point at its first round; Home: the newest, which new rows then follow"},
    {"Enter", "pin the row as reference, or take the pin off; double click; :pin C"},
    {"Δ", "against the reference, both settings forecast on the same tokens: ▲ ▼ a clear difference, ≈ none"},
    {"≠ text",
     "the two rows' own texts differ and nothing forecasts one of the settings: a difference without a verdict"},
    {"12 ±3", "one standard error: over rounds, of Δ over the text and what is not known of wrong drafts"},
    {"★ ☆", "the best of this prompt; ☆: not clearly better than all others on the same tokens"},
    {"c", "rows by tokens/s, or by modelled speed, which no clock disturbs; × in brackets is modelled, too"},
    {"a", "take the row's settings again"},
    {"s", "save them under a name; :preset NAME brings them back, --preset NAME begins with them"},
    {"y", "copy them as a command line"},
    {NULL, NULL},
};

extern const struct panel_ops panel_ledger;
const struct panel_ops panel_ledger = {
    .name = "ledger",
    .title = "ledger",
    .brief = "Enter pin  a take again  s save  y copy",
    .place = PANEL_MIDDLE,
    .weight = 5,
    .min_cols = 50,
    .good_cols = 72,
    .keys = keys,
    .open = open_ledger,
    .close = free,
    .draw = draw_ledger,
    .note = note_ledger,
    .key = key_ledger,
    .mouse = mouse_ledger,
    .command = command_ledger,
};
