/* The forward pass: rows through layers. */
#ifndef KERNELS_CPU_SWEEP_H
#define KERNELS_CPU_SWEEP_H

#include "kernels/cpu/store.h"

/* until()'s part of a sweep: when to stop, and what to say then. */
struct exit_watch {
    const struct exit_rule *rule;
    struct exit_result *out;
    struct guess *probed; /* (L + 1) or NULL */
};

/* All rows to depth sweep.to, or with a watch until the last row leaves. The store is marked cancelled when the cancel
 * flag stopped it. */
void sweep_run(struct store *, const struct sweep *, const struct exit_watch *);

#endif
