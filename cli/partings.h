/* Where two greedy texts part, and whether rounding explains it (engine/session/divergence.h). */
#pragma once

#include <cjson/cJSON.h>

#include "cli/options/options.h"
#include "engine/session/divergence.h"

struct parting_engines { /* of one model */
    struct engine *exact, *rounded;
};

/* Opens the options' model, without auxiliary models, in exact arithmetic, and with quantised weights and activations. */
bool parting_engines_open(struct parting_engines *, const struct options *, struct err *);
void parting_engines_close(struct parting_engines *);
/* Writes '"a" here, "b" there; 0.012 logits apart, …: rounding' with these names for "here" and "there". Returns out. */
const char *parting_text(const struct divergence *, const struct parting_engines *, const char *const names[2],
                         char *out, size_t n);
/* Adds tokens, margin, σ, bound and verdict. */
void parting_json(cJSON *to, const struct divergence *);
