/* The values of a series in the last rounds, round by round: a ring that grows with what is in it. Lies below the sequence.
 * Only tui/scope includes it. */
#ifndef TUI_SCOPE_ROUND_VALUES_H
#define TUI_SCOPE_ROUND_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct round_values {
    uint32_t max_rounds, cells; /* 0: nothing was reported, and nothing is held */
    uint32_t n_rounds;          /* allocated */
    uint32_t *of;               /* (n_rounds) 1 + the number of the round whose values stand there, 0: none */
    float *value;               /* (n_rounds * cells) round r at r % max_rounds; NAN: not reported */
};

/* Of an empty one max_rounds and cells become those; index < cells. A round's first value makes a row for it, a copy of before[cells],
 * or without values if that is NULL. What there is no memory for is not kept, nor what is of an older round than the one in
 * its place. */
void round_values_keep(struct round_values *, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                       uint32_t index, float value);
const float *round_values(const struct round_values *, uint32_t round);       /* (cells); NULL: not held */
const float *round_values_up_to(const struct round_values *, uint32_t round); /* … or of the newest before it */
size_t round_values_bytes(const struct round_values *);
void round_values_close(struct round_values *); /* empty again */

#endif
