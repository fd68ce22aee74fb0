#include "tui/frame/help.h"
#include "tui/widgets/glossary.h"
#include "tui/widgets/key_table.h"

#include <string.h>

struct page {                    /* writes lines, of which only some are on screen */
    const struct canvas *canvas; /* NULL: they are counted */
    int cols, line, top;
};

/* What keys do is wrapped beside them. */
static void
row(struct page *p, enum role left_role, const char *left, const char *right)
{
    const int used = text_width(left), column = p->cols < 60 ? 12 : 26, x = used < column - 1 ? column : used + 3;
    bool first = true;
    do {
        const int y = p->line++ - p->top;
        const size_t n = right == NULL ? 0 : text_wrap(right, p->cols - x);
        if (p->canvas != NULL && y >= 0 && y < p->canvas->rows) {
            canvas_text(p->canvas, y, 1, left_role, first ? left : "");
            canvas_print(p->canvas, y, x, ROLE_TEXT, "%.*s", (int)n, right == NULL ? "" : right);
        }
        right = right == NULL ? NULL : right + n + strspn(right + n, " ");
        first = false;
    } while (right != NULL && right[0] != '\0');
}

static void
write_page(struct page *p, const struct panes *panes, const struct verb *verbs)
{
    row(p, ROLE_TITLE, "Keys everywhere", NULL);
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++)
        if (k->what != NULL)
            row(p, ROLE_KEY, k->keys, k->what);
    row(p, ROLE_KEY, "mouse", "click focuses, wheel scrolls, drag moves knobs and the time line");
    for (int i = 0; i < panes->n; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (!panes_active(panes, i) || ops->keys == NULL || ops->keys[0].keys == NULL)
            continue;
        char heading[80];
        snprintf(heading, sizeof heading, "In %s%s", ops->title_now != NULL ? ops->title_now(&panes->view) : ops->title,
                 i == panes->focus ? " (focused)" : "");
        row(p, ROLE_TEXT, "", NULL);
        row(p, ROLE_TITLE, heading, NULL);
        for (const struct key_help *k = ops->keys; k->keys != NULL; k++)
            row(p, ROLE_KEY, k->keys, k->what);
    }
    row(p, ROLE_TEXT, "", NULL);
    row(p, ROLE_TITLE, "Measures and marks", NULL);
    for (const struct glossary *g = glossary; g->name != NULL; g++)
        row(p, ROLE_KEY, g->name, g->what);
    row(p, ROLE_TEXT, "", NULL);
    row(p, ROLE_TITLE, "Commands, after ':' (Tab completes)", NULL);
    for (const struct verb *v = verbs; v->name != NULL; v++) {
        char usage[80];
        snprintf(usage, sizeof usage, ":%s %s", v->name, v->arguments);
        row(p, ROLE_KEY, usage, v->what);
    }
}

void
help_draw(int *top, const struct panes *panes, const struct verb *verbs, const struct canvas *c)
{
    const int cols = c->cols > 96 ? 92 : c->cols - 4;
    const struct canvas box = canvas_inside(c, 1, (c->cols - cols) / 2, c->rows - 3, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct page count = {.cols = inside.cols};
    write_page(&count, panes, verbs);
    const int last = count.line > inside.rows ? count.line - inside.rows : 0;
    *top = *top > last ? last : *top < 0 ? 0 : *top;
    canvas_clear(&box);
    canvas_box(&box, "help", last > 0 ? "arrows scroll, any other key closes" : "any key closes", true);
    struct page page = {.canvas = &inside, .cols = inside.cols, .top = *top};
    write_page(&page, panes, verbs);
}

#define END 10000

bool
help_key(int *top, int page, int key)
{
    *top = *top > END ? END : *top; /* it may be that nothing was drawn since */
    switch (key) {
    case INPUT_UP:
    case 'k': --*top; break;
    case INPUT_DOWN:
    case 'j': ++*top; break;
    case INPUT_PAGE_UP: *top -= page; break;
    case INPUT_PAGE_DOWN:
    case ' ': *top += page; break;
    case INPUT_HOME: *top = 0; break;
    case INPUT_END: *top = END; break; /* drawing brings it back to the last page */
    default: return false;
    }
    return true;
}
