/* The sequence as text. Drafts follow its end: faint, or struck through from their rejection until the next round. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "tui/panels/panel.h"
#include "tui/panels/text_flow.h"

enum channel { CHANNEL_EXIT, CHANNEL_CONFIDENCE, CHANNEL_SOURCE, CHANNEL_PLAIN, CHANNELS };

struct text_panel {
    struct flow flow;
    enum channel channel; /* if `chosen` */
    bool chosen;
    bool scrolled;            /* false: the end is shown */
    size_t top;               /* byte in the first line, while scrolled */
    size_t top_line;          /* as drawn last */
    int rows;                 /* as drawn last */
    uint32_t epoch, seen_pos; /* the selection that the text was scrolled to last, */
    bool seen_pointed;        /* unless it followed */
    size_t found;             /* byte of the last match */
};

static void
close_text(void *state)
{
    struct text_panel *p = state;
    flow_close(&p->flow);
}

/* Returns the user's choice, or a channel that suits the policy's drafts: exit layers, or only sources. */
static enum channel
channel_of(const struct text_panel *p, const struct scope *s)
{
    static const enum channel by_origin[] = {[DRAFTS_NONE] = CHANNEL_PLAIN,
                                             [DRAFTS_LAYERS] = CHANNEL_EXIT,
                                             [DRAFTS_SUBLAYERS] = CHANNEL_SOURCE,
                                             [DRAFTS_ELSEWHERE] = CHANNEL_SOURCE};
    return p->chosen ? p->channel : by_origin[scope_draft_origin(s)];
}

/* ---- drawing ---- */

struct style {
    enum role role;
    float heat;
    unsigned marks;
};

static struct style
style_committed(enum channel channel, const struct scope *s, const struct scope_column *c)
{
    struct style style = {ROLE_TEXT, NAN, MARK_NONE};
    if (c == NULL)
        return style;
    if (c->fate == FATE_PROMPT)
        return (struct style){ROLE_PROMPT, NAN, MARK_NONE};
    switch (channel) {
    case CHANNEL_EXIT: /* the target's own tokens have no colour */
        if (c->fate == FATE_ACCEPTED && c->exit_layer > 0)
            style.heat = (float)c->exit_layer / (float)scope_info(s)->layers;
        break;
    case CHANNEL_CONFIDENCE: style.heat = c->confidence; break;
    case CHANNEL_SOURCE:
        style.role = fate_styles[c->fate].role;
        style.marks = fate_styles[c->fate].marks;
        break;
    case CHANNEL_PLAIN:
    case CHANNELS: break;
    }
    return style;
}

static struct style
style_of_span(const struct text_panel *p, const struct view *v, const struct flow_span *span)
{
    struct style style = {ROLE_DRAFT, NAN, MARK_NONE};
    if (span->kind == FLOW_STRUCK)
        return (struct style){ROLE_REJECTED, NAN, MARK_STRUCK};
    if (span->kind == FLOW_LABEL)
        return (struct style){ROLE_TITLE, NAN, MARK_NONE};
    if (span->kind == FLOW_MARKUP)
        style.role = ROLE_DIM;
    if (span->kind == FLOW_COMMITTED)
        style = style_committed(channel_of(p, v->scope), v->scope, scope_column(v->scope, span->pos));
    if (scope_note_at(v->scope, scope_focus(v->scope), span->pos) != NULL)
        style.marks |= MARK_BOLD | MARK_UNDERLINED;
    if (!v->selection->follow && v->selection->pos == span->pos)
        style.marks |= MARK_CURSOR;
    return style;
}

/* Returns the length of the match at this byte; 0: none. */
static size_t
match_at(const struct flow *f, size_t at, const char *needle)
{
    const size_t n = strlen(needle);
    return n > 0 && n <= f->n - at && strncasecmp(f->text + at, needle, n) == 0 ? n : 0;
}

static void
draw_line(const struct text_panel *p, const struct view *v, const struct canvas *c, int y, size_t line,
          size_t *match_end)
{
    const struct flow *f = &p->flow;
    const size_t end = flow_line_end(f, line);
    size_t at = f->lines[line].start;
    if (f->n_spans == 0)
        return;
    size_t span = flow_span_at(f, at);
    struct style style = style_of_span(p, v, &f->spans[span]);
    bool word = false; /* a token's leading spaces have no background */
    int x = 0, columns = 0;
    for (size_t n; at < end && (n = text_cluster(f->text + at, &columns)) != 0; at += n, x += columns) {
        while (span + 1 < f->n_spans && f->spans[span + 1].at <= at) {
            style = style_of_span(p, v, &f->spans[++span]);
            word = false;
        }
        const size_t matched = match_at(f, at, v->search);
        if (at + matched > *match_end && matched > 0)
            *match_end = at + matched;
        word = word || f->text[at] != ' ';
        char cluster[64];
        snprintf(cluster, sizeof cluster, "%.*s", (int)n, f->text + at);
        if (at < *match_end)
            canvas_styled(c, y, x, ROLE_WARN, NAN, style.marks | MARK_BOLD | MARK_UNDERLINED, cluster);
        else
            canvas_styled(c, y, x, style.role, word ? style.heat : NAN, word ? style.marks : style.marks & MARK_STRUCK,
                          cluster);
    }
}

/* Scrolls so that byte `at` is visible. */
static void
show_byte(struct text_panel *p, size_t at)
{
    const size_t line = flow_line_at(&p->flow, at), rows = p->rows > 0 ? (size_t)p->rows : 1;
    size_t top = p->scrolled ? flow_line_at(&p->flow, p->top) : flow_top(&p->flow, rows);
    if (line >= top && line < top + rows)
        return;
    top = line > rows / 3 ? line - rows / 3 : 0;
    p->scrolled = true;
    p->top = p->flow.lines[top].start;
}

static void
follow_selection(struct text_panel *p, const struct view *v)
{
    if (p->epoch != scope_now(v->scope)->epoch) {
        p->epoch = scope_now(v->scope)->epoch;
        p->scrolled = false;
        p->found = 0;
    }
    const struct selection *sel = v->selection;
    if (sel->follow && p->seen_pointed) {
        p->scrolled = false;
    } else if (!sel->follow && (sel->pos != p->seen_pos || !p->seen_pointed)) {
        const size_t span = flow_find(&p->flow, sel->pos);
        if (span < p->flow.n_spans)
            show_byte(p, p->flow.spans[span].at);
    }
    p->seen_pos = sel->pos;
    p->seen_pointed = !sel->follow;
}

static void
draw_waiting(const struct view *v, const struct canvas *c)
{
    const struct progress_event *progress = scope_now(v->scope)->progress;
    if (progress == NULL) {
        canvas_text(c, 0, 0, ROLE_DIM, "no tokens yet");
        return;
    }
    const int used = canvas_print(c, 0, 0, ROLE_DIM, "%s %3.0f%% ", progress->what, (double)progress->done * 100);
    canvas_bar(c, 0, used, c->cols - used < 24 ? c->cols - used : 24, (double)progress->done, ROLE_OK);
}

static void
draw_text(void *state, const struct view *v, const struct canvas *c)
{
    struct text_panel *p = state;
    if (c->rows < 1 || c->cols < 1)
        return;
    p->rows = c->rows;
    p->flow.no_drafts = v->no_drafts;
    if (!flow_update(&p->flow, v->scope, c->cols)) {
        canvas_text(c, 0, 0, ROLE_ERROR, "out of memory for the text");
        return;
    }
    if (p->flow.n_spans == 0) {
        draw_waiting(v, c);
        return;
    }
    follow_selection(p, v);
    const size_t rows = (size_t)c->rows, last = flow_top(&p->flow, rows);
    size_t top = p->scrolled ? flow_line_at(&p->flow, p->top) : last;
    if (top >= last)
        top = last;
    p->top_line = top;
    size_t match_end = 0;
    const size_t end = top + rows < p->flow.n_lines ? p->flow.lines[top + rows].start : p->flow.n;
    const struct flow_span *shown = &p->flow.spans[flow_span_at(&p->flow, end > 0 ? end - 1 : 0)];
    if (shown->kind == FLOW_STRUCK) /* its position is that of committed text */
        shown = &p->flow.spans[p->flow.stable - 1];
    v->selection->text =
        (struct position_range){p->flow.spans[flow_span_at(&p->flow, p->flow.lines[top].start)].pos, shown->pos + 1};
    for (int y = 0; y < c->rows && top + (size_t)y < p->flow.n_lines; y++)
        draw_line(p, v, c, y, top + (size_t)y, &match_end);
    flow_draw_cut(&p->flow, c, top);
}

/* Writes the names of the sources in their colours, and the name of the draft model if there is room. */
static void
note_sources(const struct text_panel *p, const struct scope *s, const char *scrolled, char *out, int n)
{
    static const struct {
        enum role role;
        const char *name;
    } sources[] = {
        {ROLE_PROMPT, "prompt"}, {ROLE_ACCEPTED, "draft"}, {ROLE_CORRECTION, "correction"}, {ROLE_BONUS, "bonus"}};
    const char *model = NULL;
    for (int m = MODEL_DRAFT; m < LAYER_MODELS; m++)
        if (m != MODEL_COMPANION && scope_model_used(s, (enum layer_model)m))
            model = scope_model_name(s, (enum layer_model)m);
    const bool wide = p->flow.width >= 60;
    size_t at = (size_t)snprintf(out, (size_t)n, "%s%s", scrolled, wide ? "source: " : "");
    for (size_t i = 0; i < sizeof sources / sizeof sources[0] && at < (size_t)n; i++) {
        char name[64] = "";
        if (sources[i].role == ROLE_ACCEPTED && model != NULL && p->flow.width >= 80)
            printable_text(model, strnlen(model, 32), name, sizeof name);
        at += (size_t)snprintf(out + at, (size_t)n - at, "%s" CANVAS_ROLE "%c%s%s%s" CANVAS_ROLE "%c",
                               i == 0 ? ""
                               : wide ? " · "
                                      : " ",
                               1 + (char)sources[i].role, sources[i].name, name[0] != '\0' ? " " : "", name,
                               1 + ROLE_DIM);
    }
}

static void
note_text(void *state, const struct view *v, char *out, int n)
{
    const struct text_panel *p = state;
    const struct progress_event *progress = scope_now(v->scope)->progress;
    if (progress != NULL && p->flow.n_spans > 0) {
        snprintf(out, (size_t)n, "%s %.0f%%", progress->what, (double)progress->done * 100);
        return;
    }
    const enum channel channel = channel_of(p, v->scope);
    static const char *const legends[CHANNELS] = {
        [CHANNEL_EXIT] = "exit layer early ▁▂▃▄▅▆▇█ late",
        [CHANNEL_CONFIDENCE] = "confidence 0 ▁▂▃▄▅▆▇█ 1",
        [CHANNEL_PLAIN] = "plain",
    };
    const char *scrolled = p->scrolled ? "scrolled · " : "";
    if (channel == CHANNEL_SOURCE)
        note_sources(p, v->scope, scrolled, out, n);
    else
        snprintf(out, (size_t)n, "%s%s", scrolled, legends[channel]);
}

/* ---- keys ---- */

static void
scroll(struct text_panel *p, long lines)
{
    if (p->flow.n_lines == 0)
        return;
    const size_t rows = p->rows > 0 ? (size_t)p->rows : 1;
    const size_t last = flow_top(&p->flow, rows);
    long top = (long)(p->top_line < last ? p->top_line : last) + lines;
    top = top < 0 ? 0 : top;
    p->scrolled = (size_t)top < last;
    p->top_line = (size_t)top < last ? (size_t)top : last;
    p->top = p->flow.lines[p->top_line].start;
}

static void
select_span(struct text_panel *p, const struct view *v, size_t span)
{
    v->selection->pos = p->flow.spans[span].pos;
    v->selection->follow = false;
}

/* Selects the previous or the next committed token. */
static void
step(struct text_panel *p, const struct view *v, long by)
{
    size_t span = v->selection->follow ? p->flow.stable : flow_find(&p->flow, v->selection->pos);
    if (p->flow.n_spans == 0)
        return;
    const struct flow *f = &p->flow;
    for (bool empty = true; empty;) { /* a template's token between two turns has no text */
        const size_t to = by > 0 ? span + 1 : span - 1;
        if (to >= f->n_spans)
            break;
        span = to;
        empty = (span + 1 < f->n_spans ? f->spans[span + 1].at : f->n) == f->spans[span].at ||
                f->spans[span].kind == FLOW_LABEL || (!v->selection->follow && f->spans[span].pos == v->selection->pos);
    }
    if (span < p->flow.n_spans)
        select_span(p, v, span);
}

static bool
key_text(void *state, const struct view *v, int key)
{
    struct text_panel *p = state;
    const struct step by = input_step(key, p->rows > 1 ? p->rows - 1 : 1);
    if (by.down != 0)
        scroll(p, by.down);
    else if (by.right != 0)
        step(p, v, by.right);
    if (by.down != 0 || by.right != 0)
        return true;
    switch (key) {
    case 'c':
        p->channel = (enum channel)((channel_of(p, v->scope) + 1) % CHANNELS);
        if (p->channel == CHANNEL_EXIT &&
            scope_draft_origin(v->scope) != DRAFTS_LAYERS) /* no token has an exit layer */
            p->channel++;
        p->chosen = true;
        return true;
    case 'g':
    case INPUT_HOME: scroll(p, -(long)p->flow.n_lines); return true;
    case 'G':
    case INPUT_END:
        p->scrolled = false;
        v->selection->follow = true;
        return true;
    default: return false;
    }
}

static bool
mouse_text(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct text_panel *p = state;
    if (mouse_wheel(action) != 0) {
        scroll(p, 3 * mouse_wheel(action));
        return true;
    }
    const size_t line = p->top_line + (size_t)(y < 0 ? 0 : y);
    if ((action != MOUSE_PRESS && action != MOUSE_DRAG) || y < 0 || y >= c->rows || line >= p->flow.n_lines ||
        p->flow.n_spans == 0)
        return false;
    size_t at = p->flow.lines[line].start;
    const size_t end = flow_line_end(&p->flow, line);
    int columns = 0;
    for (size_t n; at < end && (n = text_cluster(p->flow.text + at, &columns)) != 0; at += n)
        if ((x -= columns) < 0) {
            select_span(p, v, flow_span_at(&p->flow, at));
            return true;
        }
    return false;
}

/* ---- searching ---- */

/* Searches from the last match, forwards or back; after the end it continues at the beginning. */
static bool
search(struct text_panel *p, const struct view *v, const char *needle, bool back)
{
    struct flow *f = &p->flow;
    if (needle[0] == '\0' || f->n == 0)
        return false;
    const size_t round = f->n + 1, found = p->found < round ? p->found : 0;
    for (size_t i = 1; i <= round; i++) {
        const size_t at = (back ? found + round - i : found + i) % round;
        if (match_at(f, at, needle) == 0)
            continue;
        p->found = at;
        select_span(p, v, flow_span_at(f, at));
        show_byte(p, at);
        p->seen_pos = v->selection->pos;
        p->seen_pointed = true;
        return true;
    }
    panel_print(v, "'%s' does not occur in the text so far", needle);
    return true;
}

static bool
command_text(void *state, const struct view *v, const char *verb, const char *rest)
{
    struct text_panel *p = state;
    const bool back = strcmp(verb, "search-back") == 0;
    return (back || strcmp(verb, "search") == 0) && search(p, v, rest[0] != '\0' ? rest : v->search, back);
}

static const struct key_help keys[] = {
    {"c", "colour by exit layer, confidence, source, or not"},
    {"↑ ↓ PgUp PgDn", "scroll"},
    {"Home", "the beginning"},
    {"End", "the end, and stay there"},
    {"← →", "point at a token"},
    {NULL, NULL},
};

const struct panel_ops panel_text = {
    .name = "text",
    .title = "text",
    .brief = "c colour  ← → token  ↑ ↓ scroll",
    .place = PANEL_TOP,
    .weight = 3,
    .min_cols = 24,
    .keys = keys,
    .state_size = sizeof(struct text_panel),
    .close = close_text,
    .draw = draw_text,
    .note = note_text,
    .key = key_text,
    .mouse = mouse_text,
    .command = command_text,
};
