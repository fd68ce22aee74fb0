/* The course of a saved run, tokens over the time of its rounds; and how far two texts are the same. */
#ifndef TUI_FIGURES_COURSE_H
#define TUI_FIGURES_COURSE_H

#include "tui/figures/record.h"

struct course {             /* of one sequence */
    const struct record *r; /* borrowed */
    double *seconds,
        *tokens; /* (n) of drafting and verifying, emitted: at the end of each round; before the first: 0 */
    size_t n;
};

bool course_open(struct course *, const struct record *, struct err *);
void course_close(struct course *); /* also after a failure, also zeroed */
/* When so many tokens stood, in seconds; within a round in proportion. */
double course_when(const struct course *, double tokens);

#define TEXTS_APART SIZE_MAX
/* How many tokens from the first on are the same; TEXTS_APART: they went on from different prompts, or models. */
size_t texts_common(const struct record *, const struct record *);
/* Both go on behind that, and differently. */
bool texts_part(const struct record *, const struct record *, size_t common);

#endif
