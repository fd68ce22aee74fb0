#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/generation/generation.h"
#include "cli/train/train_accept.h"
#include "cli/train/train_blas.h"
#include "cli/train/train_prompts.h"
#include "engine/training/blas.h"
#include "engine/training/shuffle.h"

#define LOOKS 4 /* at held-out candidates, in a pass */

struct pass { /* what training one head needs */
    struct accept_head *head;
    struct accept_training *training;
    size_t *order;
    float *x, *label; /* (batch, width), (batch) */
};

static bool
pass_open(struct pass *p, const struct accept_job *j, uint32_t blocks, struct err *err)
{
    const struct options *o = j->options;
    const struct engine *e = j->engine;
    const struct model *draft = engine_draft_model(e), *target = e->model;
    const struct accept_training_options options = {
        .threads = e->threads, .batch = o->train.batch, .w_reject = o->accept.w_reject, .blas = j->blas};
    if (!accept_head_new(&p->head, draft->desc.width, blocks, false, err) ||
        !accept_training_open(&p->training, p->head, o->seed, &options, err))
        return false;
    p->head->draft_hash = engine_helper_hash(e, HELPER_DRAFT);
    p->head->draft_layers = e->helpers[HELPER_DRAFT].exit_layer;
    p->head->target_hash = target->hash;
    engine_helper_name(e, HELPER_DRAFT, p->head->draft, sizeof p->head->draft);
    snprintf(p->head->target, sizeof p->head->target, "%s", target->name);
    p->order = malloc(j->train.n * sizeof *p->order);
    p->x = malloc(o->train.batch * draft->desc.width * sizeof *p->x);
    p->label = malloc(o->train.batch * sizeof *p->label);
    for (size_t i = 0; i < j->train.n && p->order != NULL; i++)
        p->order[i] = i;
    return (p->order != NULL && p->x != NULL && p->label != NULL) ||
           err_set(err, ERR_WORK, "train accept: out of memory; use a smaller --batch");
}

static void
pass_close(struct pass *p)
{
    accept_training_close(p->training);
    accept_head_free(p->head);
    free(p->order);
    free(p->x);
    free(p->label);
}

static bool
remember(struct accept_job *j, const struct accept_head *h, double loss, struct err *err)
{
    j->best_loss = loss;
    if (j->best == NULL || j->best->n_blocks != h->n_blocks) {
        accept_head_free(j->best);
        if (!accept_head_new(&j->best, h->width, h->n_blocks, false, err))
            return false;
    }
    memcpy(j->best->values, h->values, h->n_values * sizeof *h->values);
    j->best->draft_hash = h->draft_hash;
    j->best->draft_layers = h->draft_layers;
    j->best->target_hash = h->target_hash;
    snprintf(j->best->draft, sizeof j->best->draft, "%s", h->draft);
    snprintf(j->best->target, sizeof j->best->target, "%s", h->target);
    return true;
}

/* On held-out candidates; the file has the head that was best there. */
static bool
look(struct accept_job *j, const struct pass *p, struct accept_result *result, struct err *err)
{
    const struct accept_batch held = {.n = j->held.n, .x = j->held.x, .label = j->held.label};
    const struct accept_score s = accept_training_score(p->training, &held, NULL);
    const double loss = s.loss / s.weight;
    if (loss < result->loss) {
        result->loss = loss;
        result->kl = s.kl / (double)s.n;
    }
    const bool better = j->best == NULL || loss < j->best_loss;
    if (better && !remember(j, p->head, loss, err))
        return false;
    if (++j->looks < j->looked) /* the file has what was best at a later look */
        return true;
    const bool level = j->looks == j->looked;
    return (!(better || level) || accept_head_write(j->best, j->options->train.out, err)) &&
           (level || train_accept_looked(j, err));
}

static struct accept_batch
batch_at(const struct accept_job *j, struct pass *p, size_t at)
{
    const size_t width = p->head->width, left = j->train.n - at, most = j->options->train.batch;
    const size_t n = left < most ? left : most;
    for (size_t i = 0; i < n; i++) {
        memcpy(p->x + i * width, j->train.x + p->order[at + i] * width, width * sizeof *p->x);
        p->label[i] = j->train.label[p->order[at + i]];
    }
    return (struct accept_batch){.n = n, .x = p->x, .label = p->label};
}

/* Every pass in another order; the rate falls along a cosine to nothing. */
static bool
train_one(struct accept_job *j, struct pass *p, struct accept_result *result, struct err *err)
{
    const struct options *o = j->options;
    const size_t all = (size_t)o->accept.passes * j->train.n;
    uint64_t random = o->seed;
    if (!look(j, p, result, err))
        return false;
    for (size_t done = 0, looked = 0; done < all && !generation_interrupted();) {
        const size_t at = done % j->train.n;
        if (at == 0)
            shuffle(p->order, j->train.n, &random);
        const struct accept_batch batch = batch_at(j, p, at);
        const double share = (double)done / (double)all;
        accept_training_step(p->training, &batch, o->train.rate * 0.5 * (1 + cos(share * acos(-1))));
        done += batch.n;
        if (blas_failed(j->blas, err))
            return false;
        const bool looks = done - looked >= j->train.n / LOOKS || done >= all;
        if (looks) {
            looked = done;
            if (!look(j, p, result, err))
                return false;
        }
        char text[96];
        snprintf(text, sizeof text, "%u blocks  held out: loss %.4f  KL %.4f", (unsigned)result->blocks, result->loss,
                 result->kl);
        train_bar("training", (double)done / (double)all, looks, text, j->start_us);
    }
    return true;
}

bool
train_accept_loop(struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    bool ok = true;
    j->blas = train_blas(j->engine);
    for (size_t i = 0; i < o->accept.n_blocks && ok && !generation_interrupted(); i++) {
        struct pass p = {0};
        struct accept_result *result = &j->results[j->n_results++];
        *result = (struct accept_result){.blocks = o->accept.blocks[i], .loss = INFINITY, .kl = INFINITY};
        ok = pass_open(&p, j, result->blocks, err) && train_one(j, &p, result, err);
        pass_close(&p);
    }
    blas_close(j->blas);
    j->blas = NULL;
    return ok;
}
