#include "policies/del_sums.h"

#include <math.h>
#include <stdlib.h>

bool
del_sums_open(struct del_sums *s, uint32_t layers)
{
    *s = (struct del_sums){.layers = layers};
    s->c = calloc(layers + 1, sizeof *s->c);
    s->tcs = calloc(layers + 1, sizeof *s->tcs);
    s->fcs = calloc(layers + 1, sizeof *s->fcs);
    return s->c != NULL && s->tcs != NULL && s->fcs != NULL;
}

void
del_sums_close(struct del_sums *s)
{
    free(s->c);
    free(s->tcs);
    free(s->fcs);
}

void
del_sums_reset(struct del_sums *s)
{
    del_sums_decay(s, 0);
}

void
del_sums_decay(struct del_sums *s, double omega)
{
    s->n *= omega;
    for (uint32_t l = 1; l <= s->layers; l++) {
        s->c[l] *= omega;
        s->tcs[l] *= omega;
        s->fcs[l] *= omega;
    }
}

void
del_sums_add(struct del_sums *s, const struct guess *row)
{
    s->n += 1;
    for (uint32_t l = 1; l <= s->layers; l++) {
        const struct guess *g = &row[l - 1];
        if (g->token == row[s->layers - 1].token) {
            s->c[l] += 1;
            s->tcs[l] += (double)g->confidence;
        } else {
            s->fcs[l] += (double)g->confidence;
        }
    }
}

double
del_alpha(const struct del_sums *s, uint32_t layer)
{
    return s->n > 0 ? s->c[layer] / s->n : 0;
}

double
del_matched(const struct del_sums *s, uint32_t layer)
{
    return s->c[layer] > 0 ? s->tcs[layer] / s->c[layer] : 0;
}

double
del_mismatched(const struct del_sums *s, uint32_t layer)
{
    /* fcs, not n − c, says whether there was a mismatch: the difference of two decayed sums is not exactly 0 */
    return s->fcs[layer] > 0 ? s->fcs[layer] / (s->n - s->c[layer]) : 0;
}

double
del_tau(const struct del_sums *s, uint32_t layer)
{
    return 0.5 * (del_matched(s, layer) + del_mismatched(s, layer));
}

double
del_tpl(const struct del_sums *s, uint32_t layer, uint32_t length)
{
    double alpha = fmin(del_alpha(s, layer), 1 - 1e-6), tokens = 1;
    for (uint32_t i = 0; i < length; i++) /* 1 + α + … + α^d; summed, TPL(l, 0) is exactly 1/L in every layer */
        tokens = 1 + alpha * tokens;
    return tokens / ((double)length * layer + s->layers);
}

struct del_choice
del_choose(const struct del_sums *s, struct del_bounds within)
{
    struct del_choice best = {within.e_min, 0};
    double most = del_tpl(s, within.e_min, 0);
    for (uint32_t length = 0; length <= within.d_max; length++) /* ties: the first one found stays */
        for (uint32_t layer = within.e_min; layer <= within.e_max; layer++) {
            double tpl = del_tpl(s, layer, length);
            if (tpl > most) {
                most = tpl;
                best = (struct del_choice){layer, length};
            }
        }
    return best;
}
