/* Drafts on a grid and the choice of their number: two parts of the judge panel (panel_judge.c) with drawings of their
 * own. */
#pragma once

#include "tui/panels/panel.h"

#define JUDGE_LABEL 7 /* columns of labels at the left */

struct judge { /* numbers of the policy's series; -1: it declares none */
    int drafts[POLICY_SERIES], n_drafts;
    int grid, marks, choice;
};

/* The number of drafts that were chosen for verification in a round; -1: unknown. */
int judge_chosen(const struct scope *, const struct judge *, uint32_t round);
/* ".97", "1.0", "–"; others in at most five columns. */
const char *judge_number(double value, char out[16]);

/* Draws the grid with the round's drafts in it, transposed if wanted, on the whole canvas. If it is too small, cells
 * are folded, and the title is omitted where it would cost a row of them. */
void judge_draw_grid(const struct judge *, const struct scope *, const struct canvas *, uint32_t round,
                     bool transposed);
/* Draws a bar for each number of drafts, and marks the chosen one. */
void judge_draw_choice(const struct judge *, const struct scope *, const struct canvas *, uint32_t round);
