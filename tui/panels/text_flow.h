/* A sequence as flowing text: joins tokens to characters (a token may end within one), escapes unprintable ones, and
 * breaks lines at spaces. Committed text is joined and broken once. The drafts follow its end, with signs for blanks,
 * and never move it; they are computed again for every frame. */
#pragma once

#include "engine/scope/scope.h"
#include "tui/terminal/canvas.h"

/* ---- the turns of a conversation in the tokens of its prompt (text_turns.c) ----
 *
 * A trace has the messages and the tokens, and between them is the template's markup, of which nothing is known. So
 * each message's text is searched in the prompt's bytes, from the end on. */

struct turn {
    size_t from, to;   /* bytes of the prompt that its text takes */
    const char *label; /* "you ›", "model ›", "system ›" */
};

struct turns {
    struct turn *turn; /* (n) in order; the last one is the prompt's; owned */
    size_t n;          /* 0: the prompt is no turn, or a turn's text is not found as it is */
    bool preface;      /* before the first turn there may be more than markup: a system message of the template's */
};

/* Finds the turns in the first `prompt` positions, which are all of the prompt. Frees the earlier ones. False: out of
 * memory. */
bool turns_find(struct turns *, const struct scope *, uint32_t prompt);
void turns_free(struct turns *);

/* ---- the text ---- */

/* FLOW_MARKUP: of the template, before the first turn; FLOW_LABEL: a turn's, before its first token */
enum flow_kind { FLOW_COMMITTED, FLOW_STRUCK, FLOW_GHOST, FLOW_MARKUP, FLOW_LABEL };

struct flow_carry { /* the first bytes of a character whose rest is in the next token */
    uint8_t n;
    char bytes[4];
};

struct flow_span { /* a token's text: from `at` to the next span's */
    size_t at;
    uint32_t pos;
    enum flow_kind kind;
    struct flow_carry carry; /* the bytes carried into it */
};

struct flow_line {
    size_t start; /* the line's first byte */
    size_t need;  /* the length of text that decided where the line begins */
};

struct flow {
    char *text; /* (size) safe UTF-8, '\n' for line breaks; terminated */
    size_t n, size;
    struct flow_span *spans;
    size_t n_spans, spans_size;
    struct flow_line *lines; /* the last line is incomplete */
    size_t n_lines, lines_size;
    int width;
    uint32_t epoch;
    size_t stable; /* spans of committed text, which only a new epoch can change; drafts follow */
    size_t stable_n, stable_lines;
    struct flow_carry stable_carry;
    struct flow_carry carry; /* at the end */
    bool no_drafts;          /* set by the caller: drafts are left out */
    struct turns turns;      /* of the prompt, */
    uint32_t prompt;         /* which has so many positions, */
    size_t prompt_at;        /* and of which so many bytes were appended */
    size_t turn;             /* the turn at that byte, or the next one */
};

void flow_close(struct flow *);
/* Updates the text, in lines of `width` columns. False: out of memory; the flow is empty. */
bool flow_update(struct flow *, const struct scope *, int width);
/* The first line to show on `rows` rows so that the end of the committed text is seen, with a row for drafts below it
 * if there are enough. */
size_t flow_top(const struct flow *, size_t rows);
/* Draws "…" after the last row if drafts follow that have no room; `top`: the line on the first row. */
void flow_draw_cut(const struct flow *, const struct canvas *, size_t top);
size_t flow_line_end(const struct flow *, size_t line); /* without its '\n' */
size_t flow_line_at(const struct flow *, size_t at);    /* the line that contains byte `at` */
size_t flow_span_at(const struct flow *, size_t at);    /* the span that contains byte `at`, which must exist */
/* The span of a position, except struck drafts and labels; n_spans: none. */
size_t flow_find(const struct flow *, uint32_t pos);

/* ---- a tile: one sequence of a batch in a small box ---- */

struct tiling {
    int columns; /* tiles beside each other */
    int rows;    /* of a tile, with its box */
    int visible; /* tiles below each other that fit */
    bool boxed;
};

/* Arranges n tiles on `rows` rows and `cols` columns: as large as possible if all fit, with boxes if they are large
 * enough; otherwise small tiles that scroll. */
struct tiling tiling_of(uint32_t n, int rows, int cols);

struct tile_look {
    bool focused; /* the other panels show this sequence: a thick edge and a mark */
    bool pointed; /* the cursor is on it: its number is reversed */
    int digits;   /* of the widest number */
};

/* Draws a tile on the whole canvas; `flow` is working memory. */
void tile_draw(const struct canvas *, const struct scope *, const struct scope_tile *, struct tile_look, bool boxed,
               struct flow *flow);
/* Draws only the end of its text. */
void tile_text(const struct canvas *, const struct scope *, const struct scope_tile *, struct flow *flow);
