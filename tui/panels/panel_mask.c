/* Layer masks: a line for each set of skipped sublayers up to the cursor's round, the newest first, with its score. A
 * column is a layer: the upper half is attention, the lower half the MLP. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/panels/panel.h"

#define MASKS 64 /* on the screen at most */

struct mask {
    uint32_t from;     /* its first round in memory */
    uint32_t to;       /* its last round */
    const float *cell; /* (rows * cols) 1: skipped */
};

/* NULL: the policy has no mask. */
static const struct scope_series *
mask_of(const struct scope *s)
{
    return scope_series(s, (uint32_t)policy_series_of_form(scope_policy(s), SERIES_MASK));
}

static bool
active_mask(const struct view *v)
{
    return mask_of(v->scope) != NULL;
}

/* Lists the masks up to the cursor's round, the newest first, and one more than `most` for comparison. */
static int
list(const struct view *v, int most, struct mask *out)
{
    const uint32_t held = scope_rounds(v->scope), at = selection_round(v);
    const uint32_t index = (uint32_t)policy_series_of_form(scope_policy(v->scope), SERIES_MASK);
    const struct series *declared = mask_of(v->scope)->declared;
    const size_t bytes = (size_t)(declared->rows * declared->cols) * sizeof(float);
    const float *cell;
    int n = 0;
    for (uint32_t back = at > 0 ? scope_round_back(v->scope, at) : 0; back < held && n <= most; back++) {
        const uint32_t round = scope_round(v->scope, back)->number;
        if ((cell = scope_round_values(v->scope, index, round)) == NULL)
            break;
        if (n == 0 || memcmp(cell, out[n - 1].cell, bytes) != 0)
            out[n++] = (struct mask){.from = round, .to = round, .cell = cell};
        else
            out[n - 1].from = round;
    }
    return n;
}

/* Returns a mask's score: the first LINE that its policy declares; NAN: none. */
static double
score_of(const struct scope *s, const struct mask *m)
{
    const struct scope_series *series = scope_series(s, (uint32_t)policy_series_of_form(scope_policy(s), SERIES_LINE));
    for (uint64_t k = series != NULL ? series->count : 0; k > 0 && series->count - k < SCOPE_SERIES; k--) {
        const struct scope_value *value = &series->ring[(k - 1) % SCOPE_SERIES];
        if (value->round <= m->to)
            return (double)value->value;
    }
    return NAN;
}

static int
skipped(const struct series *declared, const struct mask *m)
{
    int n = 0;
    for (int i = 0; i < declared->rows * declared->cols; i++)
        n += m->cell[i] > 0;
    return n;
}

/* ---- drawing ---- */

struct columns {               /* the columns of a line: numbers, then cells */
    int round, score, skipped; /* widths; 0: omitted */
    int cells, wide, fold;     /* first column of the cells, columns of a cell, layers in a cell */
    bool header;               /* there is room for headings */
};

static struct columns
arrange(const struct series *declared, uint32_t newest, int cols)
{
    const int digits = newest < 100 ? 2 : newest < 1000 ? 3 : 5, n = declared->cols;
    const struct columns choices[] = {{.round = 6, .score = 6, .skipped = 8, .header = true},
                                      {.round = 6, .score = 6, .header = true},
                                      {.round = digits + 1, .score = 5},
                                      {.score = 5}};
    int i = 0;
    while (i < 3 && choices[i].round + choices[i].score + choices[i].skipped + n > cols)
        i++;
    struct columns a = choices[i];
    a.cells = a.round + a.score + a.skipped;
    const int room = cols - a.cells > 0 ? cols - a.cells : 1;
    a.wide = 2 * n > room ? 1 : 2;
    a.fold = (n + room - 1) / room;
    return a;
}

/* Draws two rows of a mask as one line; with folded layers, how many of their sublayers run. */
static void
draw_cells(const struct series *declared, const struct columns *a, const struct canvas *c, int y, int row,
           const struct mask *m, const struct mask *before)
{
    static const char *const glyphs[] = {"·", "▄", "▀", "█"};
    const bool pair = row + 1 < declared->rows;
    for (int i = 0; i * a->fold < declared->cols; i++) {
        int known = 0, up = 0, low = 0, n = 0;
        bool changed = false;
        for (int l = i * a->fold; l < (i + 1) * a->fold && l < declared->cols; l++, n++) {
            const int at[2] = {row * declared->cols + l, (row + pair) * declared->cols + l};
            known += !isnan(m->cell[at[0]]);
            up += m->cell[at[0]] == 0;
            low += m->cell[at[1]] == 0;
            for (int k = 0; k < 2; k++)
                changed = changed || (before != NULL && before->cell[at[k]] != m->cell[at[k]]);
        }
        const int form = 2 * (up > 0) + (low > 0);
        const char *glyph = known == 0 ? "?" : a->fold > 1 ? canvas_level((double)(up + low) / (2 * n)) : glyphs[form];
        canvas_styled(c, y, a->cells + i * a->wide,
                      changed    ? ROLE_WARN
                      : form > 0 ? ROLE_ACCEPTED
                                 : ROLE_DIM,
                      NAN, changed ? MARK_BOLD | MARK_UNDERLINED : MARK_NONE, glyph);
    }
}

/* Draws the layers' numbers, or their kinds if those differ. */
static void
draw_header(const struct run_info *run, const struct series *declared, const struct columns *a, const struct canvas *c)
{
    if (a->header)
        canvas_text(c, 0, 0, ROLE_DIM, a->skipped > 0 ? "round score skipped" : "round score");
    if (run->layer_kinds[0] != '\0' && a->fold == 1) {
        for (int l = 0; l < declared->cols; l++)
            canvas_print(c, 0, a->cells + l * a->wide, ROLE_DIM, "%.1s", run_info_kind(run, (uint32_t)l + 1));
        return;
    }
    const int last =
        a->cells + (declared->cols - 1) / a->fold * a->wide - (declared->cols >= 100) - (declared->cols >= 10);
    canvas_text(c, 0, a->cells, ROLE_DIM, "1");
    if (last > a->cells + 1)
        canvas_print(c, 0, last, ROLE_DIM, "%d", declared->cols);
}

static const char *
legend(const struct series *declared, const struct columns *a)
{
    if (a->fold > 1)
        return "height: sublayers that run; underlined: changed";
    return declared->rows == 1 ? "█ runs · skipped, underlined: new"
                               : "█ both ▀ attention ▄ MLP · none, underlined: new";
}

static void
draw_mask(void *state, const struct view *v, const struct canvas *c)
{
    (void)state;
    struct mask mask[MASKS + 1];
    if (!active_mask(v))
        return;
    const struct series *declared = mask_of(v->scope)->declared;
    const int n = list(v, c->rows < MASKS ? c->rows : MASKS, mask), each = (declared->rows + 1) / 2;
    if (n == 0) {
        canvas_text(c, 0, 0, ROLE_DIM,
                    selection_round(v) > 0 && scope_rounds(v->scope) > 0 ? "no longer in memory" : "no mask yet");
        return;
    }
    const struct columns a = arrange(declared, mask[0].to, c->cols);
    const int words = canvas_paragraph(&(struct canvas){.cols = c->cols}, ROLE_DIM, legend(declared, &a));
    const int below = c->rows > words + each ? words : 0, header = c->rows - below > each;
    if (header)
        draw_header(scope_info(v->scope), declared, &a, c);
    for (int i = 0; i < n && header + (i + 1) * each <= c->rows - below; i++) {
        const int y = header + i * each;
        const double score = score_of(v->scope, &mask[i]);
        if (a.round > 0)
            canvas_print(c, y, 0, i == 0 ? ROLE_TITLE : ROLE_DIM, "%*u", a.header ? 5 : a.round - 1,
                         (unsigned)mask[i].from);
        canvas_print(c, y, a.round + a.header, i == 0 ? ROLE_TITLE : ROLE_TEXT, isnan(score) ? "   –" : "%4.2f", score);
        if (a.skipped > 0)
            canvas_print(c, y, a.round + a.score, ROLE_DIM, "%7d", skipped(declared, &mask[i]));
        for (int k = 0; k < each; k++)
            draw_cells(declared, &a, c, y + k, 2 * k, &mask[i], i + 1 < n ? &mask[i + 1] : NULL);
    }
    const struct canvas bottom = canvas_inside(c, c->rows - below, 0, below, c->cols);
    if (below > 0)
        canvas_paragraph(&bottom, ROLE_DIM, legend(declared, &a));
}

static void
note_mask(void *state, const struct view *v, char *out, int n)
{
    struct mask mask[2];
    (void)state;
    if (!active_mask(v))
        return;
    const struct series *declared = mask_of(v->scope)->declared;
    if (list(v, 1, mask) > 0)
        snprintf(out, (size_t)n, "%d of %d skipped", skipped(declared, &mask[0]), declared->rows * declared->cols);
}

static const struct key_help keys[] = {
    {"█ ▀ ▄ ·", "a column a layer: both sublayers run, attention alone, the MLP alone, none; underlined: changed"},
    {"r w a", "above a column, if the kinds differ: recurrent, attention with a window, attention"},
    {"lines",
     "the sets in force up to the cursor's round, the newest on top: since which round, score, how many are skipped"},
    {NULL, NULL},
};

const struct panel_ops panel_mask = {
    .name = "mask",
    .title = "layer mask",
    .place = PANEL_BOTTOM,
    .weight = 3,
    .min_cols = 24,
    .active = active_mask,
    .keys = keys,
    .draw = draw_mask,
    .note = note_mask,
};
