/* Grids of knobs: KNOB=from:to:step, and the product of several, whose points are numbered with the last knob the fastest. */
#ifndef ENGINE_EVENTS_KNOB_GRID_H
#define ENGINE_EVENTS_KNOB_GRID_H

#include "engine/events/policy.h"

#define KNOB_GRID_MOST 1000 /* points */
#define KNOB_GRID_AXES 32

struct knob_axis {
    const char *text; /* as given; borrowed */
    char name[16];
    double from, step;
    uint32_t n; /* values */
};

/* ERR_USAGE, one line that begins with `who` ("--grid"): not of that form, or more than KNOB_GRID_MOST values. */
bool knob_axis_parse(struct knob_axis *, const char *text, const char *who, struct err *);
/* All its values must be on the knob's own grid, else two points would be the same one. ERR_USAGE as above. */
bool knob_axis_check(const struct knob_axis *, const struct knob *, const char *policy, const char *who, struct err *);
double knob_axis_value(const struct knob_axis *, const struct knob *, uint32_t i); /* as the knob rounds it */

/* Points of the product; beyond KNOB_GRID_MOST it says KNOB_GRID_MOST + 1. None of no axes is one. */
uint32_t knob_grid_points(const struct knob_axis *const *, size_t n);
/* Which value each axis has at a point: at[n]. */
void knob_grid_at(const struct knob_axis *const *, size_t n, uint32_t point, uint32_t *at);

#endif
