#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/generation/generation.h"
#include "cli/train/train_accept.h"
#include "cli/train/train_blas.h"
#include "cli/train/train_prompts.h"
#include "engine/base/plural.h"
#include "engine/training/blas.h"
#include "engine/training/shuffle.h"

#define LOOKS 4 /* at held-out candidates, in a pass */

bool
train_accept_head(struct accept_head **head, const struct accept_job *j, uint32_t blocks, struct err *err)
{
    const struct engine *e = j->engine;
    if (!accept_head_new(head, engine_draft_model(e)->desc.width, blocks, false, err))
        return false;
    struct accept_head *h = *head;
    h->draft_hash = engine_helper_hash(e, HELPER_DRAFT);
    h->draft_layers = e->helpers[HELPER_DRAFT].exit_layer;
    h->target_hash = e->model->hash;
    engine_helper_name(e, HELPER_DRAFT, h->draft, sizeof h->draft);
    snprintf(h->target, sizeof h->target, "%s", e->model->name);
    return true;
}

static bool
pass_open(struct accept_pass *p, const struct accept_job *j, uint32_t blocks, struct err *err)
{
    const struct options *o = j->options;
    const struct accept_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .w_reject = o->accept.w_reject, .blas = j->blas};
    if (!train_accept_head(&p->head, j, blocks, err) ||
        !accept_training_open(&p->training, p->head, o->seed, &options, err))
        return false;
    p->order = malloc(j->train.n * sizeof *p->order);
    p->x = malloc(o->train.batch * p->head->width * sizeof *p->x);
    p->label = malloc(o->train.batch * sizeof *p->label);
    for (size_t i = 0; i < j->train.n && p->order != NULL; i++)
        p->order[i] = i;
    return (p->order != NULL && p->x != NULL && p->label != NULL) ||
           err_set(err, ERR_WORK, "train accept: out of memory; use a smaller --batch");
}

static void
pass_close(struct accept_pass *p)
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
    if (j->best == NULL || j->best->n_blocks != h->n_blocks) {
        accept_head_free(j->best);
        j->best = NULL;
        if (!train_accept_head(&j->best, j, h->n_blocks, err))
            return false;
    }
    memcpy(j->best->values, h->values, h->n_values * sizeof *h->values);
    j->place.best_loss = loss;
    return true;
}

/* On held-out candidates; the file has the head that was best there. */
static bool
look(struct accept_job *j, struct accept_pass *p, struct accept_result *result, struct err *err)
{
    const struct accept_batch held = {.n = j->held.n, .x = j->held.x, .label = j->held.label};
    const struct accept_score s = accept_training_score(p->training, &held, NULL);
    const double loss = s.loss / s.weight;
    if (loss < result->loss) {
        result->loss = loss;
        result->kl = s.kl / (double)s.n;
    }
    const bool better = j->best == NULL || loss < j->place.best_loss;
    if (better && !remember(j, p->head, loss, err))
        return false;
    j->place.looked = j->place.done;
    if (better || train_state_due(&j->state)) /* before the file: whoever goes on writes what belongs to it */
        train_accept_going_on_put(j, p);
    return !better || accept_head_write(j->best, j->options->train.out, err);
}

static struct accept_batch
batch_at(const struct accept_job *j, struct accept_pass *p, size_t at)
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
train_one(struct accept_job *j, struct accept_pass *p, struct accept_result *result, struct err *err)
{
    const struct options *o = j->options;
    const size_t all = (size_t)o->accept.passes * j->train.n;
    struct accept_place *place = &j->place;
    while (place->done < all && !generation_interrupted()) {
        const size_t at = place->done % j->train.n;
        if (at == 0)
            shuffle(p->order, j->train.n, &place->random);
        const struct accept_batch batch = batch_at(j, p, at);
        const double share = (double)place->done / (double)all;
        accept_training_step(p->training, &batch, o->train.rate * 0.5 * (1 + cos(share * acos(-1))));
        place->done += batch.n;
        if (blas_failed(j->blas, err))
            return false;
        const bool looks = place->done - place->looked >= j->train.n / LOOKS || place->done >= all;
        if (looks && !look(j, p, result, err))
            return false;
        if (!looks && train_state_due(&j->state))
            train_accept_going_on_put(j, p);
        char text[96];
        snprintf(text, sizeof text, "%u block%s  held out: loss %.4f  KL %.4f", (unsigned)result->blocks,
                 plural(result->blocks), result->loss, result->kl);
        train_bar("training", (double)place->done / (double)all, looks, text, j->start_us);
    }
    if (place->done < all)
        train_accept_going_on_put(j, p);
    return true;
}

/* The head that comes next, from its beginning, or from where it was. */
static bool
train_next(struct accept_job *j, bool go_on, struct err *err)
{
    struct accept_pass p = {0};
    struct accept_result *result = &j->results[j->place.head];
    const uint32_t blocks = j->options->accept.blocks[j->place.head];
    bool ok = pass_open(&p, j, blocks, err);
    if (ok && go_on) {
        ok = train_accept_going_on(j, &p, err);
    } else if (ok) {
        *result = (struct accept_result){.blocks = blocks, .loss = INFINITY, .kl = INFINITY};
        j->place.done = 0;
        j->place.random = j->options->seed;
        ok = look(j, &p, result, err);
    }
    j->n_results = j->place.head + 1;
    ok = ok && train_one(j, &p, result, err);
    pass_close(&p);
    return ok;
}

bool
train_accept_loop(struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    j->blas = train_blas(j->engine);
    bool ok = train_accept_going_on_open(j, err);
    bool go_on = train_state_there(&j->state);
    for (; ok && j->place.head < o->accept.n_blocks && (go_on || j->best == NULL || !generation_interrupted());
         go_on = false) {
        ok = train_next(j, go_on, err);
        j->whole = j->place.head + 1 == o->accept.n_blocks && j->place.done >= (size_t)o->accept.passes * j->train.n;
        j->place.head++;
    }
    blas_close(j->blas);
    j->blas = NULL;
    return ok;
}
