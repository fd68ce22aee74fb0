/* Figures for papers, made from saved events. A kind is a file figure_KIND.c and a word in FIGURE_KINDS. */
#pragma once

#include "base/err.h"
#include "tui/figures/drawing.h"

#include <stdint.h>

struct figure_options {
    double width;        /* in points; 0: the kind's default */
    int64_t from, to;    /* positions or rounds, by the kind, inclusive; -1: not given */
    uint32_t run;        /* 0: the last run with a round */
    int64_t seq;         /* -1: not given */
    const char *measure; /* measure of a grid; NULL: the speedup */
    const char *axes;    /* "acceptance_rate,speedup" of a pareto; NULL: its default */
    const char *caption; /* replaces the caption's description of the inputs; NULL: none */
};

/* Converts "85mm", "3.3in" or "240pt" to points. ERR_USAGE: another form, or not between 10 mm and 2 m. */
bool figure_length(const char *text, double *points, struct err *);

/* The kinds; K(name) for figure_NAME. */
#define FIGURE_KINDS(K)                                                                                                \
    K(layers) K(series) K(exits) K(positions) K(reliability) K(mask) K(grid) K(pareto) K(versus) K(score)
const char *figure_kind_what(const char *kind); /* a description in one line; NULL: there is no such kind */

/* Reads the inputs (folders of traces, CSV files of benchmarks, a JSON file of scores) and draws. ERR_USAGE: an unknown
 * kind (the message lists all), or unsuitable inputs (it names the right ones). The caller closes *d, also after a
 * failure. */
bool figure_draw(struct drawing *d, const char *kind, const char *const *inputs, size_t n,
                 const struct figure_options *, struct err *);

#define FIGURE_NOTE 200
/* Draws the figure into a file, whose name ends in .svg, .pdf or .png. note: of render_file(); "": none. */
bool figure_make(const char *file, const char *kind, const char *const *inputs, size_t n, const struct figure_options *,
                 char note[FIGURE_NOTE], struct err *);
