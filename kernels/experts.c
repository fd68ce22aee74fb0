#include "kernels/experts.h"

#include <inttypes.h>

#include "kernels/tensor.h"

const char *const expert_tensor_names[EXPERT_TENSORS] = {
#define NAME_OF(NAME, field, rows, cols, gguf) [EXPERT_##NAME] = gguf,
    FOR_EXPERT_TENSORS(NAME_OF, NAME_OF)};

void
expert_tensor_shape(const struct model_desc *d, uint32_t e, enum expert_tensor which, uint32_t *rows, uint32_t *cols)
{
    const uint32_t ffn = e < d->form.experts.n ? d->form.experts.ffn : d->form.experts.shared_ffn;
    switch (which) {
#define SHAPE(NAME, field, n_rows, n_cols, ...)                                                                        \
    case EXPERT_##NAME: *rows = n_rows, *cols = n_cols; break;
        FOR_EXPERT_TENSORS(SHAPE, SHAPE)
    case EXPERT_TENSORS: *rows = *cols = 0;
    }
}

static bool
numbers_fit(const struct experts_form *f, struct err *err)
{
    const uint32_t groups = f->groups > 0 ? f->groups : 1, each = f->n / groups;
    const uint32_t from = groups > 1 ? f->groups_used * each : f->n;
    if (f->n > 0 && f->n <= EXPERTS_MOST && f->used > 0 && f->used <= EXPERTS_USED_MOST && f->used <= from &&
        f->ffn > 0 && f->ffn <= INT32_MAX && f->shared_ffn <= INT32_MAX && f->n % groups == 0 &&
        f->groups_used <= groups && (groups == 1 || each >= 2) && f->routing < ROUTINGS &&
        (f->routing != ROUTE_SPARSEMIXER || (groups == 1 && f->jitter >= 0)))
        return true;
    return err_set(err, ERR_WORK,
                   "%" PRIu32 " of %" PRIu32 " experts for a row, of %" PRIu32 " units, from %" PRIu32 " of %" PRIu32
                   " groups: no model of this shape can be run; the file is damaged",
                   f->used, f->n, f->ffn, f->groups_used, f->groups);
}

bool
experts_fit(const struct model_desc *d, uint32_t layer, struct err *err)
{
    const struct expert_desc *experts = d->layers[layer - 1].experts;
    if (!numbers_fit(&d->form.experts, err))
        return false;
    for (uint32_t e = 0; e < experts_listed(d); e++)
        for (enum expert_tensor i = 0; i < EXPERT_TENSORS; i++) {
            const struct tensor *t = &experts[e].all[i];
            const bool vector = i >= EXPERT_MATRICES;
            uint32_t rows, cols;
            expert_tensor_shape(d, e, i, &rows, &cols);
            if (!tensor_present(t) && (vector || i == EXPERT_GATE))
                continue;
            if (!tensor_present(t) || !tensor_possible(t) || t->rows != rows || t->cols != cols ||
                (vector && (t->data == NULL || tensor_block_values(t->type) != 1)))
                return err_set(
                    err, ERR_WORK,
                    "%s of expert %" PRIu32 " in layer %" PRIu32 " is %" PRIu32 " by %" PRIu32 " (%s), not %" PRIu32
                    " by %" PRIu32 ": the model file is damaged or of a kind this program does not know",
                    expert_tensor_names[i], e, layer, t->rows, t->cols, tensor_type_name(t->type), rows, cols);
        }
    return true;
}
