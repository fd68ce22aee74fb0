/* Baselines of segments: what they measured, and what they compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/segments_internal.h"

/* A control about both settings of a versus is taken by each. */
static bool
is_meant(const struct segments *s, const struct segment *at)
{
    return !s->versus || at->seq == s->at->next.seq;
}

void
segments_take_baseline(struct segments *s, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || !isfinite(value) || !(value > 0))
        return;
    const bool paced = s->at->next.paced;
    s->at->baseline[paced] = (struct estimate){.value = value, .se = s->at->next_se, .n = UINT64_MAX};
    s->at->next_se = NAN;
    s->at->next.baseline = s->at->baseline[paced];
    for (uint32_t back = 0; back < segments_held(s); back++) {
        struct segment *at = &s->ring[(s->n - 1 - back) % SEGMENTS];
        if (at->prompt == s->at->next.prompt && at->paced == paced && is_meant(s, at))
            at->baseline = s->at->baseline[paced];
    }
}

/* "yes", "yes: 7 sequences", "sampled", or "no: token 17", counted from the run's first generated one. What comes behind a difference can't
 * be compared, and of several sequences it isn't known whose token that is. */
void
segments_take_lossless(struct segments *s, const char *text)
{
    const bool yes = strncmp(text, "yes", 3) == 0, sampled = strcmp(text, "sampled") == 0;
    uint64_t differs = UINT64_MAX;
    if (strncmp(text, "no: token ", 10) == 0 && (s->sequences < 2 || run_info_apart(s->info)))
        differs = strtoull(text + 10, NULL, 10);
    else if (strncmp(text, "no:", 3) == 0)
        differs = 0;
    else if (!yes && !sampled)
        return;
    for (uint32_t back = 0; back < segments_held(s); back++) {
        struct segment *at = &s->ring[(s->n - 1 - back) % SEGMENTS];
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
