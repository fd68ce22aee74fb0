/* Segments read: which are held, what is in force. */
#include <math.h>
#include <string.h>

#include "engine/events/segments_internal.h"

uint32_t
segments_held(const struct segments *s)
{
    return s->n < SEGMENTS ? s->n : SEGMENTS;
}

const struct segment *
segments_at(const struct segments *s, uint32_t back)
{
    return back < segments_held(s) ? &s->ring[(s->n - 1 - back) % SEGMENTS] : NULL;
}

const struct segment *
segments_named(const struct segments *s, const char *letter)
{
    uint64_t number = 0;
    for (const char *at = letter; *at != '\0'; at++) {
        const char c = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        if (c < 'A' || c > 'Z' || number > s->n)
            return NULL;
        number = number * 26 + (uint64_t)(c - 'A') + 1;
    }
    return number > 0 && number <= s->n ? segments_at(s, s->n - (uint32_t)number) : NULL;
}

static const struct segment_side *
shown(const struct segments *s)
{
    return &s->side[s->versus && s->focus == 1];
}

bool
segment_concerns(const struct segment *s, uint32_t seq)
{
    return !s->versus || s->seq == (seq == 1);
}

bool
segment_same_setting(const struct segment *a, const struct segment *b, const struct run_info *info)
{
    const uint32_t knobs = a->policy < info->n_policies ? info->policies[a->policy].n_knobs : 0;
    bool same = a->policy == b->policy && strcmp(a->head, b->head) == 0 &&
                a->sampling.temperature == b->sampling.temperature && a->sampling.top_k == b->sampling.top_k &&
                a->sampling.top_p == b->sampling.top_p;
    for (uint32_t k = 0; same && k < knobs; k++)
        same = a->value[k] == b->value[k];
    return same;
}

void
segments_focus(struct segments *s, uint32_t seq)
{
    s->focus = seq;
}

const struct segment *
segments_coming(const struct segments *s)
{
    return s->n > 0 && segments_side_coming(shown(s)) ? &shown(s)->next : NULL;
}

const struct segment *
segments_now(const struct segments *s)
{
    return &shown(s)->next;
}

double
segments_value(const struct segments *s, uint32_t policy, uint32_t knob)
{
    return policy < s->info->n_policies && knob < POLICY_KNOBS ? shown(s)->now.value[policy][knob] : NAN;
}

const char *
segments_prompt(const struct segments *s, const struct segment *at)
{
    const char *told = s->side[0].next.prompt - at->prompt < SEGMENTS ? s->prompt[at->prompt % SEGMENTS] : NULL;
    return at->prompt == 0 && told == NULL ? s->info->prompt : told;
}
