/* Every key of what is on screen, the commands, and what the marks mean. */
#include "tui/app/app_state.h"

#include <string.h>

struct page { /* writes lines, of which only some are on screen */
    const struct canvas *canvas;
    int line, top;
};

static void
row(struct page *p, enum role left_role, const char *left, const char *right)
{
    const int y = p->line++ - p->top;
    if (p->canvas == NULL || y < 0 || y >= p->canvas->rows)
        return;
    int x = 1 + canvas_text(p->canvas, y, 1, left_role, left);
    if (right != NULL)
        canvas_text(p->canvas, y, x < 26 ? 26 : x + 2, ROLE_TEXT, right);
}

static void
write_page(const struct app *app, struct page *p)
{
    row(p, ROLE_TITLE, "Keys everywhere", NULL);
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++)
        if (k->what != NULL)
            row(p, ROLE_KEY, k->keys, k->what);
    row(p, ROLE_KEY, "mouse", "click focuses, wheel scrolls, drag moves knobs and the time line");
    for (int i = 0; i < app->panels; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (!app_panel_active(app, i) || ops->keys == NULL || ops->keys[0].keys == NULL)
            continue;
        char heading[80];
        snprintf(heading, sizeof heading, "In %s%s", ops->title, i == app->focus ? " (focused)" : "");
        row(p, ROLE_TEXT, "", NULL);
        row(p, ROLE_TITLE, heading, NULL);
        for (const struct key_help *k = ops->keys; k->keys != NULL; k++)
            row(p, ROLE_KEY, k->keys, k->what);
    }
    row(p, ROLE_TEXT, "", NULL);
    row(p, ROLE_TITLE, "Commands, after ':' (Tab completes)", NULL);
    for (const struct verb *v = app_verbs; v->name != NULL; v++) {
        char usage[80];
        snprintf(usage, sizeof usage, ":%s %s", v->name, v->arguments);
        row(p, ROLE_KEY, usage, v->what);
    }
}

void
help_draw(struct app *app, const struct canvas *c)
{
    const int cols = c->cols > 96 ? 92 : c->cols - 4;
    const struct canvas box = canvas_inside(c, 1, (c->cols - cols) / 2, c->rows - 3, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct page count = {0};
    write_page(app, &count);
    const int last = count.line > inside.rows ? count.line - inside.rows : 0;
    app->help_top = app->help_top > last ? last : app->help_top < 0 ? 0 : app->help_top;
    canvas_clear(&box);
    canvas_box(&box, "help", last > 0 ? "arrows scroll, any other key closes" : "any key closes", true);
    struct page page = {.canvas = &inside, .top = app->help_top};
    write_page(app, &page);
}
