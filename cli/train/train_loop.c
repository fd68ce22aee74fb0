#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/generation/generation.h"
#include "cli/train/train.h"
#include "engine/training/blas.h"
#include "engine/training/shuffle.h"

#define LOOKS 10 /* how often held-out text is looked at */

/* Looks at held-out text, and keeps of every layer the head that was best there; the first are no better than the lens,
 * so none is worse. Written out when one is better than before. The figures are of the best. */
static bool
look(struct job *j, double *loss, double *agreement, struct err *err)
{
    const size_t n = j->heads->per_layer;
    bool better = false;
    memset(j->score, 0, ((size_t)j->layers + 1) * sizeof *j->score);
    head_training_score(j->training, false, j->held, j->held_rows, j->score);
    for (uint32_t l = 1; l < j->layers; l++) {
        if (j->looked && !(j->score[l].loss < j->best_score[l].loss))
            continue;
        better = true;
        j->best_score[l] = j->score[l];
        memcpy(j->best + (l - 1) * n, j->heads->values + (l - 1) * n, n * sizeof *j->best);
    }
    j->looked = true;
    train_mean(j, j->best_score, loss, agreement);
    j->place.looked = j->place.done;
    if (better || train_state_due(&j->state)) /* before the file: whoever goes on writes what belongs to it */
        train_going_on_put(j);
    struct exit_heads best = *j->heads;
    best.values = j->best;
    return !better || exit_heads_write(&best, j->options->train.out, err);
}

/* Reads the next windows into the block and shuffles their rows. */
static bool
fill_block(struct job *j, size_t *rows, struct err *err)
{
    size_t next = j->place.next;
    *rows = 0;
    for (size_t w = 0; w < j->block_rows / j->window; w++) {
        if (next % j->n_turns == 0) /* a new pass over the text: another order */
            shuffle(j->turn, j->n_turns, &j->random);
        size_t n;
        if (generation_interrupted())
            break;
        if (!head_stream_window(j->stream, j->turn[next++ % j->n_turns], j->block + *rows * j->row, &n, err))
            return false;
        *rows += n;
    }
    for (size_t i = 0; i < *rows; i++)
        j->order[i] = i;
    shuffle(j->order, *rows, &j->random);
    return true;
}

/* The block was trained on: what comes next begins here. */
static void
next_block(struct job *j)
{
    j->place.next += j->block_rows / j->window;
    j->place.at = 0;
    j->place.random = j->random;
    memcpy(j->begun, j->turn, j->n_turns * sizeof *j->begun);
}

/* On the block's next rows. */
static bool
train_step(struct job *j, size_t rows, struct head_score *each, struct err *err)
{
    const struct options *o = j->options;
    struct train_place *p = &j->place;
    const uint64_t warm_up = o->train.tokens / 50 + 1;
    const size_t left = rows - p->at, n = left < o->train.batch ? left : o->train.batch;
    for (size_t i = 0; i < n; i++)
        memcpy(j->batch + i * j->row, j->block + j->order[p->at + i] * j->row, j->row * sizeof *j->batch);
    const double rate =
        o->train.rate * fmin((double)(p->done + n) / (double)warm_up, 1 - (double)p->done / (double)o->train.tokens);
    head_training_step(j->training, j->batch, n, (float)rate, each);
    p->at += n;
    p->done += n;
    return !blas_failed(j->blas, err);
}

/* Where it begins: with a look, or where it was. */
static bool
begin(struct job *j, double *loss, double *agreement, struct err *err)
{
    head_training_score(j->training, true, j->held, j->held_rows, j->lens_score);
    if (train_state_there(&j->state)) {
        const bool ok = train_going_on(j, err);
        train_mean(j, j->best_score, loss, agreement);
        return ok;
    }
    j->place = (struct train_place){.random = j->random, .n_turns = j->n_turns, .n_values = j->heads->n_values};
    memcpy(j->begun, j->turn, j->n_turns * sizeof *j->begun);
    return look(j, loss, agreement, err);
}

/* The steps of one block, from where it is. */
static bool
train_block(struct job *j, struct head_score *each, double *loss, double *agreement, struct err *err)
{
    const uint64_t all = j->options->train.tokens, look_every = all / LOOKS + 1;
    struct train_place *p = &j->place;
    size_t rows;
    bool ok = fill_block(j, &rows, err);
    while (ok && p->at < rows && p->done < all && !generation_interrupted()) {
        ok = train_step(j, rows, each, err);
        const bool looks = ok && (p->done - p->looked >= look_every || p->done >= all);
        if (looks)
            ok = look(j, loss, agreement, err);
        else if (ok && train_state_due(&j->state))
            train_going_on_put(j);
        train_progress(j, fmin(1, (double)p->done / (double)all), *loss, *agreement, looks);
    }
    if (ok && p->at >= rows && !generation_interrupted())
        next_block(j);
    return ok;
}

bool
train_loop(struct job *j, struct err *err)
{
    struct head_score *each = calloc((size_t)j->layers + 1, sizeof *each);
    if (each == NULL)
        return err_set(err, ERR_WORK, "train: out of memory");
    double loss, agreement;
    bool ok = begin(j, &loss, &agreement, err);
    while (ok && j->place.done < j->options->train.tokens && !generation_interrupted())
        ok = train_block(j, each, &loss, &agreement, err);
    if (ok && j->place.done < j->options->train.tokens)
        train_going_on_put(j);
    free(each);
    if (j->place.done < j->options->train.tokens && isatty(STDERR_FILENO)) /* the bar stands half-way */
        fputc('\n', stderr);
    return ok;
}
