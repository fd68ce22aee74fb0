/* Stretches read: which are held, what is in force. */
#include <math.h>
#include <string.h>

#include "engine/events/stretches_internal.h"

uint32_t
stretches_held(const struct stretches *s)
{
    return s->n < STRETCHES ? s->n : STRETCHES;
}

const struct stretch *
stretches_at(const struct stretches *s, uint32_t back)
{
    return back < stretches_held(s) ? &s->ring[(s->n - 1 - back) % STRETCHES] : NULL;
}

const struct stretch *
stretches_named(const struct stretches *s, const char *letter)
{
    uint64_t number = 0;
    for (const char *at = letter; *at != '\0'; at++) {
        const char c = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        if (c < 'A' || c > 'Z' || number > s->n)
            return NULL;
        number = number * 26 + (uint64_t)(c - 'A') + 1;
    }
    return number > 0 && number <= s->n ? stretches_at(s, s->n - (uint32_t)number) : NULL;
}

static const struct stretch_side *
shown(const struct stretches *s)
{
    return &s->side[s->versus && s->focus == 1];
}

bool
stretch_concerns(const struct stretch *s, uint32_t seq)
{
    return !s->versus || s->seq == (seq == 1);
}

bool
stretch_same_setting(const struct stretch *a, const struct stretch *b, const struct run_info *info)
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
stretches_focus(struct stretches *s, uint32_t seq)
{
    s->focus = seq;
}

const struct stretch *
stretches_coming(const struct stretches *s)
{
    return s->n > 0 && stretches_side_coming(shown(s)) ? &shown(s)->next : NULL;
}

const struct stretch *
stretches_now(const struct stretches *s)
{
    return &shown(s)->next;
}

double
stretches_value(const struct stretches *s, uint32_t policy, uint32_t knob)
{
    return policy < s->info->n_policies && knob < POLICY_KNOBS ? shown(s)->values[policy * POLICY_KNOBS + knob] : NAN;
}

const char *
stretches_prompt(const struct stretches *s, const struct stretch *at)
{
    const char *told = s->side[0].next.prompt - at->prompt < STRETCHES ? s->prompt[at->prompt % STRETCHES] : NULL;
    return at->prompt == 0 && told == NULL ? s->info->prompt : told;
}
