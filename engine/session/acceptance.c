/* What the acceptance head says of a row, what it reads for that, and what it costs. */
#include <stdlib.h>

#include "engine/session/session_internal.h"
#include "engine/trained/accept_predictor.h"

bool
session_open_acceptance(struct session *s, struct err *err)
{
    struct acceptance *a = &s->acceptance;
    const struct engine *e = s->engine;
    if (e->accept == NULL)
        return true;
    if (!final_norm_open(&a->norm, &engine_draft_model(e)->desc, err) ||
        !accept_predictor_open(&a->predictor, e->accept, e->threads, err))
        return false;
    a->x = malloc(a->norm.width * sizeof *a->x);
    if (a->x == NULL)
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    a->load = (double)(e->accept->n_values * sizeof *e->accept->values) / model_head_bytes(e->model, e->exact);
    return true;
}

void
session_close_acceptance(struct session *s)
{
    final_norm_free(&s->acceptance.norm);
    accept_predictor_close(s->acceptance.predictor);
    free(s->acceptance.x);
    s->acceptance = (struct acceptance){.x = NULL};
}

bool
session_acceptance(struct session *s, struct context *ctx, slot_t row, uint32_t layer, double *p)
{
    struct acceptance *a = &s->acceptance;
    if (!context_read_hidden(ctx, row, layer, a->x))
        return false;
    final_norm_apply(&a->norm, a->x, a->x);
    *p = accept_predictor_ask(a->predictor, a->x);
    a->heads += a->load;
    return true;
}
