/* The landscape: forecasts for the last tokens at other values of the knobs, computed in small slices from the scope's record
 * (tui/scope/scope_record.h). The effects that the ledger compares its segments by are forecast from the same record. */
#ifndef TUI_STATE_FORECASTING_H
#define TUI_STATE_FORECASTING_H

#include "engine/events/effects.h"
#include "engine/events/layer_record.h"
#include "tui/panels/landscape.h"
#include "tui/state/follow.h"

struct forecasting {
    struct layer_record record; /* the latest, */
    bool seen;                  /* if there is one */
    uint64_t version;           /* of the scope when the record was made */
    uint64_t looked_us;         /* when that was */
    uint64_t record_us;         /* what the record took, */
    uint64_t took_us;           /* and what the last landscape took with it, or this one so far */
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

bool forecasting_open(struct forecasting *, const struct followed *, struct err *); /* forecasting_close() anyway */
void forecasting_close(struct forecasting *);
/* Some of the work, for a millisecond at most. True: there is a new landscape. */
bool forecasting_step(struct forecasting *, const struct followed *, bool flat_out);
/* Something is foretold, and it is of the knobs and the policy in force. */
bool forecasting_there(const struct forecasting *, const struct followed *);
/* All that can be forecast at this moment is shown. */
bool forecasting_settled(const struct forecasting *, const struct followed *);
/* The grid of two knobs of the current policy, by their places; closed again. */
void forecasting_grid(struct forecasting *, uint32_t across, uint32_t up);
void forecasting_grid_close(struct forecasting *);
void forecasting_turn(struct forecasting *, bool on); /* off: sliders are plain */

#endif
