/* The record that what-if makes forecasts from (engine/events/layer_record.h), live and in a replay. */
#ifndef TUI_SCOPE_SCOPE_RECORD_H
#define TUI_SCOPE_SCOPE_RECORD_H

#include "engine/events/layer_record.h"
#include "tui/scope/scope.h"

/* Fills *out (of as many layers) with the newest consecutive committed positions of the sequence in focus at which all layers were probed, by
 * the current head. Returns NULL, or the reason why there are none: the text was sampled, or layers were not probed. */
const char *scope_record(const struct scope *, struct layer_record *out);

/* Sets record->lost and lost_se (engine/events/wrong_path.h) from the wrong drafts of the record's sequence. */
void scope_estimate_lost(const struct scope *, struct layer_record *);

#endif
