/* Panels below others. Private to layout*.c. */
#ifndef TUI_WIDGETS_LAYOUT_COLUMNS_H
#define TUI_WIDGETS_LAYOUT_COLUMNS_H

#include "tui/widgets/layout.h"

/* Shares `cols` among the chosen items by weight, none below its min_cols while that is possible; whole columns, no gap,
 * no overlap. */
void layout_side_by_side(struct layout *, const struct layout_item *, const int *chosen, int n, struct rect area);
/* The chosen items beside each other, and under them in their columns the active ones that stand in the middle, as far as
 * there is room for them. False, and nothing is placed, when none has any. */
bool layout_columns(struct layout *, const struct layout_item *, int n, const int *chosen, int n_chosen,
                    struct rect area);

#endif
