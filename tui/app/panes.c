#include "tui/app/panes.h"

#include <string.h>

bool
panes_open(struct panes *p, const struct scope *scope, bool live, const struct panel_host *host, struct err *err)
{
    *p = (struct panes){.captured = -1, .selection = {.follow = true}};
    p->view =
        (struct view){.scope = scope, .host = host, .live = live, .selection = &p->selection, .search = p->search};
    while (panel_registry[p->n] != NULL && p->n < LAYOUT_PANELS) {
        const struct panel_ops *ops = panel_registry[p->n];
        if (!panel_open(ops, &p->state[p->n]))
            return err_set(err, ERR_WORK, "out of memory for the %s panel", ops->name);
        p->focus = ops->first_focus ? p->n : p->focus;
        p->n++;
    }
    return true;
}

void
panes_close(struct panes *p)
{
    for (int i = 0; i < p->n; i++)
        panel_close(panel_registry[i], p->state[i]);
}

bool
panes_active(const struct panes *p, int i)
{
    return panel_registry[i]->active == NULL || panel_registry[i]->active(&p->view);
}

int
panes_number(const struct panes *p, int i)
{
    int number = 0;
    for (int k = 0; k <= i; k++)
        number += panes_active(p, k);
    return panes_active(p, i) ? number : 0;
}

bool
panes_digit(const struct panes *p, int i, char digit[2])
{
    const int number = panes_number(p, i);
    digit[0] = (char)('0' + number % 10);
    digit[1] = '\0';
    return number >= 1 && number <= 10;
}

void
panes_arrange(struct panes *p, int rows, int cols, bool reason, bool device)
{
    struct layout_item items[LAYOUT_PANELS];
    const int of_all = rows;
    rows = layout_rows(of_all, reason, device);
    for (int i = 0; i < p->n; i++) {
        const struct panel_ops *ops = panel_registry[i];
        items[i] = (struct layout_item){.place = ops->place,
                                        .weight = ops->weight,
                                        .min_cols = ops->min_cols,
                                        .good_cols = ops->good_cols,
                                        .active = panes_active(p, i),
                                        .alone = ops->alone,
                                        .tall = ops->tall};
        if (ops->rows != NULL)
            ops->rows(&p->view, &items[i].good_rows, &items[i].more_rows);
    }
    for (int i = 0; i < p->n && !items[p->focus].active; i++)
        p->focus = (p->focus + 1) % p->n;
    layout_compute(&p->layout, rows, cols, items, p->n, p->focus, p->zoom);
    if (!p->arranged &&
        p->layout.tabs) { /* with one panel below the text, that is the first one, not the focused one */
        p->focus = 0;
        layout_compute(&p->layout, rows, cols, items, p->n, p->focus, p->zoom);
    }
    if (p->layout.tabs && p->focus == 0) { /* the tab below the text */
        int first = -1;
        for (int i = p->n - 1; i > 0; i--)
            first = items[i].active && panel_registry[i]->first_tab ? i : first;
        if (first > 0)
            layout_compute(&p->layout, rows, cols, items, p->n, first, p->zoom);
    }
    layout_add_lines(&p->layout, of_all, reason, device);
    p->arranged = true;
}

static struct canvas
inside_of(const struct panes *p, int i, struct grid *g)
{
    const struct canvas box = layout_canvas(p->layout.panel[i], g);
    return p->layout.bare ? box : canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
}

static struct view
view_of(const struct panes *p, int i)
{
    struct view view = p->view;
    view.focused = i == p->focus;
    return view;
}

static void
draw_panel(struct panes *p, int i, struct grid *g)
{
    const struct panel_ops *ops = panel_registry[i];
    const struct canvas box = layout_canvas(p->layout.panel[i], g), inside = inside_of(p, i, g);
    const struct view view = view_of(p, i);
    if (inside.rows > 0 && inside.cols > 0)
        ops->draw(p->state[i], &view, &inside);
    char note[160] = "";
    if (ops->note != NULL && !p->layout.bare) /* the note may depend on what was just drawn */
        ops->note(p->state[i], &view, note, (int)sizeof note);
    if (p->layout.bare)
        return;
    char digit[2], title[80];
    snprintf(title, sizeof title, "%s %s", panes_digit(p, i, digit) ? digit : "",
             ops->title_now != NULL ? ops->title_now(&view) : ops->title);
    canvas_box(&box, title + (title[0] == ' '), note, view.focused);
}

#define TAB_NAME 16 /* bytes of a panel's name at most */

/* Draws a tab with at most `letters` letters of its name; the current tab has all. */
static int
tab_text(const struct panes *p, int i, int letters, char *out, size_t size)
{
    const bool shown = p->layout.panel[i].rows > 0;
    const char *name = panel_registry[i]->name;
    char digit[2];
    if (!panes_digit(p, i, digit))
        digit[0] = '\0';
    if (shown)
        snprintf(out, size, "[%s %s]", digit, name);
    else if (letters == TAB_NAME)
        snprintf(out, size, " %s %s ", digit, name);
    else if (letters > 0 && i != p->focus && (int)strlen(name) > letters)
        snprintf(out, size, "%s %.*s…", digit, letters - 1, name);
    else
        snprintf(out, size, "%s%s%s", digit, letters > 0 ? " " : "", letters > 0 || i == p->focus ? name : "");
    return text_width(out) + 1; /* and a gap */
}

/* Returns how many letters of each name fit. */
static int
tab_letters(const struct panes *p)
{
    char text[40];
    for (int letters = TAB_NAME; letters > 2; letters--) {
        int width = 0;
        for (int i = 0; i < p->n; i++)
            width += panes_active(p, i) ? tab_text(p, i, letters, text, sizeof text) : 0;
        if (width - 1 <= p->layout.tab_bar.cols) /* no gap after the last */
            return letters;
    }
    return 0;
}

/* Returns the tab at column x, -1: none; draws all tabs on c, if it is not NULL. Names are cut if they do not fit. */
static int
tabs(const struct panes *p, const struct canvas *c, int x)
{
    char text[40];
    const int letters = tab_letters(p);
    int width, from = 0, found = -1;
    for (int i = 0; i < p->n; i++) {
        if (!panes_active(p, i))
            continue;
        width = tab_text(p, i, letters, text, sizeof text);
        if (c != NULL)
            canvas_text(c, 0, from,
                        i == p->focus                 ? ROLE_FOCUS
                        : p->layout.panel[i].rows > 0 ? ROLE_TEXT
                                                      : ROLE_DIM,
                        text);
        if (x >= from && x < from + width)
            found = i;
        from += width;
    }
    return found;
}

void
panes_draw(struct panes *p, struct grid *g)
{
    p->selection.text = p->selection.layers = (struct position_range){0};
    for (int i = 0; i < p->n; i++)
        if (p->layout.panel[i].rows > 0)
            draw_panel(p, i, g);
    if (p->layout.tab_bar.rows > 0) {
        const struct canvas c = layout_canvas(p->layout.tab_bar, g);
        tabs(p, &c, -1);
    }
    const struct canvas gap = layout_canvas(p->layout.gap, g);
    for (int y = 0; y < gap.rows; y++)
        canvas_text(&gap, y, 0, ROLE_BORDER, "│");
}

bool
panes_key(struct panes *p, int key)
{
    const struct panel_ops *ops = panel_registry[p->focus];
    const struct view view = view_of(p, p->focus);
    return ops->key != NULL && !p->layout.too_small && ops->key(p->state[p->focus], &view, key);
}

static void
to_panel(struct panes *p, int i, struct grid *g, const struct input *in)
{
    const struct canvas inside = inside_of(p, i, g);
    const struct view view = view_of(p, i);
    if (panel_registry[i]->mouse != NULL)
        panel_registry[i]->mouse(p->state[i], &view, &inside, in->y - inside.y, in->x - inside.x, in->mouse);
}

void
panes_mouse(struct panes *p, struct grid *g, const struct input *in)
{
    const struct rect *bar = &p->layout.tab_bar;
    const int panel = layout_at(&p->layout, p->n, in->y, in->x);
    const int tab = bar->rows > 0 && in->y == bar->y ? tabs(p, NULL, in->x) : -1;
    switch (in->mouse) {
    case MOUSE_PRESS:
    case MOUSE_DOUBLE:
        p->captured = panel;
        p->focus = tab >= 0 ? tab : panel >= 0 ? panel : p->focus;
        if (panel >= 0)
            to_panel(p, panel, g, in);
        break;
    case MOUSE_DRAG:
    case MOUSE_RELEASE:
        if (p->captured >= 0 && p->layout.panel[p->captured].rows > 0)
            to_panel(p, p->captured, g, in);
        if (in->mouse == MOUSE_RELEASE)
            p->captured = -1;
        break;
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        if (panel >= 0)
            to_panel(p, panel, g, in);
        break;
    }
}

bool
panes_command(struct panes *p, const char *verb, const char *rest)
{
    for (int i = 0; i < p->n; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (ops->command != NULL && panes_active(p, i) && ops->command(p->state[i], &p->view, verb, rest))
            return true;
    }
    return false;
}
