/* Baselines of stretches: what they measured, and what they compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/stretches_internal.h"

/* Of two saved runs each has its own. */
static bool
is_meant(const struct stretches *s, const struct stretch *at)
{
    return s->info->beside == NULL || at->seq == s->at->next.seq;
}

void
stretches_take_baseline(struct stretches *s, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || !isfinite(value) || !(value > 0))
        return;
    const bool paced = s->at->next.paced;
    s->at->baseline[paced] = (struct estimate){.value = value, .se = s->next_se, .n = UINT64_MAX};
    s->next_se = NAN;
    s->at->next.baseline = s->at->baseline[paced];
    for (uint32_t back = 0; back < stretches_held(s); back++) {
        struct stretch *at = &s->ring[(s->n - 1 - back) % STRETCHES];
        if (at->prompt == s->at->next.prompt && at->paced == paced && is_meant(s, at))
            at->baseline = s->at->baseline[paced];
    }
}

/* "yes", "yes: 7 sequences", "sampled", or "no: token 17", counted from the run's first generated one. What comes behind a difference can't
 * be compared, and of several sequences it isn't known whose token that is. */
void
stretches_take_lossless(struct stretches *s, const char *text)
{
    const bool yes = strncmp(text, "yes", 3) == 0, sampled = strcmp(text, "sampled") == 0;
    uint64_t differs = UINT64_MAX;
    if (strncmp(text, "no: token ", 10) == 0 && (s->sequences < 2 || s->info->beside != NULL))
        differs = strtoull(text + 10, NULL, 10);
    else if (strncmp(text, "no:", 3) == 0)
        differs = 0;
    else if (!yes && !sampled)
        return;
    for (uint32_t back = 0; back < stretches_held(s); back++) {
        struct stretch *at = &s->ring[(s->n - 1 - back) % STRETCHES];
        if (at->run != s->at->next.run)
            break;
        if (!is_meant(s, at))
            continue;
        at->compared = at->total.emitted;
        if (sampled)
            at->lossless = LOSSLESS_SAMPLED;
        else if (differs > at->before + at->total.emitted)
            at->lossless = LOSSLESS_YES;
        else
            at->lossless = differs > at->before || differs == 0 ? LOSSLESS_NO : LOSSLESS_UNKNOWN;
    }
}
