#include "tui/panels/text_flow.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/terminal/text.h"

void
flow_close(struct flow *f)
{
    free(f->text);
    free(f->spans);
    free(f->lines);
    *f = (struct flow){0};
}

static bool
grow(void *memory, size_t *size, size_t want, size_t each)
{
    if (want <= *size)
        return true;
    size_t n = *size < 256 ? 256 : *size;
    while (n < want)
        n *= 2;
    void **at = memory;
    void *p = realloc(*at, n * each);
    if (p == NULL)
        return false;
    *at = p;
    *size = n;
    return true;
}

/* ---- bytes to text ---- */

static bool
append_safe(struct flow *f, const char *bytes, size_t n)
{
    if (!grow(&f->text, &f->size, f->n + 4 * n + 1, 1))
        return false;
    f->n += printable_text(bytes, n, f->text + f->n, f->size - f->n);
    return true;
}

static bool
append_plain(struct flow *f, const char *text, size_t n)
{
    if (!grow(&f->text, &f->size, f->n + n + 1, 1))
        return false;
    memcpy(f->text + f->n, text, n);
    f->n += n;
    f->text[f->n] = '\0';
    return true;
}

/* Whole characters become text; the beginning of one at the end waits. */
static bool
append_bytes(struct flow *f, const char *bytes, size_t n)
{
    const size_t waiting = text_incomplete(bytes, n);
    const size_t whole = n - waiting;
    size_t from = 0;
    for (size_t i = 0; i <= whole; i++) {
        if (i < whole && bytes[i] != '\n' && bytes[i] != '\t')
            continue;
        if (i > from && !append_safe(f, bytes + from, i - from))
            return false;
        from = i + 1;
        if (i < whole && !(bytes[i] == '\n' ? append_plain(f, "\n", 1) : append_plain(f, "    ", 4)))
            return false;
    }
    f->carry.n = (uint8_t)waiting;
    memcpy(f->carry.bytes, bytes + whole, waiting);
    return true;
}

/* What waits will not be completed: it is shown as the bytes it is. */
static bool
append_waiting(struct flow *f)
{
    const struct flow_carry c = f->carry;
    f->carry.n = 0;
    return append_safe(f, c.bytes, c.n);
}

static bool
append_token(struct flow *f, const struct scope *s, uint32_t pos, token_t token, enum flow_kind kind)
{
    if (!grow(&f->spans, &f->spans_size, f->n_spans + 1, sizeof *f->spans))
        return false;
    f->spans[f->n_spans++] = (struct flow_span){.at = f->n, .pos = pos, .kind = kind, .carry = f->carry};
    uint32_t n = 0;
    const char *bytes = scope_bytes(s, token, &n);
    char joined[4 + 256]; /* the scope keeps at most that much of a token */
    if (n > sizeof joined - sizeof f->carry.bytes)
        n = sizeof joined - sizeof f->carry.bytes;
    memcpy(joined, f->carry.bytes, f->carry.n);
    if (n > 0)
        memcpy(joined + f->carry.n, bytes, n);
    return append_bytes(f, joined, f->carry.n + n);
}

static bool
append_committed(struct flow *f, const struct scope *s, uint32_t from, uint32_t to)
{
    for (uint32_t pos = from; pos < to; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        if (c != NULL && c->token != TOKEN_NONE && !append_token(f, s, pos, c->token, FLOW_COMMITTED))
            return false;
    }
    return true;
}

static bool
append_tail(struct flow *f, const struct scope *s, const struct scope_draft *struck, uint32_t n_struck)
{
    const uint32_t committed = scope_now(s)->committed;
    if (n_struck > 0) {
        if (!append_waiting(f))
            return false;
        for (uint32_t i = 0; i < n_struck; i++)
            if (!append_token(f, s, struck[i].pos, struck[i].token, FLOW_STRUCK))
                return false;
        f->carry = f->stable_carry;
        if (!append_committed(f, s, struck[0].pos, committed))
            return false;
    }
    for (uint32_t pos = committed; pos < scope_now(s)->length && pos - committed < VERIFY_NODES; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        if (c != NULL && c->fate == FATE_GHOST && !append_token(f, s, pos, c->token, FLOW_GHOST))
            return false;
    }
    return append_waiting(f);
}

/* ---- lines ---- */

static bool
push_line(struct flow *f, size_t start, size_t need)
{
    if (!grow(&f->lines, &f->lines_size, f->n_lines + 1, sizeof *f->lines))
        return false;
    f->lines[f->n_lines++] = (struct flow_line){start, need};
    return true;
}

static bool
wrap(struct flow *f)
{
    if (f->n_lines == 0 && !push_line(f, 0, 0))
        return false;
    const size_t first = f->lines[f->n_lines - 1].start;
    size_t start = first, after_space = first;
    int used = 0, columns = 0;
    for (size_t at = first, n; (n = text_cluster(f->text + at, &columns)) != 0; at += n) {
        const char c = f->text[at];
        if (c == '\n' || (c == ' ' && used + 1 > f->width)) { /* the space at a line's end is the break */
            start = after_space = at + 1;
            n = 1;
            used = 0;
            if (!push_line(f, start, at + 1))
                return false;
            continue;
        }
        if (used + columns > f->width && at > start) {
            /* The word goes to the next line; one that is longer than a line is cut. */
            start = after_space > start ? after_space : at;
            if (!push_line(f, start, at + n))
                return false;
            used = 0;
            after_space = start;
            at = start; /* measured again from there */
            n = text_cluster(f->text + at, &columns);
        }
        used += columns;
        if (f->text[at] == ' ')
            after_space = at + n;
    }
    return true;
}

/* ---- keeping up ---- */

static void
cut(struct flow *f, size_t n_spans)
{
    if (n_spans < f->stable) {
        f->stable = n_spans;
        f->stable_n = f->spans[n_spans].at;
        f->stable_carry = f->spans[n_spans].carry;
    }
    f->n_spans = f->stable;
    f->n = f->stable_n;
    f->carry = f->stable_carry;
    if (f->text != NULL)
        f->text[f->n] = '\0';
    while (f->n_lines > 1 && f->lines[f->n_lines - 1].need > f->n)
        f->n_lines--;
}

static bool
update(struct flow *f, const struct scope *s)
{
    const struct scope_draft *struck;
    const uint32_t n_struck = scope_struck(s, &struck);
    const uint32_t until =
        n_struck > 0 && struck[0].pos < scope_now(s)->committed ? struck[0].pos : scope_now(s)->committed;
    size_t keep = f->stable;
    while (keep > 0 && f->spans[keep - 1].pos >= until)
        keep--;
    cut(f, keep);
    const uint32_t from = keep > 0 ? f->spans[keep - 1].pos + 1 : scope_first(s);
    if (!append_plain(f, "", 0) || !append_committed(f, s, from, until))
        return false;
    f->stable = f->n_spans;
    f->stable_n = f->n;
    f->stable_carry = f->carry;
    return append_tail(f, s, struck, n_struck) && wrap(f);
}

bool
flow_update(struct flow *f, const struct scope *s, int width)
{
    const bool old = f->n_spans > 0 && scope_first(s) > f->spans[0].pos + SCOPE_POSITIONS / 4;
    if (f->epoch != scope_now(s)->epoch || old) {
        f->stable = f->stable_n = f->n_lines = 0;
        f->stable_carry.n = 0;
        f->epoch = scope_now(s)->epoch;
    }
    if (f->width != width) {
        f->n_lines = 0;
        f->width = width < 1 ? 1 : width;
    }
    if (update(f, s))
        return true;
    flow_close(f);
    return false;
}

bool
flow_said(struct flow *f, const struct scope *s, const struct scope_said *said, uint32_t n, int width)
{
    struct flow_carry before = {.n = 0}; /* what waited before drafts that were struck */
    bool fine = append_plain(f, "", 0), struck = false;
    f->width = width < 1 ? 1 : width;
    f->n = f->n_spans = f->n_lines = f->stable = f->stable_n = 0;
    f->carry.n = 0;
    for (uint32_t i = 0; i <= n && fine; i++) {
        const bool strikes = i < n && said[i].fate == FATE_REJECTED;
        if (strikes != struck) {
            before = strikes ? f->carry : before;
            fine = append_waiting(f);
            f->carry = strikes ? f->carry : before;
            struck = strikes;
        }
        fine = fine && (i == n ? append_waiting(f)
                               : append_token(f, s, i, said[i].token,
                                              strikes                      ? FLOW_STRUCK
                                              : said[i].fate == FATE_GHOST ? FLOW_GHOST
                                                                           : FLOW_COMMITTED));
    }
    if (fine && wrap(f))
        return true;
    flow_close(f);
    return false;
}

/* ---- finding ---- */

size_t
flow_line_end(const struct flow *f, size_t line)
{
    if (line + 1 >= f->n_lines)
        return f->n;
    const size_t end = f->lines[line + 1].start;
    return end > f->lines[line].start && f->text[end - 1] == '\n' ? end - 1 : end;
}

/* The last of n items, each beginning with an offset, ascending, whose offset is not beyond `at`; 0 when all are. */
static size_t
last_up_to(const void *items, size_t each, size_t n, size_t at)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (*(const size_t *)((const char *)items + middle * each) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t
flow_line_at(const struct flow *f, size_t at)
{
    return last_up_to(f->lines, sizeof *f->lines, f->n_lines, at);
}

size_t
flow_span_at(const struct flow *f, size_t at)
{
    return last_up_to(f->spans, sizeof *f->spans, f->n_spans, at);
}

size_t
flow_find(const struct flow *f, uint32_t pos)
{
    size_t low = 0, high = f->stable;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (f->spans[middle].pos < pos)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < f->n_spans; i++) {
        if (f->spans[i].pos == pos && f->spans[i].kind != FLOW_STRUCK)
            return i;
        if (i < f->stable && f->spans[i].pos > pos)
            break;
    }
    return f->n_spans;
}
