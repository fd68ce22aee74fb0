#include "engine/events/effects.h"

#include <math.h>
#include <string.h>

bool
effects_part(const struct layer_record *r, uint32_t from, uint32_t to, struct layer_record *part)
{
    const uint32_t end = r->first + r->n + 1; /* the last row tells of the token after it */
    *part = *r;
    if (r->n <= r->begin)
        return false;
    const uint32_t least = r->first + r->begin + 1;
    from = from < least ? least : from;
    to = to > end ? end : to;
    if (to < from + EFFECT_TOKENS)
        return false;
    part->begin = from - 1 - r->first;
    part->n = to - 1 - r->first;
    part->n_text -= part->n_text < end - to ? part->n_text : end - to;
    if (to < end)
        part->policy[0] = '\0'; /* the state is a later one */
    return true;
}

static const struct segment *
numbered(const struct segments *all, uint32_t number)
{
    const struct segment *newest = segments_at(all, 0);
    return newest != NULL && number <= newest->number ? segments_at(all, newest->number - number) : NULL;
}

/* The place of the setting among those of the text; n: it is not there. */
static uint32_t
place_of(const struct effect_text *text, const struct segments *all, const struct run_info *info,
         const struct segment *s)
{
    uint32_t i = 0;
    for (; i < text->n; i++) {
        const struct segment *known = numbered(all, text->setting[i].number);
        if (known != NULL && segment_same_setting(known, s, info))
            break;
    }
    return i;
}

bool
effects_forecast(struct effect_text *text, const struct segments *all, const struct segment *of,
                 const struct run_info *info, effects_ops ops_of, const struct layer_record *part)
{
    const struct segment *s;
    text->number = of->number;
    text->tokens = part->n - part->begin;
    while (text->n < EFFECT_SETTINGS && text->looked <= of->number &&
           (s = numbered(all, of->number - text->looked)) != NULL && s->prompt == of->prompt) {
        text->looked++;
        const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
        const struct policy_ops *ops = p != NULL ? ops_of(p, info) : NULL;
        /* Layers said with one head what they said, and of sampled text nothing is forecast. */
        if (ops == NULL || strcmp(s->head, of->head) != 0 || s->sampling.temperature > 0 ||
            place_of(text, all, info, s) < text->n)
            continue;
        struct forecast *f = &text->setting[text->n].of;
        if (!forecast_make(ops, part, s->value, info->rho, f))
            continue;
        text->setting[text->n++].number = s->number;
        return true;
    }
    return false;
}

static struct difference
difference_on(const struct effect_text *text, uint32_t a, uint32_t b)
{
    const struct forecast *fa = &text->setting[a].of, *fb = &text->setting[b].of;
    const struct estimate gain = a != b ? forecast_gain(fa, fb) : (struct estimate){0, 0, RECORD_BLOCKS};
    struct difference d = {.value = gain.value * 100 / (double)fb->modelled,
                           .se = gain.se * 100 / (double)fb->modelled,
                           .verdict = DIFFERENCE_NOISE};
    if (fabs(d.value) > estimate_reach(RECORD_BLOCKS - 1) * d.se)
        d.verdict = d.value > 0 ? DIFFERENCE_MORE : DIFFERENCE_LESS;
    return d;
}

/* Runs of one prompt from its start, say; greedily, so that the settings do not change the text. */
static bool
same_tokens(const struct segment *a, const struct segment *b)
{
    return !(a->sampling.temperature > 0) && !(b->sampling.temperature > 0) && a->before == b->before &&
           a->total.emitted == b->total.emitted;
}

static struct difference
difference_read(const struct run_info *info, const struct segment *a, const struct segment *b)
{
    const struct estimate ra = segment_estimates(a, info).modelled, rb = segment_estimates(b, info).modelled;
    struct difference d = estimate_difference(ra, rb);
    d.value *= 100 / rb.value;
    d.se *= 100 / rb.value;
    return d;
}

struct difference
effects_difference(const struct effects *e, const struct segments *all, const struct run_info *info,
                   const struct segment *a, const struct segment *b)
{
    const struct segment *order[2] = {a->number > b->number ? a : b, a->number > b->number ? b : a};
    for (int i = 0; i < 2 && e != NULL && a->prompt == b->prompt; i++) {
        const struct effect_text *text = &e->text[order[i]->number % SEGMENTS];
        if (text->number != order[i]->number)
            continue;
        const uint32_t at = place_of(text, all, info, a), bt = place_of(text, all, info, b);
        if (at < text->n && bt < text->n)
            return difference_on(text, at, bt);
    }
    if (a->prompt == b->prompt && same_tokens(a, b))
        return difference_read(info, a, b);
    return (struct difference){.value = NAN, .se = NAN, .verdict = DIFFERENCE_UNKNOWN};
}
