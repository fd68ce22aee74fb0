#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/naive_model_internal.h"

const struct model_desc *
naive_model_desc(const struct naive_model *m)
{
    return &m->desc;
}

static void
multiply(const struct naive_matrix *w, const double *x, double *out)
{
    for (uint32_t r = 0; r < w->rows; r++) {
        out[r] = 0;
        for (uint32_t i = 0; i < w->cols; i++)
            out[r] += w->at[(size_t)r * w->cols + i] * x[i];
    }
}

static void
rms_norm(const struct naive_matrix *w, double eps, const double *x, double *out)
{
    double square = 0;
    for (uint32_t i = 0; i < w->cols; i++)
        square += x[i] * x[i];
    for (uint32_t i = 0; i < w->cols; i++)
        out[i] = w->at[i] * x[i] / sqrt(square / w->cols + eps);
}

/* Bias, and norm of every head, where the model has them. */
static void
finish_heads(const struct model_desc *d, const struct naive_matrix *bias, const struct naive_matrix *norm, double *x,
             uint32_t heads)
{
    for (uint32_t i = 0; bias->at != NULL && i < bias->cols; i++)
        x[i] += bias->at[i];
    for (uint32_t h = 0; norm != NULL && norm->at != NULL && h < heads; h++)
        rms_norm(norm, (double)d->rms_eps, x + (size_t)h * d->head_dim, x + (size_t)h * d->head_dim);
}

static void
rope(const struct model_desc *d, double *x, uint32_t heads, size_t pos)
{
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
            double *head = x + h * d->head_dim;
            double *a = d->rope == ROPE_ADJACENT ? &head[2 * i] : &head[i];
            double *b = d->rope == ROPE_ADJACENT ? &head[2 * i + 1] : &head[i + d->head_dim / 2];
            const double angle = (double)pos * pow((double)d->rope_base, -2.0 * i / d->rope_dims);
            const double c = cos(angle), s = sin(angle), was = *a;
            *a = was * c - *b * s;
            *b = was * s + *b * c;
        }
}

/* One query (heads, head_dim) over n keys and values (n, kv_heads, head_dim). */
static void
attend(const struct model_desc *d, const double *query, const double *keys, const double *values, size_t n, double *out)
{
    const size_t stride = (size_t)d->kv_heads * d->head_dim;
    for (uint32_t h = 0; h < d->heads; h++) {
        const size_t kv = (size_t)(h / (d->heads / d->kv_heads)) * d->head_dim, q = (size_t)h * d->head_dim;
        double max = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; pass == 1 && i < d->head_dim; i++)
                out[q + i] = 0;
            for (size_t t = d->window > 0 && n > d->window ? n - d->window : 0; t < n; t++) {
                double score = 0;
                for (uint32_t i = 0; i < d->head_dim; i++)
                    score += query[q + i] * keys[t * stride + kv + i];
                score /= sqrt(d->head_dim);
                if (pass == 0) {
                    max = fmax(max, score);
                    continue;
                }
                sum += exp(score - max);
                for (uint32_t i = 0; i < d->head_dim; i++)
                    out[q + i] += exp(score - max) * values[t * stride + kv + i];
            }
        }
        for (uint32_t i = 0; i < d->head_dim; i++)
            out[q + i] /= sum;
    }
}

bool
naive_hidden(const struct naive_model *m, const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    const struct model_desc *d = &m->desc;
    const size_t width = d->width, qn = (size_t)d->heads * d->head_dim, kvn = (size_t)d->kv_heads * d->head_dim;
    double *memory = calloc(n * (width + 2 * kvn) + 2 * width + 2 * qn + 2 * d->ffn, sizeof *memory);
    if (memory == NULL)
        return false;
    double *hidden = memory, *keys = hidden + n * width, *values = keys + n * kvn, *x = values + n * kvn;
    double *back = x + width, *query = back + width, *attended = query + qn, *gate = attended + qn, *up = gate + d->ffn;

    for (size_t t = 0; t < n; t++)
        memcpy(hidden + t * width, m->embedding.at + (size_t)path[t].token * width, width * sizeof *hidden);
    memcpy(out, hidden + (n - 1) * width, width * sizeof *out);
    for (uint32_t l = 1; l <= depth; l++) {
        const struct naive_layer *w = &m->doubles[l - 1];
        for (size_t t = 0; t < n; t++) {
            rms_norm(&w->attn_norm, (double)d->rms_eps, hidden + t * width, x);
            multiply(&w->wk, x, keys + t * kvn);
            multiply(&w->wv, x, values + t * kvn);
            finish_heads(d, &w->bk, &w->k_norm, keys + t * kvn, d->kv_heads);
            finish_heads(d, &w->bv, NULL, values + t * kvn, d->kv_heads);
            rope(d, keys + t * kvn, d->kv_heads, t);
        }
        for (size_t t = 0; t < n; t++) {
            double *h = hidden + t * width;
            if (path[t].skip_attention == NULL || !path[t].skip_attention[l]) {
                rms_norm(&w->attn_norm, (double)d->rms_eps, h, x);
                multiply(&w->wq, x, query);
                finish_heads(d, &w->bq, &w->q_norm, query, d->heads);
                rope(d, query, d->heads, t);
                attend(d, query, keys, values, t + 1, attended);
                multiply(&w->wo, attended, back);
                for (size_t i = 0; i < width; i++)
                    h[i] += back[i];
            }
            if (path[t].skip_mlp == NULL || !path[t].skip_mlp[l]) {
                rms_norm(&w->ffn_norm, (double)d->rms_eps, h, x);
                multiply(&w->gate, x, gate);
                multiply(&w->up, x, up);
                for (uint32_t i = 0; i < d->ffn; i++)
                    up[i] *= gate[i] / (1 + exp(-gate[i]));
                multiply(&w->down, up, back);
                for (size_t i = 0; i < width; i++)
                    h[i] += back[i];
            }
        }
        memcpy(out + l * width, hidden + (n - 1) * width, width * sizeof *out);
    }
    free(memory);
    return true;
}

void
naive_logits(const struct naive_model *m, const double *hidden, double *out)
{
    double *x = calloc(m->desc.width, sizeof *x);
    if (x == NULL)
        return;
    rms_norm(&m->final_norm, (double)m->desc.rms_eps, hidden, x);
    multiply(&m->head, x, out);
    free(x);
}
