#include "engine/events/sampling_knobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct knob sampling_knobs[SAMPLING_KNOBS] = {
    [SAMPLING_TEMPERATURE] =
        {.name = "temperature", .symbol = "T", .help = "of sampling; 0 is greedy", .kind = KNOB_REAL, .max = 100},
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
                        .min = 1e-6,
                        .max = 1,
                        .def = 1},
    [SAMPLING_SEED] = {.name = "seed",
                       .symbol = "",
                       .help = "of the random numbers",
                       .kind = KNOB_INTEGER,
                       .max = 1e9,
                       .step = 1,
                       .def = 1},
};

const struct sampling_span sampling_spans[SAMPLING_KNOBS] = {
    [SAMPLING_TEMPERATURE] = {0, 2, 0.01},
    [SAMPLING_TOP_K] = {0, 100, 1},
    [SAMPLING_TOP_P] = {0.01, 1, 0.01},
    [SAMPLING_SEED] = {0, 100, 1},
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

static double
shortest(float value)
{
    char text[32];
    double d = (double)value;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        d = strtod(text, NULL);
        if ((float)d == value)
            break;
    }
    return d;
}

double
sampling_knob_get(const struct sampling *s, uint64_t seed, int knob)
{
    switch (knob) {
    case SAMPLING_TEMPERATURE: return shortest(s->temperature);
    case SAMPLING_TOP_K: return s->top_k;
    case SAMPLING_TOP_P: return shortest(s->top_p);
    default: return (double)seed;
    }
}

void
sampling_knob_text(const struct sampling *s, uint64_t seed, int knob, char *out, size_t n)
{
    if (knob == SAMPLING_SEED)
        snprintf(out, n, "%" PRIu64, seed);
    else
        snprintf(out, n, "%.9g", sampling_knob_get(s, seed, knob));
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
