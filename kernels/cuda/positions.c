#include "kernels/cuda/positions.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/tensor.h"

/* (rope_dims/2): scale * base^(-2i / rope_dims) / factors, which may be NULL. */
static bool
load_frequencies(struct upload *u, uint32_t rope_dims, double base, double scale, const float *factors,
                 const double **out, struct err *err)
{
    const uint32_t n = rope_dims / 2;
    double *values = malloc((n + 1) * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < n; i++) {
        const double f = pow(base, -2.0 * i / rope_dims) * scale;
        values[i] = factors != NULL ? f / (double)factors[i] : f;
    }
    const void *there = NULL;
    const bool ok = upload_array(u, values, n * sizeof *values, "rotation frequencies", &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_rope(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const double local = (double)d->form.local_base;
    return load_frequencies(u, d->rope_dims, (double)d->rope_base, (double)d->rope_scale, d->rope_factors,
                            &to->inv_freq, err) &&
           (!(local > 0) || load_frequencies(u, d->rope_dims, local, 1, NULL, &to->inv_freq_local, err));
}

/* They are F32 (model_desc_fits()). */
static bool
load_learned(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const struct tensor *t = &d->positions;
    const void *there = NULL;
    if (!tensor_present(t))
        return true;
    if (!upload_array(u, t->data, (size_t)t->rows * t->cols * sizeof(float), "positions", &there, err))
        return false;
    to->positions = there;
    to->n_positions = t->rows;
    return true;
}

static bool
load_slopes(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const struct alibi *a = &d->form.alibi;
    if (!(a->most > 0))
        return true;
    float *slopes = malloc(d->heads * sizeof *slopes);
    if (slopes == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t h = 0; h < d->heads; h++)
        slopes[h] = form_slope(a, h, d->heads);
    const void *there = NULL;
    const bool ok = upload_array(u, slopes, d->heads * sizeof *slopes, "slopes", &there, err);
    to->slopes = there;
    free(slopes);
    return ok;
}

bool
positions_load(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    return load_rope(u, d, to, err) && load_learned(u, d, to, err) && load_slopes(u, d, to, err);
}
