/* A run to its end that a scope follows: what the scope makes of its events. */
#ifndef TESTS_RIGS_OBSERVED_RUN_H
#define TESTS_RIGS_OBSERVED_RUN_H

#include "engine/scope/scope.h"
#include "engine/session/session.h"

struct observed_run {
    struct session *session;
    struct scope *scope;
};

/* False: it did not open, or it failed; *err. Close it anyway. */
bool observe_run(struct observed_run *, struct engine *, const struct session_options *, struct err *);
void observed_run_close(struct observed_run *);
/* The scope's record of a run that probes all layers. False: *err says why there is none. */
bool observe_record(struct engine *, const struct session_options *, struct layer_record *, struct err *);

#endif
