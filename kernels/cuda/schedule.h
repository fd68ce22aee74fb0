/* The schedule of forward passes: what a pass does is decided on the host. The device copies an entry for each step. */
#pragma once

#include "kernels/cuda/weights.h"

/* Makes the table of the model's products, by layer and step: w->products, to be copied to the device. Requires
 * w->sizes, w->layers and w->moe. Returns false without memory. */
bool schedule_model(struct weights *, struct err *);

/* Returns the largest number of entries of a pass through so many layers. */
uint32_t schedule_room(uint32_t layers);

/* Lists the steps of a pass with at least one layer to run, with an exit rule or NULL: list[0] is the beginning, and
 * list[1] the first step. Returns the number of steps. */
uint32_t schedule_pass(const struct weights *, const struct forward_pass *, const struct exit_rule *,
                       struct pass_step *list);

/* Lists the steps that give rows which a block drafter is fed their keys and values in layers 1..to. */
uint32_t schedule_feed(const struct weights *, uint32_t to, struct pass_step *list);
