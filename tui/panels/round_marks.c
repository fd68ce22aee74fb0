#include "tui/panels/round_marks.h"
#include "engine/base/printable.h"

#include <stdio.h>
#include <string.h>

void
round_marks(const struct canvas *c, int y, int x, int width, const struct scope_round *r)
{
    const int room = width - 1; /* one for the target's own token */
    int at = 0;
    for (uint32_t i = 0; i < r->n_drafts && at < room; i++, at++) {
        const struct scope_draft *d = &r->drafts[i];
        const bool more = at == room - 1 && i + 1 < r->n_drafts;
        if (more)
            canvas_text(c, y, x + at, ROLE_DIM, "…");
        else if (d->accepted > 0)
            canvas_text(c, y, x + at, ROLE_ACCEPTED, "■");
        else if (d->accepted == 0)
            canvas_text(c, y, x + at, ROLE_REJECTED, d->main_line ? "□" : canvas_glyph(c, "▫", ","));
        else
            canvas_text(c, y, x + at, ROLE_DRAFT, d->main_line ? "○" : canvas_glyph(c, "◦", "-"));
    }
    if (r->last == SOURCE_CORRECTION)
        canvas_text(c, y, x + at, ROLE_CORRECTION, canvas_glyph(c, "◆", "*"));
    else if (r->last == SOURCE_BONUS)
        canvas_text(c, y, x + at, ROLE_BONUS, "+");
}

void
round_reason(const struct round_event *e, char out[ROUND_REASON])
{
    const char *reason = strcmp(e->stop_reason, "difficult") == 0 ? "low confidence" : e->stop_reason;
    printable_text(reason, strlen(reason), out, ROUND_REASON);
}
