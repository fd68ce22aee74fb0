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
    struct exit_heads best = *j->heads;
    best.values = j->best;
    return !better || exit_heads_write(&best, j->options->train.out, err);
}

/* Reads the next windows into the block and shuffles their rows. */
static bool
fill_block(struct job *j, size_t *next, size_t *rows, struct err *err)
{
    *rows = 0;
    for (size_t w = 0; w < j->block_rows / j->window; w++) {
        if (*next % j->n_turns == 0) /* a new pass over the text: another order */
            shuffle(j->turn, j->n_turns, &j->random);
        size_t n;
        if (generation_interrupted())
            break;
        if (!head_stream_window(j->stream, j->turn[(*next)++ % j->n_turns], j->block + *rows * j->row, &n, err))
            return false;
        *rows += n;
    }
    for (size_t i = 0; i < *rows; i++)
        j->order[i] = i;
    shuffle(j->order, *rows, &j->random);
    return true;
}

bool
train_loop(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    const uint64_t warm_up = o->train.tokens / 50 + 1, look_every = o->train.tokens / LOOKS + 1;
    struct head_score *each = calloc((size_t)j->layers + 1, sizeof *each);
    if (each == NULL)
        return err_set(err, ERR_WORK, "train: out of memory");
    head_training_score(j->training, true, j->held, j->held_rows, j->lens_score);
    double loss, agreement;
    bool ok = look(j, &loss, &agreement, err);
    uint64_t done = 0, looked = 0;
    for (size_t next = 0; ok && done < o->train.tokens && !generation_interrupted();) {
        size_t rows;
        ok = fill_block(j, &next, &rows, err);
        for (size_t at = 0; ok && at < rows && done < o->train.tokens && !generation_interrupted();) {
            size_t n = rows - at < o->train.batch ? rows - at : o->train.batch;
            for (size_t i = 0; i < n; i++)
                memcpy(j->batch + i * j->row, j->block + j->order[at + i] * j->row, j->row * sizeof *j->batch);
            const double rate =
                o->train.rate * fmin((double)(done + n) / (double)warm_up, 1 - (double)done / (double)o->train.tokens);
            head_training_step(j->training, j->batch, n, (float)rate, each);
            at += n;
            done += n;
            ok = !blas_failed(j->blas, err);
            const bool looks = ok && (done - looked >= look_every || done >= o->train.tokens);
            if (looks) {
                looked = done;
                ok = look(j, &loss, &agreement, err);
            }
            train_progress(j, fmin(1, (double)done / (double)o->train.tokens), loss, agreement, looks);
        }
    }
    free(each);
    if (done < o->train.tokens && isatty(STDERR_FILENO)) /* the bar stands half-way */
        fputc('\n', stderr);
    return ok;
}
