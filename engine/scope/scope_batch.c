/* The sequences of a run: the list, their histories, their tiles. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/scope/scope_internal.h"

/* ---- the sequences ---- */

/* Returns the index of a sequence, or where to insert it. */
static uint32_t
place_of(const struct scope *s, uint32_t seq)
{
    uint32_t low = 0, high = s->n_members;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->members[middle]->tile.seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct scope_member *
find(const struct scope *s, uint32_t seq)
{
    const uint32_t at = place_of(s, seq);
    return at < s->n_members && s->members[at]->tile.seq == seq ? s->members[at] : NULL;
}

static void
assign_place(struct scope *s, struct scope_member *m)
{
    uint32_t place = 0;
    for (bool taken = true; taken; place += taken) {
        taken = false;
        for (uint32_t i = 0; i < s->n_members && !taken; i++)
            taken = s->members[i] != m && s->members[i]->tile.live && s->members[i]->tile.place == place;
    }
    for (uint32_t i = 0; i < s->n_members; i++)
        if (s->members[i]->tile.place == place)
            s->members[i]->tile.has_place = false;
    m->tile.place = place;
    m->tile.has_place = true;
}

static struct scope_member *
add_member(struct scope *s, uint32_t seq)
{
    if (s->n_members == SCOPE_TILES)
        return NULL;
    if (s->n_members == s->max_members) {
        const uint32_t max = 2 * s->max_members + 8;
        struct scope_member **members = realloc(s->members, max * sizeof(struct scope_member *));
        if (members != NULL)
            s->members = members;
        struct scope_member **round = realloc(s->round_members, max * sizeof(struct scope_member *));
        if (round != NULL)
            s->round_members = round;
        s->now.starved = s->now.starved || members == NULL || round == NULL;
        if (members == NULL || round == NULL)
            return NULL;
        s->max_members = max;
    }
    struct scope_member *m = calloc(1, sizeof *m);
    s->now.starved = s->now.starved || m == NULL;
    if (m == NULL)
        return NULL;
    m->tile.seq = seq;
    const uint32_t at = place_of(s, seq);
    memmove(&s->members[at + 1], &s->members[at], (s->n_members - at) * sizeof(struct scope_member *));
    s->members[at] = m;
    s->n_members++;
    return m;
}

/* ---- histories in memory ---- */

/* the announced number at a time may be too small */
static uint32_t
at_a_time(const struct scope *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_members; i++)
        n += s->members[i]->tile.live;
    return s->info->sequences > n ? s->info->sequences : n;
}

static void
let_go(struct scope_member *m)
{
    m->n_tail = sequence_tail(m->held, m->tail, SCOPE_TAIL);
    sequence_close(m->held);
    m->held = NULL;
    m->tile.held = false;
}

/* Drops histories of ended sequences, the oldest first. */
static void
make_room(struct scope *s)
{
    for (;;) {
        struct scope_member *oldest = NULL;
        size_t bytes = 0;
        for (uint32_t i = 0; i < s->n_members; i++) {
            struct scope_member *m = s->members[i];
            if (m->held == NULL)
                continue;
            bytes += sequence_bytes(m->held);
            if (!m->tile.live && m->held != s->focus && (oldest == NULL || m->ended < oldest->ended))
                oldest = m;
        }
        if (bytes <= SCOPE_MEMORY || oldest == NULL)
            return;
        let_go(oldest);
    }
}

static void
hold(struct scope *s, struct scope_member *m)
{
    make_room(s);
    if (s->focus->heard)
        m->held = sequence_open(s->info, scope_policy_of(s, m->tile.seq), at_a_time(s));
    else
        sequence_choose_policy(m->held = s->focus,
                               scope_policy_of(s, m->tile.seq)); /* the empty history becomes this sequence's */
    s->now.starved = s->now.starved || m->held == NULL;
    if (m->held == NULL)
        return; /* its tile still counts */
    m->held->heard = true;
    m->held->seq = m->tile.seq;
    m->tile.held = true;
}

static void
focus_on(struct scope *s, struct scope_member *m)
{
    if (m->held == NULL || m->held == s->focus)
        return;
    s->focus = m->held;
    scope_take_metrics(s);
    s->now.epoch++;
    scope_take_lengths(s);
}

struct scope_member *
scope_member(struct scope *s, uint32_t seq)
{
    struct scope_member *m = s->last;
    if (m == NULL || m->tile.seq != seq)
        m = find(s, seq);
    if (m == NULL && (m = add_member(s, seq)) != NULL) {
        m->tile.live = true;
        assign_place(s, m);
        hold(s, m);
        if (s->focus_chosen && s->wanted == seq)
            focus_on(s, m);
    }
    return s->last = m;
}

/* ---- events ---- */

void
scope_joined(struct scope *s, struct scope_member *m, const char *prompt)
{
    const struct scope_member *shown = s->focus->heard ? find(s, s->focus->seq) : NULL;
    const bool again = m->tile.total.rounds > 0 || !m->tile.live;
    m->tile.live = true;
    m->tile.left[0] = '\0';
    if (again) {
        assign_place(s, m);
        m->tile.round = 0;
        m->tile.rounds_us = 0;
        m->tile.total = (struct tally){0};
        if (m->held != NULL)
            sequence_begin(m->held, scope_policy_of(s, m->tile.seq));
        else
            hold(s, m);
        if (m->held != NULL) {
            m->held->heard = true;
            m->held->seq = m->tile.seq;
        }
        if (m->held == s->focus) {
            s->now.epoch++;
            scope_take_lengths(s);
        }
    }
    printable_text(prompt, strnlen(prompt, sizeof m->tile.prompt), m->tile.prompt, sizeof m->tile.prompt);
    if (!s->focus_chosen && shown != NULL && !shown->tile.live)
        focus_on(s, m);
}

void
scope_rejoined(struct scope *s, struct scope_member *m)
{
    if (m->tile.live)
        return;
    m->tile.live = true;
    m->tile.left[0] = '\0';
    if (m->held == NULL)
        hold(s, m);
}

void
scope_left(struct scope *s, struct scope_member *m, const char *why)
{
    m->tile.live = false;
    m->ended = s->now.version;
    printable_text(why, strnlen(why, sizeof m->tile.left), m->tile.left, sizeof m->tile.left);
    make_room(s);
}

void
scope_count_round(struct scope *s, struct scope_member *m, const struct event *e)
{
    const double us = (double)e->round_end.draft_us + (double)e->round_end.verify_us;
    if (e->round != s->shared_round) {
        s->shared_round = e->round;
        s->n_round_members = 0;
        s->round_us = 0;
        if (e->round % 16 == 0) /* histories of live sequences grow */
            make_room(s);
    }
    for (uint32_t i = 0; i < s->n_round_members; i++)
        s->round_members[i]->tile.rounds_us += us;
    if (m->tile.round != e->round && s->n_round_members < s->max_members) {
        s->round_members[s->n_round_members++] = m;
        m->tile.rounds_us += s->round_us + us;
        m->tile.round = e->round;
    }
    s->round_us += us;
    struct scope_pace *pace = &s->pace[e->round % SCOPE_ROUNDS];
    if (pace->round != e->round)
        *pace = (struct scope_pace){.round = e->round};
    pace->emitted += e->round_end.emitted;
    pace->us += us;
    const struct tally t = tally_of(&e->round_end);
    tally_add(&m->tile.total, &t);
}

void
scope_forget_members(struct scope *s)
{
    for (uint32_t i = 0; i < s->n_members; i++) {
        if (s->members[i]->held != s->focus)
            sequence_close(s->members[i]->held);
        free(s->members[i]);
    }
    s->n_members = s->n_round_members = s->shared_round = 0;
    s->last = NULL;
}

/* ---- reading ---- */

struct scope_batch
scope_batch(const struct scope *s)
{
    struct scope_batch b = {.tiles = s->n_members};
    for (uint32_t i = 0; i < s->n_members; i++)
        b.live += s->members[i]->tile.live;
    b.left = b.tiles - b.live;
    b.waiting = s->info->prompts > b.tiles ? s->info->prompts - b.tiles : 0;
    return b;
}

bool
scope_is_batch(const struct scope *s)
{
    return s->n_members > 1 || s->info->sequences > 1 || s->info->prompts > 1;
}

const struct scope_tile *
scope_tile(const struct scope *s, uint32_t index)
{
    return index < s->n_members ? &s->members[index]->tile : NULL;
}

uint32_t
scope_tile_index(const struct scope *s, uint32_t seq)
{
    const uint32_t at = place_of(s, seq);
    return at < s->n_members && s->members[at]->tile.seq == seq ? at : s->n_members;
}

double
scope_tile_tokens_per_s(const struct scope_tile *t)
{
    return t->rounds_us > 0 ? (double)t->total.emitted * 1e6 / t->rounds_us : (double)NAN;
}

const struct scope_sequence *
scope_held(const struct scope *s, uint32_t seq)
{
    const struct scope_member *m = find(s, seq);
    return m != NULL ? m->held : NULL;
}

const struct scope_round *
scope_round_of(const struct scope *s, uint32_t seq, uint32_t back)
{
    const struct scope_sequence *q = scope_held(s, seq);
    return q != NULL ? sequence_round(q, back) : NULL;
}

uint32_t
scope_tile_tail(const struct scope *s, const struct scope_tile *t, struct scope_said *out, uint32_t n)
{
    const struct scope_member *m = find(s, t->seq);
    if (m == NULL)
        return 0;
    if (m->held != NULL)
        return sequence_tail(m->held, out, n);
    const uint32_t count = n < m->n_tail ? n : m->n_tail;
    memcpy(out, m->tail + m->n_tail - count, count * sizeof *out);
    return count;
}

uint32_t
scope_focus(const struct scope *s)
{
    return s->focus->seq;
}

bool
scope_set_focus(struct scope *s, uint32_t seq)
{
    struct scope_member *m = find(s, seq);
    if (m == NULL || m->held == NULL)
        return false;
    s->focus_chosen = true;
    s->wanted = seq;
    s->now.version++;
    focus_on(s, m);
    return true;
}
