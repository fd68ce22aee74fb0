/* Where sliders stand: lines, columns, and which lines are seen. */
#include <stdio.h>

#include "tui/panels/knobs.h"
#include "tui/panels/landscape.h"
#include "tui/terminal/text.h"

#define VALUE_COLUMNS 8
#define BEST_COLUMNS  25 /* "best dynamic: 1.46× ±0.03" */
#define BEST_FROM     64 /* columns of the panel, where that has room, */
#define NAMES_FROM    40 /* and where sampling's names have */
#define LEAST_SLIDER  5
#define LEAST_NAME    8

/* Of the policy's knobs; or the one that says there are none. */
static int
policy_lines(const struct view *v)
{
    const int n = (int)scope_policy(v->scope)->n_knobs;
    return n > 0 ? n : 1;
}

int
knobs_line_of(const struct view *v, uint32_t i)
{
    const uint32_t n = scope_policy(v->scope)->n_knobs;
    return i < n ? (int)i : policy_lines(v) + 1 + (int)(i - n);
}

int
knobs_item_at(const struct view *v, int line)
{
    const int n = (int)scope_policy(v->scope)->n_knobs, above = policy_lines(v) + 1;
    if (line >= above)
        return line < above + SAMPLING_KNOBS ? n + line - above : -1;
    return line < n ? line : -1;
}

/* What is said besides, of what can't be foretold, has the room that is left: a replay's sliders stand where the run's did. */
static int
longest_help(const struct view *v, int cols)
{
    const struct canvas one = {.cols = cols - 2};
    int most = 1;
    for (uint32_t i = 0; i < knobs_items(v); i++) {
        const int rows = canvas_paragraph(&one, ROLE_DIM, knobs_item(v, i).knob->help);
        most = rows > most ? rows : most;
    }
    return most;
}

/* Where columns are few the policy's names say how wide. */
static int
longest_name(const struct view *v, int cols)
{
    const uint32_t n = scope_policy(v->scope)->n_knobs;
    int most = 6;
    for (uint32_t i = 0; i < (n > 0 && cols < NAMES_FROM ? n : knobs_items(v)); i++) {
        const struct knobs_item it = knobs_item(v, i);
        const int width = text_width(it.knob->name) + (it.symbol[0] != '\0' ? text_width(it.symbol) + 1 : 0);
        most = width > most ? width : most;
    }
    return most;
}

/* Columns for the longest value that a slider of the policy may give, and for the mark that it is pending. */
static int
longest_value(const struct view *v)
{
    const struct policy_info *p = scope_policy(v->scope);
    int most = 5; /* sampling's are no longer, but for a seed */
    for (uint32_t i = 0; i < p->n_knobs; i++) {
        const struct knob *k = &p->knobs[i];
        const double some[] = {k->max, k->def, k->min + k->step, k->max - k->step};
        for (int j = 0; j < (k->kind == KNOB_CHOICE ? (int)k->max + 1 : 4); j++) {
            char text[40];
            knob_format(k, k->kind == KNOB_CHOICE ? j : some[j], text, sizeof text);
            most = text_width(text) > most ? text_width(text) : most;
        }
    }
    return most + 1;
}

struct knobs_places
knobs_arrange(const struct view *v, int rows, int cols)
{
    const int n = policy_lines(v);
    struct knobs_places a = {.name = longest_name(v, cols), .value = VALUE_COLUMNS, .help = -1};
    a.name = a.name > cols / 2 ? cols / 2 : a.name;
    a.best = v->landscape != NULL && v->landscape->tokens > 0 && cols >= BEST_FROM ? BEST_COLUMNS : 0;
    if (cols < NAMES_FROM && n > 0) {
        const int longest = longest_value(v);
        a.value = longest < VALUE_COLUMNS ? longest : VALUE_COLUMNS;
    }
    a.slider = cols - 1 - a.name - 1 - 1 - a.value - a.best;
    if (a.slider < LEAST_SLIDER && a.name - (LEAST_SLIDER - a.slider) >= LEAST_NAME) {
        a.name -= LEAST_SLIDER - a.slider; /* names are cut before sliders go */
        a.slider = LEAST_SLIDER;
    }
    if (a.slider < LEAST_SLIDER)
        a.slider = 0;
    a.lines = n + 1 + SAMPLING_KNOBS;
    a.seen = rows;
    if ((rows >= 3 && rows > n) || rows >= 4) { /* the help of the one in focus; more sliders go before it */
        /* As many rows as the longest takes, so that nothing moves with the focus; they go before sampling. */
        const int spare = rows - n - 1, longest = longest_help(v, cols);
        a.help_rows = spare < 1 ? 1 : spare < longest ? spare : longest;
        a.help = rows - a.help_rows;
        a.seen = a.help;
    }
    a.seen = a.seen > a.lines ? a.lines : a.seen;
    return a;
}

void
knobs_scroll(struct knobs_panel *p, const struct view *v, const struct knobs_places *a)
{
    if (p->focus >= knobs_items(v))
        p->focus = knobs_items(v) - 1;
    const int line = p->focus > 0 ? knobs_line_of(v, p->focus) : 0; /* with the first, what stands above it */
    if (line < p->top)
        p->top = line;
    if (a->seen > 0 && knobs_line_of(v, p->focus) >= p->top + a->seen)
        p->top = knobs_line_of(v, p->focus) - a->seen + 1;
    if (p->top + a->seen > a->lines)
        p->top = a->lines - a->seen;
    p->seen = a->seen;
}

void
knobs_say_seen(const struct knobs_panel *p, const struct view *v, char *out, size_t n)
{
    int first = -1, last = -1;
    for (int y = 0; y < p->seen; y++) {
        const int i = knobs_item_at(v, p->top + y);
        first = first < 0 ? i : first;
        last = i >= 0 ? i : last;
    }
    if (first >= 0 && (uint32_t)(last - first) + 1 < knobs_items(v))
        snprintf(out, n, "%d–%d of %u", first + 1, last + 1, (unsigned)knobs_items(v));
}
