/* What is held of one sequence: its positions with what layers said about them, its rounds, its policy's values. Lies below
 * the scope and knows nothing of it. Only tui/scope includes it. */
#ifndef TUI_SCOPE_SCOPE_SEQUENCE_H
#define TUI_SCOPE_SCOPE_SEQUENCE_H

#include "engine/events/wrong_path.h"
#include "tui/scope/scope.h"
#include "tui/scope/sequence_cells.h"

struct scope_sequence {
    const struct run_info *info; /* borrowed */
    bool heard;                  /* it has an event; its number is */
    uint32_t seq;
    uint32_t length, committed; /* as in struct scope_now */
    uint32_t round;             /* its last whole one */

    /* The rings grow with what is in them, up to these; number i is at i % max_… all the while. */
    uint32_t max_positions, max_columns, max_rounds;
    uint32_t n_columns, n_cells, n_ring; /* allocated of columns, of cells and cells_of, of rounds */
    uint32_t n_values[POLICY_SERIES];    /* of the series' rings */
    size_t bytes;                        /* of all this */
    bool starved;                        /* there was no memory for something that came */
    struct scope_column *columns;        /* (n_columns) position p at p % max_positions */
    uint32_t *cells_of;                  /* (n_cells) 1 + the position whose cells stand there, 0: none */
    struct scope_cell *cells[2];         /* (n_cells * (L + 1)) by head; a trained one's come with its first guess */
    uint64_t *probed;                    /* (L + 1) */
    uint64_t *compared,
        *agreed[2]; /* (L + 1) positions that both heads were asked about; by head: the last layer's word */
    struct aux_cells helpers[HELPERS];
    struct expert_cells experts;
    struct glimpses glimpses; /* of positions whose cells are gone */
    struct wrong_paths wrong;

    struct scope_round *rounds; /* (n_ring) round number i is rounds[i % max_rounds] */
    uint64_t n_rounds;          /* ever, the open one counted */
    bool open;                  /* the newest round is under way */
    uint32_t base;              /* positions committed when it began */
    int32_t node[VERIFY_NODES]; /* index in its drafts of a candidate, -1 */
    int32_t main_tail;          /* candidate at the end of the main line; 0: none yet */
    uint32_t left_main;         /* first position after which another branch than the main line was taken; */
                                /* UINT32_MAX: none */
    struct scope_draft struck[SCOPE_DRAFTS];
    uint32_t n_struck;

    struct scope_series series[POLICY_SERIES];
    struct round_values by_round[POLICY_SERIES]; /* of all but LINE and BAND */
    uint32_t n_series;                           /* of the current policy */
};

/* Empty, with the series of the policy, which may be NULL. It is one of so many at a time: up to 8 have rings as scope.h
 * says, up to 16 half of that each, up to 32 a quarter, more an eighth. NULL: out of memory. */
struct scope_sequence *sequence_open(const struct run_info *, const struct policy_info *, uint32_t at_a_time);
void sequence_close(struct scope_sequence *);                             /* may be NULL */
size_t sequence_bytes(const struct scope_sequence *);                     /* that it takes */
void sequence_begin(struct scope_sequence *, const struct policy_info *); /* empty again */
/* The series are the policy's from now on, without values. NULL: none. */
void sequence_choose_policy(struct scope_sequence *, const struct policy_info *);

uint32_t sequence_first(const struct scope_sequence *);                                   /* as scope_first() */
const struct scope_column *sequence_column(const struct scope_sequence *, uint32_t pos);  /* as scope_column() */
uint32_t sequence_rounds(const struct scope_sequence *);                                  /* as scope_rounds() */
const struct scope_round *sequence_round(const struct scope_sequence *, uint32_t back);   /* as scope_round() */
bool sequence_holds_cells(const struct scope_sequence *, uint32_t pos);                   /* of that very position */
struct scope_cell *sequence_cells(const struct scope_sequence *, int head, uint32_t pos); /* its place; (L + 1) */
/* The end of its text, as scope_tile_tail() tells it. */
uint32_t sequence_tail(const struct scope_sequence *, struct scope_said *, uint32_t n);

/* Room for a position's cells, for the values of a series; a trained head's cells come with its first guess. False: out
 * of memory. */
bool sequence_room_for_cells(struct scope_sequence *, int head, uint32_t pos);
bool sequence_room_for_value(struct scope_sequence *, uint32_t series);
/* The column of a position, made if it is new. NULL: beyond the context, older than what is held,
 * or out of memory. */
struct scope_column *sequence_touch(struct scope_sequence *, uint32_t pos);
/* The event's round, begun if it is new; pos is its first then. */
struct scope_round *sequence_open_round(struct scope_sequence *, const struct event *, uint32_t pos);
struct scope_round *sequence_newest(struct scope_sequence *); /* there must be one */
void sequence_forget_from(struct scope_sequence *, uint32_t pos);
void sequence_lost(struct scope_sequence *); /* events are missing: what was under way is gone */

#endif
