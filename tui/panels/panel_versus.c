/* Two settings on one prompt beside each other, of one run or of two saved runs: texts, rounds and measures, the
 * difference in speed, where in the text it arises, and where the texts differ. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "tui/panels/panel.h"
#include "tui/panels/text_flow.h"

#define PARTED_TOKENS 6 /* shown of each text from the first difference on */

static void
close_versus(void *state)
{
    flow_close(state);
}

static bool
active_versus(const struct view *v)
{
    return scope_now(v->scope)->versus != NULL;
}

/* ---- one of them ---- */

static void
draw_setting(const struct canvas *c, const struct scope *s, uint32_t seq)
{
    const struct policy_info *p = scope_versus_policy(s, seq), *other = scope_versus_policy(s, 1 - seq);
    const bool focused = scope_focus(s) == seq;
    int x = canvas_text(c, 0, 0, ROLE_FOCUS, focused ? "▸" : " ");
    x += canvas_print(c, 0, x, focused ? ROLE_FOCUS : ROLE_TITLE, "%u %s", (unsigned)seq + 1, p->name);
    const char *trace = scope_versus_info(s, seq)->saved_as;
    if (trace != NULL) {
        char name[64];
        printable_text(trace, strnlen(trace, sizeof name), name, sizeof name);
        x += canvas_word(c, 0, x + 2, c->cols / 3, ROLE_TEXT, MARK_NONE, name) + 2;
    }
    for (int same = 0; same < 2; same++) /* knobs that differ come first */
        for (uint32_t k = 0; k < p->n_knobs; k++) {
            const struct knob *knob = &p->knobs[k];
            const double value = scope_versus_knob(s, seq, k);
            const bool alike = p == other && value == scope_versus_knob(s, 1 - seq, k);
            char number[32];
            knob_format(knob, value, number, sizeof number);
            if (alike == (same == 1))
                x += canvas_fit(c, 0, x, alike ? ROLE_DIM : ROLE_TEXT, "  %s %s",
                                knob->symbol[0] != '\0' ? knob->symbol : knob->name, number);
        }
}

/* How many rounds back the sequence emitted the token at the cursor; in the prompt: the first round; 0: no cursor. */
static uint32_t
selected(const struct view *v, uint32_t seq)
{
    const struct scope_round *r;
    uint32_t back = 0;
    if (v->selection->follow)
        return 0;
    while ((r = scope_round_of(v->scope, seq, back)) != NULL && r->first_pos > v->selection->pos)
        back++;
    return r == NULL && back > 0 && selection_round(v) == 0 ? back - 1 : back;
}

/* Draws rounds from the newest or the cursor's on: drafts, accepted of verified, time, as far as they fit. */
static void
draw_rounds(const struct canvas *c, const struct view *v, uint32_t seq)
{
    const uint32_t first = selected(v, seq);
    if (first > 0 && scope_round_of(v->scope, seq, first) == NULL)
        canvas_text(c, 0, 0, ROLE_DIM, "      no longer in memory");
    if (!v->selection->follow)
        canvas_text(c, 0, 0, ROLE_CURSOR, "▸");
    for (int y = 0; y < c->rows; y++) {
        const struct scope_round *r = scope_round_of(v->scope, seq, first + (uint32_t)y);
        char time[24];
        if (r == NULL)
            return;
        const double ms = ((double)r->end.draft_us + (double)r->end.verify_us) * 1e-3;
        int x = 1 + canvas_print(c, y, 1, ROLE_DIM, "%4u ", (unsigned)r->number);
        const int marks = (int)round_drafts(r) + 1, room = c->cols - x - 6 > 8 ? c->cols - x - 6 : 8;
        const int width = marks < room ? marks : room;
        round_marks(c, y, x, width, r);
        x += width;
        snprintf(time, sizeof time, "  %.*f ms", ms < 10 ? 1 : 0, ms);
        if (r->whole)
            x += canvas_fit(c, y, x, ROLE_TEXT, "  %u/%u", (unsigned)r->end.accepted, (unsigned)r->end.verified);
        if (r->whole && x + text_width(time) <= c->cols)
            canvas_text(c, y, c->cols - text_width(time), ROLE_DIM, time);
    }
}

static size_t
put_estimate(char *out, size_t n, struct estimate e, double times, int digits, const char *unit)
{
    if (isnan(e.value))
        return 0;
    if (isnan(e.se))
        return (size_t)snprintf(out, n, "%.*f%s", digits, e.value * times, unit);
    return (size_t)snprintf(out, n, "%.*f ±%.*f%s", digits, e.value * times, digits, e.se * times, unit);
}

static void
draw_measures(const struct canvas *c, const struct scope *s, uint32_t seq)
{
    const struct estimates e = scope_versus_estimates(s, seq);
    const struct {
        struct estimate of;
        double times;
        int digits;
        const char *unit;
    } parts[] = {{e.tokens_per_s, 1, e.tokens_per_s.value < 10 ? 1 : 0, " tok/s"},
                 {e.tokens_per_round, 1, 2, "/round"},
                 {e.acceptance_rate, 100, 0, "% accepted"},
                 {e.modelled, 1, 2, "× modelled"}};
    int x = 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[64];
        if (put_estimate(text, sizeof text, parts[i].of, parts[i].times, parts[i].digits, parts[i].unit) == 0)
            continue;
        if (x + (x > 1 ? 3 : 0) + text_width(text) > c->cols)
            return;
        x += x > 1 ? canvas_text(c, 0, x, ROLE_DIM, " · ") : 0;
        x += canvas_text(c, 0, x, i == 0 ? ROLE_TITLE : ROLE_TEXT, text);
    }
}

/* ---- both ---- */

/* Returns how the machines of two saved runs differ; "": they do not. */
static const char *
by_what(const struct scope *s)
{
    const struct run_info *a = scope_versus_info(s, 0), *b = scope_versus_info(s, 1);
    if (strcmp(a->host, b->host) != 0)
        return ", on different machines";
    if (strcmp(a->backend, b->backend) != 0 || strcmp(a->isa, b->isa) != 0)
        return ", by different processors or instructions";
    return a->threads != b->threads ? ", with different numbers of threads" : "";
}

/* "specbound tau=0.7 is 12% faster (3 to 21%)"; if there is no clear difference, the interval of the second one's
 * speed. */
static void
write_difference(const struct scope *s, struct comparison d, char *out, size_t n)
{
    char name[2][VERSUS_NAME_MOST], interval[64];
    bool identical;
    for (uint32_t seq = 0; seq < 2; seq++)
        scope_versus_name(s, seq, name[seq], &identical);
    comparison_text(d, interval, sizeof interval);
    if (d.verdict == DIFFERENCE_UNKNOWN)
        snprintf(out, n, identical ? "the settings are identical" : "which is faster is not known yet");
    else if (identical)
        snprintf(out, n, "the settings are identical; %s%s", d.verdict == DIFFERENCE_NOISE ? "" : "by chance one is ",
                 interval);
    else if (d.verdict == DIFFERENCE_NOISE)
        snprintf(out, n, "%s: %s against %s", interval, name[1], name[0]);
    else
        snprintf(out, n, "%s is %s", name[d.verdict == DIFFERENCE_MORE], interval);
}

static void
draw_difference(const struct canvas *c, int y, const struct scope *s)
{
    const struct comparison d = scope_versus_comparison(s);
    const bool clear = d.verdict == DIFFERENCE_MORE || d.verdict == DIFFERENCE_LESS;
    const struct scope_versus *v = scope_now(s)->versus;
    char since[48] = "", text[2 * VERSUS_NAME_MOST + 80];
    if (v->since[0] > 0 && d.verdict != DIFFERENCE_UNKNOWN)
        snprintf(since, sizeof since, ", since token %u", (unsigned)v->since[0] + 1);
    if (v->apart) {
        canvas_print(c, y, 1, ROLE_DIM, "speeds of runs at different times are not compared%s", by_what(s));
        return;
    }
    write_difference(s, d, text, sizeof text);
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s", since);
    const enum role role = clear ? ROLE_FOCUS : d.verdict == DIFFERENCE_NOISE ? ROLE_TEXT : ROLE_DIM;
    int x = 1;
    if (clear)
        x += canvas_print(c, y, x, role, "%s %u ", d.value > 1 ? "▶" : "◀", d.value > 1 ? 2U : 1U);
    canvas_word(c, y, x, c->cols - x, role, MARK_NONE, text);
}

/* Draws a part of the line for each span of the text, if any span has a clear difference. */
static void
draw_spans(const struct canvas *c, int y, const struct scope *s)
{
    struct scope_span span[SCOPE_SPANS];
    const int room = c->cols / 2;
    const uint32_t n = scope_versus_spans(s, span, (uint32_t)(room < SCOPE_SPANS ? room : SCOPE_SPANS));
    bool clear = false;
    for (uint32_t i = 0; i < n; i++)
        clear = clear || span[i].of.verdict == DIFFERENCE_MORE || span[i].of.verdict == DIFFERENCE_LESS;
    if (n < 2 || !clear) {
        if (n >= 2)
            canvas_print(c, y, 1, ROLE_DIM, "no part of tokens %u to %u has a clear difference", (unsigned)span[0].from,
                         (unsigned)span[n - 1].to);
        return;
    }
    int x = 1 + canvas_text(c, y, 1, ROLE_TEXT, "faster where  ");
    const int begin = x;
    for (uint32_t i = 0; i < n; i++)
        for (; x < begin + (int)((uint64_t)room * (i + 1) / n); x++) {
            const bool more = span[i].of.verdict == DIFFERENCE_MORE, less = span[i].of.verdict == DIFFERENCE_LESS;
            const char *mark = more ? "▶" : less ? "◀" : "·";
            canvas_text(c, y, x, more ? ROLE_SERIES_2 : less ? ROLE_SERIES_1 : ROLE_DIM, mark);
        }
    canvas_print(c, y, x, ROLE_DIM, "  tokens %u to %u", (unsigned)span[0].from, (unsigned)span[n - 1].to);
}

static void
write_text(const struct scope *s, uint32_t seq, char *out, size_t n)
{
    token_t token[PARTED_TOKENS];
    const uint32_t count = scope_versus_text(s, seq, token, PARTED_TOKENS);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s", scope_text(s, token[i]));
}

static void
draw_texts(const struct canvas *c, int y, const struct scope *s)
{
    const struct scope_versus *v = scope_now(s)->versus;
    char left[200], right[200], margin[160] = "", text[640];
    if (!v->parted) {
        canvas_text(c, y, 1, ROLE_DIM, "the texts are the same so far");
        return;
    }
    write_text(s, 0, left, sizeof left);
    write_text(s, 1, right, sizeof right);
    if (!isnan(v->margin))
        snprintf(margin, sizeof margin, " (best: \"%.40s\" %.3f, \"%.40s\" %.3f, %.2f logits apart)",
                 scope_text(s, v->best[0]), (double)v->best_p[0], scope_text(s, v->best[1]), (double)v->best_p[1],
                 v->margin);
    snprintf(text, sizeof text, "the texts part at position %u: \"%s\" against \"%s\"%s", (unsigned)v->same, left,
             right, margin);
    canvas_word(c, y, 1, c->cols - 1, ROLE_CORRECTION, MARK_NONE, text);
}

static void
draw_side(struct flow *flow, const struct view *v, const struct canvas *c, uint32_t seq)
{
    const struct scope *s = v->scope;
    const struct scope_tile *t = scope_tile(s, scope_tile_index(s, seq));
    const int rounds = c->rows >= 24 ? 8 : c->rows >= 12 ? c->rows / 3 : c->rows >= 7 ? 2 : 0;
    const int text = c->rows - 2 - rounds;
    const struct canvas head = canvas_inside(c, 0, 0, 1, c->cols),
                        body = canvas_inside(c, 1, 1, text > 0 ? text : 0, c->cols - 2),
                        below = canvas_inside(c, 1 + text, 0, rounds, c->cols),
                        last = canvas_inside(c, c->rows - 1, 0, 1, c->cols);
    draw_setting(&head, s, seq);
    if (t == NULL)
        return;
    flow->no_drafts = v->no_drafts;
    if (text > 0 && body.cols > 0)
        tile_text(&body, s, t, flow);
    if (rounds > 0)
        draw_rounds(&below, v, seq);
    if (c->rows > 1)
        draw_measures(&last, s, seq);
}

static int
lines_of_both(int rows)
{
    return rows >= 14 ? 3 : rows >= 8 ? 2 : rows >= 4 ? 1 : 0;
}

static void
draw_versus(void *state, const struct view *v, const struct canvas *c)
{
    if (!active_versus(v))
        return;
    const int both = lines_of_both(c->rows), middle = c->cols / 2, rows = c->rows - both;
    for (uint32_t seq = 0; seq < 2; seq++) {
        const struct canvas side =
            canvas_inside(c, 0, seq == 0 ? 0 : middle + 1, rows, seq == 0 ? middle : c->cols - middle - 1);
        draw_side(state, v, &side, seq);
    }
    for (int y = 0; y < rows; y++)
        canvas_text(c, y, middle, ROLE_LINE, "│");
    if (both > 0)
        draw_difference(c, rows, v->scope);
    if (both > 2)
        draw_spans(c, rows + 1, v->scope);
    if (both > 1)
        draw_texts(c, rows + both - 1, v->scope);
}

/* ---- keys and mouse ---- */

static void
focus_on(const struct view *v, uint32_t seq)
{
    panel_command(v, "sequence %u", (unsigned)seq + 1);
}

static bool
key_versus(void *state, const struct view *v, int key)
{
    (void)state;
    if (key == INPUT_LEFT || key == 'h')
        focus_on(v, 0);
    else if (key == INPUT_RIGHT || key == 'l')
        focus_on(v, 1);
    else
        return false;
    return true;
}

static bool
mouse_versus(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    (void)state;
    if (action != MOUSE_PRESS || y < 0 || x < 0 || y >= c->rows - lines_of_both(c->rows) || x == c->cols / 2)
        return false;
    focus_on(v, x > c->cols / 2);
    return true;
}

static const struct key_help keys[] = {
    {"← →, click", "which of the two the other panels show and the knobs change"},
    {NULL, NULL},
};

const struct panel_ops panel_versus = {
    .name = "versus",
    .title = "two settings",
    .brief = "← → which one has the knobs",
    .place = PANEL_TOP,
    .first_tab = true,
    .weight = 5,
    .min_cols = 70,
    .active = active_versus,
    .keys = keys,
    .state_size = sizeof(struct flow),
    .close = close_versus,
    .draw = draw_versus,
    .key = key_versus,
    .mouse = mouse_versus,
};
