/* The ledger: a row for each segment of rounds with one setting, the newest first. A row shows the changed settings,
 * its measures, and the difference from the reference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/measure/forecast.h"
#include "tui/panels/panel.h"

struct ledger_choice {
    bool pinned;
    uint32_t reference;            /* the number of the pinned segment */
    bool modelled;                 /* modelled speedups are compared, not tokens/s */
    const struct effects *effects; /* forecasts that rows are compared by; NULL: none */

    const struct segment *against; /* the reference, owned by the scope; NULL: none */
    const struct segment *best;    /* the best row of the prompt; NULL: there is only one row */
    bool best_by_far;              /* it is clearly better than each other row on the same tokens */
};

enum { TOKENS, LENGTH, ACCEPTANCE, SPEED, RATIO, DIFFERENCE, LOSSLESS, COLUMNS };

struct ledger_columns {
    int what;         /* the end of "what changed" */
    int end[COLUMNS]; /* 0: omitted */
    int width[COLUMNS];
};

/* ---- comparisons ---- */

static struct estimate
value_of(const struct ledger_choice *ch, const struct scope *s, const struct segment *segment)
{
    const struct estimates e = segment_estimates(segment, scope_info(s));
    if (segment->races > 0)
        return (struct estimate){.value = NAN, .se = NAN};
    return ch->modelled ? e.modelled : e.tokens_per_s;
}

/* Returns tokens/s divided by the modelled speedup: the speed of the machine, which does not depend on the text. */
static struct estimate
pace_of(const struct segment *s, const struct run_info *info)
{
    const struct estimates e = segment_estimates(s, info);
    return estimate_quotient(e.tokens_per_s, e.modelled);
}

/* Is it the newest segment of its side in the present run? */
static bool
is_newest(const struct scope *scope, const struct segment *s)
{
    const struct segment *at;
    uint32_t back = 0;
    while ((at = segments_at(scope_now(scope)->segments, back)) != NULL && at->seq != s->seq)
        back++;
    return at == s && s->versus && s->run == scope_now(scope)->run;
}

/* A difference in per cent, and its 95% interval. */
struct ledger_difference {
    struct difference of;
    double low, high;
};

/* The two settings of a versus have one comparison, that of their panel. */
static struct ledger_difference
of_sides(const struct scope *scope, const struct segment *s)
{
    const struct comparison c = scope_versus_comparison(scope);
    const struct estimate e = ratio_estimate(&scope_now(scope)->versus->paired.seconds);
    const double faster = s->seq == 1 ? e.value : 1 / e.value;
    const bool turned = s->seq == 0 && c.verdict >= DIFFERENCE_MORE;
    struct ledger_difference d = {.of = {.value = NAN, .se = NAN, .verdict = c.verdict}};
    if (c.verdict == DIFFERENCE_UNKNOWN)
        return d;
    d.of.value = (faster - 1) * 100;
    d.of.se = e.se / e.value * faster * 100;
    d.low = ((s->seq == 1 ? c.low : 1 / c.high) - 1) * 100;
    d.high = ((s->seq == 1 ? c.high : 1 / c.low) - 1) * 100;
    if (turned)
        d.of.verdict = c.verdict == DIFFERENCE_MORE ? DIFFERENCE_LESS : DIFFERENCE_MORE;
    return d;
}

/* Returns by how much per cent the setting of `s` is better than that of `other` on the same tokens; UNKNOWN: the texts
 * differ. If the measured times, converted to the same tokens, clearly contradict the forecast, the verdict is
 * NOISE. */
static struct ledger_difference
effect(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s, const struct segment *other)
{
    if (!ch->modelled && scope_now(scope)->versus != NULL && s->seq != other->seq && is_newest(scope, s) &&
        is_newest(scope, other))
        return of_sides(scope, s);
    const struct difference of =
        effects_difference(ch->effects, scope_now(scope)->segments, scope_info(scope), s, other);
    const double reach = estimate_reach(RECORD_BLOCKS - 1) * of.se;
    struct ledger_difference d = {.of = of, .low = of.value - reach, .high = of.value + reach};
    if (ch->modelled || isnan(of.value))
        return d;
    const struct estimate a = estimate_times(pace_of(s, scope_info(scope)), 1 + of.value / 100);
    const struct difference timed = estimate_difference(a, pace_of(other, scope_info(scope)));
    if (timed.verdict != of.verdict && (timed.verdict == DIFFERENCE_MORE || timed.verdict == DIFFERENCE_LESS))
        d.of.verdict = DIFFERENCE_NOISE;
    return d;
}

/* Returns the pinned segment, or else the oldest one in memory with the newest segment's prompt. */
static const struct segment *
reference(const struct ledger_choice *ch, const struct segments *all)
{
    const struct segment *newest = segments_at(all, 0), *found = NULL, *s;
    for (uint32_t back = 0; (s = segments_at(all, back)) != NULL; back++)
        if (ch->pinned ? s->number == ch->reference : s->prompt == newest->prompt && s->races == 0)
            found = s;
    return found;
}

/* Finds the reference and the best row. */
static void
ledger_judge(struct ledger_choice *ch, const struct scope *scope)
{
    const struct segments *all = scope_now(scope)->segments;
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
            ch->best_by_far = effect(ch, scope, ch->best, s).of.verdict == DIFFERENCE_MORE;
    if (others < 1)
        ch->best = NULL;
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
    const struct ledger_difference compared = effect(ch, scope, s, ch->against);
    const struct difference d = compared.of;
    segment_letter(s->number, own);
    segment_letter(ch->against->number, other);
    if (d.verdict == DIFFERENCE_NOISE)
        snprintf(out, n, "%s against %s on the same text: no clear difference, %+.*f to %+.*f%%", own, other,
                 decimals(compared.low), compared.low, decimals(compared.high), compared.high);
    else if (d.verdict != DIFFERENCE_UNKNOWN)
        snprintf(out, n, "%s is %.*f%% ±%.*f %s than %s on the same text", own, decimals(d.value), fabs(d.value),
                 decimals(d.se), d.se, d.value > 0 ? "faster" : "slower", other);
    else if (isnan(d.value))
        snprintf(out, n, "%s and %s are not compared: different %s", own, other, difference_of_texts(s, ch->against));
    else
        snprintf(out, n, "%s and %s are not compared: too few rounds", own, other);
}

/* ---- columns ---- */

#define LETTER           5 /* cursor, letter, star, a blank */
#define DIFFERENCE_WIDTH 14
#define RATIO_ERROR      6 /* columns of " ±0.05" */

/* Adds columns in the order of their importance. "What changed" gets the rest, at least 8 columns, or 16 beside the
 * last column. */
static struct ledger_columns
ledger_arrange(int cols)
{
    static const int by_importance[COLUMNS] = {RATIO, DIFFERENCE, TOKENS, LOSSLESS, LENGTH, SPEED, ACCEPTANCE};
    struct ledger_columns c = {.width = {[TOKENS] = 7,
                                         [LENGTH] = 6,
                                         [ACCEPTANCE] = 6,
                                         [SPEED] = 12,
                                         [RATIO] = 8,
                                         [DIFFERENCE] = DIFFERENCE_WIDTH,
                                         [LOSSLESS] = 3}};
    int room = cols - LETTER - 8, n = 0;
    bool has[COLUMNS] = {false};
    for (; n < COLUMNS && room >= c.width[by_importance[n]] + (by_importance[n] == ACCEPTANCE ? 8 : 0); n++) {
        has[by_importance[n]] = true;
        room -= c.width[by_importance[n]];
    }
    if (n == COLUMNS && room >= RATIO_ERROR + 16) {
        c.width[RATIO] += RATIO_ERROR;
        room -= RATIO_ERROR;
    }
    c.what = LETTER + 8 + (room > 52 ? 52 : room);
    for (int k = 0, at = c.what; k < COLUMNS; k++)
        if (has[k])
            c.end[k] = at += c.width[k];
    return c;
}

/* Draws text at the right end of a column, cut to its width, if the table has the column. */
static void
put(const struct canvas *c, int y, const struct ledger_columns *a, int column, enum role role, const char *text)
{
    const int room = a->width[column] - 1, width = text_width(text) < room ? text_width(text) : room;
    if (a->end[column] > 0)
        canvas_word(c, y, a->end[column] - width, width, role, MARK_NONE, text);
}

static void
ledger_draw_heading(const struct ledger_choice *ch, const struct ledger_columns *a, const struct canvas *c, int y)
{
    char letter[8] = "", to[24] = "";
    const bool tight = a->what - LETTER < 12;
    canvas_text(c, y, LETTER, ROLE_DIM, tight ? "changed" : "what changed");
    put(c, y, a, TOKENS, ROLE_DIM, "tokens");
    put(c, y, a, LENGTH, ROLE_DIM, "t/rnd");
    put(c, y, a, ACCEPTANCE, ROLE_DIM, "acc");
    put(c, y, a, SPEED, ROLE_DIM, "tok/s");
    put(c, y, a, RATIO, ROLE_DIM, ch->modelled ? "(model)" : "× ar");
    if (ch->against != NULL)
        segment_letter(ch->against->number, letter);
    snprintf(to, sizeof to, "Δ%s%s", ch->against != NULL ? " to " : "", letter);
    put(c, y, a, DIFFERENCE, ROLE_DIM, to);
}

static void
draw_difference(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s,
                const struct ledger_columns *a, const struct canvas *c, int y)
{
    char text[40] = "too short"; /* a single round has no error */
    if (s == ch->against)
        put(c, y, a, DIFFERENCE, ROLE_DIM, "reference");
    if (ch->against == NULL || s == ch->against)
        return;
    const struct difference d = effect(ch, scope, s, ch->against).of;
    const char *sign = d.verdict == DIFFERENCE_MORE ? "▲" : d.verdict == DIFFERENCE_LESS ? "▼" : "≈";
    if (d.verdict == DIFFERENCE_UNKNOWN) {
        if (isnan(d.value))
            snprintf(text, sizeof text, "≠ %s", difference_of_texts(s, ch->against));
        put(c, y, a, DIFFERENCE, ROLE_DIM, text);
        return;
    }
    snprintf(text, sizeof text, "%+.*f%% ±%.*f %s", decimals(d.value), d.value, decimals(d.se), d.se, sign);
    if (text_width(text) >= DIFFERENCE_WIDTH) /* many times as fast: a rough number is enough */
        snprintf(text, sizeof text, "%+.0f%% %s", d.value, sign);
    put(c, y, a, DIFFERENCE,
        d.verdict == DIFFERENCE_MORE   ? ROLE_OK
        : d.verdict == DIFFERENCE_LESS ? ROLE_WARN
                                       : ROLE_DIM,
        text);
}

/* Draws whether the text equals the baseline's: dim if only its beginning was compared. */
static void
draw_lossless(const struct segment *s, const struct ledger_columns *a, const struct canvas *c, int y)
{
    switch (s->lossless) {
    case LOSSLESS_UNKNOWN: put(c, y, a, LOSSLESS, ROLE_DIM, "–"); break;
    case LOSSLESS_SAMPLED: put(c, y, a, LOSSLESS, ROLE_DIM, "~"); break;
    case LOSSLESS_NO: put(c, y, a, LOSSLESS, ROLE_ERROR, "✗"); break;
    case LOSSLESS_YES: put(c, y, a, LOSSLESS, s->compared < s->total.emitted ? ROLE_DIM : ROLE_OK, "✓"); break;
    }
}

/* Draws the speedup: in brackets the modelled one, dim with "~" if its baseline is of another time, or with its
 * error. */
static void
draw_ratio(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s,
           const struct ledger_columns *a, const struct canvas *c, int y)
{
    const struct estimate speedup = segment_speedup(s, scope_info(scope));
    const double read = segment_estimates(s, scope_info(scope)).modelled.value;
    const bool modelled = ch->modelled || isnan(speedup.value), apart = isnan(speedup.se);
    char text[40];
    if (modelled)
        snprintf(text, sizeof text, isnan(read) ? "–" : "(%.2f×)", read);
    else if (apart || a->width[RATIO] <= RATIO_ERROR + 2)
        snprintf(text, sizeof text, "%s%.2f×", apart ? "~" : "", speedup.value);
    else
        snprintf(text, sizeof text, "%.2f ±%.2f×", speedup.value, speedup.se);
    put(c, y, a, RATIO, !ch->modelled && (modelled || apart) ? ROLE_DIM : ROLE_TEXT, text);
}

static void
draw_measures(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s,
              const struct ledger_columns *a, const struct canvas *c, int y)
{
    const struct estimates e = segment_estimates(s, scope_info(scope));
    char text[40];
    snprintf(text, sizeof text, "%llu", (unsigned long long)s->total.emitted);
    put(c, y, a, TOKENS, ROLE_TEXT, text);
    snprintf(text, sizeof text, "%.2f", e.tokens_per_round.value);
    put(c, y, a, LENGTH, ROLE_TEXT, text);
    if (isnan(e.acceptance_rate.value))
        snprintf(text, sizeof text, "–");
    else
        snprintf(text, sizeof text, "%.2f", e.acceptance_rate.value);
    put(c, y, a, ACCEPTANCE, ROLE_TEXT, text);
    const int places = e.tokens_per_s.value < 99.5 && !(e.tokens_per_s.se >= 9.95) ? 1 : 0;
    int used = snprintf(text, sizeof text, "%.*f", places, e.tokens_per_s.value);
    if (!isnan(e.tokens_per_s.se) && used > 0)
        snprintf(text + used, sizeof text - (size_t)used, " ±%.*f", places, e.tokens_per_s.se);
    put(c, y, a, SPEED, isnan(e.tokens_per_s.value) ? ROLE_DIM : ROLE_TEXT, isnan(e.tokens_per_s.value) ? "–" : text);
    draw_ratio(ch, scope, s, a, c, y);
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
    canvas_word(c, y, LETTER, (s->races > 0 ? c->cols : a->what) - LETTER, role, MARK_NONE, text);
    if (s->races > 0) /* of many settings */
        return;
    draw_measures(ch, scope, s, a, c, y);
    draw_difference(ch, scope, s, a, c, y);
    draw_lossless(s, a, c, y);
}

struct ledger_panel {
    struct ledger_choice choice;
    uint32_t at;   /* the number of the segment in focus */
    bool scrolled; /* false: the newest segment is in focus */
    uint32_t pos;  /* the selected position that the focus followed last */
    bool pointed;  /* panels did not follow then */
    uint32_t top;  /* segments above the first shown one */
    int rows;      /* of segments, as drawn last */
};

static const struct segments *
all(const struct view *v)
{
    return scope_now(v->scope)->segments;
}

static bool
selection_moved(struct ledger_panel *p, const struct selection *s)
{
    const bool moved = s->follow == p->pointed || (!s->follow && s->pos != p->pos);
    p->pointed = !s->follow;
    p->pos = s->pos;
    return moved;
}

/* Returns the segment in focus, which follows the selected position; NULL: there is none. After a segment is dropped,
 * the oldest one in memory has the focus. */
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
        ledger_draw_heading(&p->choice, &columns, c, y++);
    if (coming != NULL && c->rows >= 3) {
        char text[256];
        segment_text(coming, scope_info(v->scope), true, text, sizeof text);
        canvas_print(c, y++, 0, ROLE_KNOB_PENDING, "   %s  takes effect from the next round", text);
    }
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
    if (s->races > 0)
        panel_print(v, "a race has many settings; the panel tune lists them");
    else
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
    {"Δ", "against the reference, both settings forecast on the same tokens: ▲ ▼ a clear difference, ≈ none. Two "
          "settings side by side: as in their panel"},
    {"≠ text", "not compared: the texts (or prompts, or lengths) of the two rows differ, and there is no forecast"},
    {"~1.20×", "× ar by a baseline of another time; b starts slices of it between rounds, and a row with three of them "
               "has an exact value"},
    {"12 ±3", "one standard error: over rounds, of Δ over the text and what is not known of wrong drafts"},
    {"★ ☆", "the best of this prompt; ☆: not clearly better than all others on the same tokens"},
    {"c", "rows by tokens/s, or by modelled speed, which no clock disturbs; × in brackets is modelled, too"},
    {"a", "take the row's settings again"},
    {"s", "save them under a name; :preset NAME brings them back, --preset NAME begins with them"},
    {"y", "copy them as a command line"},
    {NULL, NULL},
};

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
    .draw = draw_ledger,
    .note = note_ledger,
    .key = key_ledger,
    .mouse = mouse_ledger,
    .command = command_ledger,
};
