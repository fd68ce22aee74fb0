/* The interface of a kind of figure, and the caption that all share. */
#pragma once

#include "base/err.h"
#include "engine/tune/score_report.h"
#include "tui/figures/bench_table.h"
#include "tui/figures/drawing.h"
#include "tui/figures/figure.h"
#include "tui/figures/record.h"

struct figure_input {
    const char *path;
    bool is_table;              /* else a trace, or */
    struct score_report *score; /* a report of scores; owned */
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
    double y;                      /* below the shapes so far; the caption's position */
    uint32_t shown_from, shown_to; /* rounds of the only input that are shown; 0: all */
    char note[400];                /* the caption's first sentence, by the kind */
};

enum figure_range { RANGE_OF_ROUNDS, RANGE_OF_POSITIONS, RANGE_OF_NOTHING };

struct figure_kind {
    const char *name, *what;
    bool traces, tables, scores; /* the possible inputs */
    size_t least, most;          /* inputs */
    enum figure_range range;
    double width, narrow; /* mm: default and least width */
    bool one_sequence;    /* it shows one sequence, --seq or the first; else --seq, or all together */
    bool scope;
    bool (*draw)(struct figure *, struct err *);
};

/* The common declarations of kinds that are made from one trace, and of those of them that show one sequence over
 * rounds. */
#define FIGURE_OF_TRACE .traces = true, .least = 1, .most = 1, .width = 178, .narrow = 55
#define FIGURE_OVER_ROUNDS                                                                                             \
    .traces = true, .least = 1, .most = 1, .range = RANGE_OF_ROUNDS, .width = 120, .narrow = 45, .one_sequence = true

#define DECLARE(kind) extern const struct figure_kind figure_##kind;
FIGURE_KINDS(DECLARE)
#undef DECLARE

/* Prints "specbound: α 0.2, τ 0.55". Returns out. */
char *caption_settings(const struct record_setting *, char *out, size_t size);

/* A drawing as a file, by cairo. Without cairo render_file() fails with a message. */

enum render_format { RENDER_SVG, RENDER_PDF, RENDER_PNG };

/* Returns the format by the end of the file's name; ERR_USAGE: not .svg, .pdf or .png. */
bool render_format_of(const char *file, enum render_format *, struct err *);
/* Writes the file; a complete new file replaces an old one. PNG has 300 dots per inch. note: one line about characters
 * that no font of this machine has; "": none. */
bool render_file(const struct drawing *, enum render_format, const char *file, char note[FIGURE_NOTE], struct err *);
