#include <inttypes.h>
#include <string.h>

#include "cli/train/train.h"
#include "engine/base/plural.h"
#include "engine/model/model_hash.h"
#include "engine/training/blas.h"

#define PIECES (4 + TRAINING_PARTS)

bool
train_going_on_open(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct model *m = j->engine->model;
    struct train_settings *s = &j->settings;
    train_settings_add(s, "train heads");
    train_settings_add(s, "target %s %016" PRIx64, m->name, m->hash);
    train_settings_add(s, "%s heads", head_kind_name(o->train.kind));
    train_settings_add(s, "a text of %zu tokens, %016" PRIx64 ", in windows of %" PRIu32, j->n_tokens,
                       hash_bytes(HASH_START, j->tokens, j->n_tokens * sizeof *j->tokens), j->window);
    train_settings_add(s, "%" PRIu64 " tokens, %zu in a step, seed %" PRIu64, o->train.tokens, (size_t)o->train.batch,
                       o->seed);
    train_settings_add(s, "rate %.15g", o->train.rate);
    train_settings_add(s, "%" PRIu32 " thread%s, products on the %s", j->engine->threads, plural(j->engine->threads),
                       j->blas != NULL ? "GPU" : "CPU");
    return train_state_open(&j->state, o->train.out, s, err);
}

/* All that is kept, in order. */
static size_t
pieces_of(struct job *j, struct training_part piece[PIECES])
{
    struct training_part *rest = piece + 4;
    piece[0] = (struct training_part){&j->place, sizeof j->place};
    piece[1] = (struct training_part){j->begun, j->n_turns * sizeof *j->begun};
    piece[2] = (struct training_part){j->best_score, ((size_t)j->layers + 1) * sizeof *j->best_score};
    piece[3] = (struct training_part){j->best, j->heads->n_values * sizeof *j->best};
    head_training_state(j->training, rest);
    return PIECES;
}

void
train_going_on_put(struct job *j)
{
    struct training_part piece[PIECES];
    struct slice bytes[PIECES];
    const size_t n = pieces_of(j, piece);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (struct slice){piece[i].data, piece[i].bytes};
    train_state_put(&j->state, bytes, n);
}

/* Settings and checksum were right, so only a file that somebody made up can be wrong here. */
static bool
is_possible(const struct job *j, const struct train_place *p)
{
    bool turns = p->n_turns == j->n_turns && p->n_values == j->heads->n_values && p->done <= j->options->train.tokens &&
                 p->looked <= p->done && p->at <= j->block_rows;
    for (size_t i = 0; i < j->n_turns && turns; i++)
        turns = j->begun[i] < head_stream_windows(j->stream);
    return turns;
}

bool
train_going_on(struct job *j, struct err *err)
{
    struct training_part piece[PIECES];
    const size_t n = pieces_of(j, piece);
    for (size_t i = 0; i < n; i++)
        if (!train_state_take(&j->state, piece[i].data, piece[i].bytes, err))
            return false;
    if (!train_state_taken(&j->state, err))
        return false;
    if (!is_possible(j, &j->place))
        return err_set(err, ERR_WORK, "%s: is damaged; remove it to start anew", j->state.path);
    memcpy(j->turn, j->begun, j->n_turns * sizeof *j->turn);
    j->random = j->place.random;
    j->looked = true;
    fprintf(stderr, "specscope: %s has %" PRIu64 " of %" PRIu64 " tokens learned; going on\n", j->state.path,
            j->place.done, j->options->train.tokens);
    struct exit_heads best = *j->heads;
    best.values = j->best;
    return exit_heads_write(&best, j->options->train.out, err);
}
