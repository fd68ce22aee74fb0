/* What the files of the series panel share: panel_series.c (which charts, where, keys), series_draw.c (one form each).
 * Nobody else includes it. */
#ifndef TUI_PANELS_SERIES_H
#define TUI_PANELS_SERIES_H

#include "tui/panels/panel.h"

#define SERIES_WINDOW 1024 /* rounds on a chart at most */

/* Rounds on the x axis: value i is round `first` + i's, and takes `scale` dots. */
struct series_axis {
    uint32_t first, rounds; /* rounds: values that there are */
    int capacity, scale;    /* values that fit; dots for each */
};

struct chart { /* a line chart's values, one a round; NAN: none */
    char title[48];
    enum role role;
    float value[SERIES_WINDOW], value2[SERIES_WINDOW]; /* value2: of a band */
    bool band, whole;                                  /* whole: values are whole numbers */
};

/* What every policy charts first, from the rounds alone: speed, which is all sequences', and what the one in focus did. */
enum derived { DERIVED_TOKENS_PER_S, DERIVED_TOKENS_PER_ROUND, DERIVED_ACCEPTANCE, DERIVED_DRAFTED, DERIVED_CHARTS };
void series_derived(struct chart *, const struct scope *, enum derived, const struct series_axis *);
/* From what the policy reported; a value holds until the next. */
void series_reported(struct chart *, const struct scope_series *, const struct series_axis *);

/* All draw into the whole canvas. read: the value that the title line gives, -1: the last. */
void series_draw_chart(const struct canvas *, const struct chart *, const struct series_axis *, int read);
/* values: as scope_round_values() gives them; NULL: none. */
void series_draw_bars(const struct canvas *, const struct scope_series *, const float *values, enum role);
void series_draw_strip(const struct canvas *, const struct scope_series *, const float *values); /* STRIP and GRID */
void series_draw_phase(const struct canvas *, const struct scope_series *, const float *values, enum role);

#endif
