/* Prompts to start from, listed under the prompt that is being written: Tab goes through them, and comes back to what
 * was written. */
#include "engine/base/printable.h"
#include "tui/app/line.h"
#include "tui/terminal/input.h"

#include <stdlib.h>
#include <string.h>

void
offers_begin(struct line *l)
{
    free(l->written);
    l->written = NULL;
    l->offer = 0;
}

bool
offers_key(struct line *l, int key)
{
    const int n = (int)l->n_prompts;
    const int step = key == INPUT_TAB ? 1 : key == INPUT_SHIFT_TAB ? n : 0; /* n: one back, of n + 1 */
    if (n == 0 || step == 0)
        return false;
    const bool own = l->offer == 0 || strcmp(l->editor.text, l->prompts[l->offer - 1]) != 0;
    char *written = own ? strdup(l->editor.text) : NULL; /* an offer that was changed is one's own text */
    if (own && written != NULL) {
        free(l->written);
        l->written = written;
    }
    l->offer = (l->offer + step) % (n + 1);
    editor_replace(&l->editor, l->offer > 0 ? l->prompts[l->offer - 1] : l->written != NULL ? l->written : "");
    return true;
}

int
offers_rows(const struct line *l)
{
    const int n = (int)l->n_prompts;
    return n > 0 && n <= OFFERS_SHOWN ? n + 1 : 0;
}

void
offers_draw(const struct line *l, const struct canvas *c)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, ROLE_BORDER, "─");
    canvas_text(c, 0, 1, ROLE_DIM, " Tab: prompts to start from ");
    for (int i = 0; i + 1 < c->rows && i < (int)l->n_prompts; i++) {
        const char *text = l->prompts[i];
        char safe[400];
        printable_text(text, strnlen(text, 96), safe, sizeof safe);
        const bool here = l->offer == i + 1;
        const struct canvas line = canvas_inside(c, i + 1, 0, 1, c->cols);
        canvas_text(&line, 0, 0, here ? ROLE_FOCUS : ROLE_DIM, here ? "▸ " : "  ");
        canvas_text(&line, 0, 2, here ? ROLE_TEXT : ROLE_DIM, safe);
    }
}
