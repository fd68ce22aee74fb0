#include "tui/app/chooser.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"
#include "tui/app/key_row.h"
#include "tui/app/layout.h"
#include "tui/terminal/theme.h"

/* ---- policies and themes ---- */

static void
cursor_at(struct chooser *ch, const char *name)
{
    for (int i = 0; i < ch->n; i++)
        if (strcmp(ch->name[i], name) == 0)
            ch->at = i;
}

bool
chooser_policies(struct chooser *ch, const struct run_info *info, const char *now)
{
    *ch = (struct chooser){.title = "policy", .verb = "policy"};
    for (uint32_t i = 0; i < info->n_policies && ch->n < CHOICES; i++, ch->n++) {
        snprintf(ch->name[i], sizeof ch->name[0], "%s", info->policies[i].name);
        char missing[POLICY_MISSING];
        const struct policy_info *p = &info->policies[i];
        snprintf(ch->about[i], sizeof ch->about[0], "%s%s", p->missing != 0 ? "needs " : "",
                 p->missing != 0 ? policy_missing(p->missing, missing) : p->title);
    }
    cursor_at(ch, now);
    return ch->n > 0;
}

void
chooser_themes(struct chooser *ch, const char *data_dir, const char *now)
{
    *ch = (struct chooser){.title = "theme", .verb = "theme", .preview = true};
    ch->n = theme_list(ch->name, CHOICES, data_dir);
    cursor_at(ch, now);
}

enum chooser_result
chooser_key(struct chooser *ch, int key)
{
    switch (key) {
    case INPUT_UP:
    case 'k': ch->at = (ch->at + ch->n - 1) % ch->n; return CHOOSER_MOVED;
    case INPUT_DOWN:
    case 'j':
    case INPUT_TAB: ch->at = (ch->at + 1) % ch->n; return CHOOSER_MOVED;
    case INPUT_HOME: ch->at = 0; return CHOOSER_MOVED;
    case INPUT_END: ch->at = ch->n - 1; return CHOOSER_MOVED;
    case INPUT_ENTER:
    case ' ': return CHOOSER_CHOSEN;
    case INPUT_ESCAPE:
    case INPUT_CTRL('c'):
    case 'q': return CHOOSER_LEFT;
    default: return CHOOSER_STAYS;
    }
}

void
chooser_draw(const struct chooser *ch, const struct canvas *c)
{
    int widest = 24;
    for (int i = 0; i < ch->n; i++) {
        const int width = 16 + text_width(ch->about[i]);
        widest = width > widest ? width : widest;
    }
    const int cols = widest + 6 < c->cols - 4 ? widest + 6 : c->cols - 4;
    const int rows = ch->n + 2 < c->rows - 4 ? ch->n + 2 : c->rows - 4;
    const struct canvas box = canvas_inside(c, (c->rows - rows) / 3, (c->cols - cols) / 2, rows, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    canvas_clear(&box);
    canvas_box(&box, ch->title, "Enter chooses", true);
    const int top = ch->at >= inside.rows ? ch->at - inside.rows + 1 : 0;
    for (int y = 0; y < inside.rows && top + y < ch->n; y++) {
        const bool here = top + y == ch->at;
        canvas_text(&inside, y, 1, here ? ROLE_FOCUS : ROLE_TEXT, here ? "▸" : " ");
        canvas_text(&inside, y, 3, here ? ROLE_FOCUS : ROLE_TEXT, ch->name[top + y]);
        canvas_word(&inside, y, 17, inside.cols - 17, here ? ROLE_TEXT : ROLE_DIM, MARK_NONE, ch->about[top + y]);
    }
}

/* ---- the models: keys and the mouse ---- */

#define NOWHERE SIZE_MAX

bool
model_chooser_outdated(const struct model_chooser *c)
{
    return model_list_seen(c->list) != c->seen;
}

/* ---- which are listed ---- */

bool
model_chooser_listed(const struct model_chooser *c, size_t i)
{
    const char *name = c->list->at[i].name;
    char word[sizeof c->filter];
    for (const char *at = c->filter; *(at += strspn(at, " ")) != '\0';) {
        const size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (strcasestr(name, word) == NULL)
            return false;
        at += n;
    }
    return true;
}

/* Moves the selection by this many listed models, at most to the first or last. */
static enum chooser_result
move(struct model_chooser *c, int by)
{
    const size_t n = c->list->n, from = c->at;
    for (size_t i = from; by != 0 && (by > 0 ? i + 1 < n : i > 0);) {
        i = by > 0 ? i + 1 : i - 1;
        if (model_chooser_listed(c, i)) {
            c->at = i;
            by += by > 0 ? -1 : 1;
        }
    }
    return c->at != from ? CHOOSER_MOVED : CHOOSER_STAYS;
}

/* After the filter has changed: selects the first listed model, unless the selected one is still listed. */
static enum chooser_result
filtered(struct model_chooser *c)
{
    const size_t n = c->list->n;
    for (size_t i = 0; i < n && !model_chooser_listed(c, c->at); i++)
        if (model_chooser_listed(c, i))
            c->at = i;
    return CHOOSER_MOVED;
}

/* Returns the model in this row of the visible list; NOWHERE: there is none. */
static size_t
in_row(const struct model_chooser *c, size_t row)
{
    row += c->top;
    for (size_t i = 0; i < c->list->n; i++)
        if (model_chooser_listed(c, i) && row-- == 0)
            return i;
    return NOWHERE;
}

/* ---- keys ---- */

/* hf:ORG/NAME matches as a whole, or by NAME. */
static bool
begins_a_name(const struct model_chooser *c, char letter)
{
    for (size_t i = 0; i < c->list->n; i++) {
        const char *name = c->list->at[i].name;
        for (const char *at = name; *at != '\0'; at++)
            if (tolower((unsigned char)*at) == letter && (at == name || at[-1] == '/' || at[-1] == ':'))
                return true;
    }
    return false;
}

static enum chooser_result
letter(struct model_chooser *c, int key)
{
    const size_t n = strlen(c->filter);
    if (key == 'q' && (n == 0 ? !begins_a_name(c, 'q') : strcmp(c->filter, "q") == 0))
        return CHOOSER_LEFT;
    if (n + 1 == sizeof c->filter || (n == 0 && key == ' '))
        return CHOOSER_STAYS;
    c->filter[n] = (char)key;
    c->filter[n + 1] = '\0';
    return filtered(c);
}

static enum chooser_result
press(struct model_chooser *c, int key)
{
    const size_t n = strlen(c->filter);
    switch (key) {
    case INPUT_UP:
    case INPUT_SHIFT_TAB: return move(c, -1);
    case INPUT_DOWN:
    case INPUT_TAB: return move(c, 1);
    case INPUT_PAGE_UP: return move(c, -c->rows);
    case INPUT_PAGE_DOWN: return move(c, c->rows);
    case INPUT_HOME: return move(c, -INT32_MAX);
    case INPUT_END: return move(c, INT32_MAX);
    case INPUT_ENTER: return model_chooser_listed(c, c->at) ? CHOOSER_CHOSEN : CHOOSER_STAYS;
    case INPUT_BACKSPACE:
    case INPUT_CTRL('h'):
        if (n > 0)
            c->filter[n - 1] = '\0';
        return filtered(c);
    case INPUT_CTRL('u'): c->filter[0] = '\0'; return filtered(c);
    case INPUT_CTRL('c'): return CHOOSER_LEFT;
    case INPUT_ESCAPE:
        if (n == 0)
            return CHOOSER_LEFT;
        c->filter[0] = '\0';
        return filtered(c);
    default: return key >= ' ' && key < INPUT_BACKSPACE ? letter(c, key) : CHOOSER_STAYS;
    }
}

enum chooser_result
model_chooser_input(struct model_chooser *c, const struct input *in)
{
    if (in->key != INPUT_MOUSE) {
        c->message[0] = '\0';
        return in->pasted && in->key < ' ' ? CHOOSER_STAYS : press(c, in->key);
    }
    if (in->mouse == MOUSE_WHEEL_UP || in->mouse == MOUSE_WHEEL_DOWN)
        return move(c, in->mouse == MOUSE_WHEEL_UP ? -1 : 1);
    const size_t row = in->y >= c->y && in->y < c->y + c->rows ? in_row(c, (size_t)(in->y - c->y)) : NOWHERE;
    if (row == NOWHERE || (in->mouse != MOUSE_PRESS && in->mouse != MOUSE_DOUBLE))
        return CHOOSER_STAYS;
    c->at = row;
    return in->mouse == MOUSE_DOUBLE ? CHOOSER_CHOSEN : CHOOSER_MOVED;
}

/* ---- the models: drawing ---- */

#define SIZE_COLS 9  /* only "1023.9 MiB" is longer */
#define ARCH_COLS 24 /* "granite, 32 layers" */
#define GAP       2
#define LEAST     14 /* columns of a name */

static int
longest_name(const struct model_chooser *c)
{
    int longest = 0;
    for (size_t i = 0; i < c->list->n; i++) {
        const int width = text_width(c->list->at[i].name);
        longest = width > longest ? width : longest;
    }
    return longest;
}

/* Draws a name; of a path that is too long, its end. */
static void
draw_name(const struct canvas *c, int y, int x, int width, enum role role, const char *name)
{
    const char *from = name;
    if (name[0] != '/' || text_width(name) <= width) {
        canvas_word(c, y, x, width, role, MARK_NONE, name);
        return;
    }
    while (*from != '\0' && text_width(from) + 1 > width) {
        int columns;
        from += text_cluster(from, &columns);
    }
    canvas_print(c, y, x, role, "%s%s", "…", from);
}

struct columns {
    int name;
    bool arch, types; /* these columns are drawn */
};

static struct columns
columns_for(const struct model_chooser *c, int cols)
{
    const int longest = longest_name(c), left = cols - 3 - SIZE_COLS - GAP;
    struct columns k = {.arch = left - GAP - ARCH_COLS >= LEAST, .types = left - 3 * GAP - 2 * ARCH_COLS >= LEAST};
    const int room = left - (k.arch ? GAP + ARCH_COLS : 0) - (k.types ? GAP + ARCH_COLS / 2 : 0);
    k.name = longest < room ? longest : room;
    return k;
}

static void
draw_row(struct model_chooser *c, size_t i, const struct columns *k, const struct canvas *row)
{
    struct model_summary summary;
    char size[24], what[64];
    const bool here = i == c->at, seen = model_list_look(c->list, i, &summary), dim = seen && summary.why[0] != '\0';
    const enum role text = dim ? ROLE_DIM : ROLE_TEXT;
    int x = 3 + k->name + GAP;
    if (here)
        canvas_text(row, 0, 1, ROLE_FOCUS, "▸");
    draw_name(row, 0, 3, k->name, here && !dim ? ROLE_FOCUS : text, c->list->at[i].name);
    if (!seen || dim) {
        if (seen)
            x += 1 + canvas_text(row, 0, x, ROLE_WARN, "✗");
        canvas_word(row, 0, x, row->cols - x, ROLE_DIM, MARK_NONE, seen ? summary.why : "…");
        return;
    }
    memory_text(size, summary.bytes);
    canvas_text(row, 0, x + SIZE_COLS - text_width(size), text, size);
    x += SIZE_COLS + GAP;
    snprintf(what, sizeof what, "%s, %" PRIu32 " layer%s", summary.arch, summary.layers, plural(summary.layers));
    if (k->arch)
        canvas_word(row, 0, x, ARCH_COLS, text, MARK_NONE, what);
    x += ARCH_COLS + GAP;
    if (k->types)
        canvas_word(row, 0, x, row->cols - x, text, MARK_NONE, summary.types);
}

static size_t
draw_list(struct model_chooser *c, const struct canvas *list)
{
    const struct columns k = columns_for(c, list->cols);
    size_t n = 0, here = 0;
    for (size_t i = 0; i < c->list->n; i++) {
        here = i == c->at ? n : here;
        n += model_chooser_listed(c, i);
    }
    c->y = list->y;
    c->rows = list->rows;
    const size_t rows = (size_t)(list->rows > 0 ? list->rows : 1);
    c->top = here < c->top ? here : here >= c->top + rows ? here - rows + 1 : c->top;
    c->top = n <= rows ? 0 : c->top > n - rows ? n - rows : c->top;
    size_t row = 0;
    for (size_t i = 0; i < c->list->n; i++) {
        if (!model_chooser_listed(c, i))
            continue;
        if (row >= c->top && row < c->top + rows) {
            const struct canvas line = canvas_inside(list, (int)(row - c->top), 0, 1, list->cols);
            draw_row(c, i, &k, &line);
        }
        row++;
    }
    if (n == 0)
        canvas_text(list, 0, 3, ROLE_DIM, "no model has a name that contains this text");
    return n;
}

/* ---- the one stood at ---- */

static void
count_text(char out[24], uint64_t n)
{
    if (n >= 1000000000)
        snprintf(out, 24, "%.1f B", (double)n / 1e9);
    else if (n >= 1000000)
        snprintf(out, 24, "%.1f M", (double)n / 1e6);
    else
        snprintf(out, 24, "%.1f k", (double)n / 1e3);
}

static void
describe(const struct model_summary *summary, char *out, size_t size)
{
    char bytes[24], parameters[24];
    count_text(parameters, summary->parameters);
    size_t n = (size_t)snprintf(out, size,
                                "%s: %s, %" PRIu32 " layer%s, %s parameters in %s, %s; %s, %" PRIu32
                                " tokens; trained on %" PRIu32 " at a time",
                                summary->name, summary->arch, summary->layers, plural(summary->layers), parameters,
                                summary->types, memory_text(bytes, summary->bytes), summary->tokenizer, summary->vocab,
                                summary->ctx_train);
    if (n < size && summary->chats)
        n += (size_t)snprintf(out + n, size - n, "; chats (--chat)");
    if (n < size && summary->ctx < summary->ctx_train)
        snprintf(out + n, size - n, "; memory suffices for %" PRIu32 " of them", summary->ctx);
}

static void
draw_details(struct model_chooser *c, const struct canvas *details)
{
    struct model_summary summary;
    char text[600];
    if (details->rows == 0)
        return;
    draw_name(details, 0, 1, details->cols - 2, ROLE_DIM, c->list->at[c->at].path);
    const struct canvas rest = canvas_inside(details, 1, 1, details->rows - 1, details->cols - 2);
    if (!model_list_look(c->list, c->at, &summary)) {
        canvas_paragraph(&rest, ROLE_DIM, "not inspected yet");
        return;
    }
    if (summary.why[0] != '\0') {
        snprintf(text, sizeof text, "%s: %s", summary.runs ? "there is not enough memory" : "it does not run here",
                 summary.why);
        canvas_paragraph(&rest, ROLE_WARN, text);
        return;
    }
    describe(&summary, text, sizeof text);
    canvas_paragraph(&rest, ROLE_TEXT, text);
}

/* ---- the screen ---- */

static void
draw_title(struct model_chooser *c, const struct canvas *row)
{
    const size_t n = c->list->n;
    char right[64];
    size_t run = 0;
    c->seen = model_list_seen(c->list);
    for (size_t i = 0; i < c->seen; i++) {
        struct model_summary summary;
        run += model_list_look(c->list, i, &summary) && summary.why[0] == '\0';
    }
    if (c->seen < n)
        snprintf(right, sizeof right, "%zu of %zu inspected", c->seen, n);
    else
        snprintf(right, sizeof right, "%zu of %zu run here", run, n);
    int x = 1 + canvas_text(row, 0, 1, ROLE_TITLE, "specscope") + 2;
    if (row->cols >= 60)
        canvas_text(row, 0, x, ROLE_TEXT, "the models on this machine");
    canvas_text(row, 0, row->cols - 1 - text_width(right), ROLE_DIM, right);
}

static void
draw_keys(const struct model_chooser *c, size_t n, const struct canvas *row)
{
    if (c->message[0] != '\0') {
        canvas_word(row, 0, 1, row->cols - 2, ROLE_ERROR, MARK_NONE, c->message);
    } else if (c->filter[0] == '\0') {
        key_row_draw_pairs("Enter open  Esc leave  ↑ ↓ move  a…z filter", row, NULL);
    } else {
        int x = 1 + canvas_text(row, 0, 1, ROLE_STATUS, "filter ");
        x += canvas_text(row, 0, x, ROLE_FOCUS, c->filter);
        x += 2 + canvas_text(row, 0, x, ROLE_CURSOR, " ");
        const struct canvas rest = canvas_inside(row, 0, x, 1, row->cols - x);
        key_row_draw_pairs(strcmp(c->filter, "q") == 0 ? "Esc all  q leave"
                           : n > 0                     ? "Enter open  Esc all"
                                                       : "Esc all",
                           &rest, NULL);
    }
}

void
model_chooser_draw(struct model_chooser *c, const struct canvas *whole)
{
    const bool boxed = whole->rows >= LAYOUT_BOXED_ROWS && whole->cols >= LAYOUT_BOXED_COLS;
    const int below = boxed                            ? 6
                      : whole->rows >= 14              ? 4
                      : whole->rows >= LAYOUT_MIN_ROWS ? 3
                                                       : 0; /* rows of the selected model's description */
    const struct canvas title = canvas_inside(whole, 0, 0, 1, whole->cols);
    const struct canvas status = canvas_inside(whole, whole->rows - 1, 0, 1, whole->cols);
    struct canvas list = canvas_inside(whole, 1, 0, whole->rows - 2 - below, whole->cols);
    struct canvas details = canvas_inside(whole, 1 + list.rows, 0, below, whole->cols);
    canvas_clear(whole);
    draw_title(c, &title);
    if (boxed) {
        canvas_box(&list, "models", "", true);
        list = canvas_inside(&list, 1, 1, list.rows - 2, list.cols - 2);
        canvas_box(&details, "this one", "", false);
        details = canvas_inside(&details, 1, 1, details.rows - 2, details.cols - 2);
    }
    const size_t n = draw_list(c, &list);
    if (n > 0)
        draw_details(c, &details);
    draw_keys(c, n, &status);
}

static bool
add(void *user, const char *name, const char *path)
{
    struct model_list *l = user;
    if (!array_grow(&l->at, &l->room, l->n + 1, sizeof *l->at))
        return false;
    const size_t n = strlen(name), shown = 4 * n + 1;
    struct listed *new = &l->at[l->n];
    *new = (struct listed){.name = malloc(shown), .path = strdup(path)};
    l->n++;
    if (new->name == NULL || new->path == NULL)
        return false;
    printable_line(new->name, shown, name, n);
    return true;
}

static bool
closing(struct model_list *l)
{
    pthread_mutex_lock(&l->lock);
    const bool answer = l->closing;
    pthread_mutex_unlock(&l->lock);
    return answer;
}

static void *
look_at_all(void *list)
{
    struct model_list *l = list;
    for (size_t i = 0; i < l->n && !closing(l); i++) {
        struct model_summary summary;
        model_summary(&summary, l->at[i].path, memory_available());
        pthread_mutex_lock(&l->lock);
        l->at[i].summary = summary;
        l->seen = i + 1;
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

bool
model_list_open(struct model_list **out, const char *bundled, struct err *err)
{
    struct model_list *l = *out = calloc(1, sizeof *l);
    if (l == NULL)
        return err_set(err, ERR_WORK, "out of memory for the list of models");
    pthread_mutex_init(&l->lock, NULL);
    if (add(l, MODEL_BUNDLED, bundled))
        model_locations_list(add, l, NULL);
    const struct listed *last = l->n > 0 ? &l->at[l->n - 1] : NULL;
    bool ok = (last != NULL && last->name != NULL && last->path != NULL) ||
              err_set(err, ERR_WORK, "out of memory for the list of models");
    if (ok) {
        l->running = pthread_create(&l->thread, NULL, look_at_all, l) == 0;
        ok = l->running ||
             err_set(err, ERR_WORK, "no thread to look at models; too little memory, or too many processes?");
    }
    if (!ok) {
        model_list_close(l);
        *out = NULL;
    }
    return ok;
}

void
model_list_close(struct model_list *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_mutex_unlock(&l->lock);
    if (l->running)
        pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i].name);
        free(l->at[i].path);
    }
    free(l->at);
    free(l);
}

bool
model_list_look(struct model_list *l, size_t i, struct model_summary *summary)
{
    pthread_mutex_lock(&l->lock);
    const bool seen = i < l->seen;
    if (seen)
        *summary = l->at[i].summary;
    pthread_mutex_unlock(&l->lock);
    return seen;
}

size_t
model_list_seen(struct model_list *l)
{
    pthread_mutex_lock(&l->lock);
    const size_t seen = l->seen;
    pthread_mutex_unlock(&l->lock);
    return seen;
}
