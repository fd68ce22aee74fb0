/* What kinds of figures are given, and what they share. */
#ifndef TUI_FIGURES_FIGURE_KIND_H
#define TUI_FIGURES_FIGURE_KIND_H

#include "tui/figures/axes.h"
#include "tui/figures/bench_table.h"
#include "tui/figures/figure.h"
#include "tui/figures/measures.h"
#include "tui/figures/record.h"

struct figure_input {
    const char *path;
    bool is_table; /* else a trace */
    struct record record;
    struct bench_table table;
};

struct figure {
    const struct figure_kind *kind;
    const struct figure_options *o;
    const struct figure_input *input; /* (n_inputs) */
    size_t n_inputs;
    struct drawing *d;
    double width;
    double y;                      /* below what is drawn so far; the caption goes there */
    uint32_t shown_from, shown_to; /* rounds, of the only input, where a kind shows some of them; 0: all */
    char note[400];                /* the caption's first sentence: what the kind has to say */
};

enum figure_range { RANGE_OF_ROUNDS, RANGE_OF_POSITIONS, RANGE_OF_NOTHING };

struct figure_kind {
    const char *name, *what;
    bool traces, tables; /* what it is made from */
    size_t least, most;  /* inputs */
    enum figure_range range;
    double width, narrow; /* mm: without --width, and the least that it takes */
    bool one_sequence;    /* one sequence, --seq or the focus; else all are counted together unless --seq is given */
    bool scope;
    bool (*draw)(struct figure *, struct err *);
};

/* What kinds declare alike that show one sequence of a trace over rounds. */
#define FIGURE_OVER_ROUNDS                                                                                             \
    .traces = true, .least = 1, .most = 1, .range = RANGE_OF_ROUNDS, .width = 120, .narrow = 45, .one_sequence = true

extern const struct figure_kind figure_layers, figure_series, figure_exits, figure_reliability, figure_mask,
    figure_grid, figure_pareto, figure_versus;

/* The caption below all: the note, then model, policy, knobs, machine of every input. Sets the drawing's height. */
void caption_draw(struct figure *);
/* "specbound: α 0.2, τ 0.55". Returns out. */
char *caption_settings(const struct record_setting *, char *out, size_t size);

#endif
