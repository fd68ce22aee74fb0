/* Fixture of the tests of segments: a simulated run of two policies with knobs of their own, and the ROUND lines of its
 * rounds with their settings. */
#pragma once

#include "engine/measure/segments.h"
#include "tests/rigs/test.h"

#define LINES 4096

struct line { /* a ROUND line as it was emitted, and the settings of its round */
    struct round_event end;
    uint32_t run, round, policy;
    double knob[2];
    bool trained;
};

struct fixture {
    struct run_info info;
    struct segments *segments;
    uint32_t run, round, policy;
    double knob[2][2]; /* of the policies */
    bool trained;
    struct line line[LINES];
    size_t n_lines;
    uint64_t random;
};

int segments_set_up(void **state);
int segments_tear_down(void **state);
#define SEGMENTS_TEST(name) TEST_WITH(name, segments_set_up, segments_tear_down)

uint32_t made_below(struct fixture *, uint32_t n); /* returns a random number below n */
void made_control(struct fixture *, const char *name, const char *before, const char *after);
void made_begin(struct fixture *, const char *cause); /* begins a run */
void made_change(struct fixture *, int knob, double value);
void made_choose(struct fixture *, uint32_t policy);
void made_look_by(struct fixture *, bool trained);
/* Adds a round of several sequences: a line for each, with its share of the times. */
void made_play(struct fixture *, uint32_t sequences);
