#include "tests/rigs/prediction_definition.h"

#include <math.h>
#include <stddef.h>

struct softmax {
    double max, sum; /* of exp((z - max)/T) */
};

static struct softmax
naive_softmax(const float *z, uint32_t n, double temperature)
{
    struct softmax s = {.max = -INFINITY};
    for (uint32_t v = 0; v < n; v++)
        s.max = (double)z[v] > s.max ? (double)z[v] : s.max;
    for (uint32_t v = 0; v < n; v++)
        s.sum += exp(((double)z[v] - s.max) / temperature);
    return s;
}

struct prediction
prediction_by_definition(const float *z, uint32_t n, double temperature, const float *final)
{
    const struct softmax s = naive_softmax(z, n, 1);
    struct prediction g = {.confidence = (float)(1 / s.sum), .kl_final = NAN, .rank_final = -1};
    double entropy = 0;
    for (uint32_t v = 0; v < n; v++) {
        const double p = exp((double)z[v] - s.max) / s.sum;
        entropy -= p > 0 ? p * log(p) : 0;
    }
    g.entropy = (float)entropy;
    g.annealed = (float)(1 / naive_softmax(z, n, temperature).sum);
    for (int place = 0; place < PREDICTION_RANKS; place++) {
        g.top[place] = TOKEN_NONE;
        for (uint32_t v = 0; v < n; v++) {
            bool listed = !(z[v] > -INFINITY);
            for (int i = 0; i < place; i++)
                listed = listed || g.top[i] == (token_t)v;
            if (!listed && (g.top[place] == TOKEN_NONE || z[v] > z[g.top[place]]))
                g.top[place] = (token_t)v;
        }
        if (place < PREDICTION_TOP)
            g.top_p[place] = g.top[place] == TOKEN_NONE ? 0 : (float)(exp((double)z[g.top[place]] - s.max) / s.sum);
    }
    g.token = g.top[0];
    if (final == NULL)
        return g;
    const struct softmax f = naive_softmax(final, n, 1);
    double kl = 0;
    uint32_t best = 0;
    for (uint32_t v = 0; v < n; v++) {
        const double p = exp((double) final[v] - f.max) / f.sum;
        if (p > 1e-44)
            kl += p * (log(p) - ((double)z[v] - s.max - log(s.sum)));
        best = final[v] > final[best] ? v : best;
    }
    g.kl_final = (float)kl;
    g.rank_final = 0;
    for (uint32_t v = 0; v < n; v++)
        g.rank_final += z[v] > z[best] || (z[v] >= z[best] && v < best);
    return g;
}
