#include "engine/events/positions.h"

#include <math.h>

void
positions_round(struct positions *p, const struct round_event *r)
{
    p->rounds++;
    for (uint32_t i = 0; i < POSITIONS && i < r->verified && i <= r->accepted; i++) {
        p->tested[i]++;
        p->accepted[i] += i < r->accepted;
    }
}

void
positions_add(struct positions *p, const struct positions *of_a_prompt)
{
    p->rounds += of_a_prompt->rounds;
    for (uint32_t i = 0; i < POSITIONS; i++) {
        p->tested[i] += of_a_prompt->tested[i];
        p->accepted[i] += of_a_prompt->accepted[i];
        if (of_a_prompt->rounds > 0)
            ratio_add(&p->prompts[i], (double)of_a_prompt->accepted[i], (double)of_a_prompt->rounds);
    }
}

uint32_t
positions_count(const struct positions *p)
{
    uint32_t n = POSITIONS;
    while (n > 0 && p->tested[n - 1] == 0)
        n--;
    return n;
}

static struct estimate
binomial(uint64_t successes, uint64_t n)
{
    const double p = n > 0 ? (double)successes / (double)n : (double)NAN;
    return (struct estimate){.value = p, .se = n > 1 ? sqrt(p * (1 - p) / (double)n) : (double)NAN, .n = n};
}

struct estimate
positions_conditional(const struct positions *p, uint32_t i)
{
    return binomial(p->accepted[i], p->tested[i]);
}

struct estimate
positions_unconditional(const struct positions *p, uint32_t i)
{
    return p->prompts[i].n > 1 ? ratio_estimate(&p->prompts[i]) : binomial(p->accepted[i], p->rounds);
}
