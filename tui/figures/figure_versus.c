/* Two traces side by side: tokens over the time of their rounds, the faster trace by position, the end of the common
 * text, and the measures of both. */
#include <math.h>
#include <stdlib.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define HEIGHT 110.0
#define SPANS  26.0 /* height of the strip of spans */

static void
draw_courses(struct figure *f, const struct course *c, double width, double parted)
{
    struct range x = {0, 0}, y = {0, 0};
    for (int i = 0; i < 2; i++) {
        range_add(&x, c[i].seconds[c[i].n - 1]);
        range_add(&y, c[i].tokens[c[i].n - 1]);
    }
    y.high *= 1.08; /* room for a name above the highest end */
    const struct panel_area p =
        axes_panel(AXES_LEFT, AXES_TITLE, width - AXES_LEFT - AXES_RIGHT, HEIGHT,
                   (struct axis){range_shown(x, false), false, "seconds of drafting and verifying"},
                   (struct axis){range_shown(y, false), true, "tokens"});
    axes_draw(f->d, &p, true);
    axes_title(f->d, &p, "tokens over time");
    for (int i = 0; i < 2; i++) {
        const struct line_style *style = &line_styles[i];
        axes_steps(f->d, &p, c[i].seconds, c[i].tokens, c[i].n, c[i].seconds[c[i].n - 1],
                   STROKE(style->colour, .line = 1.2, .dash = i == 0 ? DASH_NONE : DASH_LONG));
        const double at = scale_at(&p.across, c[i].seconds[c[i].n - 1]), top = scale_at(&p.up, c[i].tokens[c[i].n - 1]);
        mark_draw(f->d, style->mark, at, top, 2.2, style->colour);
        drawing_print(f->d, at - 4, top - 3, LETTERS(SIZE_TITLE, style->colour, .anchor = ANCHOR_RIGHT, .bold = true),
                      "%c", 'A' + i);
    }
    if (!isnan(parted)) {
        const double up = scale_at(&p.up, parted);
        drawing_line(f->d, p.x, up, p.x + p.width, up, STROKE(ALARM, .line = 0.6, .dash = DASH_SHORT));
        drawing_text(f->d, p.x + p.width - 2, up + 7, LETTERS(SIZE_TICK, ALARM, .anchor = ANCHOR_RIGHT),
                     "the texts part");
    }
}

/* Returns A's gain from one token to another: log2 of B's time over A's. */
static double
faster(const struct course *c, double from, double to)
{
    return log2((course_when(&c[1], to) - course_when(&c[1], from)) /
                (course_when(&c[0], to) - course_when(&c[0], from)));
}

/* Draws the gain by spans of the text: upwards for A, downwards for B. */
static double
draw_spans(struct figure *f, const struct course *c, double y, double parted)
{
    const double both = fmin(c[0].tokens[c[0].n - 1], c[1].tokens[c[1].n - 1]);
    const double span = fmax(4, ceil(both / 48)), width = f->width - AXES_LEFT - AXES_RIGHT;
    const int spans = (int)(both / span);
    double most = log2(1.25);
    for (int i = 0; i < spans; i++)
        most = fmax(most, fabs(faster(c, i * span, (i + 1) * span)));
    most = isfinite(most) ? most : 3;
    const struct panel_area p = axes_panel(AXES_LEFT, y, width, 2 * SPANS, (struct axis){{0, both}, true, "token"},
                                           (struct axis){{-most * 1.08, most * 1.08}, false, NULL});
    for (int i = 0; i < spans; i++) {
        const double from = i * span, ratio = faster(c, from, from + span);
        const double x1 = scale_at(&p.across, from), x2 = scale_at(&p.across, from + span);
        const double zero = scale_at(&p.up, 0), top = scale_at(&p.up, fmax(-most, fmin(most, ratio)));
        if (!isnan(ratio))
            drawing_rect(f->d, x1 + 0.3, fmin(top, zero), x2 - x1 - 0.6, fabs(top - zero),
                         FILL(line_styles[ratio > 0 ? 0 : 1].colour));
    }
    drawing_rect(f->d, p.x, p.y, p.width, p.height, STROKE(INK_LIGHT));
    drawing_line(f->d, p.x, scale_at(&p.up, 0), p.x + p.width, scale_at(&p.up, 0), STROKE(INK_LIGHT));
    const struct lettering l = LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT);
    for (int sign = -1; sign <= 1; sign++) {
        char text[24];
        drawing_print(f->d, p.x - 3, scale_at(&p.up, sign * most) + 2.2, l, "%s%s",
                      value_label(pow(2, most * abs(sign)), text, sizeof text), "×");
    }
    char title[96];
    snprintf(title, sizeof title, "who was faster, in spans of %.0f tokens: A upwards, B downwards", span);
    axes_title(f->d, &p, title);
    double ticks[SCALE_TICKS], step;
    const int n = scale_ticks(0, both, (int)(width / 30), true, ticks, &step);
    for (int i = 0; i < n; i++) {
        const double x = scale_at(&p.across, ticks[i]);
        drawing_line(f->d, x, y + 2 * SPANS, x, y + 2 * SPANS + 2, STROKE(INK_LIGHT));
        drawing_print(f->d, x, y + 2 * SPANS + 3 + SIZE_TICK, LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_MIDDLE),
                      "%.0f", ticks[i]);
    }
    if (!isnan(parted) && parted < both)
        drawing_line(f->d, scale_at(&p.across, parted), p.y, scale_at(&p.across, parted), p.y + p.height,
                     STROKE(ALARM, .line = 0.7, .dash = DASH_SHORT));
    drawing_text(f->d, p.x + width / 2, y + 2 * SPANS + 6 + SIZE_TICK + SIZE_LABEL,
                 LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE), "token");
    return y + 2 * SPANS + AXES_BOTTOM;
}

static double
draw_measures(struct figure *f, double x, double y, double width)
{
    const double column[] = {x + width * 0.62, x + width * 0.82, x + width};
    const char *const heads[] = {"A", "B", "B/A"};
    const struct lettering head = LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_RIGHT, .bold = true);
    struct measures m[2];
    for (int i = 0; i < 2; i++)
        m[i] = metrics_measures(&f->input[i].record.metrics, &f->input[i].record.metrics.total);
    for (int i = 0; i < 3; i++)
        drawing_text(f->d, column[i], y + 7, head, heads[i]);
    y += 10;
    drawing_line(f->d, x, y, x + width, y, STROKE(INK, .line = 0.7));
    for (const struct named_measure *row = named_measures; row->name != NULL; row++) {
        const double a = measure_value(row, &m[0]), b = measure_value(row, &m[1]);
        char text[24];
        if (isnan(a) && isnan(b))
            continue;
        y += 10;
        drawing_text(f->d, x, y, LETTERS(SIZE_LABEL, INK, .room = width * 0.48), row->label);
        const double values[] = {a, b, a != 0 ? b / a : (double)NAN};
        for (int i = 0; i < 3; i++) {
            const bool better = row->better != 0 && i < 2 && (i == 0 ? a - b : b - a) * row->better > 0;
            drawing_text(f->d, column[i], y, LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_RIGHT, .bold = better),
                         value_label(values[i], text, sizeof text));
        }
    }
    drawing_line(f->d, x, y + 4, x + width, y + 4, STROKE(INK, .line = 0.7));
    return y + 6;
}

static void
draw_texts(struct figure *f, size_t same)
{
    const struct record *a = &f->input[0].record, *b = &f->input[1].record;
    if (same == TEXTS_APART)
        snprintf(f->note, sizeof f->note, "The prompts or models of the two differ.");
    else if (same == a->n_tokens || same == b->n_tokens)
        snprintf(f->note, sizeof f->note, "The texts are the same for %zu token%s, as far as both go.", same,
                 plural(same));
    else
        snprintf(f->note, sizeof f->note, "The texts part at token %zu: A says \"%s\", B \"%s\".", same + 1,
                 a->texts != NULL ? a->texts[a->tokens[same].token] : "?",
                 b->texts != NULL ? b->texts[b->tokens[same].token] : "?");
}

static bool
draw_versus(struct figure *f, struct err *err)
{
    struct course c[2] = {{0}};
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++)
        ok = course_open(&c[i], &f->input[i].record, err);
    if (ok) {
        const size_t same = texts_common(c[0].r, c[1].r);
        const double parted = texts_part(c[0].r, c[1].r, same) ? (double)same : (double)NAN;
        const bool beside = f->width >= 120 * MM;
        const double left = beside ? f->width * 0.56 : f->width;
        draw_courses(f, c, left, parted);
        double y = AXES_TITLE + HEIGHT + AXES_BOTTOM;
        if (beside)
            y = fmax(y, draw_measures(f, left + 14, AXES_TITLE - 8, f->width - left - 16));
        else
            y = draw_measures(f, 4, y + 4, f->width - 8);
        f->y = draw_spans(f, c, y + 8 + AXES_TITLE, parted);
        draw_texts(f, same);
    }
    course_close(&c[0]);
    course_close(&c[1]);
    return ok;
}

const struct figure_kind figure_versus = {
    .name = "versus",
    .what = "two traces side by side",
    .traces = true,
    .least = 2,
    .most = 2,
    .width = 178,
    .narrow = 60,
    .one_sequence = true,
    .draw = draw_versus,
};
