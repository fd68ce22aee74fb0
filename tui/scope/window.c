#include "tui/scope/window.h"

#include <stdio.h>

#include "tui/scope/scope_internal.h"

const char *const window_names[WINDOWS] = {"segment", "last", "run"};

void
scope_show_window(struct scope *s, enum scope_window window)
{
    s->window = window;
    s->now.version++;
}

enum scope_window
scope_window(const struct scope *s)
{
    return s->window;
}

const struct segment *
scope_segment(const struct scope *s)
{
    const struct segment *at;
    uint32_t back = 0;
    while ((at = segments_at(s->segments, back)) != NULL && !segment_concerns(at, s->focus->seq))
        back++;
    return at != NULL && at->run == s->now.run ? at : NULL;
}

void
scope_window_name(const struct scope *s, char *out, size_t n)
{
    const struct segment *segment = scope_segment(s);
    char letter[8] = "";
    if (segment != NULL)
        segment_letter(segment->number, letter);
    if (s->window == WINDOW_SEGMENT)
        snprintf(out, n, "segment%s%s", segment != NULL ? " " : "", letter);
    else if (s->window == WINDOW_LATEST)
        snprintf(out, n, "last %d rounds", METRICS_WINDOW);
    else
        snprintf(out, n, "run");
}

struct window_measures
scope_window_measures(const struct scope *s)
{
    const struct metrics *m = &s->now.metrics;
    const struct segment *segment = scope_segment(s), empty = {0};
    struct window_measures w;
    struct tally t;
    switch (s->window) {
    case WINDOW_LATEST:
        t = metrics_window(m);
        w.with = metrics_estimates(m);
        break;
    case WINDOW_RUN:
        t = m->total;
        w.with = metrics_run_estimates(m);
        break;
    default:
        segment = segment != NULL ? segment : &empty;
        t = segment->total;
        w.with = segment_estimates(segment, s->info);
        break;
    }
    w.of = metrics_measures(m, &t);
    w.speedup = estimate_quotient(w.with.tokens_per_s, metrics_baseline(m));
    return w;
}
