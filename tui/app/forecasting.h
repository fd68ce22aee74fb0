/* The landscape: forecasts for the last tokens at other values of the knobs, computed in small slices from the scope's
 * record (engine/scope/scope.h). The effects that the ledger compares its segments by are forecast from the same
 * record. */
#ifndef TUI_APP_FORECASTING_H
#define TUI_APP_FORECASTING_H

#include "engine/measure/forecast.h"
#include "engine/measure/layer_record.h"
#include "engine/measure/reason.h"
#include "tui/app/follow.h"
#include "tui/panels/landscape.h"

struct forecasting {
    struct layer_record record; /* the latest record, */
    bool seen;                  /* valid if `seen` */
    uint64_t version;           /* of the scope when the record was made */
    uint64_t looked_us;         /* time of the record */
    uint64_t record_us;         /* time that making the record took */
    uint64_t took_us;           /* time of the last landscape with its record, or of the present one so far */
    uint32_t at;                /* next step of the work */
    bool working;               /* `next` is being computed */
    bool surveying;             /* then the other policies' forecasts of `shown`, */
    uint32_t survey_at;         /* this one next */
    struct landscape next;      /* replaces `shown` when it is complete */
    struct landscape shown;
    bool off;  /* forecasts are not shown */
    bool grid; /* a grid of these knobs is requested */
    uint32_t knob[2];

    struct cost_model cost; /* the scope's costs, corrected by its rounds; unknown: forecasts are modelled */
    bool costs_asked;       /* a live session was asked to measure them */
    uint32_t corrected;     /* newest round that corrected them */
    uint32_t corrected_run; /* its run */
    float baseline;         /* that corrected autoregressive steps; 0: none */

    struct reason reason;           /* why the present setting does not gain, */
    struct reason_line reason_line; /* as text, with what to do next; empty: it gains, or this is unknown */

    struct effects *effects; /* owned */
    bool comparing;          /* an effect is being computed, from the record's text, */
    uint32_t segment;        /* for this segment */
    struct effect_text text; /* added to the effects when it is complete */
};

bool forecasting_open(struct forecasting *, const struct followed *,
                      struct err *); /* call forecasting_close() also after a failure */
void forecasting_close(struct forecasting *);
/* Works for at most a millisecond. Returns true if there is a new landscape. */
bool forecasting_step(struct forecasting *, const struct followed *, bool flat_out);
/* True if there is a forecast for the current knobs and policy. */
bool forecasting_there(const struct forecasting *, const struct followed *);
/* True if everything that can be forecast now is shown. */
bool forecasting_complete(const struct forecasting *, const struct followed *);
/* Opens the grid of two knobs of the current policy, given by index; closes it. */
void forecasting_grid(struct forecasting *, uint32_t across, uint32_t up);
void forecasting_grid_close(struct forecasting *);
void forecasting_enable(struct forecasting *, bool on); /* off: sliders show no forecasts */

#endif
