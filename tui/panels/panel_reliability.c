/* The reliability diagram: the share of accepted drafts by confidence, with the threshold; and how often each layer was
 * confident and wrong. */
#include <math.h>
#include <stdio.h>

#include "base/plural.h"
#include "tui/panels/panel.h"

#define LEFT    4 /* columns of the labels of a scale */
#define NUMBERS 7 /* rows of numbers below a large diagram */

/* Draws the interval of 95%, outside of the bar, or over it. */
static void
draw_interval(const struct canvas *c, int x, const struct calibration *k, int bin, bool over)
{
    double low, high;
    share_interval(k->right[bin], k->n[bin], &low, &high);
    for (int y = 0; y < c->rows; y++) {
        const double middle = (c->rows - 0.5 - y) / c->rows;
        if (middle > low && middle < high && over)
            canvas_text(c, y, x, ROLE_TITLE, "│");
        else if (middle > low && middle < high)
            canvas_under(c, y, x, ROLE_DIM, "│");
    }
}

/* Draws the line on which bars end if acceptance equals confidence. */
static void
draw_ideal(const struct canvas *c, bool over)
{
    for (int x = 0; x < c->cols; x++) {
        const int y = c->rows - 1 - (int)((x + 0.5) / c->cols * c->rows);
        if (over)
            canvas_text(c, y, x, ROLE_DIM, "·");
        else
            canvas_under(c, y, x, ROLE_DIM, "·");
    }
}

static void
draw_threshold(const struct canvas *c, const struct canvas *axis, const struct aggregates *a)
{
    const float ends[2] = {a->low, a->high};
    for (int i = 0; i < 2; i++) {
        if (!(ends[i] >= 0 && ends[i] <= 1) || (i == 1 && ends[1] == ends[0]))
            continue;
        const int x = (int)lrint((double)ends[i] * (c->cols - 1));
        char text[16];
        for (int y = 0; y < c->rows; y++)
            canvas_text(c, y, x, ROLE_LINE, "┊");
        const int n = snprintf(text, sizeof text, "τ %.2g", (double)ends[i]) - 1;
        const bool second = i == 1 && (double)(ends[1] - ends[0]) * (c->cols - 1) < n + 1;
        if (!second)
            canvas_text(axis, 0, x + n > axis->cols ? axis->cols - n : x, ROLE_LINE, text);
    }
}

/* Draws the numbers of each bin below its bar. */
static void
draw_numbers(const struct canvas *c, int y, const struct calibration *k, int wide)
{
    double sure[CALIBRATION_BINS], share[CALIBRATION_BINS], low[CALIBRATION_BINS], high[CALIBRATION_BINS],
        accepted[CALIBRATION_BINS], n[CALIBRATION_BINS], from[CALIBRATION_BINS];
    for (int i = 0; i < CALIBRATION_BINS; i++) {
        const bool any = k->n[i] > 0;
        from[i] = (double)i / CALIBRATION_BINS;
        n[i] = any ? (double)k->n[i] : (double)NAN;
        accepted[i] = any ? (double)k->right[i] : (double)NAN;
        share[i] = accepted[i] / n[i];
        sure[i] = k->confidence[i] / n[i];
        share_interval(k->right[i], k->n[i], &low[i], &high[i]);
        low[i] = any ? low[i] : (double)NAN;
        high[i] = any ? high[i] : (double)NAN;
    }
    const struct {
        const char *name, *format;
        const double *value;
    } line[NUMBERS] = {{"from", "%.1f", from},      {"drafts", "%.0f", n},     {"accepted", "%.0f", accepted},
                       {"share", "%.2f", share},    {"95% from", "%.2f", low}, {"95% to", "%.2f", high},
                       {"mean conf.", "%.2f", sure}};
    for (int i = 0; i < NUMBERS; i++)
        aggregated_numbers(c, y + i, line[i].name, CALIBRATION_BINS, wide, line[i].value, line[i].format);
}

static void
draw_diagram(const struct canvas *c, const struct aggregates *a, bool all)
{
    const struct calibration *k = &a->drafts.calibration;
    const int left = all ? AGGREGATED_LEFT : LEFT, below = all ? NUMBERS + 1 : 1;
    const int width = (c->cols - left) / CALIBRATION_BINS;
    const struct canvas plot = canvas_inside(c, 0, left, c->rows - below, width * CALIBRATION_BINS),
                        axis = canvas_inside(c, c->rows - below, left, 1, width * CALIBRATION_BINS);
    if (width < 1 || plot.rows < 1)
        return;
    for (int i = 0; i < CALIBRATION_BINS; i++)
        if (k->n[i] > 0)
            aggregated_bar(&plot, i * width, width > 1 ? width - 1 : 1, (double)k->right[i] / (double)k->n[i],
                           ROLE_SERIES_1);
    if (all)
        draw_ideal(&plot, true);
    for (int i = 0; i < CALIBRATION_BINS; i++)
        if (k->n[i] > 0)
            draw_interval(&plot, i * width + (width > 1 ? width - 1 : 1) / 2, k, i, all);
    if (all) {
        aggregated_ticks(c, 0, plot.rows, 0, 1);
        canvas_text(c, c->rows - below, 0, ROLE_TITLE, "confidence");
        draw_numbers(c, c->rows - NUMBERS, k, width);
    } else {
        draw_ideal(&plot, false);
        canvas_text(c, 0, 0, ROLE_DIM, "1.0");
        canvas_text(&axis, 0, 0, ROLE_DIM, "0");
        canvas_text(&axis, 0, axis.cols - 1, ROLE_DIM, "1");
    }
    draw_threshold(&plot, &axis, a);
}

/* Draws a row for a head: the share of spurious confidence of each layer as a height, and the largest share. */
static void
draw_spurious(const struct canvas *c, int y, const struct aggregates *a, int head, const char *name)
{
    const uint32_t layers = a->drafts.layers;
    const bool wide = c->cols >= 48;
    const int room = c->cols - 11 - (wide ? 16 : 8);
    double worst = -1, most = 0;
    uint32_t at = 0;
    for (uint32_t l = 1; l < layers; l++) {
        const double asked = (double)a->asked[l], rate = asked > 0 ? (double)a->spurious[head][l] / asked : 0;
        const double other = asked > 0 ? (double)a->spurious[!head][l] / asked : 0;
        at = asked > 0 && rate > worst ? l : at;
        worst = asked > 0 && rate > worst ? rate : worst;
        most = fmax(most, fmax(rate, other));
    }
    canvas_print(c, y, 0, ROLE_SPURIOUS, "%s", "▓");
    canvas_print(c, y, 2, ROLE_DIM, "%s", name);
    if (worst < 0)
        return;
    const int n = room < (int)layers - 1 ? room : (int)layers - 1;
    for (int i = 0; i < n; i++) { /* the largest of the layers that share a cell */
        double rate = 0;
        for (uint32_t l = 1 + (layers - 1) * (uint32_t)i / (uint32_t)n;
             l < 1 + (layers - 1) * (uint32_t)(i + 1) / (uint32_t)n; l++)
            rate = a->asked[l] > 0 ? fmax(rate, (double)a->spurious[head][l] / (double)a->asked[l]) : rate;
        canvas_text(c, y, 10 + i, rate > 0 ? ROLE_WARN : ROLE_DIM, rate > 0 ? canvas_level(rate / most - 0.01) : "·");
    }
    if (!(worst > 0))
        canvas_text(c, y, 11 + n, ROLE_DIM, "none");
    else
        canvas_print(c, y, 11 + n, ROLE_TEXT, wide ? "most %.0f%% at L%u" : "%.0f%% L%u", worst * 100, (unsigned)at);
}

static void
draw_reliability(void *state, const struct view *v, const struct canvas *c)
{
    const char *why;
    const struct aggregates *a = aggregated_now(state, v, &why);
    uint64_t asked = 0;
    if (a == NULL) {
        canvas_paragraph(c, ROLE_DIM, why);
        return;
    }
    for (uint32_t l = 1; l < a->drafts.layers; l++)
        asked += a->asked[l];
    const bool trained = scope_head(v->scope)[0] != '\0';
    const int below = asked == 0 || c->rows < 6 ? 0 : trained ? 2 : 1;
    if (a->drafts.calibration.all == 0) {
        canvas_paragraph(c, ROLE_DIM, "no draft with a confidence was verified");
    } else {
        const struct canvas diagram = canvas_inside(c, 1, 0, c->rows - 1 - below, c->cols);
        const bool all = c->rows >= AGGREGATED_ROWS && c->cols >= AGGREGATED_COLS;
        const int x =
            canvas_print(c, 0, 0, ROLE_TEXT, "ECE %.3f of %llu %s%s", calibration_error(&a->drafts.calibration),
                         (unsigned long long)a->drafts.calibration.all, a->forecasts > 0 ? "forecast" : "draft",
                         plural(a->drafts.calibration.all));
        const struct canvas rest = canvas_inside(c, 0, x, 1, c->cols - x);
        const int forecast = a->forecasts > 0 ? canvas_fit(&rest, 0, 0, ROLE_DIM, " · confidence head") : 0;
        if (all)
            canvas_text(&rest, 0, forecast, ROLE_DIM, " · │ 95% (Wilson) · ···· as often as sure");
        draw_diagram(&diagram, a, all);
    }
    if (below > 0)
        draw_spurious(c, c->rows - below, a, 0, "lens");
    if (below > 1)
        draw_spurious(c, c->rows - 1, a, 1, "trained");
}

/* Inactive for a policy without drafts, and if no draft of the run has a confidence. */
static bool
active_reliability(const struct view *v)
{
    const struct draft_counts *run = &scope_run_aggregates(v->scope)->drafts;
    return scope_draft_origin(v->scope) != DRAFTS_NONE && (run->steps == 0 || run->calibration.all > 0);
}

static const struct key_help keys[] = {
    {"v", "which rounds: of the segment in which the cursor is, the last 32 up to it, the run"},
    {"█ ·", "how often drafts of that confidence were accepted, with 95% (│); dots: as often as they were sure"},
    {"confidence", "the confidence head's forecast if a block drafter has one, else the draft's probability"},
    {"τ ┊", "the threshold in force: the lowest and the highest"},
    {"ECE", "expected calibration error: how far the bars are from the dots, weighted by drafts"},
    {"▓",
     "by layer: how often it was sure of a wrong token, by the lens and by its trained head where both were asked"},
    {NULL, NULL},
};

const struct panel_ops panel_reliability = {
    .name = "reliability",
    .title = "reliability",
    PANEL_OF_AGGREGATES,
    .active = active_reliability,
    .keys = keys,
    .draw = draw_reliability,
};
