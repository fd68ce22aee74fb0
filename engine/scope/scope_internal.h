/* The scope's state, and functions that its files share. Each file calls only files below it, from the bottom:
 * sequence_cells.c, scope_sequence.c (one sequence), scope_batch.c (the sequences), scope.c (opening, vocabulary,
 * notes), scope_read.c, aggregates.c, scope_layers.c (layers, models, experts), scope_versus.c, scope_events.c
 * (events). scope_record.c only reads. */
#pragma once

#include "engine/events/sampling_knobs.h"
#include "engine/events/settings.h"
#include "engine/scope/aggregates.h"
#include "engine/scope/scope.h"
#include "engine/scope/scope_sequence.h"

struct scope_word { /* a token's text */
    uint32_t n;     /* raw bytes; before its VOCAB event those of its id, ‹17› */
    uint32_t safe;  /* offset of the printable text in data */
    char data[];
};

struct scope_member { /* a sequence of the run */
    struct scope_tile tile;
    struct scope_sequence *held;        /* its history; NULL: not in memory */
    struct scope_said tail[SCOPE_TAIL]; /* (n_tail) once its history was dropped */
    uint32_t n_tail;
    uint64_t ended; /* scope_now.version when it left */
};

struct scope_heads { /* which head's predictions are shown */
    bool show_trained;
    bool policy_changed; /* the last event was a change of policy, which may change the head */
    bool other_head;     /* the head changed: positions that it did not probe show the other head */
};

struct scope_setting { /* in a versus each of the two sequences has its own */
    struct settings now;
    bool sampled; /* with a temperature, in this run */
    struct scope_heads heads;
    struct metrics metrics; /* in a versus */
    struct aggregates of_run, of_segment;
    uint32_t segment; /* the number of `of_segment` */
};

struct scope {
    const struct run_info *info;
    struct scope_now now;
    struct segments *segments;

    struct scope_word **words; /* (vocab) */
    struct draft_rank *rank;   /* the order by id of a trace's vocabulary, made when it is first needed; owned */

    struct scope_setting setting[2]; /* [1]: of sequence 1 in a versus */
    struct scope_versus versus;
    struct progress_event progress;

    struct scope_member **members; /* (n_members) by ascending number */
    uint32_t n_members, max_members;
    struct scope_member *last;           /* the sequence of the last event; NULL: none */
    struct scope_sequence *focus;        /* never NULL: a member's history, or an empty one (!heard) */
    bool focus_chosen;                   /* the user chose it: */
    uint32_t wanted;                     /* this sequence, as soon as it joins */
    struct scope_member **round_members; /* (n_round_members) with a ROUND event of round `shared_round` */
    uint32_t n_round_members, shared_round;
    double round_us;                      /* the time by these events */
    struct scope_pace pace[SCOPE_ROUNDS]; /* round r's at r % SCOPE_ROUNDS */
};

static inline uint32_t
scope_side(const struct scope *s, uint32_t seq) /* index in `setting` */
{
    return s->now.versus != NULL && seq == 1;
}

static inline const struct scope_setting *
scope_setting_of(const struct scope *s, uint32_t seq)
{
    return &s->setting[scope_side(s, seq)];
}

static inline const struct policy_info *
scope_policy_of(const struct scope *s, uint32_t seq) /* NULL: unknown */
{
    const uint32_t policy = scope_setting_of(s, seq)->now.policy;
    return policy < s->info->n_policies ? &s->info->policies[policy] : NULL;
}

static inline const struct policy_info *
scope_chosen_policy(const struct scope *s) /* of the sequence in focus */
{
    return scope_policy_of(s, s->focus->seq);
}

static inline void
scope_take_lengths(struct scope *s) /* of the sequence in focus */
{
    s->now.length = s->focus->length;
    s->now.committed = s->focus->committed;
}

/* scope.c */
void scope_note_event(struct scope *, const struct event *);

/* scope_versus.c */
void scope_begin_versus(struct scope *, const char *text);
void scope_versus_event(struct scope *, const struct event *); /* ROUND and CONTROL, after all other state is updated */
void scope_take_probe(struct scope *);                         /* of the sequence in focus */
void scope_take_metrics(struct scope *);                       /* of the sequence in focus */

/* scope_batch.c */
/* The sequence of this number, made if it is new. NULL: SCOPE_TILES are exceeded, or out of memory. */
struct scope_member *scope_member(struct scope *, uint32_t seq);
const struct scope_sequence *scope_held(const struct scope *, uint32_t seq); /* NULL: its history is not in memory */
void scope_joined(struct scope *, struct scope_member *, const char *prompt);
void scope_rejoined(struct scope *, struct scope_member *); /* an ended sequence is live again */
void scope_left(struct scope *, struct scope_member *, const char *why);
void scope_count_round(struct scope *, struct scope_member *, const struct event *);
void scope_forget_members(struct scope *); /* the focus keeps an empty history */
/* scope_read.c; the part of a position's cells that remains after they are dropped */
token_t scope_final_of(const struct scope *, const struct scope_sequence *, const struct scope_column *);
void scope_take_glimpse(const struct scope *, struct scope_sequence *, uint32_t pos);
/* aggregates.c */
void scope_aggregate_round(struct scope *, const struct scope_sequence *); /* its newest round, which is complete */
/* scope.c */
void scope_vocab_event(struct scope *, const struct vocab_event *);
void scope_need_word(struct scope *, token_t); /* gives an id without a VOCAB event a text */
/* Begins a run: empties positions, rounds and series; keeps policy, knobs and vocabulary. */
void scope_begin_run(struct scope *);
/* scope_layers.c; the event belongs to the sequence */
void scope_layer_event(struct scope *, struct scope_sequence *, const struct event *);
void scope_experts_event(const struct scope *, struct scope_sequence *, const struct event *);
void scope_series_event(const struct scope *, struct scope_sequence *, const struct event *);
