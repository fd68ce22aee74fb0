#include "engine/training/head_training.h"

#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "engine/training/adam.h"
#include "engine/training/blas.h"

struct thread {
    struct head_work *work;
    struct head_weights gradient;
    float *values; /* the gradient's */
};

struct head_training {
    struct exit_heads *heads;
    const struct lens *lens;
    struct head_training_options options;
    struct adam adam; /* as heads->values */
    float *final;     /* (batch, vocab) */
    double *entropy;  /* (batch) */
    token_t *choice;  /* (batch) */
    struct thread *threads;
};

uint64_t
head_training_bytes(enum head_kind kind, uint32_t n_layers, uint32_t width, uint32_t vocab,
                    const struct head_training_options *o)
{
    const uint64_t layer = kind == HEAD_FULL ? (uint64_t)vocab * width : (uint64_t)width * width + width;
    const uint64_t threads = o->threads > 0 ? o->threads : 1, work = o->batch * (3 * (uint64_t)width + vocab);
    return sizeof(float) * (3 * layer * (n_layers - 1) + threads * (layer + work) + o->batch * (uint64_t)vocab);
}

bool
head_training_open(struct head_training **out, struct exit_heads *heads, const struct lens *lens,
                   const struct head_training_options *options, struct err *err)
{
    *out = NULL;
    const uint32_t threads = blas_callers(options->threads > 0 ? options->threads : 1, err);
    if (threads == 0)
        return false;
    struct head_training *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory for training heads");
    t->heads = heads;
    t->lens = lens;
    t->options = *options;
    t->options.threads = threads;
    t->final = malloc(t->options.batch * lens->vocab * sizeof *t->final);
    t->entropy = malloc(t->options.batch * sizeof *t->entropy);
    t->choice = malloc(t->options.batch * sizeof *t->choice);
    t->threads = calloc(t->options.threads, sizeof *t->threads);
    bool ok = adam_open(&t->adam, heads->n_values) && t->final != NULL && t->entropy != NULL && t->choice != NULL &&
              t->threads != NULL;
    for (uint32_t i = 0; i < t->options.threads && ok; i++) {
        struct thread *own = &t->threads[i];
        own->work = head_work_open(lens, t->options.batch);
        own->values = malloc(heads->per_layer * sizeof *own->values);
        ok = own->work != NULL && own->values != NULL;
        if (ok && heads->kind == HEAD_FULL)
            own->gradient.weight = own->values;
        else if (ok)
            own->gradient =
                (struct head_weights){.a = own->values, .b = own->values + (size_t)lens->width * lens->width};
    }
    if (!ok) {
        err_set(err, ERR_WORK,
                "out of memory: training takes %.1f GB; use --kind affine, fewer --threads or a smaller --batch",
                (double)head_training_bytes(heads->kind, heads->n_layers, lens->width, lens->vocab, &t->options) *
                    1e-9);
        head_training_close(t);
        return false;
    }
    for (uint32_t l = 1; l < heads->n_layers && heads->kind == HEAD_FULL; l++)
        memcpy(heads->layers[l].weight, lens->head, heads->per_layer * sizeof *lens->head);
    *out = t;
    return true;
}

void
head_training_close(struct head_training *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->options.threads && t->threads != NULL; i++) {
        head_work_close(t->threads[i].work);
        free(t->threads[i].values);
    }
    free(t->threads);
    adam_close(&t->adam);
    free(t->final);
    free(t->entropy);
    free(t->choice);
    free(t);
}

static size_t
stride(const struct head_training *t)
{
    return ((size_t)t->heads->n_layers + 1) * t->lens->width;
}

static void
find_final(struct head_training *t, const float *hidden, size_t n)
{
    const size_t last = (size_t)t->heads->n_layers * t->lens->width, threads = t->options.threads;
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < threads; i++) {
        const size_t from = n * i / threads, to = n * (i + 1) / threads;
        if (from < to)
            head_final(t->lens, t->threads[i].work, hidden + from * stride(t) + last, stride(t), to - from,
                       t->final + from * t->lens->vocab, t->entropy + from, t->choice + from);
    }
}

/* What layer l has to learn from rows whose final distributions were found. */
static struct head_batch
batch_of(const struct head_training *t, uint32_t l, const float *hidden, size_t n)
{
    return (struct head_batch){.n = n,
                               .hidden = hidden + (size_t)l * t->lens->width,
                               .stride = stride(t),
                               .final = t->final,
                               .entropy = t->entropy,
                               .choice = t->choice};
}

static struct thread *
this_thread(struct head_training *t)
{
#ifdef _OPENMP
    return &t->threads[omp_get_thread_num()];
#else
    return &t->threads[0];
#endif
}

void
head_training_step(struct head_training *t, const float *hidden, size_t n, float rate, struct head_score *scores)
{
    find_final(t, hidden, n);
    adam_begin(&t->adam);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(t->options.threads)
#endif
    for (uint32_t l = 1; l < t->heads->n_layers; l++) {
        struct thread *own = this_thread(t);
        const struct head_batch batch = batch_of(t, l, hidden, n);
        scores[l] = head_loss(t->lens, t->heads->kind, &t->heads->layers[l], &batch, own->work, &own->gradient);
        const size_t n_values = t->heads->per_layer, first = (l - 1) * n_values;
        adam_move(&t->adam, first, n_values, t->heads->values + first, own->values, rate, t->options.decay,
                  t->heads->kind == HEAD_FULL ? t->lens->head : NULL);
    }
}

void
head_training_score(struct head_training *t, bool lens, const float *hidden, size_t n, struct head_score *sums)
{
    for (size_t done = 0; done < n;) {
        const size_t part = n - done < t->options.batch ? n - done : t->options.batch;
        const float *rows = hidden + done * stride(t);
        find_final(t, rows, part);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(t->options.threads)
#endif
        for (uint32_t l = 1; l < t->heads->n_layers; l++) {
            const struct head_batch batch = batch_of(t, l, rows, part);
            const struct head_score s = head_loss(t->lens, lens ? HEAD_LENS : t->heads->kind, &t->heads->layers[l],
                                                  &batch, this_thread(t)->work, NULL);
            sums[l].loss += s.loss * (double)part;
            sums[l].agreement += s.agreement * (double)part;
        }
        done += part;
    }
}
