/* What the files of the judge panel share: panel_judge.c (what stands where, keys), judge_rounds.c (drafts of rounds with
 * their values), judge_grid.c (the grid with marks), judge_choice.c (bars, one of them chosen). Nobody else includes it. */
#ifndef TUI_PANELS_JUDGE_H
#define TUI_PANELS_JUDGE_H

#include "tui/panels/panel.h"

#define JUDGE_LABEL  7  /* columns of labels at the left */
#define JUDGE_BLOCKS 64 /* lines of drafts on the screen at most */

struct judge { /* numbers of the current policy's series; -1: it declares none */
    int drafts[POLICY_SERIES], n_drafts;
    int grid, marks, choice;
};

struct judge_panel {
    struct judge judge;
    /* As drawn last: what the mouse refers to. */
    int width; /* of a draft */
    int n_blocks;
    struct judge_block { /* a round's drafts that stand beside each other */
        int y, rows;
        uint32_t back, from, n; /* the round, its drafts from .. from + n - 1 */
    } block[JUDGE_BLOCKS];
};

/* The number of drafts that were chosen for verification in a round; -1: none is known to be. */
int judge_chosen(const struct scope *, const struct judge *, uint32_t round);
/* ".97", "1.0", "–"; others in five columns at most. */
const char *judge_number(double value, char out[16]);

/* The rounds from `back` on, downwards, as many as there is room for. */
void judge_draw_rounds(struct judge_panel *, const struct view *, const struct canvas *, uint32_t back);
/* The grid with the round's drafts in it; columns downwards if transposed. It fills the canvas: cells are folded where it is
 * too small, and the title is left out where it would cost a line of them. */
void judge_draw_grid(const struct judge *, const struct scope *, const struct canvas *, uint32_t round,
                     bool transposed);
void judge_draw_choice(const struct judge *, const struct scope *, const struct canvas *, uint32_t round);

#endif
