/* A gated delta net of the naive model: row after row, with the state in double. */
#include <math.h>
#include <string.h>

#include "tests/rigs/naive_model_internal.h"

size_t
naive_delta_numbers(const struct model_desc *d, size_t n)
{
    const struct delta_form *f = &d->form.delta;
    return n * delta_channels(f) + (size_t)f->value_heads * ((size_t)f->key_dim * f->value_dim + 2 + 2 * f->value_dim);
}

/* The convolution's output of a channel at row t. */
static double
convolved(const struct delta_form *f, const struct naive_layer *w, const double *qkv, size_t t, size_t channel)
{
    double sum = 0;
    for (size_t back = 0; back < f->taps && back <= t; back++)
        sum += w->delta_conv.at[channel * f->taps + f->taps - 1 - back] * qkv[(t - back) * delta_channels(f) + channel];
    return sum / (1 + exp(-sum));
}

/* One over the length of a head that begins at a channel. */
static double
shortening(const struct delta_form *f, const struct naive_layer *w, const double *qkv, size_t t, size_t channel)
{
    double squares = 1e-6;
    for (size_t i = 0; i < f->key_dim; i++)
        squares += pow(convolved(f, w, qkv, t, channel + i), 2);
    return 1 / sqrt(squares);
}

void
naive_delta(const struct naive_model *m, const struct naive_layer *w, double *x, size_t t, double *memory, double *back)
{
    const struct model_desc *d = &m->desc;
    const struct delta_form *f = &d->form.delta;
    const size_t keys = (size_t)f->key_heads * f->key_dim, values = (size_t)f->value_heads * f->value_dim;
    double *state = memory, *b = state + values * f->key_dim, *a = b + f->value_heads, *z = a + f->value_heads;
    double *o = z + values, *qkv = o + values;
    naive_multiply(m, &w->delta_qkv, x, qkv + t * delta_channels(f));
    naive_multiply(m, &w->delta_z, x, z);
    naive_multiply(m, &w->delta_b, x, b);
    naive_multiply(m, &w->delta_a, x, a);
    for (uint32_t h = 0; h < f->value_heads; h++) {
        const uint32_t key = f->tiled ? h % f->key_heads : h / (f->value_heads / f->key_heads);
        const size_t q_at = (size_t)key * f->key_dim, k_at = keys + q_at, v_at = 2 * keys + (size_t)h * f->value_dim;
        const double beta = 1 / (1 + exp(-b[h]));
        const double decay = exp(w->delta_decay.at[h] * log1p(exp(a[h] + w->delta_step.at[h])));
        const double per_q = shortening(f, w, qkv, t, q_at) / sqrt(f->key_dim), per_k = shortening(f, w, qkv, t, k_at);
        double squares = 0;
        for (uint32_t j = 0; j < f->value_dim; j++) {
            double *s = state + ((size_t)h * f->value_dim + j) * f->key_dim, was = 0, out = 0;
            for (uint32_t i = 0; i < f->key_dim; i++)
                was += per_k * convolved(f, w, qkv, t, k_at + i) * decay * s[i];
            for (uint32_t i = 0; i < f->key_dim; i++) {
                s[i] = decay * s[i] +
                       per_k * convolved(f, w, qkv, t, k_at + i) * beta * (convolved(f, w, qkv, t, v_at + j) - was);
                out += per_q * convolved(f, w, qkv, t, q_at + i) * s[i];
            }
            o[h * f->value_dim + j] = out;
            squares += out * out;
        }
        for (uint32_t j = 0; j < f->value_dim; j++) {
            const size_t at = h * f->value_dim + j;
            o[at] *=
                w->delta_norm.at[j] / sqrt(squares / f->value_dim + (double)d->rms_eps) * z[at] / (1 + exp(-z[at]));
        }
    }
    naive_multiply(m, &w->delta_out, o, back);
}
