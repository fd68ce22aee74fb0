#include "kernels/cuda/mixtures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "kernels/tensor.h"

bool
mixtures_fit(const struct model_desc *d, struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    for (uint32_t l = 0; l < d->n_layers && d->form.activation == ACT_SWIGLU_CLAMPED; l++) {
        const struct layer_desc *layer = &d->layers[l];
        if (!tensor_present(layer->experts != NULL ? &layer->experts[0].gate : &layer->gate))
            return err_set(err, ERR_WORK, "backend cuda: clamps only MLPs with gates; use --backend cpu");
    }
    if (f->n > MOST_EXPERTS)
        return err_set(err, ERR_WORK, "backend cuda: %" PRIu32 " experts are more than its %d; use --backend cpu", f->n,
                       MOST_EXPERTS);
    return true;
}

/* ---- stacks: n experts from number `first` of the list on, which are of one shape ---- */

struct stack_plan {
    const struct expert_desc *experts;
    uint32_t n;
    bool exact, down;
};

static bool
plan_one(const struct stack_plan *s, uint32_t e, struct packing *p)
{
    const struct expert_desc *from = &s->experts[e];
    if (s->down)
        return pack_plain(p, &from->down, s->exact);
    return tensor_present(&from->gate) ? pack_gate_up(p, &from->gate, &from->up, s->exact)
                                       : pack_plain(p, &from->up, s->exact);
}

/* The first one's plan, of the type that all of them will have; its source is the caller's. */
static bool
plan_stack(const struct stack_plan *s, struct packing *p, struct err *err)
{
    static const char no_memory[] = "not enough memory to pack the model's weights";
    if (!plan_one(s, 0, p))
        return err_set(err, ERR_WORK, no_memory);
    const bool gated = tensor_present(&s->experts[0].gate);
    for (uint32_t e = 1; e < s->n; e++) {
        const struct expert_desc *from = &s->experts[e];
        const struct tensor *parts[2] = {s->down ? &from->down : &from->up, s->down ? &from->down : &from->gate};
        for (size_t i = 0; i < (gated ? 2 : 1); i++)
            if (pack_type(parts[i]->type, s->exact) != p->type)
                p->type = WEIGHT_F16; /* a stack has one type */
        if (tensor_present(&from->gate) != gated) {
            free(p->source);
            return err_set(err, ERR_WORK,
                           "some experts of a layer have gates and some have none: the model file is "
                           "damaged or of a kind this program does not know");
        }
    }
    return true;
}

static bool
load_matrices(struct upload *u, const struct stack_plan *s, struct dev_matrix *to, struct err *err)
{
    struct packing p;
    if (!plan_stack(s, &p, err))
        return false;
    bool ok = upload_stack(u, &p, s->n, to, err);
    for (uint32_t e = 0; e < s->n && ok; e++) {
        const bool gated = p.n_parts > 1;
        p.parts[0] = s->down ? &s->experts[e].down : gated ? &s->experts[e].gate : &s->experts[e].up;
        p.parts[1] = gated ? &s->experts[e].up : NULL;
        ok = upload_stacked(u, &p, to, e, err);
    }
    free(p.source);
    return ok;
}

/* (n, length) F32, zeros where an expert has none; NULL where none has one. */
static bool
load_biases(struct upload *u, const struct stack_plan *s, enum expert_tensor which, uint32_t length, const float **out,
            struct err *err)
{
    const void *there = NULL;
    bool any = false, ok = true;
    for (uint32_t e = 0; e < s->n; e++)
        any = any || tensor_present(&s->experts[e].all[which]);
    if (any) {
        float *values = calloc((size_t)s->n * length, sizeof *values);
        if (values == NULL)
            return err_set(err, ERR_WORK, "not enough memory for the model's weights");
        for (uint32_t e = 0; e < s->n; e++)
            if (tensor_present(&s->experts[e].all[which]))
                tensor_row(&s->experts[e].all[which], 0, values + (size_t)e * length);
        ok = upload_array(u, values, (size_t)s->n * length * sizeof *values, expert_tensor_names[which], &there, err);
        free(values);
    }
    *out = there;
    return ok;
}

static bool
load_stack(struct upload *u, const struct model_desc *d, const struct expert_desc *experts, uint32_t n, uint32_t ffn,
           struct expert_stack *to, struct err *err)
{
    struct stack_plan s = {.experts = experts, .n = n, .exact = u->backend->exact};
    if (!load_matrices(u, &s, &to->gate_up, err) || !load_biases(u, &s, EXPERT_BGATE, ffn, &to->bgate, err) ||
        !load_biases(u, &s, EXPERT_BUP, ffn, &to->bup, err) ||
        !load_biases(u, &s, EXPERT_BDOWN, d->width, &to->bdown, err))
        return false;
    s.down = true;
    return load_matrices(u, &s, &to->down, err);
}

/* ---- layers ---- */

static bool
count_stack(const struct expert_desc *experts, uint32_t n, bool exact, struct upload_census *c, struct err *err)
{
    struct stack_plan s = {.experts = experts, .n = n, .exact = exact};
    for (int down = 0; down < 2; down++) {
        struct packing p;
        s.down = down;
        if (!plan_stack(&s, &p, err))
            return false;
        upload_count(c, &p, n);
        free(p.source);
    }
    return true;
}

bool
mixture_count(const struct model_desc *d, const struct layer_desc *l, bool exact, struct upload_census *c,
              struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    c->bytes += (size_t)f->n * d->width * sizeof(float);
    return count_stack(l->experts, f->n, exact, c, err) &&
           (f->shared_ffn == 0 || count_stack(l->experts + f->n, 1, exact, c, err));
}

/* In F32, whatever the file has it in: what it chooses decides which experts a row goes to. */
static bool
load_router(struct upload *u, const struct tensor *t, const float **out, struct err *err)
{
    const void *there = NULL;
    float *values = malloc((size_t)t->rows * t->cols * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t e = 0; e < t->rows; e++)
        tensor_row(t, e, values + (size_t)e * t->cols);
    const bool ok = upload_array(u, values, (size_t)t->rows * t->cols * sizeof *values, "a router", &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_mixture(struct upload *u, const struct model_desc *d, const struct layer_desc *l, struct dev_mixture *to,
             struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    return load_router(u, &l->router, &to->router, err) &&
           load_stack(u, d, l->experts, f->n, f->ffn, &to->routed, err) &&
           (f->shared_ffn == 0 || load_stack(u, d, l->experts + f->n, 1, f->shared_ffn, &to->shared, err));
}

bool
mixtures_load(struct upload *u, const struct model_desc *d, const struct dev_mixture **out, struct err *err)
{
    const size_t n = d->n_layers + 1u;
    const void *there = NULL;
    struct dev_mixture *all = calloc(n, sizeof *all);
    if (all == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    bool ok = true;
    for (uint32_t l = 1; l <= d->n_layers && ok; l++)
        ok = d->layers[l - 1].experts == NULL || load_mixture(u, d, &d->layers[l - 1], &all[l], err);
    ok = ok && upload_array(u, all, n * sizeof *all, "tables", &there, err);
    *out = there;
    free(all);
    return ok;
}
