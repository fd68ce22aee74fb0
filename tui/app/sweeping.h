/* A sweep or a race on a live source: posts the requests of engine/tune/knob_sweep.h and tuner.h, at full speed, and
 * restores the settings, speed and pause at the end. */
#ifndef TUI_APP_SWEEPING_H
#define TUI_APP_SWEEPING_H

#include "engine/events/live.h"
#include "engine/scope/scope.h"
#include "engine/tune/knob_sweep.h"
#include "engine/tune/tuner.h"

struct sweeping {
    struct live *live;        /* borrowed; NULL: a replay, which has no sweeps */
    struct knob_sweep *sweep; /* owned; NULL in a replay */
    struct tuner *tuner;      /* owned; NULL in a replay */
    double pace;              /* before the sweep or the race */
    bool paused;
    char *turns; /* the messages before the prompt from before (struct control); NULL: none; owned */

    /* of a race */
    const struct scope *scope; /* of the source; borrowed */
    struct settings before;
    char *prompt; /* owned */
    struct kept_run {
        struct event_log *log;     /* owned; NULL: none */
        struct event_reader *held; /* stays at its beginning, so that the log keeps all events */
    } last[RACE_CANDIDATES], now;  /* the last run of each candidate, and the current run */
    bool raced;                    /* the last one was a race, and no sweep */
    struct scope *shown;           /* a candidate's last run; owned; NULL: the panels show the source's */
};

bool sweeping_open(struct sweeping *, struct live *, const struct scope *, const struct run_info *, struct err *);
void sweeping_close(struct sweeping *);

/* The same as sweep_begin(), with the present pause and pace (0: full speed). */
bool sweeping_begin(struct sweeping *, const char *grid, char *const *prompts, size_t n_prompts, const char *prompt,
                    bool paused, double pace, struct err *);
/* The same for tuner_begin(). The prompt (or NULL) runs again at the end. */
bool sweeping_race(struct sweeping *, const struct tune_request *, const char *prompt, bool paused, double pace,
                   struct err *);
bool sweeping_races(const struct sweeping *); /* a race is running */
/* Shows the last run of a candidate; the source's for NULL, and if the candidate has none. */
bool sweeping_show(struct sweeping *, const uint32_t *candidate, struct err *);
void sweeping_event(struct sweeping *, const struct event *);
/* Posts the next requests. *over: the sweep has ended. Fails if it stopped because of an error; *over is set, too. */
bool sweeping_continue(struct sweeping *, bool *over, struct err *);
bool sweeping_stop(struct sweeping *, struct err *);
bool sweeping_now(const struct sweeping *);      /* a sweep or a race is running */
uint32_t sweeping_done(const struct sweeping *); /* points of a sweep, or heats of a race */
/* True if the control would disturb the measurements; the sweep is then stopped first. */
bool sweeping_disturbed_by(enum control_kind);

/* The result in a line: "the sweep has its 30 points; fastest at tau=0.5 d_max=4: 410 ±6 tokens/s, clearly". */
void sweeping_summary(const struct sweeping *, char *out, size_t n);

#endif
