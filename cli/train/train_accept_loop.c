#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/generation/generation.h"
#include "cli/train/train.h"
#include "cli/train/train_accept.h"
#include "engine/base/clock.h"
#include "engine/base/plural.h"
#include "engine/trained/accept_predictor.h"
#include "engine/training/accept_training.h"

#define EVALUATIONS      4  /* of the held-out candidates, in a pass */
#define CALIBRATION_BINS 10 /* of p̂ */

struct result { /* of a head with so many blocks, on held-out candidates */
    uint32_t blocks;
    double loss, kl; /* weighted; binary KL in nats, per candidate */
};

struct trainer {
    const struct accept_job *job;
    struct blas *blas;        /* NULL: the CPU multiplies */
    struct accept_head *best; /* the head in the file; NULL: no file was written */
    double best_loss;
    struct result results[OPTIONS_MOST]; /* (n_results) */
    size_t n_results;
    bool whole; /* all heads were trained to their end */
    /* of the head that is trained */
    struct accept_head *head;
    struct accept_training *training;
    size_t *order;    /* (train.n) candidates in the order of this pass over them */
    float *x, *label; /* (batch, width), (batch) */
};

/* A head for the models at hand, with their names. */
static bool
new_head(struct accept_head **head, const struct engine *e, uint32_t blocks, struct err *err)
{
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
open_head(struct trainer *t, uint32_t blocks, struct err *err)
{
    const struct accept_job *j = t->job;
    const struct options *o = j->options;
    const struct accept_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .w_reject = o->accept.w_reject, .blas = t->blas};
    if (!new_head(&t->head, j->engine, blocks, err) ||
        !accept_training_open(&t->training, t->head, o->seed, &options, err))
        return false;
    t->order = malloc(j->train.n * sizeof *t->order);
    t->x = malloc(o->train.batch * t->head->width * sizeof *t->x);
    t->label = malloc(o->train.batch * sizeof *t->label);
    for (size_t i = 0; i < j->train.n && t->order != NULL; i++)
        t->order[i] = i;
    return (t->order != NULL && t->x != NULL && t->label != NULL) ||
           err_set(err, ERR_WORK, "train accept: out of memory; use a smaller --batch");
}

static void
close_head(struct trainer *t)
{
    accept_training_close(t->training);
    accept_head_free(t->head);
    free(t->order);
    free(t->x);
    free(t->label);
    t->training = NULL;
    t->head = NULL;
    t->order = NULL;
    t->x = t->label = NULL;
}

/* Scores the head on held-out candidates; writes it to the file if no head was better there. */
static bool
evaluate(struct trainer *t, struct result *result, struct err *err)
{
    const struct accept_job *j = t->job;
    const struct accept_batch held = {.n = j->held.n, .x = j->held.x, .label = j->held.label};
    const struct accept_score s = accept_training_score(t->training, &held, NULL);
    const double loss = s.loss / s.weight;
    if (loss < result->loss) {
        result->loss = loss;
        result->kl = s.kl / (double)s.n;
    }
    if (t->best != NULL && !(loss < t->best_loss))
        return true;
    if (t->best == NULL || t->best->n_blocks != t->head->n_blocks) {
        accept_head_free(t->best);
        t->best = NULL;
        if (!new_head(&t->best, j->engine, t->head->n_blocks, err))
            return false;
    }
    memcpy(t->best->values, t->head->values, t->head->n_values * sizeof *t->head->values);
    t->best_loss = loss;
    return accept_head_write(t->best, j->options->train.out, err);
}

static struct accept_batch
batch_at(struct trainer *t, size_t at)
{
    const struct accept_rows *train = &t->job->train;
    const size_t width = t->head->width, left = train->n - at, most = t->job->options->train.batch,
                 n = left < most ? left : most;
    for (size_t i = 0; i < n; i++) {
        memcpy(t->x + i * width, train->x + t->order[at + i] * width, width * sizeof *t->x);
        t->label[i] = train->label[t->order[at + i]];
    }
    return (struct accept_batch){.n = n, .x = t->x, .label = t->label};
}

/* Each pass has an order of its own; the rate falls along a cosine to nothing. */
static bool
train_head(struct trainer *t, struct result *result, struct err *err)
{
    const struct options *o = t->job->options;
    const size_t n = t->job->train.n, all = (size_t)o->accept.passes * n;
    uint64_t random = o->seed;
    size_t evaluated_at = 0;
    if (!evaluate(t, result, err))
        return false;
    size_t done = 0;
    while (done < all && !generation_interrupted()) {
        if (done % n == 0)
            train_shuffle(t->order, n, &random);
        const struct accept_batch batch = batch_at(t, done % n);
        const double share = (double)done / (double)all;
        accept_training_step(t->training, &batch, o->train.rate * 0.5 * (1 + cos(share * acos(-1))));
        done += batch.n;
        if (blas_failed(t->blas, err))
            return false;
        const bool due = done - evaluated_at >= n / EVALUATIONS || done >= all;
        if (due && !evaluate(t, result, err))
            return false;
        evaluated_at = due ? done : evaluated_at;
        char text[96];
        snprintf(text, sizeof text, "%u block%s  held out: loss %.4f  KL %.4f", (unsigned)result->blocks,
                 plural(result->blocks), result->loss, result->kl);
        train_bar("training", (double)done / (double)all, due, text, t->job->start_us);
    }
    t->whole = done >= all && t->n_results == o->accept.n_blocks;
    return true;
}

/* ---- the report ---- */

/* The KL of a head that predicts the mean label for every candidate. */
static double
constant_kl(const struct accept_rows *r)
{
    double mean = 0, kl = 0;
    for (size_t i = 0; i < r->n; i++)
        mean += (double)r->label[i] / (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        const double a = (double)r->label[i];
        kl += (a > 0 ? a * log(a / mean) : 0) + (a < 1 ? (1 - a) * log((1 - a) / (1 - mean)) : 0);
    }
    return kl / (double)r->n;
}

static void
report_calibration(const struct trainer *t, struct accept_predictor *predictor)
{
    const struct accept_rows *held = &t->job->held;
    double sum_p[CALIBRATION_BINS] = {0}, sum_a[CALIBRATION_BINS] = {0};
    size_t n[CALIBRATION_BINS] = {0};
    for (size_t i = 0; i < held->n; i++) {
        const double p = accept_predictor_ask(predictor, held->x + i * t->best->width);
        const int bin = p * CALIBRATION_BINS < CALIBRATION_BINS ? (int)(p * CALIBRATION_BINS) : CALIBRATION_BINS - 1;
        sum_p[bin] += p;
        sum_a[bin] += (double)held->label[i];
        n[bin]++;
    }
    printf("calibration      candidates   mean p   accepted\n");
    for (int bin = 0; bin < CALIBRATION_BINS; bin++)
        if (n[bin] > 0)
            printf("p %.1f .. %.1f  %14zu   %6.3f     %6.3f\n", (double)bin / CALIBRATION_BINS,
                   (double)(bin + 1) / CALIBRATION_BINS, n[bin], sum_p[bin] / (double)n[bin],
                   sum_a[bin] / (double)n[bin]);
}

/* Prints held-out loss and KL by blocks, and how well the best head's p̂ is calibrated. */
static bool
report(const struct trainer *t, struct err *err)
{
    const struct accept_job *j = t->job;
    struct accept_predictor *predictor;
    if (!accept_predictor_open(&predictor, t->best, j->engine->threads, err))
        return err_set(err, ERR_WORK, "train accept: out of memory for the report; the head is in the file");
    printf("held out: %zu candidates, %zu to learn from\nblocks          loss       KL\n", j->held.n, j->train.n);
    printf("one number for all    %7.4f\n", constant_kl(&j->held));
    for (size_t i = 0; i < t->n_results; i++)
        printf("%6u       %7.4f  %7.4f\n", (unsigned)t->results[i].blocks, t->results[i].loss, t->results[i].kl);
    report_calibration(t, predictor);
    printf("acceptance head of %s for %s, %u block%s: %s, %.0f s\n", t->best->draft, t->best->target,
           (unsigned)t->best->n_blocks, plural(t->best->n_blocks), j->options->train.out,
           (double)(clock_us() - j->start_us) * 1e-6);
    accept_predictor_close(predictor);
    return true;
}

bool
train_accept_loop(const struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    struct trainer t = {.job = j, .blas = train_blas(j->engine)};
    bool ok = true;
    while (ok && t.n_results < o->accept.n_blocks && (t.best == NULL || !generation_interrupted())) {
        struct result *result = &t.results[t.n_results];
        *result = (struct result){.blocks = o->accept.blocks[t.n_results], .loss = INFINITY, .kl = INFINITY};
        t.n_results++;
        ok = open_head(&t, result->blocks, err) && train_head(&t, result, err);
        close_head(&t);
    }
    ok = ok && report(&t, err);
    if (ok && !t.whole)
        ok = err_set(err, ERR_CANCELLED, "interrupted; the best head so far is in the file");
    accept_head_free(t.best);
    blas_close(t.blas);
    return ok;
}
