#include "tui/scope/round_values.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64 /* rounds at first */

static bool
room_for(struct round_values *v, uint32_t place)
{
    uint32_t n = v->n_rounds > FIRST_ROOM ? v->n_rounds : FIRST_ROOM;
    while (n <= place)
        n *= 2;
    if (n <= v->n_rounds)
        return true;
    uint32_t *of = realloc(v->of, n * sizeof *of);
    v->of = of != NULL ? of : v->of;
    float *value = of != NULL ? realloc(v->value, (size_t)n * v->cells * sizeof *value) : NULL;
    v->value = value != NULL ? value : v->value;
    if (value == NULL)
        return false;
    memset(v->of + v->n_rounds, 0, (n - v->n_rounds) * sizeof *v->of);
    v->n_rounds = n;
    return true;
}

void
round_values_keep(struct round_values *v, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                  uint32_t index, float value)
{
    if (v->max_rounds == 0) {
        v->max_rounds = max_rounds;
        v->cells = cells;
    }
    const uint32_t place = round % v->max_rounds;
    if (index >= v->cells || !room_for(v, place) || v->of[place] > round + 1)
        return;
    float *values = &v->value[(size_t)place * v->cells];
    for (uint32_t i = 0; v->of[place] != round + 1 && i < v->cells; i++)
        values[i] = before != NULL ? before[i] : NAN;
    v->of[place] = round + 1;
    values[index] = value;
}

const float *
round_values(const struct round_values *v, uint32_t round)
{
    const uint32_t place = v->max_rounds > 0 ? round % v->max_rounds : 0;
    return place < v->n_rounds && v->of[place] == round + 1 ? &v->value[(size_t)place * v->cells] : NULL;
}

const float *
round_values_up_to(const struct round_values *v, uint32_t round)
{
    const float *found = NULL;
    for (uint32_t n = 0; n < v->max_rounds && n <= round && found == NULL; n++)
        found = round_values(v, round - n);
    return found;
}

size_t
round_values_bytes(const struct round_values *v)
{
    return v->n_rounds * (sizeof *v->of + v->cells * sizeof *v->value);
}

void
round_values_close(struct round_values *v)
{
    free(v->of);
    free(v->value);
    *v = (struct round_values){0};
}
