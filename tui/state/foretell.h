/* The landscape: what the last tokens would have come to at other values of the knobs, computed in small slices from the record that
 * a live session keeps, or in a replay from what the trace tells of all layers up to the play head. From the same record come the
 * effects that the ledger compares its segments by. */
#ifndef TUI_STATE_FORETELL_H
#define TUI_STATE_FORETELL_H

#include "engine/events/effects.h"
#include "engine/events/layer_record.h"
#include "tui/panels/landscape.h"
#include "tui/state/follow.h"

struct foretelling {
    struct layer_record record; /* as taken last */
    uint64_t seen;              /* its number; 0: none */
    uint64_t version;           /* of the scope, of which the record was taken */
    uint32_t asked;             /* the sequence whose record is wanted */
    uint64_t looked_us;         /* when there was a look for a newer one */
    uint64_t took_us;           /* what the last landscape took, or this one so far */
    uint32_t at;                /* of the work, what comes next */
    bool working;               /* on `next`, */
    struct landscape next;      /* which becomes `shown` when it is done */
    struct landscape shown;
    bool off;  /* nothing is shown */
    bool grid; /* a grid is wanted, of these knobs */
    uint32_t knob[2];

    struct effects *effects;   /* owned */
    const struct scope *scope; /* whose segments they are of */
    bool comparing;            /* on the record's */
    uint32_t segment;          /* number `segment`, */
    struct effect_text text;   /* which is taken over when it is done */
};

bool foretell_open(struct foretelling *, const struct followed *, struct err *); /* foretell_close() anyway */
void foretell_close(struct foretelling *);
/* Some of the work, for a millisecond at most. True: there is a new landscape. */
bool foretell_step(struct foretelling *, const struct followed *, bool flat_out);
/* Something is foretold, and it is of the knobs and the policy in force. */
bool foretell_there(const struct foretelling *, const struct followed *);
/* In a replay: all that can be told at the play head is shown. */
bool foretell_settled(const struct foretelling *, const struct followed *);
/* The grid of two knobs of the current policy, by their places; closed again. */
void foretell_grid(struct foretelling *, uint32_t across, uint32_t up);
void foretell_grid_close(struct foretelling *);
void foretell_turn(struct foretelling *, bool on); /* off: sliders are plain */

#endif
