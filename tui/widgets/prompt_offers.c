#include "tui/widgets/prompt_offers.h"
#include "engine/base/printable.h"
#include "tui/terminal/input.h"

#include <stdlib.h>
#include <string.h>

void
offers_begin(struct offers *o)
{
    free(o->written);
    o->written = NULL;
    o->at = 0;
}

bool
offers_key(struct offers *o, struct editor *e, int key)
{
    const int n = (int)o->n;
    const int step = key == INPUT_TAB ? 1 : key == INPUT_SHIFT_TAB ? n : 0; /* n: one back, of n + 1 */
    if (n == 0 || step == 0)
        return false;
    const bool own = o->at == 0 || strcmp(e->text, o->prompts[o->at - 1]) != 0;
    char *written = own ? strdup(e->text) : NULL; /* an offer that was changed is one's own text */
    if (own && written != NULL) {
        free(o->written);
        o->written = written;
    }
    o->at = (o->at + step) % (n + 1);
    editor_replace(e, o->at > 0 ? o->prompts[o->at - 1] : o->written != NULL ? o->written : "");
    return true;
}

int
offers_rows(const struct offers *o)
{
    const int n = (int)o->n;
    return n > 0 && n <= OFFERS_SHOWN ? n + 1 : 0;
}

void
offers_draw(const struct offers *o, const struct canvas *c)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, ROLE_BORDER, "─");
    canvas_text(c, 0, 1, ROLE_DIM, " Tab: prompts to start from ");
    for (int i = 0; i + 1 < c->rows && i < (int)o->n; i++) {
        const char *text = o->prompts[i];
        char safe[400];
        printable_text(text, strlen(text), safe, sizeof safe);
        const bool here = o->at == i + 1;
        const struct canvas line = canvas_inside(c, i + 1, 0, 1, c->cols);
        canvas_text(&line, 0, 0, here ? ROLE_FOCUS : ROLE_DIM, here ? "▸ " : "  ");
        canvas_text(&line, 0, 2, here ? ROLE_TEXT : ROLE_DIM, safe);
    }
}
