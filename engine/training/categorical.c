#include "engine/training/categorical.h"

#include <math.h>

#include "engine/base/rng.h"

static double
weight(const struct categorical *c, uint32_t token)
{
    if (!(c->temperature > 0))
        return (token_t)token == c->first;
    return exp(((double)c->z[token] - c->max) / c->temperature);
}

struct categorical
categorical_of(const float *z, uint32_t n, float temperature)
{
    struct categorical c = {.z = z, .n = n, .temperature = (double)temperature};
    for (uint32_t i = 1; i < n; i++)
        if (z[i] > z[c.first])
            c.first = (token_t)i;
    c.max = (double)z[c.first];
    for (uint32_t i = 0; i < n; i++)
        c.sum += weight(&c, i);
    return c;
}

double
categorical_probability(const struct categorical *c, token_t token)
{
    return token >= 0 && (uint32_t)token < c->n ? weight(c, (uint32_t)token) / c->sum : 0;
}

token_t
categorical_draw(const struct categorical *c, uint64_t *random)
{
    double left = splitmix64_uniform(random) * c->sum;
    token_t last = c->first;
    for (uint32_t i = 0; i < c->n; i++) {
        const double w = weight(c, i);
        if (w > 0)
            last = (token_t)i;
        left -= w;
        if (left < 0)
            break;
    }
    return last;
}

token_t
categorical_residual(const struct categorical *p, const struct categorical *q, uint64_t *random)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        sum += fmax(0, weight(p, i) / p->sum - categorical_probability(q, (token_t)i));
    if (!(sum > 0))
        return categorical_draw(p, random);
    double left = splitmix64_uniform(random) * sum;
    token_t last = p->first;
    for (uint32_t i = 0; i < p->n; i++) {
        const double w = fmax(0, weight(p, i) / p->sum - categorical_probability(q, (token_t)i));
        if (w > 0)
            last = (token_t)i;
        left -= w;
        if (left < 0)
            break;
    }
    return last;
}

double
categorical_acceptance(const struct categorical *p, const struct categorical *q, token_t token)
{
    return fmin(1, categorical_probability(p, token) / categorical_probability(q, token));
}

double
categorical_overlap(const struct categorical *p, const struct categorical *q)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n && i < q->n; i++)
        sum += fmin(weight(p, i) / p->sum, weight(q, i) / q->sum);
    return sum;
}
