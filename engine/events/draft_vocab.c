#include "engine/events/draft_vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

static bool
allocate(struct draft_rank *r, uint32_t vocab, struct err *err)
{
    *r = (struct draft_rank){.vocab = vocab};
    r->ids = calloc(vocab, sizeof *r->ids);
    r->place = calloc(vocab, sizeof *r->place);
    return (r->ids != NULL && r->place != NULL) ||
           err_set(err, ERR_WORK, "out of memory for an order of %" PRIu32 " tokens", vocab);
}

bool
draft_rank_open(struct draft_rank *r, const token_t *ids, uint32_t vocab, struct err *err)
{
    if (!allocate(r, vocab, err))
        return false;
    memcpy(r->ids, ids, vocab * sizeof *ids);
    for (uint32_t i = 0; i < vocab; i++)
        r->place[ids[i]] = i;
    return true;
}

void
draft_rank_close(struct draft_rank *r)
{
    free(r->ids);
    free(r->place);
    *r = (struct draft_rank){0};
}

bool
draft_rank_print_last(const struct draft_rank *r, char *out, size_t n)
{
    uint32_t first = 1;
    size_t at = 0;
    out[0] = '\0';
    while (first < r->vocab && r->ids[first] > r->ids[first - 1])
        first++;
    for (uint32_t i = first, end; i < r->vocab; i = end) {
        for (end = i + 1; end < r->vocab && r->ids[end] == r->ids[end - 1] + 1;)
            end++;
        if (end < r->vocab && r->ids[end] < r->ids[end - 1])
            return false; /* not ascending */
        at += (size_t)snprintf(out + at, n - at, end - i > 1 ? "%s%" PRId32 "-%" PRId32 : "%s%" PRId32,
                               i > first ? "," : "", r->ids[i], r->ids[end - 1]);
        if (at >= n)
            return false;
    }
    return true;
}

/* Marks the ids of the ranges in `last`. */
static void
mark_ranges(const char *last, uint32_t vocab, uint32_t *marked)
{
    while (*last != '\0') {
        char *end;
        unsigned long from = strtoul(last, &end, 10), to = from;
        if (end == last) {
            last++;
            continue;
        }
        if (*end == '-') {
            last = end + 1;
            to = strtoul(last, &end, 10);
        }
        for (unsigned long i = from; i <= to && i < vocab; i++)
            marked[i] = 1;
        last = end;
    }
}

bool
draft_rank_by_id(struct draft_rank *r, const char *last, uint32_t vocab, struct err *err)
{
    uint32_t n = 0;
    if (!allocate(r, vocab, err))
        return false;
    mark_ranges(last, vocab, r->place);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < vocab; i++)
            if (r->place[i] == pass)
                r->ids[n++] = (token_t)i;
    for (uint32_t i = 0; i < vocab; i++)
        r->place[r->ids[i]] = i;
    return true;
}

/* ---- recent tokens ---- */

static bool
is_recent(const struct draft_recent *r, token_t token)
{
    const uint32_t n = draft_recent_count(r);
    int equal = 0;
    for (uint32_t i = 0; i < n; i++) /* no early exit: the loop runs on vectors */
        equal |= r->token[i] == token;
    return equal != 0;
}

void
draft_recent_read(struct draft_recent *r, const struct draft_rank *rank, uint32_t base, const token_t *text, uint32_t n)
{
    if (r->base != base || r->read > n)
        *r = (struct draft_recent){.base = base};
    for (; r->read < n; r->read++) {
        const token_t token = text[r->read];
        if ((uint32_t)token < rank->vocab && rank->place[token] >= base && !is_recent(r, token))
            r->token[r->found++ % DRAFT_RECENT] = token;
    }
}
