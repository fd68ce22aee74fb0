#include <inttypes.h>
#include <stdlib.h>

#include "cli/train/train_accept.h"
#include "engine/base/plural.h"
#include "engine/model/model_hash.h"

#define PIECES (4 + TRAINING_PARTS)

static void
add_schedule(struct accept_job *j)
{
    const struct options *o = j->options;
    struct train_settings *s = &j->settings;
    uint64_t hash = hash_bytes(HASH_START, j->train.label, j->train.n * sizeof *j->train.label);
    hash = hash_bytes(hash, j->held.label, j->held.n * sizeof *j->held.label);
    train_settings_add(s, "%zu candidates, %zu held out, %016" PRIx64, j->train.n, j->held.n, hash);
    train_settings_add(s, "%" PRIu32 " passes, %zu in a step", o->accept.passes, (size_t)o->train.batch);
    train_settings_add(s, "rate %.15g, a rejection weighs %.15g", o->train.rate, o->accept.w_reject);
    for (size_t i = 0; i < o->accept.n_blocks; i++)
        train_settings_add(s, "a head of %" PRIu32 " block%s", o->accept.blocks[i], plural(o->accept.blocks[i]));
    train_settings_add(s, "%" PRIu32 " thread%s, products on the %s", j->engine->threads, plural(j->engine->threads),
                       j->blas != NULL ? "GPU" : "CPU");
}

bool
train_accept_going_on_open(struct accept_job *j, struct err *err)
{
    add_schedule(j);
    if (!train_state_open(&j->state, j->options->train.out, &j->settings, err))
        return false;
    if (!train_state_there(&j->state))
        return true;
    const struct accept_place *p = &j->place;
    if (!train_state_take(&j->state, &j->place, sizeof j->place, err))
        return false;
    if (p->head >= j->options->accept.n_blocks || p->looked > p->done || p->best_blocks > ACCEPT_HEAD_BLOCKS ||
        p->done > (uint64_t)j->options->accept.passes * j->train.n)
        return err_set(err, ERR_WORK, "%s: is damaged; remove it to start anew", j->state.path);
    return train_accept_head(&j->best, j, (uint32_t)p->best_blocks, err);
}

/* All that is kept behind the place, in order. */
static void
pieces_of(struct accept_job *j, struct accept_pass *p, struct training_part piece[PIECES])
{
    piece[0] = (struct training_part){&j->place, sizeof j->place};
    piece[1] = (struct training_part){j->results, (j->place.head + 1) * sizeof *j->results};
    piece[2] = (struct training_part){j->best->values, j->best->n_values * sizeof *j->best->values};
    piece[3] = (struct training_part){p->order, j->train.n * sizeof *p->order};
    accept_training_state(p->training, piece + 4);
}

void
train_accept_going_on_put(struct accept_job *j, struct accept_pass *p)
{
    struct training_part piece[PIECES];
    struct slice bytes[PIECES];
    j->place.best_blocks = j->best->n_blocks;
    pieces_of(j, p, piece);
    for (size_t i = 0; i < PIECES; i++)
        bytes[i] = (struct slice){piece[i].data, piece[i].bytes};
    train_state_put(&j->state, bytes, PIECES);
}

bool
train_accept_going_on(struct accept_job *j, struct accept_pass *p, struct err *err)
{
    struct training_part piece[PIECES];
    pieces_of(j, p, piece);
    for (size_t i = 1; i < PIECES; i++)
        if (!train_state_take(&j->state, piece[i].data, piece[i].bytes, err))
            return false;
    if (!train_state_taken(&j->state, err))
        return false;
    for (size_t i = 0; i < j->train.n; i++)
        if (p->order[i] >= j->train.n)
            return err_set(err, ERR_WORK, "%s: is damaged; remove it to start anew", j->state.path);
    fprintf(stderr, "specscope: %s is at %.0f%% of the head of %" PRIu32 " block%s; going on\n", j->state.path,
            100 * (double)j->place.done / ((double)j->options->accept.passes * (double)j->train.n),
            j->options->accept.blocks[j->place.head], plural(j->options->accept.blocks[j->place.head]));
    return accept_head_write(j->best, j->options->train.out, err);
}
