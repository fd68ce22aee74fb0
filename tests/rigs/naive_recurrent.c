/* A recurrent layer of the naive model: row after row, with the state in double. */
#include <math.h>
#include <string.h>

#include "tests/rigs/naive_model_internal.h"

size_t
naive_recurrent_numbers(const struct model_desc *d, size_t n)
{
    const struct recurrent_form *f = &d->form.recurrent;
    return n * recurrent_channels(f) + (size_t)f->value_heads * ((size_t)f->key_dim * f->value_dim + 1) + LAYER_RB(d) +
           2 * (size_t)recurrent_values(f);
}

static double
silu(double x)
{
    return x / (1 + exp(-x));
}

/* Returns the convolution's output of a channel at row t. */
static double
convolved(const struct recurrent_form *f, const struct naive_layer *w, const double *x, size_t t, size_t channel)
{
    double sum = w->recurrent_conv_b.at != NULL ? w->recurrent_conv_b.at[channel] : 0;
    for (size_t back = 0; back < f->taps && back <= t; back++)
        sum += w->recurrent_conv.at[channel * f->taps + f->taps - 1 - back] *
               x[(t - back) * recurrent_channels(f) + channel];
    return f->kind == RECURRENCE_CONV ? sum : silu(sum);
}

/* Returns one over the length of a head that begins at a channel, or 1 if heads are not normalised. */
static double
shortening(const struct recurrent_form *f, const struct naive_layer *w, const double *x, size_t t, size_t channel)
{
    double squares = 1e-6;
    for (size_t i = 0; i < f->key_dim; i++)
        squares += pow(convolved(f, w, x, t, channel + i), 2);
    return f->kind == RECURRENCE_DELTA ? 1 / sqrt(squares) : 1;
}

/* Divides x (n) by its root mean square and multiplies it by w. */
static void
norm(const double *w, double eps, size_t n, double *x)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        x[i] *= w[i] / sqrt(squares + eps);
}

/* Changes the state of a value head and writes its output, o (value_dim). */
static void
update_head(const struct recurrent_form *f, const struct naive_layer *w, const double *x, size_t t, uint32_t h,
            double a, double b, double *state, double *o)
{
    const bool delta = f->kind == RECURRENCE_DELTA;
    const size_t keys = (size_t)f->key_heads * f->key_dim, values = recurrent_values(f);
    const size_t key = (size_t)(f->tiled ? h % f->key_heads : h / (f->value_heads / f->key_heads)) * f->key_dim;
    const size_t q_at = key + (delta ? 0 : values + keys), k_at = key + (delta ? keys : values);
    const size_t v_at = (size_t)h * f->value_dim + (delta ? 2 * keys : 0);
    double step = log1p(exp(a + w->recurrent_step.at[h]));
    if (f->step_most > 0)
        step = fmin(fmax(step, (double)f->step_least), (double)f->step_most);
    const double decay = exp(w->recurrent_decay.at[h] * step),
                 beta = delta ? (double)form_factor(f->beta) / (1 + exp(-b)) : step;
    const double per_q = shortening(f, w, x, t, q_at) / (delta ? sqrt(f->key_dim) : 1),
                 per_k = shortening(f, w, x, t, k_at);
    for (uint32_t j = 0; j < f->value_dim; j++) {
        double *s = state + (size_t)j * f->key_dim, was = 0, out = 0;
        const double v = convolved(f, w, x, t, v_at + j);
        for (uint32_t i = 0; i < f->key_dim && delta; i++)
            was += per_k * convolved(f, w, x, t, k_at + i) * decay * s[i];
        for (uint32_t i = 0; i < f->key_dim; i++) {
            s[i] = decay * s[i] + per_k * convolved(f, w, x, t, k_at + i) * beta * (v - was);
            out += per_q * convolved(f, w, x, t, q_at + i) * s[i];
        }
        o[j] = delta ? out : out + w->recurrent_skip.at[h] * v;
    }
}

void
naive_recurrent(const struct naive_model *m, const struct naive_layer *w, double *x, size_t t, double *memory,
                double *back)
{
    const struct model_desc *d = &m->desc;
    const struct recurrent_form *f = &d->form.recurrent;
    const double eps = (double)d->rms_eps;
    const size_t values = recurrent_values(f), each = (size_t)f->key_dim * f->value_dim;
    double *state = memory, *b = state + f->value_heads * each, *a = b + LAYER_RB(d), *z = a + f->value_heads;
    double *o = z + values, *all = o + values, *own = all + t * recurrent_channels(f);
    naive_multiply(m, &w->recurrent_qkv, x, own);
    naive_multiply(m, &w->recurrent_z, x, z);
    if (w->recurrent_b.at != NULL)
        naive_multiply(m, &w->recurrent_b, x, b);
    if (w->recurrent_a.at != NULL)
        naive_multiply(m, &w->recurrent_a, x, a);
    for (size_t i = 0; i < values && f->kind == RECURRENCE_CONV; i++)
        own[i] *= b[i];
    for (size_t i = 0; i < values && f->kind == RECURRENCE_CONV; i++)
        o[i] = convolved(f, w, all, t, i) * z[i];
    for (uint32_t h = 0; h < f->value_heads && f->kind != RECURRENCE_CONV; h++) {
        update_head(f, w, all, t, h, a[h], b[h], state + h * each, o + (size_t)h * f->value_dim);
        if (f->kind == RECURRENCE_DELTA)
            norm(w->recurrent_norm.at, f->norm_eps > 0 ? (double)f->norm_eps : eps, f->value_dim,
                 o + (size_t)h * f->value_dim);
    }
    for (size_t i = 0; i < values && f->kind != RECURRENCE_CONV; i++)
        o[i] *= silu(z[i]);
    for (size_t g = 0, n = f->kind == RECURRENCE_MAMBA ? values / f->key_heads : 0; g < f->key_heads && n > 0; g++)
        norm(w->recurrent_norm.at + g * n, eps, n, o + g * n);
    naive_multiply(m, &w->recurrent_out, o, back);
}
