#include "tui/figures/measures.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ROW(column, title, sign, is_share, member)                                                                     \
    {                                                                                                                  \
        .name = (column), .label = (title), .better = (sign), .share = (is_share),                                     \
        .at = offsetof(struct measures, member)                                                                        \
    }

const struct named_measure named_measures[] = {
    ROW("tok_per_s", "tokens/s", 1, false, tokens_per_s),
    ROW("speedup", "speedup over autoregressive", 1, false, speedup),
    ROW("modelled_speedup", "modelled speedup", 1, false, modelled),
    ROW("tokens_per_round", "tokens/round", 1, false, tokens_per_round),
    ROW("acceptance_rate", "acceptance", 1, true, acceptance_rate),
    ROW("per_token_acceptance", "acceptance per token", 1, true, per_token_acceptance),
    ROW("etpl", "tokens per layer (eTPL)", 1, false, etpl),
    ROW("discard_rate", "drafts discarded per token", -1, false, discard_rate),
    ROW("verification_rate", "verifications per token", -1, false, verification_rate),
    {NULL, NULL, 0, false, 0},
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

const char *
measure_names(char *out, size_t size)
{
    size_t used = 0;
    for (const struct named_measure *m = named_measures; m->name != NULL && used < size; m++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", m->name);
    return out;
}
