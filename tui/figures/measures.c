#include "tui/figures/measures.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ROW(column, title, sign, member, clocked, and)                                                                 \
    {                                                                                                                  \
        .name = (column), .label = (title), .better = (sign), .at = offsetof(struct measures, member),                 \
        .timed = (clocked), .estimated = (and)                                                                         \
    }
#define OF_ONE(column, title, sign, member) ROW(column, title, sign, member, false, offsetof(struct estimates, member))

const struct named_measure named_measures[] = {
    ROW("tok_per_s", "tokens/s", 1, tokens_per_s, true, offsetof(struct estimates, tokens_per_s)),
    ROW("speedup", "speedup over autoregressive", 1, speedup, true, MEASURE_OF_TWO),
    OF_ONE("modelled_speedup", "modelled speedup", 1, modelled),
    OF_ONE("tokens_per_round", "tokens/round", 1, tokens_per_round),
    OF_ONE("acceptance_rate", "acceptance", 1, acceptance_rate),
    OF_ONE("per_token_acceptance", "acceptance per token", 1, per_token_acceptance),
    OF_ONE("etpl", "tokens per layer (eTPL)", 1, etpl),
    OF_ONE("discard_rate", "drafts discarded per token", -1, discard_rate),
    OF_ONE("verification_rate", "verifications per token", -1, verification_rate),
    {.name = NULL},
};

const struct named_measure *
measure_named(const char *name)
{
    for (const struct named_measure *m = named_measures; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

double
measure_value(const struct named_measure *m, const struct measures *of)
{
    double value;
    memcpy(&value, (const char *)of + m->at, sizeof value);
    return value;
}

struct estimate
measure_estimate(const struct named_measure *m, const struct estimates *of, struct estimate baseline)
{
    struct estimate e;
    if (m->estimated == MEASURE_OF_TWO)
        return estimate_quotient(of->tokens_per_s, baseline);
    memcpy(&e, (const char *)of + m->estimated, sizeof e);
    return e;
}

const char *
measure_names(char *out, size_t size)
{
    size_t used = 0;
    for (const struct named_measure *m = named_measures; m->name != NULL && used < size; m++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", m->name);
    return out;
}
