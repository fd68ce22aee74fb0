/* Runs a session to its end and feeds its events to a scope. */
#pragma once

#include "engine/scope/scope.h"
#include "engine/session/session.h"

struct observed_run {
    struct live *session;
    struct scope *scope;
};

/* Returns false and fills *err if the run does not open or fails. The caller closes it in either case. */
bool observe_run(struct observed_run *, struct engine *, const struct session_options *, struct err *);
void observed_run_close(struct observed_run *);
/* Returns the scope's record of a run that probes all layers; false: *err has the reason why there is none. */
bool observe_record(struct engine *, const struct session_options *, struct layer_record *, struct err *);
