#include "engine/events/sampling_knobs.h"

#include <string.h>

const struct knob sampling_knobs[SAMPLING_KNOBS] = {
    [SAMPLING_TEMPERATURE] = {.name = "temperature",
                              .symbol = "T",
                              .help = "of sampling; 0 is greedy",
                              .kind = KNOB_REAL,
                              .max = 100,
                              .step = 0.01},
    [SAMPLING_TOP_K] = {.name = "top_k",
                        .symbol = "top-k",
                        .help = "draws are among so many likeliest tokens; 0: all",
                        .kind = KNOB_INTEGER,
                        .max = 1 << 24,
                        .step = 1},
    [SAMPLING_TOP_P] = {.name = "top_p",
                        .symbol = "top-p",
                        .help = "draws are from the nucleus of this mass",
                        .kind = KNOB_REAL,
                        .min = 0.01,
                        .max = 1,
                        .step = 0.01,
                        .def = 1},
    [SAMPLING_SEED] = {.name = "seed",
                       .symbol = "",
                       .help = "of the random numbers",
                       .kind = KNOB_INTEGER,
                       .max = 1e9,
                       .step = 1,
                       .def = 1},
};

int
sampling_knob_index(const char *name)
{
    for (int i = 0; i < SAMPLING_KNOBS; i++)
        if (name[0] != '\0' &&
            (strcmp(sampling_knobs[i].name, name) == 0 || strcmp(sampling_knobs[i].symbol, name) == 0))
            return i;
    return -1;
}

double
sampling_knob_get(const struct sampling *s, uint64_t seed, int knob)
{
    switch (knob) {
    case SAMPLING_TEMPERATURE: return (double)s->temperature;
    case SAMPLING_TOP_K: return s->top_k;
    case SAMPLING_TOP_P: return (double)s->top_p;
    default: return (double)seed;
    }
}

void
sampling_knob_set(struct sampling *s, uint64_t *seed, int knob, double value)
{
    switch (knob) {
    case SAMPLING_TEMPERATURE: s->temperature = (float)value; break;
    case SAMPLING_TOP_K: s->top_k = (uint32_t)value; break;
    case SAMPLING_TOP_P: s->top_p = (float)value; break;
    default: *seed = (uint64_t)value; break;
    }
}
