/* The sequence as flowing text: tokens joined to characters (a token may hold half of one), made safe, and broken into
 * lines at spaces. What has been committed is joined and broken once; only the end, with its drafts, is done again for
 * every frame. */
#ifndef TUI_PANELS_TEXT_FLOW_H
#define TUI_PANELS_TEXT_FLOW_H

#include "tui/scope/batch.h"

enum flow_kind { FLOW_COMMITTED, FLOW_STRUCK, FLOW_GHOST };

struct flow_carry { /* bytes that begin a character, waiting for the next token */
    uint8_t n;
    char bytes[4];
};

struct flow_span { /* a token's text: from `at` to the next span's */
    size_t at;
    uint32_t pos;
    enum flow_kind kind;
    struct flow_carry carry; /* what waited before it */
};

struct flow_line {
    size_t start; /* the line's first byte */
    size_t need;  /* how much of the text decided that a line begins there */
};

struct flow {
    char *text; /* (size) safe UTF-8, '\n' for line breaks; terminated */
    size_t n, size;
    struct flow_span *spans;
    size_t n_spans, spans_size;
    struct flow_line *lines; /* the last one is still open */
    size_t n_lines, lines_size;
    int width;
    uint32_t epoch;
    size_t stable; /* spans that only a new epoch can change */
    size_t stable_n;
    struct flow_carry stable_carry;
    struct flow_carry carry; /* at the end */
};

void flow_close(struct flow *);
/* Brings it up to date, in lines of `width` columns. False: no memory; it is empty then. */
bool flow_update(struct flow *, const struct scope *, int width);
/* Makes it anew of the end of a tile's text; a span's pos is its token's index in said[n]. */
bool flow_said(struct flow *, const struct scope *, const struct scope_said *said, uint32_t n, int width);
size_t flow_line_end(const struct flow *, size_t line); /* without its '\n' */
size_t flow_line_at(const struct flow *, size_t at);    /* the line that byte `at` is on */
size_t flow_span_at(const struct flow *, size_t at);    /* the span that byte `at` is in; there must be one */
/* The span that shows a position, struck drafts aside; n_spans: none. */
size_t flow_find(const struct flow *, uint32_t pos);

#endif
