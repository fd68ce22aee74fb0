/* The ledger: a row for each segment of rounds with one setting, the newest first. A row shows the changed settings,
 * its measures, and the difference from the reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/forecast.h"
#include "tui/panels/panel.h"
#include "tui/scope/scope.h"
#include "tui/terminal/input.h"
#include "tui/terminal/text.h"

struct ledger_choice {
    bool pinned;
    uint32_t reference;            /* the number of the pinned segment */
    bool modelled;                 /* modelled speedups are compared, not tokens/s */
    const struct effects *effects; /* forecasts that rows are compared by; NULL: none */

    const struct segment *against; /* the reference, owned by the scope; NULL: none */
    const struct segment *best;    /* the best row of the prompt; NULL: there is only one row */
    bool best_by_far;              /* it is clearly better than each other row on the same tokens */
};

struct ledger_columns { /* the columns' ends; 0: omitted */
    int what, tokens, length, acceptance, speed, ratio, difference, lossless;
};

/* ---- comparisons ---- */

static struct estimate
value_of(const struct ledger_choice *ch, const struct scope *s, const struct segment *segment)
{
    const struct estimates e = segment_estimates(segment, scope_info(s));
    return ch->modelled ? e.modelled : e.tokens_per_s;
}

/* Returns tokens/s divided by the modelled speedup: the speed of the machine, which does not depend on the text. */
static struct estimate
pace_of(const struct segment *s, const struct run_info *info)
{
    const struct estimates e = segment_estimates(s, info);
    return estimate_quotient(e.tokens_per_s, e.modelled);
}

/* Returns by how much per cent the setting of `s` is better than that of `other` on the same tokens; UNKNOWN: the texts differ. If the
 * measured times, converted to the same tokens, clearly contradict the forecast, the verdict is NOISE. */
static struct difference
effect(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s, const struct segment *other)
{
    struct difference d = effects_difference(ch->effects, scope_segments(scope), scope_info(scope), s, other);
    if (ch->modelled || isnan(d.value))
        return d;
    const struct estimate a = estimate_times(pace_of(s, scope_info(scope)), 1 + d.value / 100);
    const struct difference timed = estimate_difference(a, pace_of(other, scope_info(scope)));
    if (timed.verdict != d.verdict && (timed.verdict == DIFFERENCE_MORE || timed.verdict == DIFFERENCE_LESS))
        d.verdict = DIFFERENCE_NOISE;
    return d;
}

/* Returns the pinned segment, or else the oldest one in memory with the newest segment's prompt. */
static const struct segment *
reference(const struct ledger_choice *ch, const struct segments *all)
{
    const struct segment *newest = segments_at(all, 0), *found = NULL, *s;
    for (uint32_t back = 0; (s = segments_at(all, back)) != NULL; back++)
        if (ch->pinned ? s->number == ch->reference : s->prompt == newest->prompt)
            found = s;
    return found;
}

/* Finds the reference and the best row. */
static void
ledger_judge(struct ledger_choice *ch, const struct scope *scope)
{
    const struct segments *all = scope_segments(scope);
    const struct segment *newest = segments_at(all, 0), *s;
    struct estimate best = {.value = -INFINITY, .se = NAN};
    ch->against = ch->best = NULL;
    if (newest == NULL)
        return;
    ch->against = reference(ch, all);
    int others = -1;
    for (uint32_t back = 0; (s = segments_at(all, back)) != NULL; back++) {
        const struct estimate e = value_of(ch, scope, s);
        if (s->prompt != newest->prompt || isnan(e.value))
            continue;
        others++;
        if (e.value > best.value) {
            best = e;
            ch->best = s;
        }
    }
    ch->best_by_far = ch->best != NULL;
    for (uint32_t back = 0; ch->best_by_far && (s = segments_at(all, back)) != NULL; back++)
        if (s != ch->best && s->prompt == newest->prompt)
            ch->best_by_far = effect(ch, scope, ch->best, s).verdict == DIFFERENCE_MORE;
    if (others < 1)
        ch->best = NULL;
}

/* Returns the difference of the rows' measures on their own texts, in per cent of the reference; NAN: unknown. */
static double
plain_difference(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s)
{
    const double base = value_of(ch, scope, ch->against).value;
    return (value_of(ch, scope, s).value / base - 1) * 100;
}

/* Returns why the rows have no common measure: in a versus both texts can be the same, of which one is ahead. */
static const char *
difference_of_texts(const struct segment *a, const struct segment *b)
{
    const bool greedy = !(a->sampling.temperature > 0) && !(b->sampling.temperature > 0);
    return a->prompt != b->prompt ? "prompt" : greedy && a->before == b->before ? "length" : "text";
}

static int
decimals(double value)
{
    return fabs(value) < 9.95 ? 1 : 0;
}

/* Writes the comparison: "C is 8.1% ±3.0 faster than B". */
static void
write_comparison(struct ledger_choice *ch, const struct scope *scope, const struct segment *s, char *out, size_t n)
{
    ledger_judge(ch, scope);
    char own[8], other[8];
    out[0] = '\0';
    if (ch->against == NULL || ch->against == s)
        return;
    const struct difference d = effect(ch, scope, s, ch->against);
    const double plain = plain_difference(ch, scope, s);
    segment_letter(s->number, own);
    segment_letter(ch->against->number, other);
    if (d.verdict == DIFFERENCE_NOISE)
        snprintf(out, n, "%s and %s: no clear difference on the same text", own, other);
    else if (d.verdict != DIFFERENCE_UNKNOWN)
        snprintf(out, n, "%s is %.*f%% ±%.*f %s than %s on the same text", own, decimals(d.value), fabs(d.value),
                 decimals(d.se), d.se, d.value > 0 ? "faster" : "slower", other);
    else if (!isnan(plain))
        snprintf(out, n, "%s %+.*f%% against %s: different %s", own, decimals(plain), plain, other,
                 difference_of_texts(s, ch->against));
}

/* ---- columns ---- */

#define LETTER           5 /* cursor, letter, star, a blank */
#define DIFFERENCE_WIDTH 13

/* Adds columns in the order of their importance. "What changed" gets the rest, at least 8 columns, or 16 beside the last column. */
static struct ledger_columns
ledger_arrange(int cols)
{
    enum { RATIO, DIFFERENCE, TOKENS, LOSSLESS, LENGTH, SPEED, ACCEPTANCE, COLUMNS };
    static const int width[COLUMNS] = {
        [RATIO] = 8,     [DIFFERENCE] = DIFFERENCE_WIDTH, [TOKENS] = 7, [LOSSLESS] = 3, [LENGTH] = 6, [SPEED] = 12,
        [ACCEPTANCE] = 6};
    int room = cols - LETTER - 8;
    bool has[COLUMNS] = {false};
    for (int k = 0; k < COLUMNS && room >= width[k] + (k == ACCEPTANCE ? 8 : 0); k++) {
        has[k] = true;
        room -= width[k];
    }
    struct ledger_columns c = {.what = LETTER + 8 + (room > 52 ? 52 : room)};
    int at = c.what;
    const struct {
        int which, *end;
    } order[] = {{TOKENS, &c.tokens}, {LENGTH, &c.length},         {ACCEPTANCE, &c.acceptance}, {SPEED, &c.speed},
                 {RATIO, &c.ratio},   {DIFFERENCE, &c.difference}, {LOSSLESS, &c.lossless}};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (has[order[i].which])
            *order[i].end = at += width[order[i].which];
    return c;
}

/* Draws text that ends before column `end`; 0: the table lacks the column. */
static void
put(const struct canvas *c, int y, int end, enum role role, const char *text)
{
    if (end > 0)
        canvas_text(c, y, end - text_width(text), role, text);
}

static void
ledger_draw_heading(const struct ledger_choice *ch, const struct scope *scope, const struct ledger_columns *a,
                    const struct canvas *c, int y)
{
    char letter[8] = "", to[24] = "";
    (void)scope;
    const bool tight = a->tokens > 0 && a->tokens - LETTER < 6 + 1 + 12;
    canvas_text(c, y, LETTER, ROLE_DIM, tight ? "changed" : "what changed");
    put(c, y, a->tokens, ROLE_DIM, "tokens");
    put(c, y, a->length, ROLE_DIM, "t/rnd");
    put(c, y, a->acceptance, ROLE_DIM, "acc");
    put(c, y, a->speed, ROLE_DIM, "tok/s");
    put(c, y, a->ratio, ROLE_DIM, ch->modelled ? "(model)" : "× ar");
    if (ch->against != NULL)
        segment_letter(ch->against->number, letter);
    snprintf(to, sizeof to, "%s to %s", "Δ", letter);
    put(c, y, a->difference, ROLE_DIM, to);
}

static void
draw_difference(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s, int end,
                const struct canvas *c, int y)
{
    char text[40];
    if (s == ch->against)
        put(c, y, end, ROLE_DIM, "reference");
    if (ch->against == NULL || s == ch->against)
        return;
    const struct difference d = effect(ch, scope, s, ch->against);
    const char *sign = d.verdict == DIFFERENCE_MORE ? "▲" : d.verdict == DIFFERENCE_LESS ? "▼" : "≈";
    if (isnan(d.value)) {
        const double plain = plain_difference(ch, scope, s);
        snprintf(text, sizeof text, "%+.*f%% %s %s", decimals(plain), plain, "≠", difference_of_texts(s, ch->against));
        put(c, y, end, ROLE_DIM, isnan(plain) ? "" : text);
        return;
    }
    snprintf(text, sizeof text, "%+.*f%% ±%.*f %s", decimals(d.value), d.value, decimals(d.se), d.se, sign);
    if (text_width(text) >= DIFFERENCE_WIDTH) /* many times as fast: a rough number is enough */
        snprintf(text, sizeof text, "%+.0f%% %s", d.value, sign);
    put(c, y, end, d.verdict == DIFFERENCE_MORE ? ROLE_OK : d.verdict == DIFFERENCE_LESS ? ROLE_WARN : ROLE_DIM, text);
}

/* Draws whether the text equals the baseline's: dim if only its beginning was compared. */
static void
draw_lossless(const struct segment *s, int end, const struct canvas *c, int y)
{
    switch (s->lossless) {
    case LOSSLESS_UNKNOWN: put(c, y, end, ROLE_DIM, "–"); break;
    case LOSSLESS_SAMPLED: put(c, y, end, ROLE_DIM, "~"); break;
    case LOSSLESS_NO: put(c, y, end, ROLE_ERROR, "✗"); break;
    case LOSSLESS_YES: put(c, y, end, s->compared < s->total.emitted ? ROLE_DIM : ROLE_OK, "✓"); break;
    }
}

static void
draw_measures(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s,
              const struct ledger_columns *a, const struct canvas *c, int y)
{
    const struct estimates e = segment_estimates(s, scope_info(scope));
    const struct estimate speedup = segment_speedup(s, scope_info(scope));
    char text[40];
    snprintf(text, sizeof text, "%llu", (unsigned long long)s->total.emitted);
    put(c, y, a->tokens, ROLE_TEXT, text);
    snprintf(text, sizeof text, "%.2f", e.tokens_per_round.value);
    put(c, y, a->length, ROLE_TEXT, text);
    if (isnan(e.acceptance_rate.value))
        snprintf(text, sizeof text, "–");
    else
        snprintf(text, sizeof text, "%.2f", e.acceptance_rate.value);
    put(c, y, a->acceptance, ROLE_TEXT, text);
    const int places = e.tokens_per_s.value < 99.5 && !(e.tokens_per_s.se >= 9.95) ? 1 : 0;
    int used = snprintf(text, sizeof text, "%.*f", places, e.tokens_per_s.value);
    if (!isnan(e.tokens_per_s.se) && used > 0)
        snprintf(text + used, sizeof text - (size_t)used, " ±%.*f", places, e.tokens_per_s.se);
    put(c, y, a->speed, isnan(e.tokens_per_s.value) ? ROLE_DIM : ROLE_TEXT, isnan(e.tokens_per_s.value) ? "–" : text);
    const bool modelled = ch->modelled || isnan(speedup.value);
    const double ratio = modelled ? e.modelled.value : speedup.value;
    snprintf(text, sizeof text, isnan(ratio) ? "–" : modelled ? "(%.2f×)" : "%.2f×", ratio);
    put(c, y, a->ratio, modelled && !ch->modelled ? ROLE_DIM : ROLE_TEXT, text);
}

static void
ledger_draw_row(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s,
                const struct ledger_columns *a, const struct canvas *c, int y, bool here)
{
    char letter[8], text[256];
    const enum role role = here ? ROLE_FOCUS : s == ch->against ? ROLE_TITLE : ROLE_TEXT;
    if (here)
        canvas_text(c, y, 0, ROLE_FOCUS, "▸");
    segment_letter(s->number, letter);
    const int x = 1 + canvas_text(c, y, 1, role, letter);
    if (s == ch->best)
        canvas_text(c, y, x, ROLE_OK, ch->best_by_far ? "★" : "☆");
    segment_text(s, scope_info(scope), false, text, sizeof text);
    canvas_word(c, y, LETTER, a->what - LETTER, role, MARK_NONE, text);
    draw_measures(ch, scope, s, a, c, y);
    if (a->difference > 0)
        draw_difference(ch, scope, s, a->difference, c, y);
    if (a->lossless > 0)
        draw_lossless(s, a->lossless, c, y);
}

struct ledger_panel {
    struct ledger_choice choice;
    uint32_t at;   /* the number of the segment in focus */
    bool scrolled; /* false: the newest segment is in focus */
    uint32_t pos;  /* the selected position that the focus followed last */
    bool follow;   /* panels followed then */
    uint32_t top;  /* segments above the first shown one */
    int rows;      /* of segments, as drawn last */
};

static bool
open_ledger(void *state)
{
    struct ledger_panel *p = state;
    p->follow = true;
    return true;
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

/* Returns the segment in focus, which follows the selected position; NULL: there is none. After a segment is dropped, the oldest one in
 * memory has the focus. */
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
    p->top = (uint32_t)panel_scroll((int)p->top, (int)back, (int)segments_held(all(v)), p->rows);
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
        write_comparison(&p->choice, v->scope, at, out, (size_t)n);
}

/* ---- keys ---- */

/* Moves the focus to a segment, and the selection to its first round if the shown text contains it. */
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

/* Runs a command on a segment: the verb, its letter, the rest. */
static bool
command_of(const struct view *v, const struct segment *s, const char *verb, const char *rest)
{
    char letter[8];
    segment_letter(s->number, letter);
    panel_command(v, "%s %s%s", verb, letter, rest);
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
    const struct step by = input_step(key, page);
    if (by.down != 0) {
        move(p, v, by.down);
        return true;
    }
    switch (key) {
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
    if (mouse_wheel(action) != 0) {
        move(p, v, mouse_wheel(action));
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

static const char *
brief_ledger(const struct view *v)
{
    return v->live ? "Enter pin  a take again  s save  y copy" : "Enter pin  s save  y copy";
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "choose a row and point at its first round; Home: the newest, which new rows then follow"},
    {"Enter", "pin the row as reference, or unpin it; double click; :pin C"},
    {"Δ", "against the reference, both settings forecast on the same tokens: ▲ ▼ a clear difference, ≈ none"},
    {"≠ text",
     "the two rows' own texts (or prompts, or lengths) differ and nothing forecasts one of the settings: no verdict"},
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
    .brief_now = brief_ledger,
    .place = PANEL_MIDDLE,
    .weight = 5,
    .min_cols = 50,
    .good_cols = 72,
    .keys = keys,
    .state_size = sizeof(struct ledger_panel),
    .open = open_ledger,
    .draw = draw_ledger,
    .note = note_ledger,
    .key = key_ledger,
    .mouse = mouse_ledger,
    .command = command_ledger,
};
