#include "kernels/cuda/schedule.h"

#include <stdlib.h>

#include "kernels/request.h"

#define PARTS         3                   /* products in a step, at most */
#define LAYER_ENTRIES (3 + 2 + 1 + 2 + 2) /* of qkv, fed keys and values, out, gate and up, down */

/* ---- the table of products ---- */

static struct dev_product *
add_product(struct weights *w, uint32_t l, uint32_t step, enum epilogue_kind kind, enum step_input input,
            const struct dev_matrix *m)
{
    struct plan_step *at = &w->plan[l * STEPS + step];
    struct dev_product *p = &w->products[w->n_products];
    if (at->n == 0)
        at->first = w->n_products;
    at->n++;
    w->n_products++;
    *p = (struct dev_product){.matrices = {*m}, .n_matrices = 1, .kind = kind, .input = input};
    return p;
}

/* Sets the norm of a product's input, which blocks compute themselves if the rows fit their shared memory. */
static void
set_norm(const struct weights *w, struct dev_product *p, const float *weight, const float *bias)
{
    p->norm = (struct dev_norm){weight, bias};
    p->by_squares = weight != NULL && !w->sizes.form.layer_norm;
}

/* Matrices of one type among wq, wk and wv, from number `first` on, form one product. */
static void
add_qkv(struct weights *w, uint32_t l, uint32_t step, uint32_t first)
{
    const struct dev_layer *d = &w->layers[l];
    const struct dev_matrix *const all[PARTS] = {&d->wq, &d->wk, &d->wv};
    struct dev_product *p = NULL;
    for (uint32_t i = first; i < PARTS; i++) {
        if (p == NULL || (all[i]->type != p->matrices[0].type && !w->sizes.exact)) {
            p = add_product(w, l, step, EPILOGUE_QKV, INPUT_NORMED, all[i]);
            p->first_matrix = i;
            p->rope = d->rope;
            if (step == QKV) /* fed rows are normed already */
                set_norm(w, p, d->attn_norm, d->attn_norm_b);
        } else
            p->matrices[p->n_matrices++] = *all[i];
    }
}

/* The product of a matrix whose outputs, times `scale`, are added to the hidden states. */
static void
add_to_stream(struct weights *w, uint32_t l, uint32_t step, enum step_input input, const struct dev_matrix *m,
              const float *bias, bool posts, float scale)
{
    struct dev_product *p = add_product(w, l, step, EPILOGUE_STREAM, input, m);
    p->raw = posts;
    p->bias = bias;
    p->bias_scale = posts ? 1 : w->sizes.form.residual_scale;
    p->scale = scale * p->bias_scale;
}

static void
add_stack(struct weights *w, uint32_t l, uint32_t step, const struct expert_stack *stack, bool shared, float scale)
{
    const struct dev_layer *d = &w->layers[l];
    struct dev_product *p;
    if (stack->down.rows == 0) /* there is no shared expert */
        return;
    if (step == GATE_UP) {
        p = add_product(w, l, step, EPILOGUE_EXPERT, INPUT_NORMED, &stack->gate_up);
        set_norm(w, p, d->ffn_norm, d->ffn_norm_b);
    } else {
        p = add_product(w, l, step, EPILOGUE_MIX, shared ? INPUT_SHARED_EXPERT : INPUT_EXPERTS, &stack->down);
        p->down = true;
        p->raw = d->ffn_post != NULL;
        p->scale = scale;
    }
    p->by_expert = true;
    p->shared = shared;
}

static void
add_experts(struct weights *w, uint32_t l, const struct dev_moe *moe, float scale)
{
    for (uint32_t step = GATE_UP; step <= DOWN; step++) { /* the products of a step are side by side */
        add_stack(w, l, step, &moe->routed, false, scale);
        add_stack(w, l, step, &moe->shared, true, scale);
    }
}

static void
add_mlp(struct weights *w, uint32_t l, float scale)
{
    const struct dev_layer *d = &w->layers[l];
    struct dev_product *p = add_product(w, l, GATE_UP, EPILOGUE_ACTIVATED, INPUT_NORMED, &d->gate_up);
    set_norm(w, p, d->ffn_norm, d->ffn_norm_b);
    add_to_stream(w, l, DOWN, INPUT_GATED, &d->down, d->bdown, d->ffn_post != NULL, scale);
}

static void
add_layer(struct weights *w, uint32_t l)
{
    const struct dev_layer *d = &w->layers[l];
    const float scale = w->sizes.exact ? 1 : 1 / HIDDEN_SHRINK;
    add_qkv(w, l, QKV, 0);
    if (w->sizes.drafter.block)
        add_qkv(w, l, FEED, 1);
    add_to_stream(w, l, OUT, INPUT_ATTENDED, &d->wo, d->bo, d->attn_post != NULL, 1);
    if (d->has_experts)
        add_experts(w, l, &w->moe[l], scale);
    else
        add_mlp(w, l, scale);
}

bool
schedule_model(struct weights *w, struct err *err)
{
    const size_t depths = w->desc.n_layers + 1u;
    w->plan = calloc(depths * STEPS, sizeof *w->plan);
    w->products = calloc(depths * LAYER_ENTRIES, sizeof *w->products);
    if (w->plan == NULL || w->products == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    set_norm(w, add_product(w, 0, PROBE, EPILOGUE_LOGITS, INPUT_PROBE, &w->sizes.head), w->sizes.final_norm.weight,
             w->sizes.final_norm.bias);
    for (uint32_t l = 1; l < depths; l++)
        add_layer(w, l);
    return true;
}

/* ---- the list of a pass ---- */

/* What a layer does in a pass. */
struct layer_does {
    bool attends, has_mlp, in_smem, pairs, probes, probe_in_smem; /* pairs: q, k and v read a drafter's */
    const struct dev_layer *layer;
    struct dev_head head; /* of a probe; device pointers */
};

static struct layer_does
layer_does(const struct weights *w, const struct forward_pass *f, const struct exit_rule *rule, uint32_t l)
{
    struct layer_does does = {.attends = f->skip_attention == NULL || !f->skip_attention[l],
                              .has_mlp = f->skip_mlp == NULL || !f->skip_mlp[l],
                              .in_smem = rows_fit_smem(&w->sizes, (uint32_t)f->n),
                              .pairs = w->sizes.drafter.pairs,
                              .probes = rule != NULL && rule->threshold[l] <= 1,
                              .layer = &w->layers[l]};
    if (does.probes && weights_asked(w, rule->head))
        does.head = w->heads[l];
    does.probe_in_smem = does.head.full == NULL && rows_fit_smem(&w->sizes, 1);
    return does;
}

static bool
takes(const struct layer_does *does, uint32_t step)
{
    const struct dev_layer *d = does->layer;
    switch (step) {
    case START:
    case FEED: return false;
    case NORM_ATTENTION: return does->attends && (!does->in_smem || does->pairs);
    case NORM_HEADS: return does->attends && (d->q_norm != NULL || d->k_norm != NULL);
    case POST_ATTENTION: return does->attends && d->attn_post != NULL;
    case NORM_MLP: return does->has_mlp && !does->in_smem;
    case ROUTE: return does->has_mlp && d->has_experts;
    case POST_MLP: return does->has_mlp && d->ffn_post != NULL;
    case CARRY: return !does->attends && !does->has_mlp;
    case SHIFT_PROBE: return does->probes && does->head.a != NULL;
    case NORM_PROBE: return does->probes && !does->probe_in_smem;
    case PROBE: return does->probes;
    default: return step <= OUT ? does->attends : does->has_mlp;
    }
}

/* Returns the hidden state that a step reads, or that its output is added to. */
static uint32_t
depth_read(const struct weights *w, const struct layer_does *does, uint32_t l, uint32_t step)
{
    if (step >= SHIFT_PROBE)
        return l;
    if (step <= POST_ATTENTION || !does->attends)
        return l - 1;
    return w->sizes.form.parallel && step <= GATE_UP ? l - 1 : l;
}

static uint32_t
add_step(const struct weights *w, const struct layer_does *does, uint32_t l, uint32_t step, struct pass_step *to)
{
    const struct plan_step *plan = &w->plan[(step == PROBE ? 0 : l) * STEPS + step];
    const uint32_t n = plan->n > 0 ? plan->n : 1;
    const bool in_smem = step == PROBE
                             ? does->probe_in_smem
                             : does->in_smem && ((step == QKV && !does->pairs) || step == ROUTE || step == GATE_UP);
    for (uint32_t part = 0; part < n; part++)
        to[part] = (struct pass_step){.product = plan->n > 0 ? plan->first + part : NO_PRODUCT,
                                      .layer = (uint8_t)l,
                                      .step = (uint8_t)step,
                                      .depth = (uint8_t)depth_read(w, does, l, step),
                                      .in_smem = in_smem,
                                      .norms = in_smem && part == 0,
                                      .joined = part + 1 < n,
                                      .trained = does->head.a != NULL || does->head.full != NULL,
                                      .full = step == PROBE && does->head.full != NULL};
    return n;
}

/* Returns what can be prefetched of a step's products, which begin with list[i]. Before routing, the chosen experts are
 * unknown, so of gate and up only the shared expert's can be. A full head is not packed. */
static uint32_t
prefetched(const struct weights *w, const struct pass_step *list, uint32_t i)
{
    for (;; i++) {
        const struct dev_product *p = &w->products[list[i].product];
        if (!list[i].full && (!p->by_expert || p->shared || p->down))
            return list[i].product;
        if (!list[i].joined)
            return NO_PRODUCT;
    }
}

/* Sets where layers and probes begin, and what is prefetched at the barrier after each step: the beginning of the next
 * product's weights, and the following part of them after each further step without a product. */
static void
look_ahead(const struct weights *w, struct pass_step *list, uint32_t n)
{
    uint32_t next = NO_PRODUCT;
    for (uint32_t i = n + 1; i-- > 0;) {
        list[i].ahead = next;
        if (list[i].product != NO_PRODUCT && !list[i - 1].joined)
            next = prefetched(w, list, i);
    }
    for (uint32_t i = 1; i <= n; i++) {
        const struct pass_step *before = &list[i - 1];
        list[i].windows = list[i].product == NO_PRODUCT ? (uint8_t)(before->windows + 1) : 0;
        list[i].enters = before->joined ? before->enters : list[i].layer != before->layer;
        list[i].probing = list[i].step >= SHIFT_PROBE && before->step < SHIFT_PROBE;
    }
}

uint32_t
schedule_room(uint32_t layers)
{
    return 1 + layers * (STEPS + LAYER_ENTRIES);
}

uint32_t
schedule_pass(const struct weights *w, const struct forward_pass *f, const struct exit_rule *rule,
              struct pass_step *list)
{
    const uint32_t first = request_first_layer(f);
    uint32_t n = 0;
    list[0] = (struct pass_step){.product = NO_PRODUCT, .layer = (uint8_t)(first - 1), .step = START};
    for (uint32_t l = first; l <= f->to; l++) {
        const struct layer_does does = layer_does(w, f, rule, l);
        for (uint32_t step = 0; step < STEPS; step++)
            if (takes(&does, step))
                n += add_step(w, &does, l, step, &list[n + 1]);
    }
    look_ahead(w, list, n);
    return n;
}

uint32_t
schedule_feed(const struct weights *w, uint32_t to, struct pass_step *list)
{
    uint32_t n = 0;
    list[0] = (struct pass_step){.product = NO_PRODUCT, .step = START};
    for (uint32_t l = 1; l <= to; l++) {
        const struct layer_does does = {.attends = true, .layer = &w->layers[l]};
        n += add_step(w, &does, l, FEED, &list[n + 1]);
        if (takes(&does, NORM_HEADS))
            n += add_step(w, &does, l, NORM_HEADS, &list[n + 1]);
    }
    look_ahead(w, list, n);
    return n;
}
