#include "engine/events/paired.h"

/* The tokens that both have, as a sample; what one has beyond them is the next segment's. */
static void
end_sample(struct paired *p)
{
    const double tokens = p->side[0].tokens < p->side[1].tokens ? p->side[0].tokens : p->side[1].tokens;
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        const double beyond = p->side[i].tokens - tokens;
        const double rest = beyond > 0 ? p->side[i].last_seconds * beyond / p->side[i].last_tokens : 0;
        seconds[i] = p->side[i].seconds - rest;
        p->side[i].tokens = beyond;
        p->side[i].seconds = rest;
    }
    p->from = p->to;
    p->to += tokens;
    p->y = seconds[0];
    p->x = seconds[1];
}

bool
paired_add(struct paired *p, uint32_t side, const struct round_event *r)
{
    p->side[side].last_tokens = r->emitted;
    p->side[side].last_seconds = ((double)r->draft_us + (double)r->verify_us) * 1e-6;
    p->side[side].tokens += p->side[side].last_tokens;
    p->side[side].seconds += p->side[side].last_seconds;
    const double a = p->side[0].tokens, b = p->side[1].tokens, both = a < b ? a : b;
    if (both < (a != b ? PAIRED_MOST : p->partial ? 1 : PAIRED_TOKENS))
        return false;
    const bool counts = !p->partial;
    end_sample(p);
    p->partial = false;
    if (counts)
        ratio_add(&p->seconds, p->y, p->x);
    return counts;
}

void
paired_restart(struct paired *p)
{
    p->seconds = (struct ratio_sums){0};
    p->partial = p->side[0].tokens > 0 || p->side[1].tokens > 0;
}

struct comparison
paired_comparison(const struct paired *p)
{
    return estimate_compare(ratio_estimate(&p->seconds));
}
