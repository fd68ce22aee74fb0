/* Looking things up in a record. */
#include <math.h>
#include <string.h>

#include "tui/figures/record.h"

const struct record_setting *
record_setting(const struct record *r, uint32_t round)
{
    size_t i = 0;
    while (i + 1 < r->n_settings && r->settings[i + 1].round <= round)
        i++;
    return &r->settings[i];
}

void
record_values(const struct record *r, int series, int index, double *out)
{
    const bool of_round = series_of_round(&r->policy->series[series]);
    double held = NAN;
    size_t at = 0;
    for (size_t i = 0; i < r->n_rounds; i++) {
        if (of_round)
            held = NAN;
        for (; at < r->n_values && r->values[at].round <= r->rounds[i].number; at++)
            if (r->values[at].series == series && r->values[at].index == index &&
                (!of_round || r->values[at].round == r->rounds[i].number))
                held = (double)r->values[at].value;
        if (strcmp(r->rounds[i].end.policy, r->policy->name) != 0)
            held = NAN;
        out[i] = held;
    }
}
