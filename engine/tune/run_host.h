/* The owner of the session that a sweep (knob_sweep.h) or a tuner (tuner.h) runs on. */
#ifndef ENGINE_TUNE_RUN_HOST_H
#define ENGINE_TUNE_RUN_HOST_H

#include "base/err.h"
#include "engine/events/control.h"
#include "engine/measure/layer_record.h"

/* Functions of its owner that a sweep or a tuner calls to change settings and start runs. They return false with a
 * message on failure. */
struct run_host {
    void *user;
    /* Posts a control with this name and text; NULL: none. A sweep posts knobs, policies and runs (CONTROL_PROMPT,
     * CONTROL_RESTART), a tuner also CONTROL_PROBE and CONTROL_COSTS. */
    bool (*post)(void *user, enum control_kind, const char *name, const char *text, struct err *);
    /* of a tuner only: the layer record of the run that has just ended, false if there is none; not called for a
     * launched server */
    bool (*record)(void *user, struct layer_record *);
    /* of a tuner with further draft models only: the next requests are for a session with this one, counted from 1; 0:
     * with the run's own */
    bool (*draft)(void *user, uint32_t draft, struct err *);
};

#endif
