#include "tui/frame/help.h"
#include "tui/widgets/glossary.h"
#include "tui/widgets/key_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MATCHES 512

struct page {                    /* writes lines, of which only some are on screen */
    const struct canvas *canvas; /* NULL: they are counted */
    int cols, line, top;
    const char *needle;          /* "": none */
    int match[MATCHES], matches; /* first lines of the rows that have it, ascending */
};

/* Where the needle is in the text; NULL: it isn't. */
static const char *
find(const char *text, const char *needle)
{
    const size_t n = strlen(needle);
    for (; n > 0 && *text != '\0'; text++)
        if (strncasecmp(text, needle, n) == 0)
            return text;
    return NULL;
}

/* Draws text with its matches reversed. */
static void
draw_text(const struct page *p, int y, int x, enum role role, const char *text, size_t n)
{
    char line[400];
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    canvas_text(p->canvas, y, x, role, line);
    for (const char *at = line; (at = find(at, p->needle)) != NULL; at++) {
        char before[sizeof line], match[sizeof line];
        snprintf(before, sizeof before, "%.*s", (int)(at - line), line);
        snprintf(match, sizeof match, "%.*s", (int)strlen(p->needle), at);
        canvas_styled(p->canvas, y, x + text_width(before), ROLE_FOCUS, NAN, MARK_CURSOR, match);
    }
}

/* What keys do is wrapped beside them. */
static void
row(struct page *p, enum role left_role, const char *left, const char *right)
{
    const int used = text_width(left), column = p->cols < 60 ? 12 : 26, x = used < column - 1 ? column : used + 3;
    bool first = true;
    if ((find(left, p->needle) != NULL || (right != NULL && find(right, p->needle) != NULL)) && p->matches < MATCHES)
        p->match[p->matches++] = p->line;
    do {
        const int y = p->line++ - p->top;
        const size_t n = right == NULL ? 0 : text_wrap(right, p->cols - x);
        if (p->canvas != NULL && y >= 0 && y < p->canvas->rows) {
            draw_text(p, y, 1, left_role, left, first ? strlen(left) : 0);
            draw_text(p, y, x, ROLE_TEXT, right == NULL ? "" : right, n);
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
        if (v->what == NULL)
            continue;
        snprintf(usage, sizeof usage, ":%s %s", v->name, v->arguments);
        row(p, ROLE_KEY, usage, v->what);
    }
}

/* Brings the first line to the match that was asked for; after the last one comes the first again. Returns its number, 0: none. */
static int
go_to_match(const struct page *p, struct help_search *s, int *top)
{
    int at = 0; /* matches up to the one that was gone to last */
    while (at < p->matches && p->match[at] <= s->at)
        at++;
    if (p->matches > 0 && s->jump != 0) {
        const int to = (at - 1 + s->jump) % p->matches;
        at = (to < 0 ? to + p->matches : to) + 1;
        *top = s->at = p->match[at - 1];
    }
    s->jump = 0;
    return at;
}

void
help_draw(int *top, struct help_search *search, const struct panes *panes, const struct verb *verbs,
          const struct canvas *c)
{
    const int cols = c->cols > 96 ? 92 : c->cols - 4;
    const struct canvas box = canvas_inside(c, 1, (c->cols - cols) / 2, c->rows - 3, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct page page = {.cols = inside.cols, .needle = search->text};
    char note[100];
    write_page(&page, panes, verbs);
    const int last = page.line > inside.rows ? page.line - inside.rows : 0, at = go_to_match(&page, search, top);
    *top = *top > last ? last : *top < 0 ? 0 : *top;
    if (search->typing)
        snprintf(note, sizeof note, "/%s_", search->text);
    else if (search->text[0] != '\0' && page.matches == 0)
        snprintf(note, sizeof note, "\"%s\" is not in the help", search->text);
    else if (search->text[0] != '\0')
        snprintf(note, sizeof note, "\"%s\" %d of %d", search->text, at, page.matches);
    else
        snprintf(note, sizeof note, last > 0 ? "arrows scroll, any other key closes" : "any key closes");
    canvas_clear(&box);
    canvas_box(&box, "help", note, true);
    page = (struct page){.canvas = &inside, .cols = inside.cols, .top = *top, .needle = search->text};
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
