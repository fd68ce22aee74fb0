/* Figures for papers, made from saved events: `specscope plot` and `:plot`. A kind is a file figure_KIND.c and a line in
 * figures.c. */
#ifndef TUI_FIGURES_FIGURE_H
#define TUI_FIGURES_FIGURE_H

#include "engine/base/err.h"
#include "tui/figures/drawing.h"

#include <stdint.h>

struct figure_options {
    double width;        /* in points; 0: the kind's own */
    int64_t from, to;    /* positions or rounds, as the kind has it, both counted; -1: not given */
    uint32_t run;        /* 0: the last one with a round */
    uint32_t focus;      /* the sequence that kinds show which show one, where seq is not given */
    int64_t seq;         /* -1: not given */
    const char *measure; /* what a grid shows; NULL: the speedup */
    const char *axes;    /* "acceptance_rate,speedup" of a pareto; NULL: its own */
    const char *caption; /* in the caption's place; NULL: what the figure was made from */
};
#define FIGURE_OPTIONS ((struct figure_options){.from = -1, .to = -1, .seq = -1})

/* "85mm", "3.3in", "240pt", in points. ERR_USAGE: none of these, or not between 10 mm and 2 m. */
bool figure_length(const char *text, double *points, struct err *);

/* The kinds there are. */
extern const char *const figure_kind_names[];   /* NULL-terminated */
const char *figure_kind_what(const char *kind); /* one line; NULL: there is no such kind */

/* Reads the inputs (folders of traces, CSV files of benchmarks) and draws. ERR_USAGE: a kind that there isn't (the message
 * lists them), inputs that it can't be made from (what to run instead). *d is the caller's to close, also after a failure. */
bool figure_draw(struct drawing *d, const char *kind, const char *const *inputs, size_t n,
                 const struct figure_options *, struct err *);

#define FIGURE_NOTE 200
/* figure_draw(), and the file: its name's end says which format, .svg, .pdf or .png. note: what the reader should know of the file
 * that was made, in a line (render_file()); "": nothing. */
bool figure_make(const char *file, const char *kind, const char *const *inputs, size_t n, const struct figure_options *,
                 char note[FIGURE_NOTE], struct err *);

#endif
