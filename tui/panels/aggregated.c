#include "tui/panels/aggregated.h"
#include "tui/scope/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void *
aggregated_open(void)
{
    return calloc(1, sizeof(struct aggregated));
}

void
aggregated_close(void *state)
{
    struct aggregated *p = state;
    if (p != NULL && p->layers > 0)
        aggregates_close(&p->own);
    free(p);
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
    if (scope_window(s) == WINDOW_RUN)
        return scope_run_aggregates(s);
    uint32_t last;
    const struct segment *here = selection_segment(v, &last);
    if (scope_window(s) == WINDOW_SEGMENT && (here == NULL || last == UINT32_MAX))
        return scope_segment_aggregates(s);
    uint32_t first = here != NULL ? here->first_round : 1;
    if (scope_window(s) == WINDOW_LATEST) {
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
aggregated_note(void *state, const struct view *v, char *out, int n)
{
    (void)state;
    uint32_t last;
    const struct segment *here = scope_window(v->scope) == WINDOW_SEGMENT ? selection_segment(v, &last) : NULL;
    char letter[8];
    if (here == NULL) {
        scope_window_name(v->scope, out, (size_t)n);
        return;
    }
    segment_letter(here->number, letter);
    snprintf(out, (size_t)n, "segment %s", letter);
}
