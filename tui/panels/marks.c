#include "tui/panels/marks.h"

#include <string.h>

#include "tui/scope/batch.h"
#include "tui/terminal/text.h"

/* Of the sequence that is shown, where each has settings of its own. */
static bool
is_turn(const struct scope *scope, const struct segment *s)
{
    return s->n_changes > 0 && segment_concerns(s, scope_focus(scope));
}

const struct segment *
mark_of_round(const struct scope *scope, uint32_t round)
{
    const struct segment *s;
    for (uint32_t back = 0; (s = segments_at(scope_segments(scope), back)) != NULL; back++) {
        if (s->run != scope_now(scope)->run || s->first_round < round)
            return NULL;
        if (s->first_round == round)
            return is_turn(scope, s) ? s : NULL;
    }
    return NULL;
}

void
marks_find(struct marks *marks, const struct scope *scope, int (*place)(const void *user, const struct segment *),
           const void *user)
{
    const struct segment *s;
    marks->n = 0;
    for (uint32_t back = 0; (s = segments_at(scope_segments(scope), back)) != NULL && marks->n < MARKS; back++) {
        if (s->run != scope_now(scope)->run)
            return;
        const int x = is_turn(scope, s) ? place(user, s) : -1;
        if (x >= 0)
            marks->mark[marks->n++] = (struct mark){.x = x, .segment = s};
    }
}

void
marks_find_ahead(struct marks *marks, const struct scope *scope, const struct segments *all,
                 int (*place)(const void *user, const struct segment *), const void *user)
{
    const struct segment *s, *newest = segments_at(scope_segments(scope), 0);
    marks->n = 0;
    for (uint32_t back = 0; (s = segments_at(all, back)) != NULL && marks->n < MARKS; back++) {
        if (newest != NULL && s->number <= newest->number)
            return;
        const int x = s->run == scope_now(scope)->run && is_turn(scope, s) ? place(user, s) : -1;
        if (x >= 0)
            marks->mark[marks->n++] = (struct mark){.x = x, .segment = s};
    }
}

void
marks_draw_tick(const struct canvas *c, int y, int x)
{
    const struct grid_cell *there = grid_at(c->grid, c->y + y, c->x + x);
    if (y >= 0 && y < c->rows && x >= 0 && x < c->cols && there != NULL && there->text[0] == ' ')
        canvas_text(c, y, x, ROLE_LINE, canvas_glyph(c, "┊", ":"));
}

/* How many columns from x on show nothing but the row itself. */
static int
room_at(const struct canvas *c, int y, int x, int end)
{
    static const char *const own[] = {"─", "░", "█", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "-", ".", "#", " "};
    int n = 0;
    for (; x + n < end; n++) {
        const struct grid_cell *there = grid_at(c->grid, c->y + y, c->x + x + n);
        bool free = false;
        for (size_t i = 0; there != NULL && i < sizeof own / sizeof own[0]; i++)
            free = free || strcmp(there->text, own[i]) == 0;
        if (!free)
            break;
    }
    return n;
}

void
marks_draw(const struct marks *marks, const struct scope *scope, const struct canvas *c, int y, int end, enum role role)
{
    char text[256];
    end = end > c->cols ? c->cols : end;
    for (int i = 0; i < marks->n; i++) {
        const struct mark *m = &marks->mark[i];
        int room = m->x < end ? room_at(c, y, m->x, end) : 0;
        if (room < 1)
            continue;
        canvas_text(c, y, m->x, role, canvas_glyph(c, "┊", ":"));
        segment_text(m->segment, scope_info(scope), true, text, sizeof text);
        if (room > text_width(text) + 1)
            canvas_text(c, y, m->x + 1, role, text);
        else if (room >= 8)
            canvas_word(c, y, m->x + 1, room - 2, role, MARK_NONE, text);
        end = m->x < end ? m->x : end;
    }
}
