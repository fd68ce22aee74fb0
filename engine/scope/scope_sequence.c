#include "engine/scope/scope_sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64 /* initial items of a ring */

/* ---- room ---- */

/* Extends an array from `have` to `want` items, the new ones zeroed. If it fails, nothing changes. */
static bool
extend(struct scope_sequence *q, void *memory, size_t have, size_t want, size_t each)
{
    void **at = memory;
    char *more = realloc(*at, want * each);
    q->starved = q->starved || more == NULL;
    if (more == NULL)
        return false;
    memset(more + have * each, 0, (want - have) * each);
    *at = more;
    q->bytes += (want - have) * each;
    return true;
}

/* Returns the number of items that a ring needs for item i. */
static uint32_t
enough(uint32_t have, uint32_t i, uint32_t most)
{
    uint32_t n = have > FIRST_ROOM ? have : FIRST_ROOM;
    while (n <= i && n < most)
        n *= 2;
    return n < most ? n : most;
}

/* Rings grow before they wrap around, so that items stay in place. If memory runs out, a ring wraps at its present
 * size. False: it has no room for item i. */
static bool
ring_room(struct scope_sequence *q, void *ring, uint32_t *have, uint32_t *most, uint32_t i, size_t each)
{
    const uint32_t n = enough(*have, i, *most);
    if (n <= *have)
        return true;
    if (extend(q, ring, *have, n, each))
        *have = n;
    else
        *most = *have;
    return *have > 0;
}

static bool
room_for_position(struct scope_sequence *q, uint32_t pos)
{
    return ring_room(q, &q->columns, &q->n_columns, &q->max_positions, pos, sizeof *q->columns);
}

static bool
room_for_round(struct scope_sequence *q)
{
    const uint32_t next = q->n_rounds < q->max_rounds ? (uint32_t)q->n_rounds : 0;
    return ring_room(q, &q->rounds, &q->n_ring, &q->max_rounds, next, sizeof *q->rounds);
}

/* The last layer's prediction is the same for both heads. */
static bool
make_trained(struct scope_sequence *q)
{
    const size_t layers = (size_t)q->info->layers + 1;
    if (q->cells[1] != NULL || q->n_cells == 0)
        return true;
    if (!extend(q, &q->cells[1], 0, q->n_cells * layers, sizeof *q->cells[1]))
        return false;
    for (size_t at = 0; at < q->n_cells; at++)
        q->cells[1][at * layers + q->info->layers] = q->cells[0][at * layers + q->info->layers];
    return true;
}

bool
sequence_room_for_cells(struct scope_sequence *q, int head, uint32_t pos)
{
    const size_t layers = (size_t)q->info->layers + 1, each = layers * sizeof *q->cells[0];
    const uint32_t have = q->n_cells, n = enough(have, pos, q->max_columns);
    if (head == 1 && !make_trained(q))
        return false;
    if (n <= have)
        return true;
    if (extend(q, &q->cells_of, have, n, sizeof *q->cells_of) && extend(q, &q->cells[0], have, n, each) &&
        ((head == 0 && q->cells[1] == NULL) || extend(q, &q->cells[1], have, n, each)))
        q->n_cells = n;
    else
        q->max_columns = have;
    return q->n_cells > 0;
}

bool
sequence_room_for_value(struct scope_sequence *q, uint32_t i)
{
    struct scope_series *series = &q->series[i];
    const uint32_t last = series->count < SCOPE_SERIES ? (uint32_t)series->count : 0;
    const uint32_t n = enough(q->n_values[i], last, SCOPE_SERIES);
    if (n > q->n_values[i]) {
        if (!extend(q, &series->ring, q->n_values[i], n, sizeof *series->ring))
            return last < q->n_values[i];
        q->n_values[i] = n;
    }
    return true;
}

/* ---- opening and closing ---- */

/* rings must fit series i of any policy */
static bool
open_series(struct scope_sequence *q)
{
    for (uint32_t p = 0; p < q->info->n_policies; p++)
        for (uint32_t i = 0; i < q->info->policies[p].n_series && i < POLICY_SERIES; i++) {
            const uint32_t cells = series_cells(&q->info->policies[p].series[i]);
            struct scope_series *series = &q->series[i];
            if (series->cells < SCOPE_BARS)
                series->cells = SCOPE_BARS;
            if (series->cells < cells)
                series->cells = cells;
        }
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &q->series[i];
        if (series->cells > 0 && !extend(q, &series->latest, 0, series->cells, sizeof *series->latest))
            return false;
    }
    return true;
}

struct scope_sequence *
sequence_open(const struct run_info *info, const struct policy_info *policy, uint32_t at_a_time)
{
    struct scope_sequence *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    const size_t layers = (size_t)info->layers + 1;
    const uint32_t share = at_a_time <= 8 ? 1 : at_a_time <= 16 ? 2 : at_a_time <= 32 ? 4 : 8;
    q->info = info;
    q->max_positions = SCOPE_POSITIONS / share;
    q->max_columns = SCOPE_COLUMNS / share;
    q->max_rounds = SCOPE_ROUNDS / share;
    q->bytes = sizeof *q;
    if (!extend(q, &q->compared, 0, layers, sizeof *q->compared) ||
        !extend(q, &q->agreed[0], 0, layers, sizeof *q->agreed[0]) ||
        !extend(q, &q->agreed[1], 0, layers, sizeof *q->agreed[1]) ||
        !extend(q, &q->probed, 0, layers, sizeof *q->probed) || !room_for_position(q, 0) || !room_for_round(q) ||
        !sequence_room_for_cells(q, 0, 0) || !open_series(q)) {
        sequence_close(q);
        return NULL;
    }
    sequence_choose_policy(q, policy);
    return q;
}

void
sequence_close(struct scope_sequence *q)
{
    if (q == NULL)
        return;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        free(q->series[i].ring);
        free(q->series[i].latest);
        ring_close(&q->by_round[i]);
    }
    free(q->columns);
    free(q->cells_of);
    for (int head = 0; head < 2; head++) {
        free(q->cells[head]);
        free(q->agreed[head]);
    }
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        aux_cells_close(&q->aux[role]);
    expert_cells_close(&q->experts);
    ring_close(&q->blocks);
    ring_close(&q->glimpses);
    free(q->probed);
    free(q->compared);
    free(q->rounds);
    free(q);
}

size_t
sequence_bytes(const struct scope_sequence *q)
{
    size_t n = q->bytes + ring_bytes(&q->blocks) + ring_bytes(&q->glimpses) + ring_bytes(&q->experts.rows);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        n += ring_bytes(&q->aux[role].cells);
    for (uint32_t i = 0; i < POLICY_SERIES; i++)
        n += ring_bytes(&q->by_round[i]);
    return n;
}

void
sequence_begin(struct scope_sequence *q, const struct policy_info *policy)
{
    const size_t layers = (size_t)q->info->layers + 1;
    q->heard = false;
    q->length = q->committed = q->base = q->round = 0;
    memset(q->cells_of, 0, q->n_cells * sizeof *q->cells_of);
    memset(q->probed, 0, layers * sizeof *q->probed);
    memset(q->compared, 0, layers * sizeof *q->compared);
    for (int head = 0; head < 2; head++)
        memset(q->agreed[head], 0, layers * sizeof *q->agreed[head]);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        aux_cells_begin(&q->aux[role]);
    expert_cells_begin(&q->experts);
    ring_close(&q->blocks);
    ring_close(&q->glimpses);
    q->n_rounds = 0;
    q->open = false;
    q->n_struck = 0;
    wrong_paths_reset(&q->wrong);
    sequence_choose_policy(q, policy);
}

void
sequence_choose_policy(struct scope_sequence *q, const struct policy_info *policy)
{
    const uint32_t n = policy == NULL ? 0 : policy->n_series;
    q->n_series = n < POLICY_SERIES ? n : POLICY_SERIES;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &q->series[i];
        series->declared = i < q->n_series ? &policy->series[i] : NULL;
        series->count = 0;
        series->used = series->reported = 0;
        for (uint32_t k = 0; k < series->cells; k++)
            series->latest[k] = NAN;
        ring_close(&q->by_round[i]);
    }
}

/* ---- positions ---- */

uint32_t
sequence_first(const struct scope_sequence *q)
{
    return q->length > q->max_positions ? q->length - q->max_positions : 0;
}

const struct scope_column *
sequence_column(const struct scope_sequence *q, uint32_t pos)
{
    if (pos >= q->length || pos < sequence_first(q))
        return NULL;
    const struct scope_column *c = &q->columns[pos % q->max_positions];
    return c->pos == pos ? c : NULL;
}

struct scope_cell *
sequence_cells(const struct scope_sequence *q, int head, uint32_t pos)
{
    return &q->cells[head][(pos % q->max_columns) * ((size_t)q->info->layers + 1)];
}

bool
sequence_holds_cells(const struct scope_sequence *q, uint32_t pos)
{
    const uint32_t at = pos % q->max_columns;
    return at < q->n_cells && q->cells_of[at] == pos + 1;
}

struct scope_column *
sequence_touch(struct scope_sequence *q, uint32_t pos)
{
    const uint32_t limit = q->info->ctx > 0 ? q->info->ctx : UINT32_MAX / 2;
    if (pos > limit || (q->length > q->max_positions && pos < q->length - q->max_positions))
        return NULL;
    if (!room_for_position(q, pos))
        return NULL;
    struct scope_column *c = &q->columns[pos % q->max_positions];
    if (pos >= q->length || sequence_column(q, pos) == NULL) {
        /* skipped positions must not show the former contents of their places */
        for (uint32_t p = q->length; p < pos && p < q->length + q->max_positions; p++)
            q->columns[p % q->max_positions].pos = UINT32_MAX;
        *c = (struct scope_column){.pos = pos,
                                   .token = TOKEN_NONE,
                                   .exit_layer = -1,
                                   .confidence = NAN,
                                   .rejected = TOKEN_NONE,
                                   .rejected_exit = -1,
                                   .final = TOKEN_NONE,
                                   .threshold = NAN};
        q->length = pos >= q->length ? pos + 1 : q->length;
    }
    return c;
}

void
sequence_forget_from(struct scope_sequence *q, uint32_t from)
{
    for (uint32_t p = from; p < q->length && p < from + q->max_positions; p++) {
        q->columns[p % q->max_positions].pos = UINT32_MAX;
        if (sequence_holds_cells(q, p))
            q->cells_of[p % q->max_columns] = 0;
        for (enum aux_role role = 0; role < AUX_MODELS; role++)
            ring_forget(&q->aux[role].cells, p);
        ring_forget(&q->experts.rows, p);
    }
    q->length = from < q->length ? from : q->length;
}

static uint32_t
tail_of(const struct scope_sequence *q, uint32_t from, uint32_t to, uint32_t *skip, struct scope_said *out)
{
    uint32_t n = 0;
    for (uint32_t pos = from; pos < to; pos++) {
        const struct scope_column *c = sequence_column(q, pos);
        if (c == NULL || c->token == TOKEN_NONE || (pos >= q->committed && c->fate != FATE_GHOST))
            continue;
        if (*skip > 0)
            --*skip;
        else
            out[n++] = (struct scope_said){c->token, c->fate};
    }
    return n;
}

uint32_t
sequence_tail(const struct scope_sequence *q, struct scope_said *out, uint32_t n)
{
    const uint32_t ghosts = q->length - q->committed < VERIFY_NODES ? q->length : q->committed + VERIFY_NODES;
    const uint32_t first = sequence_first(q) < q->committed ? sequence_first(q) : q->committed;
    const uint32_t from = q->committed - first > n ? q->committed - n : first;
    const uint32_t all = ghosts - from + q->n_struck;
    uint32_t skip = all > n ? all - n : 0;
    uint32_t count = tail_of(q, from, q->committed, &skip, out);
    for (uint32_t i = 0; i < q->n_struck; i++)
        if (skip > 0)
            skip--;
        else
            out[count++] = (struct scope_said){q->struck[i].token, FATE_REJECTED};
    return count + tail_of(q, q->committed, ghosts, &skip, out + count);
}

/* ---- rounds ---- */

uint32_t
sequence_rounds(const struct scope_sequence *q)
{
    return q->n_rounds < q->max_rounds ? (uint32_t)q->n_rounds : q->max_rounds;
}

const struct scope_round *
sequence_round(const struct scope_sequence *q, uint32_t back)
{
    return back < sequence_rounds(q) ? &q->rounds[(q->n_rounds - 1 - back) % q->max_rounds] : NULL;
}

struct scope_round *
sequence_newest(struct scope_sequence *q)
{
    return &q->rounds[(q->n_rounds - 1) % q->max_rounds];
}

struct scope_round *
sequence_open_round(struct scope_sequence *q, const struct event *e, uint32_t pos)
{
    if (q->open && sequence_newest(q)->number == e->round)
        return sequence_newest(q);
    if (q->open) /* its end was lost */
        q->n_rounds--;
    room_for_round(q); /* it has room since it was opened */
    sequence_forget_from(q, q->committed);
    q->n_rounds++;
    q->open = true;
    q->base = q->committed;
    q->main_tail = 0;
    q->left_main = UINT32_MAX;
    q->n_struck = 0;
    for (int i = 0; i < VERIFY_NODES; i++)
        q->node[i] = -1;
    struct scope_round *r = sequence_newest(q);
    *r = (struct scope_round){.number = e->round, .run = e->run, .first_pos = pos, .last = ROUND_OPEN};
    r->end.exit_layer = r->end.d_max = r->end.w_max = -1;
    r->end.threshold = NAN;
    return r;
}

void
sequence_lost(struct scope_sequence *q)
{
    if (q->open) {
        q->open = false;
        q->n_rounds--;
    }
    q->n_struck = 0;
    sequence_forget_from(q, q->committed);
}
