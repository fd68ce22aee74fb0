/* What two saved runs beside each other declare, brought together: one list of policies, and for each its own settings. */
#ifndef TRACES_PAIR_INFO_H
#define TRACES_PAIR_INFO_H

#include "engine/events/versus_text.h"
#include "traces/saved_run.h"

struct pair_info {
    struct run_info run[2];        /* run[0].beside is run[1]; what they point to is the saved runs' or these: */
    struct policy_info *policies;  /* the first one's, and those that only the second one declares; owned */
    double *values[2];             /* (n_policies * POLICY_KNOBS) as their runs begin; owned */
    char versus[VERSUS_TEXT_MOST]; /* the second one's setting */
};

/* Stays where it is, and the runs open. ERR_USAGE with a line: other prompts or models, or a policy that both ran under is declared
 * differently. pair_info_close() also after a failure. */
bool pair_info_open(struct pair_info *, const struct saved_run *first, const struct saved_run *second, struct err *);
void pair_info_close(struct pair_info *);

#endif
