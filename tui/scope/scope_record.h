/* The record that what-if makes forecasts from (engine/events/layer_record.h), live and in a replay. */
#ifndef TUI_SCOPE_SCOPE_RECORD_H
#define TUI_SCOPE_SCOPE_RECORD_H

#include "engine/events/layer_record.h"
#include "tui/scope/scope.h"

/* Of the sequence in focus, by the head in use: the newest neighbouring positions that stay and of which all layers were asked,
 * into *out (of as many layers). NULL, or a few words on why there are none: the run was sampled, or nobody asked. */
const char *scope_record(const struct scope *, struct layer_record *out);

/* Sets record->lost and lost_se (engine/events/wrong_path.h) from the wrong drafts of the record's sequence. */
void scope_estimate_lost(const struct scope *, struct layer_record *);

#endif
