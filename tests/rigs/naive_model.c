#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/naive_model_internal.h"

const struct model_desc *
naive_model_desc(const struct naive_model *m)
{
    return &m->desc;
}

void
naive_multiply(const struct naive_model *m, const struct naive_matrix *w, double *x, double *out)
{
    naive_hold(m, x, w->cols);
    for (uint32_t r = 0; r < w->rows; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < w->cols; i++)
            sum += w->at[(size_t)r * w->cols + i] * x[i];
        out[r] = sum;
    }
}

static void
norm(const struct model_desc *d, const struct naive_matrix *w, const struct naive_matrix *bias, const double *x,
     double *out)
{
    double mean = 0, square = 0;
    for (uint32_t i = 0; d->form.layer_norm && i < w->cols; i++)
        mean += x[i] / w->cols;
    for (uint32_t i = 0; i < w->cols; i++)
        square += (x[i] - mean) * (x[i] - mean);
    for (uint32_t i = 0; i < w->cols; i++)
        out[i] = w->at[i] * (x[i] - mean) / sqrt(square / w->cols + (double)d->rms_eps) +
                 (bias != NULL && bias->at != NULL ? bias->at[i] : 0);
}

/* Computes the input of a sublayer: the norm of x, or x itself if there is no norm. */
static void
read_stream(const struct model_desc *d, const struct naive_matrix *w, const struct naive_matrix *bias, const double *x,
            double *out)
{
    if (w->at != NULL)
        norm(d, w, bias, x, out);
    else
        memcpy(out, x, d->width * sizeof *out);
}

static void
add_bias(const struct naive_matrix *bias, double *x)
{
    for (uint32_t i = 0; bias->at != NULL && i < bias->cols; i++)
        x[i] += bias->at[i];
}

static void
norm_heads(const struct model_desc *d, const struct naive_matrix *w, double *x, uint32_t heads, uint32_t dim)
{
    if (w->at == NULL)
        return;
    if (d->form.whole_norms)
        norm(d, w, NULL, x, x);
    for (uint32_t h = 0; !d->form.whole_norms && h < heads; h++)
        norm(d, w, NULL, x + (size_t)h * dim, x + (size_t)h * dim);
}

static void
rope(const struct model_desc *d, enum layer_rope kind, double *x, uint32_t heads, uint32_t dim, size_t pos)
{
    const uint32_t dims = kind == LAYER_ROPE_LOCAL && d->form.local_dims > 0 ? d->form.local_dims : d->rope_dims;
    const double base = (double)(kind == LAYER_ROPE_LOCAL ? d->form.local_base : d->rope_base);
    const double gain = kind == LAYER_ROPE_LOCAL ? 1 : (double)form_factor(d->form.rope_gain);
    for (uint32_t h = 0; kind != LAYER_ROPE_NONE && h < heads; h++)
        for (uint32_t i = 0; i < dims / 2; i++) {
            double *head = x + h * dim;
            double *a = d->rope == ROPE_ADJACENT ? &head[2 * i] : &head[i];
            double *b = d->rope == ROPE_ADJACENT ? &head[2 * i + 1] : &head[i + dims / 2];
            const double angle = (double)pos * pow(base, -2.0 * i / dims);
            const double c = gain * cos(angle), s = gain * sin(angle), was = *a;
            *a = was * c - *b * s;
            *b = was * s + *b * c;
        }
}

static void
clip(const struct model_desc *d, double *x, size_t n)
{
    for (size_t i = 0; i < n && d->form.clip > 0; i++)
        x[i] = fmax(-(double)d->form.clip, fmin((double)d->form.clip, x[i]));
}

static double
in_bf16(double x)
{
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(nearbyint(mantissa * 256), exponent - 8);
}

/* Returns the ALiBi bias of position t's score in head h. */
static double
alibi_bias(const struct model_desc *d, uint32_t h, size_t t)
{
    const struct alibi *a = &d->form.alibi;
    double whole = 1, exponent;
    if (!(a->most > 0))
        return 0;
    while (2 * whole <= d->heads)
        whole *= 2;
    exponent = h < whole ? (h + 1) / whole : (2 * (h - whole) + 1) / (2 * whole);
    const double slope = pow(2, -(double)a->most * exponent);
    return (double)form_factor(a->scale) * (a->in_bf16 ? in_bf16(in_bf16(slope) * (double)t) : slope * (double)t);
}

/* Applies bias, norm and rotation to queries or keys. */
static void
finish_heads(const struct model_desc *d, const struct layer_form *form, const struct naive_matrix *bias,
             const struct naive_matrix *w, double *x, uint32_t heads, size_t pos)
{
    const uint32_t dim = layer_sizes(d, form).head_dim;
    add_bias(bias, x);
    if (!d->form.late_norms)
        norm_heads(d, w, x, heads, dim);
    clip(d, x, (size_t)heads * dim);
    rope(d, form->rope, x, heads, dim, pos);
    if (d->form.late_norms)
        norm_heads(d, w, x, heads, dim);
}

static double
capped(double cap, double x)
{
    return cap > 0 ? cap * tanh(x / cap) : x;
}

static double
activated(enum activation kind, const struct xielu *a, double x)
{
    switch (kind) {
    case ACT_SILU: return x / (1 + exp(-x));
    case ACT_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case ACT_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case ACT_RELU_SQUARED: return x > 0 ? x * x : 0;
    case ACT_XIELU:
    case ACT_SWIGLU_CLAMPED: break;
    }
    const double linear = (double)a->beta * x;
    return x > 0 ? (double)a->alpha_p * x * x + linear
                 : (expm1(fmin(x, (double)a->eps)) - x) * (double)a->alpha_n + linear;
}

double
naive_activated(enum activation kind, const struct xielu *a, bool gated, double gate, double up)
{
    if (kind == ACT_SWIGLU_CLAMPED)
        return fmin(gate, 7) / (1 + exp(-1.702 * fmin(gate, 7))) * (1 + fmax(-7, fmin(up, 7)));
    return gated ? up * activated(kind, a, gate) : activated(kind, a, up);
}

/* Adds a sublayer's output, after its own norm if it has one. */
static void
add(const struct model_desc *d, const struct naive_matrix *bias, const struct naive_matrix *post, double *back,
    double *h)
{
    add_bias(bias, back);
    if (post->at != NULL)
        norm(d, post, NULL, back, back);
    for (size_t i = 0; i < d->width; i++)
        h[i] += (double)form_factor(d->form.residual_scale) * back[i];
}

/* Attends with one query (heads, head_dim) to n keys and values (n, kv_heads, head_dim). */
static void
attend(const struct model_desc *d, const struct layer_form *form, const struct naive_matrix *sinks, const double *query,
       const double *keys, const double *values, size_t n, double *out)
{
    const struct layer_sizes n_of = layer_sizes(d, form);
    const uint32_t dim = n_of.head_dim;
    const double scale = d->form.attention_scale > 0 ? (double)d->form.attention_scale : 1 / sqrt(n_of.head_dim);
    const uint32_t window = form->sees_all ? 0 : d->window;
    const size_t stride = n_of.kv;
    for (uint32_t h = 0; h < d->heads; h++) {
        const size_t kv = (size_t)(h / (d->heads / n_of.kv_heads)) * dim, q = (size_t)h * dim;
        double max = sinks->at != NULL ? sinks->at[h] : -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; pass == 1 && i < dim; i++)
                out[q + i] = 0;
            for (size_t t = window > 0 && n > window ? n - window : 0; t < n; t++) {
                double score = 0;
                for (uint32_t i = 0; i < dim; i++)
                    score += query[q + i] * keys[t * stride + kv + i];
                score = capped((double)d->form.attention_cap, score * scale) + alibi_bias(d, h, t);
                if (pass == 0) {
                    max = fmax(max, score);
                    continue;
                }
                sum += exp(score - max);
                for (uint32_t i = 0; i < dim; i++)
                    out[q + i] += exp(score - max) * values[t * stride + kv + i];
            }
        }
        sum += sinks->at != NULL ? exp(sinks->at[h] - max) : 0;
        for (uint32_t i = 0; i < dim; i++)
            out[q + i] /= sum;
    }
}

/* Scales queries, more at late positions. */
static void
grow(const struct model_desc *d, double *query, size_t n, size_t t)
{
    for (size_t i = 0; i < n && d->form.growth > 0; i++)
        query[i] *= 1 + (double)d->form.growth * log(1 + floor((double)t / d->form.growth_every));
}

static void
embed(const struct naive_model *m, const struct naive_token *path, size_t n, double *hidden)
{
    const size_t width = m->desc.width;
    const double scale = (double)form_factor(m->desc.form.embedding_scale);
    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < width; i++)
            hidden[t * width + i] = m->embedding.at[(size_t)path[t].token * width + i] * scale +
                                    (m->positions.at != NULL ? m->positions.at[t * width + i] : 0);
        if (m->embedding_norm.at != NULL)
            norm(&m->desc, &m->embedding_norm, &m->embedding_norm_bias, hidden + t * width, hidden + t * width);
    }
}

static void
mlp(const struct naive_model *m, const struct naive_layer *w, const struct xielu *own, double *x, double *gate,
    double *up, double *back)
{
    const bool gated = w->gate.at != NULL;
    naive_multiply(m, &w->up, x, up);
    add_bias(&w->bup, up);
    if (gated) {
        naive_multiply(m, &w->gate, x, gate);
        add_bias(&w->bgate, gate);
    }
    for (uint32_t i = 0; i < w->up.rows; i++)
        up[i] = naive_activated(m->desc.form.activation, own, gated, gate[i], up[i]);
    naive_multiply(m, &w->down, up, back);
}

/* Divides values by their root mean square, head by head. */
static void
norm_values(const struct model_desc *d, struct layer_sizes n, double *values)
{
    for (uint32_t h = 0; d->form.value_norms && h < n.kv_heads; h++) {
        double *x = values + (size_t)h * n.head_dim, square = 0;
        for (uint32_t i = 0; i < n.head_dim; i++)
            square += x[i] * x[i] / n.head_dim;
        for (uint32_t i = 0; i < n.head_dim; i++)
            x[i] /= sqrt(square + (double)d->rms_eps);
    }
}

/* Computes a layer's keys and values for all tokens. */
static void
keys_and_values(const struct naive_model *m, uint32_t l, const double *hidden, size_t n, double *x, double *keys,
                double *values)
{
    const struct model_desc *d = &m->desc;
    const struct naive_layer *w = &m->doubles[l - 1];
    const struct layer_form *form = &d->layers[l - 1].form;
    const struct layer_sizes of = layer_sizes(d, form);
    const bool own = w->wv.at != NULL;
    for (size_t t = 0; t < n; t++) {
        read_stream(d, &w->attn_norm, &w->attn_norm_b, hidden + t * d->width, x);
        naive_multiply(m, &w->wk, x, keys + t * of.kv);
        naive_multiply(m, own ? &w->wv : &w->wk, x, values + t * of.kv);
        finish_heads(d, form, &w->bk, &w->k_norm, keys + t * of.kv, of.kv_heads, t);
        add_bias(own ? &w->bv : &w->bk, values + t * of.kv);
        clip(d, values + t * of.kv, of.kv);
        norm_values(d, of, values + t * of.kv);
    }
    naive_hold(m, keys, n * of.kv);
    naive_hold(m, values, n * of.kv);
}

/* Computes the experts of a layer that also has an MLP, whose output is in `back`. Each output gets its own norm, and
 * they are added. */
static bool
experts_beside(const struct naive_model *m, const struct naive_layer *w, const struct xielu *own, const double *h,
               double *back)
{
    const struct model_desc *d = &m->desc;
    double *routed = calloc(3 * (size_t)d->width, sizeof *routed), *x = routed + d->width, *sum = x + d->width;
    if (routed == NULL)
        return false;
    norm(d, &w->mlp_post, NULL, back, back);
    norm(d, &w->router_norm, NULL, h, routed);
    norm(d, &w->experts_norm, NULL, h, x);
    const bool ok = naive_experts(m, w, own, routed, x, sum);
    norm(d, &w->experts_post, NULL, sum, sum);
    for (uint32_t i = 0; i < d->width; i++)
        back[i] += sum[i];
    free(routed);
    return ok;
}

/* Adds the layer's per-layer input for a token, whose embedding is `embedded`. */
static bool
add_inputs(const struct naive_model *m, uint32_t l, const struct naive_token *token, double *embedded, double *back,
           double *h)
{
    const struct model_desc *d = &m->desc;
    const struct naive_layer *w = &m->doubles[l - 1];
    const uint32_t n = d->form.per_layer;
    double *input = calloc(2 * (size_t)n + 1, sizeof *input), *gate = input + n;
    if (input == NULL)
        return false;
    naive_multiply(m, &w->input, embedded, input);
    for (uint32_t i = 0; i < n; i++)
        input[i] /= sqrt(d->width);
    norm(d, &m->input_norm, NULL, input, input);
    for (uint32_t i = 0; i < n; i++)
        input[i] = (input[i] + sqrt(n) * m->input_embedding.at[((size_t)token->token * d->n_layers + l - 1) * n + i]) /
                   sqrt(2);
    naive_multiply(m, &w->input_gate, h, gate);
    for (uint32_t i = 0; i < n; i++)
        gate[i] = naive_activated(d->form.activation, NULL, true, gate[i], input[i]);
    naive_multiply(m, &w->input_out, gate, back);
    const struct naive_matrix none = {.at = NULL};
    add(d, &none, &w->input_post, back, h);
    free(input);
    return true;
}

/* Separates queries from their gates; apply_gates() multiplies the heads' outputs by the gates. */
static void
part_gates(const struct model_desc *d, const double *gated, double *query)
{
    for (size_t i = 0; i < (size_t)d->heads * d->head_dim && d->form.output_gate; i++)
        query[i] = gated[i / d->head_dim * 2 * d->head_dim + i % d->head_dim];
}

static void
apply_gates(const struct model_desc *d, const double *gated, double *out)
{
    for (size_t i = 0; i < (size_t)d->heads * d->head_dim && d->form.output_gate; i++)
        out[i] /= 1 + exp(-gated[(i / d->head_dim * 2 + 1) * d->head_dim + i % d->head_dim]);
}

/* Computes attention of token t to the tokens up to it. `query` has room for the queries and the outputs of the
 * heads. */
static void
attention(const struct naive_model *m, uint32_t l, size_t t, double *x, const double *keys, const double *values,
          double *query, double *gated, double *back)
{
    const struct model_desc *d = &m->desc;
    const struct naive_layer *w = &m->doubles[l - 1];
    const struct layer_form *form = &d->layers[l - 1].form;
    double *attended = query + (size_t)d->heads * d->head_dim;
    naive_multiply(m, &w->wq, x, d->form.output_gate ? gated : query);
    part_gates(d, gated, query);
    finish_heads(d, form, &w->bq, &w->q_norm, query, d->heads, t);
    grow(d, query, layer_sizes(d, form).q, t);
    attend(d, form, &w->sinks, query, keys, values, t + 1, attended);
    apply_gates(d, gated, attended);
    naive_multiply(m, &w->wo, attended, back);
}

bool
naive_hidden(const struct naive_model *m, const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    const struct model_desc *d = &m->desc;
    const size_t width = d->width, qn = (size_t)d->heads * d->head_dim, kvn = (size_t)d->kv_heads * d->head_dim;
    const size_t gates = d->form.output_gate ? qn : 0, states = naive_recurrent_numbers(d, n);
    double *memory =
        calloc(n * 2 * (width + depth * kvn) + 4 * width + 2 * qn + 2 * gates + 2 * d->ffn + states, sizeof *memory);
    if (memory == NULL)
        return false;
    double *hidden = memory, *embedded = hidden + n * width, *all = embedded + n * width,
           *x = all + 2 * n * depth * kvn;
    double *back = x + width, *before = back + width, *copy = before + width, *query = copy + width;
    double *gate = query + 2 * qn, *up = gate + d->ffn, *gated = up + d->ffn, *state = gated + 2 * gates;
    bool ok = true;

    embed(m, path, n, hidden);
    memcpy(embedded, hidden, n * width * sizeof *hidden);
    memcpy(out, hidden + (n - 1) * width, width * sizeof *out);
    for (uint32_t l = 1; l <= depth; l++) {
        const struct naive_layer *w = &m->doubles[l - 1];
        const struct layer_form *form = &d->layers[l - 1].form;
        const bool recurrent = form->kind == LAYER_RECURRENT;
        double *keys = all + 2 * n * kvn * ((form->kv_layer > 0 ? form->kv_layer : l) - 1), *values = keys + n * kvn;
        memset(state, 0, states * sizeof *state);
        if (form->kv_layer == 0 && !recurrent)
            keys_and_values(m, l, hidden, n, x, keys, values);
        for (size_t t = 0; t < n; t++) {
            double *h = hidden + t * width;
            memcpy(before, h, width * sizeof *before);
            if (path[t].skip_attention == NULL || !path[t].skip_attention[l]) {
                read_stream(d, &w->attn_norm, &w->attn_norm_b, h, x);
                if (recurrent) {
                    naive_recurrent(m, w, x, t, state, back);
                } else {
                    attention(m, l, t, x, keys, values, query, gated, back);
                }
                add(d, &w->bo, &w->attn_post, back, h);
            }
            if (path[t].skip_mlp == NULL || !path[t].skip_mlp[l]) {
                const bool own = w->ffn_norm.at != NULL || !d->form.parallel;
                read_stream(d, own ? &w->ffn_norm : &w->attn_norm, own ? &w->ffn_norm_b : &w->attn_norm_b,
                            d->form.parallel ? before : h, x);
                if (w->experts == NULL || w->up.at != NULL)
                    mlp(m, w, &form->xielu, x, gate, up, back);
                if (w->experts != NULL && w->up.at != NULL)
                    ok = ok && experts_beside(m, w, &form->xielu, h, back);
                else if (w->experts != NULL)
                    ok = ok && naive_experts(m, w, &form->xielu, x, x, back);
                add(d, &w->bdown, &w->ffn_post, back, h);
                memcpy(copy, embedded + t * width, width * sizeof *copy);
                ok = ok && (d->form.per_layer == 0 || add_inputs(m, l, &path[t], copy, back, h));
            }
            for (size_t i = 0; i < width && w->out_scale.at != NULL; i++)
                h[i] *= w->out_scale.at[0];
        }
        memcpy(out + l * width, hidden + (n - 1) * width, width * sizeof *out);
    }
    free(memory);
    return ok;
}

void
naive_final_norm(const struct naive_model *m, const double *hidden, double *out)
{
    norm(&m->desc, &m->final_norm, &m->final_norm_bias, hidden, out);
}

void
naive_shape_logits(const struct naive_model *m, double *logits)
{
    add_bias(&m->head_bias, logits);
    for (uint32_t i = 0; i < m->desc.vocab; i++)
        logits[i] = capped((double)m->desc.form.logit_cap, logits[i] * (double)form_factor(m->desc.form.logit_scale));
}

void
naive_logits(const struct naive_model *m, const double *hidden, double *out)
{
    double *x = calloc(m->desc.width, sizeof *x);
    if (x == NULL)
        return;
    naive_final_norm(m, hidden, x);
    naive_multiply(m, &m->head, x, out);
    naive_shape_logits(m, out);
    free(x);
}
