/* Ways to segment RoPE that GGUF files and config.json both have. */
#include <math.h>

#include "engine/arch/arch.h"

#define TWO_PI 6.283185307179586

bool
arch_scale_linear(struct model *m, double factor, struct err *err)
{
    if (!(factor >= 1e-3 && factor <= 1e6))
        return err_set(err, ERR_WORK, "%s: a RoPE scaling factor of %g makes no sense; convert the model again",
                       m->path, factor);
    m->desc.rope_scale = 1 / (float)factor;
    return true;
}

float *
arch_divisors(struct model *m, struct err *err)
{
    float *divisors = model_take(m, (m->desc.rope_dims / 2 + 1u) * sizeof *divisors);
    if (divisors == NULL)
        err_set(err, ERR_WORK, "%s: out of memory", m->path);
    m->desc.rope_factors = divisors;
    return divisors;
}

/* The dimension whose pair turns `times` round within n positions. */
static double
turning(const struct model_desc *d, double times, double n)
{
    return d->rope_dims * log(n / (times * TWO_PI)) / (2 * log((double)d->rope_base));
}

bool
arch_scale_yarn(struct model *m, const struct arch_yarn *y, struct err *err)
{
    struct model_desc *d = &m->desc;
    if (!(y->fast > y->slow && y->slow > 0 && y->old >= 1 && y->factor >= 1 && y->factor <= 1e6 && d->rope_base > 1))
        return err_set(err, ERR_WORK, "%s: the factors of its RoPE scaling 'yarn' make no sense; fetch the model again",
                       m->path);
    double first = turning(d, y->fast, y->old), last = turning(d, y->slow, y->old);
    first = fmax(y->whole ? floor(first) : first, 0);
    last = fmin(y->whole ? ceil(last) : last, d->rope_dims - 1.0);
    last = last > first ? last : first + 0.001;
    float *divisors = arch_divisors(m, err);
    for (uint32_t i = 0; divisors != NULL && i < d->rope_dims / 2; i++) {
        const double stays = 1 - fmin(1, fmax(0, (i - first) / (last - first)));
        divisors[i] = (float)(1 / ((1 - stays) / y->factor + stays));
    }
    d->form.rope_gain = (float)(isnan(y->gain) ? 1 + 0.1 * log(y->factor) : y->gain);
    return divisors != NULL;
}
