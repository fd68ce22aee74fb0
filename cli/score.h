/* Scoring for the commands `score` and `tune --texts`. */
#pragma once

#include "cli/drafts.h"
#include "cli/options/options.h"
#include "engine/scoring/scoring.h"

/* Scores all drafters of the engine and the further draft models on the texts, by the options' policies, chat and
 * context, for time_s at most (0: no limit). Shows the progress on a terminal's stderr. The caller frees *out. */
bool score_texts(struct options *, struct engine *, const struct drafts *, const struct texts *, double time_s,
                 struct score_report **out, struct err *);
