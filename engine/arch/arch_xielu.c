/* The numbers of xIELU, of which each layer has its own: learned ones go through a softplus, so that they are above 0. */
#include <inttypes.h>
#include <math.h>

#include "engine/arch/arch_take.h"
#include "kernels/tensor.h"

static double
softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

bool
arch_set_xielu(struct model *m, uint32_t layer, const double stored[ARCH_XIELU_NUMBERS], struct err *err)
{
    struct layer_desc *layers = (struct layer_desc *)m->desc.layers; /* the model's own */
    for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++)
        if (!(fabs(stored[i]) <= 1e6))
            return err_set(err, ERR_WORK,
                           "%s: a number of layer %" PRIu32 "'s activation makes no sense; fetch it again", m->path,
                           layer);
    layers[layer].form.xielu =
        (struct xielu){.alpha_p = (float)softplus(stored[ARCH_XIELU_ALPHA_P]),
                       .alpha_n = (float)(stored[ARCH_XIELU_BETA] + softplus(stored[ARCH_XIELU_ALPHA_N])),
                       .beta = (float)stored[ARCH_XIELU_BETA],
                       .eps = (float)stored[ARCH_XIELU_EPS]};
    return true;
}

/* Those that nobody trains may be missing. */
bool
arch_take_xielu(const struct arch_taking *t)
{
    static const char *const names[ARCH_XIELU_NUMBERS] = {"alpha_p", "alpha_n", "beta", "eps"};
    const struct arch_source *s = t->source;
    char name[96];
    if (t->model->desc.form.activation != ACT_XIELU)
        return true;
    for (uint32_t l = 0; l < t->model->desc.n_layers; l++) {
        double stored[ARCH_XIELU_NUMBERS] = {[ARCH_XIELU_BETA] = 0.5, [ARCH_XIELU_EPS] = -1e-6};
        for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++) {
            struct tensor one;
            struct arch_tensor found;
            snprintf(name, sizeof name, "%s%" PRIu32 ".mlp.act_fn.%s", s->names->layer, l, names[i]);
            if (i >= ARCH_XIELU_BETA && !s->tensor(s, name, &found))
                continue;
            if (!arch_take_vector(t, name, 1, NULL, 0, &one))
                return false;
            stored[i] = (double)*(const float *)one.data;
        }
        if (!arch_set_xielu(t->model, l, stored, t->err))
            return false;
    }
    return true;
}
