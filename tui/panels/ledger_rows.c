/* Rows of the ledger: the columns of a segment, and its comparison with another segment. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/ledger.h"
#include "tui/terminal/text.h"

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

void
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

/* Returns the difference between each row's own text, in per cent of the reference; NAN: unknown. */
static double
plain_difference(const struct ledger_choice *ch, const struct scope *scope, const struct segment *s)
{
    const double base = value_of(ch, scope, ch->against).value;
    return (value_of(ch, scope, s).value / base - 1) * 100;
}

static int
decimals(double value)
{
    return fabs(value) < 9.95 ? 1 : 0;
}

void
ledger_say(struct ledger_choice *ch, const struct scope *scope, const struct segment *s, char *out, size_t n)
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
        snprintf(out, n, "%s %+.*f%% against %s: %s", own, decimals(plain), plain, other,
                 ch->against->prompt != s->prompt ? "different prompt" : "different text");
}

/* ---- columns ---- */

#define LETTER           5 /* cursor, letter, star, a blank */
#define DIFFERENCE_WIDTH 13

/* Adds columns in the order of their importance. "What changed" gets the rest, at least 8 columns, or 16 beside the last column. */
struct ledger_columns
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

void
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
    snprintf(to, sizeof to, "%s to %s", canvas_glyph(c, "Δ", "d"), letter);
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
    const char *sign = d.verdict == DIFFERENCE_MORE   ? canvas_glyph(c, "▲", "^")
                       : d.verdict == DIFFERENCE_LESS ? canvas_glyph(c, "▼", "v")
                                                      : canvas_glyph(c, "≈", "~");
    if (isnan(d.value)) {
        const double plain = plain_difference(ch, scope, s);
        snprintf(text, sizeof text, "%+.*f%% %s text", decimals(plain), plain, canvas_glyph(c, "≠", "!="));
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

void
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
        canvas_text(c, y, x, ROLE_OK, ch->best_by_far ? canvas_glyph(c, "★", "*") : canvas_glyph(c, "☆", "'"));
    segment_text(s, scope_info(scope), false, text, sizeof text);
    canvas_word(c, y, LETTER, a->what - LETTER, role, MARK_NONE, text);
    draw_measures(ch, scope, s, a, c, y);
    if (a->difference > 0)
        draw_difference(ch, scope, s, a->difference, c, y);
    if (a->lossless > 0)
        draw_lossless(s, a->lossless, c, y);
}
