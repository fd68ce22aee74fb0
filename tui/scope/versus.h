/* Two settings on one prompt (engine/session/session.h, CONTROL_VERSUS): sequences 0 and 1, each with a policy and knobs of its
 * own. What scope.h says of policy, knobs and measures is then the one's in focus. */
#ifndef TUI_SCOPE_VERSUS_H
#define TUI_SCOPE_VERSUS_H

#include "engine/events/paired.h"
#include "tui/scope/batch.h"

struct scope_versus {
    struct round_sums sums[2]; /* since the last turn of either, so that both are about the same text */
    struct paired paired;      /* likewise */
    uint32_t since[2];         /* tokens that each had emitted then, */
    uint32_t emitted[2];       /* and now */
    uint32_t same;             /* positions whose tokens both have, and have alike */
    bool parted;               /* position `same` is another token in each */
    bool apart;                /* two saved runs: they ran at different times, so their speeds are not compared */
};

const struct scope_versus *scope_versus(const struct scope *);                /* NULL: the run is of one setting */
const struct run_info *scope_versus_info(const struct scope *, uint32_t seq); /* of two saved runs each has its own */
const struct policy_info *scope_versus_policy(const struct scope *, uint32_t seq);
double scope_versus_knob(const struct scope *, uint32_t seq, uint32_t index); /* of that policy */
struct estimates scope_versus_estimates(const struct scope *, uint32_t seq);  /* of the window (window.h) */
/* Speed of 1 over that of 0 since the last change of either, by segments of their text; unknown where they ran apart. */
struct comparison scope_versus_comparison(const struct scope *);
const struct scope_round *scope_versus_round(const struct scope *, uint32_t seq, uint32_t back); /* NULL: not held */
/* Which one was faster where: spans of the emitted tokens that both have, as far as rounds are held, of equal length, with at least
 * SPAN_ROUNDS rounds of either and room for SPAN_SEGMENTS segments (paired.h). A segment belongs to the span that its first
 * token is in. At most n; returns how many; none where they ran apart. */
#define SPAN_ROUNDS   8
#define SPAN_SEGMENTS 3
#define SCOPE_SPANS   64 /* at most */
struct scope_span {
    uint32_t from, to;    /* from the first emitted one, 1, both counted */
    struct comparison of; /* speed of 1 over that of 0 */
};
uint32_t scope_versus_spans(const struct scope *, struct scope_span *, uint32_t n);
/* Of the text where they part, up to n tokens from position `same` on: how many were written. */
uint32_t scope_versus_text(const struct scope *, uint32_t seq, token_t *, uint32_t n);

#endif
