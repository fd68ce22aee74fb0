/* The history of one sequence: its positions with the layers' predictions, its rounds, its policy's values. It does not
 * depend on the scope. Only engine/scope includes it. */
#pragma once

#include "engine/measure/layer_record.h"
#include "engine/scope/scope.h"
#include "engine/scope/sequence_cells.h"

struct scope_sequence {
    const struct run_info *info; /* borrowed */
    bool heard;                  /* it has an event; then seq is valid */
    uint32_t seq;
    uint32_t length, committed; /* as in struct scope_now */
    uint32_t round;             /* its last complete round */

    /* The rings grow up to these sizes; item i is always at i % max_…. */
    uint32_t max_positions, max_columns, max_rounds;
    uint32_t n_columns, n_cells, n_ring; /* allocated of columns, of cells and cells_of, of rounds */
    uint32_t n_values[POLICY_SERIES];    /* of the series' rings */
    size_t bytes;                        /* of all arrays */
    bool starved;                        /* memory ran out for an event */
    struct scope_column *columns;        /* (n_columns) position p at p % max_positions */
    uint32_t *cells_of;                  /* (n_cells) 1 + the position of these cells, 0: none */
    struct scope_cell
        *cells[2];    /* (n_cells * (L + 1)) by head; the trained head's are allocated with its first prediction */
    uint64_t *probed; /* (L + 1) */
    uint64_t *compared,
        *agreed[2]; /* (L + 1) compared: positions where both heads were probed; agreed: with the last layer, by head */
    struct aux_cells aux[AUX_MODELS];
    struct expert_cells experts;
    struct ring blocks;   /* struct scope_block, by round */
    struct ring glimpses; /* of all positions, also those whose cells were dropped */
    struct wrong_paths wrong;

    struct scope_round *rounds; /* (n_ring) round number i is rounds[i % max_rounds] */
    uint64_t n_rounds;          /* all so far, including the open one */
    bool open;                  /* the newest round is incomplete */
    uint32_t base;              /* positions committed when it began */
    int32_t node[VERIFY_NODES]; /* index in its drafts of a candidate, -1 */
    int32_t main_tail;          /* candidate at the end of the main line; 0: none yet */
    uint32_t left_main;         /* last position before the path left the main line; UINT32_MAX: it did not */
    struct scope_draft struck[SCOPE_DRAFTS];
    uint32_t n_struck;

    struct scope_series series[POLICY_SERIES];
    struct ring by_round[POLICY_SERIES]; /* of all forms except LINE and BAND */
    uint32_t n_series;                   /* of the current policy */
};

/* Opens an empty history with the policy's series (NULL: none). at_a_time: sequences at a time; up to 8 have the sizes
 * of scope.h, up to 16 half of them, up to 32 a quarter, more an eighth. NULL: out of memory. */
struct scope_sequence *sequence_open(const struct run_info *, const struct policy_info *, uint32_t at_a_time);
void sequence_close(struct scope_sequence *);                             /* may be NULL */
size_t sequence_bytes(const struct scope_sequence *);                     /* of memory */
void sequence_begin(struct scope_sequence *, const struct policy_info *); /* empties it */
/* Replaces the series by those of a policy, without values. NULL: none. */
void sequence_choose_policy(struct scope_sequence *, const struct policy_info *);

uint32_t sequence_first(const struct scope_sequence *);                                  /* as scope_first() */
const struct scope_column *sequence_column(const struct scope_sequence *, uint32_t pos); /* as scope_column() */
uint32_t sequence_rounds(const struct scope_sequence *);                                 /* as scope_rounds() */
const struct scope_round *sequence_round(const struct scope_sequence *, uint32_t back);  /* as scope_round() */
bool sequence_holds_cells(const struct scope_sequence *, uint32_t pos); /* the position's cells are in memory */
struct scope_cell *sequence_cells(const struct scope_sequence *, int head,
                                  uint32_t pos); /* the place of its cells; (L + 1) */
/* The same as scope_tile_tail(). */
uint32_t sequence_tail(const struct scope_sequence *, struct scope_said *, uint32_t n);

/* Allocate cells for a position, or values for a series. False: out of memory. */
bool sequence_room_for_cells(struct scope_sequence *, int head, uint32_t pos);
bool sequence_room_for_value(struct scope_sequence *, uint32_t series);
/* The column of a position, made if it is new. NULL: after the context's end, already dropped, or out of memory. */
struct scope_column *sequence_touch(struct scope_sequence *, uint32_t pos);
/* The event's round, begun at position pos if it is new. */
struct scope_round *sequence_open_round(struct scope_sequence *, const struct event *, uint32_t pos);
struct scope_round *sequence_newest(struct scope_sequence *); /* it must exist */
void sequence_forget_from(struct scope_sequence *, uint32_t pos);
void sequence_lost(struct scope_sequence *); /* after lost events: drops the open round */
