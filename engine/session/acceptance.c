/* What the acceptance head says of a row, what it reads for that, and what it costs. */
#include <stdlib.h>

#include "engine/session/session_internal.h"

bool
session_open_acceptance(struct session *s, struct err *err)
{
    struct acceptance *a = &s->acceptance;
    const struct engine *e = s->engine;
    if (e->accept == NULL)
        return true;
    if (!final_norm_open(&a->norm, &engine_draft_model(e)->desc, err))
        return false;
    a->x = malloc(3 * (size_t)a->norm.width * sizeof *a->x);
    if (a->x == NULL)
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    a->load = (double)(e->accept->n_values * sizeof *e->accept->values) / model_head_bytes(e->model, e->exact);
    return true;
}

void
session_close_acceptance(struct session *s)
{
    final_norm_free(&s->acceptance.norm);
    free(s->acceptance.x);
}

bool
session_acceptance(struct session *s, struct context *ctx, slot_t row, uint32_t layer, double *p)
{
    struct acceptance *a = &s->acceptance;
    if (!context_read_hidden(ctx, row, layer, a->x))
        return false;
    final_norm_apply(&a->norm, a->x, a->x);
    *p = accept_head_probability(s->engine->accept, a->x, a->x + a->norm.width);
    a->heads += a->load;
    return true;
}
