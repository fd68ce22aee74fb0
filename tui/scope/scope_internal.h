/* What the scope's files share, from the bottom up: helper_cells.c, scope_sequence.c (what is one sequence's), scope_batch.c
 * (which there are), scope.c (its life, the vocabulary), scope_read.c, scope_models.c, scope_rounds.c, aggregates.c,
 * scope_experts.c, scope_layers.c, scope_notes.c, scope_versus.c, scope_events.c (taking events in); above them, which only
 * read, scope_until.c, scope_spans.c and scope_record.c. Nobody else includes it. */
#ifndef TUI_SCOPE_SCOPE_INTERNAL_H
#define TUI_SCOPE_SCOPE_INTERNAL_H

#include "engine/events/sampling_knobs.h"
#include "engine/events/settings.h"
#include "tui/scope/aggregates.h"
#include "tui/scope/scope_sequence.h"
#include "tui/scope/versus.h"
#include "tui/scope/window.h"

struct scope_word { /* a token's text */
    uint32_t n;     /* raw bytes; of an id that occurred before its VOCAB event its number's, ‹17› */
    uint32_t safe;  /* where the safe text begins in data */
    char data[];
};

struct scope_member { /* a sequence of the run */
    struct scope_tile tile;
    struct scope_sequence *held;        /* its history; NULL: not held (any more) */
    struct scope_said tail[SCOPE_TAIL]; /* (n_tail) when it isn't held any more */
    uint32_t n_tail;
    uint64_t ended; /* scope_now.version when it left */
};

struct scope_pace { /* what all sequences did in a round */
    uint32_t round, emitted;
    double us; /* of drafting and verification */
};

struct scope_heads { /* which looks at layers */
    bool show_trained;
    bool policy_turned; /* the last event was another policy, with which the head may change */
    bool other_head;    /* it did: where the new head was not asked, the other one is shown */
};

struct scope_setting { /* in a versus each of the two sequences has its own */
    struct settings now;
    bool sampled; /* with a temperature, in this run */
    struct scope_heads heads;
    struct metrics metrics; /* in a versus */
    struct aggregates of_run, of_segment;
    uint32_t segment; /* whose the latter are */
};

struct scope {
    const struct run_info *info;
    struct scope_now now;
    struct segments *segments;
    enum scope_window window;

    struct scope_word **words; /* (vocab) */

    struct scope_setting setting[2]; /* [1]: of sequence 1 in a versus */
    bool is_versus;
    struct scope_versus versus;
    struct progress_event progress;
    bool in_progress;

    struct scope_note notes[SCOPE_NOTES]; /* (n_notes) of this run, by sequence and position */
    uint32_t n_notes;

    struct scope_member **members; /* (n_members) by ascending number */
    uint32_t n_members, max_members;
    struct scope_member *last;           /* whose event came last; NULL: nobody's */
    struct scope_sequence *focus;        /* never NULL: held by a member, or nobody's yet (!heard) */
    bool focus_chosen;                   /* by a person: */
    uint32_t wanted;                     /* that sequence, as soon as it is there */
    struct scope_member **round_members; /* (n_round_members) whose lines of round `shared_round` came */
    uint32_t n_round_members, shared_round;
    double round_us;                      /* and what these lines say it took */
    struct scope_pace pace[SCOPE_ROUNDS]; /* round r's at r % SCOPE_ROUNDS */
};

static inline uint32_t
scope_side(const struct scope *s, uint32_t seq) /* The index in `setting` of a sequence's. */
{
    return s->is_versus && seq == 1;
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

/* scope_notes.c */
void scope_note_event(struct scope *, const struct event *);

/* scope_versus.c */
void scope_begin_versus(struct scope *, const char *text);
void scope_end_versus(struct scope *);
void scope_versus_event(struct scope *, const struct event *); /* ROUND and CONTROL, after all else took them in */
void scope_take_probe(struct scope *);                         /* of the sequence in focus */
void scope_take_metrics(struct scope *);                       /* of the sequence in focus */

/* scope_batch.c */
/* The sequence of that number, new if it wasn't there. NULL: nothing is held of it. */
struct scope_member *scope_member(struct scope *, uint32_t seq);
void scope_joined(struct scope *, struct scope_member *, const char *prompt);
void scope_goes_on(struct scope *, struct scope_member *); /* one that left is live again; nothing, where it is */
void scope_left(struct scope *, struct scope_member *, const char *why);
void scope_count_round(struct scope *, struct scope_member *, const struct event *);
void scope_make_room(struct scope *);      /* lets histories of those that left go, the oldest first */
void scope_forget_members(struct scope *); /* the sequence in focus stays, as nobody's */
/* scope_read.c: what a position's cells leave behind when they go. */
token_t scope_final_of(const struct scope *, const struct scope_sequence *, const struct scope_column *);
void scope_take_glimpse(const struct scope *, struct scope_sequence *, uint32_t pos);
bool scope_glimpse_of(const struct scope *, const struct scope_sequence *, uint32_t pos, uint8_t *out);
/* aggregates.c */
void scope_aggregate_round(struct scope *, const struct scope_sequence *); /* its newest, which is whole */
/* scope.c */
void scope_vocab_event(struct scope *, const struct vocab_event *);
void scope_need_word(struct scope *, token_t); /* so that an id has a text, even without a VOCAB event */
/* A run begins: its positions, rounds and series are new. Policy, knobs and vocabulary stay. */
void scope_begin_run(struct scope *);
/* scope_rounds.c; the event is one of that sequence */
void scope_token_event(struct scope *, struct scope_sequence *, const struct event *);
void scope_verdict_event(struct scope_sequence *, const struct verdict_event *);
void scope_round_event(struct scope_sequence *, const struct event *);
/* scope_layers.c */
void scope_layer_event(struct scope *, struct scope_sequence *, const struct event *);
/* scope_experts.c */
void scope_experts_event(const struct scope *, struct scope_sequence *, const struct event *);
void scope_series_event(const struct scope *, struct scope_sequence *, const struct event *);

#endif
