#include "engine/measure/positions.h"

#include <math.h>
#include <stdio.h>

void
positions_round(struct positions *p, const struct round_event *r)
{
    p->rounds++;
    p->emitted += r->emitted;
    p->squares += (double)r->emitted * r->emitted;
    for (uint32_t i = 0; i < POSITIONS && i < r->verified && i <= r->accepted; i++) {
        p->tested[i]++;
        p->accepted[i] += i < r->accepted;
    }
    if (r->reject_rank >= 0 && r->accepted < r->verified)
        p->ranks[r->reject_rank <= POSITION_RANKS ? r->reject_rank : 0]++;
}

void
positions_add(struct positions *p, const struct positions *of_a_prompt)
{
    p->rounds += of_a_prompt->rounds;
    p->emitted += of_a_prompt->emitted;
    p->squares += of_a_prompt->squares;
    for (uint32_t i = 0; i <= POSITION_RANKS; i++)
        p->ranks[i] += of_a_prompt->ranks[i];
    for (uint32_t i = 0; i < POSITIONS; i++) {
        p->tested[i] += of_a_prompt->tested[i];
        p->accepted[i] += of_a_prompt->accepted[i];
        if (of_a_prompt->rounds > 0)
            ratio_add(&p->prompts[i], (double)of_a_prompt->accepted[i], (double)of_a_prompt->rounds);
    }
    if (of_a_prompt->rounds > 0)
        ratio_add(&p->tokens, (double)of_a_prompt->emitted, (double)of_a_prompt->rounds);
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

struct estimate
positions_tokens(const struct positions *p)
{
    if (p->tokens.n > 1)
        return ratio_estimate(&p->tokens);
    const double n = (double)p->rounds, mean = n > 0 ? (double)p->emitted / n : (double)NAN;
    return (struct estimate){.value = mean,
                             .se = n > 1 ? sqrt(fmax(0, p->squares - n * mean * mean) / (n * (n - 1))) : (double)NAN,
                             .n = p->rounds};
}

uint64_t
positions_ranked(const struct positions *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= POSITION_RANKS; i++)
        n += p->ranks[i];
    return n;
}

struct estimate
positions_rank(const struct positions *p, uint32_t rank)
{
    return binomial(p->ranks[rank], positions_ranked(p));
}

const char *
positions_ranks_text(const struct positions *p, char *out, size_t n)
{
    static const char *const names[POSITION_RANKS + 1] = {"later", "1st", "2nd", "3rd", "4th", "5th",
                                                          "6th",   "7th", "8th", "9th", "10th"};
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 1; i <= POSITION_RANKS + 1 && used < n; i++) {
        const uint32_t rank = i % (POSITION_RANKS + 1);
        if (p->ranks[rank] > 0)
            used += (size_t)snprintf(out + used, n - used, "%s%s %.0f%%", used > 0 ? ", " : "", names[rank],
                                     positions_rank(p, rank).value * 100);
    }
    return out;
}
