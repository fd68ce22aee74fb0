#include "tui/app/app.h"

#include <signal.h>

#include "tui/app/chooser.h"
#include "tui/app/layout.h"
#include "tui/app/screen.h"

#define PATIENCE_MS 100 /* the result of inspecting a model is shown within this time */

static bool
draw(struct screen *s, struct model_chooser *c, struct err *err)
{
    if (!screen_begin(s))
        return err_set(err, ERR_WORK, "out of memory for the screen");
    const struct canvas whole = layout_canvas((struct rect){0, 0, s->grid.rows, s->grid.cols}, &s->grid);
    model_chooser_draw(c, &whole);
    return screen_show(s) || err_set(err, ERR_WORK, "out of memory for the screen");
}

static int
choose(struct screen *s, struct model_chooser *c, bool *left, struct err *err)
{
    *left = true;
    for (;;) {
        if ((s->dirty || screen_outdated(s) || model_chooser_outdated(c)) && !draw(s, c, err))
            return 1;
        const struct input in = terminal_read(&s->terminal, PATIENCE_MS);
        if (terminal_ended_by() != 0)
            return 128 + terminal_ended_by();
        if (in.key == INPUT_LOST)
            return 128 + SIGHUP;
        if (in.key == INPUT_CTRL('z') || terminal_suspend_wanted()) {
            terminal_suspend(&s->terminal);
            s->repaint = s->dirty = true;
        } else if (in.key == INPUT_RESIZE || in.key == INPUT_CTRL('l')) {
            s->repaint = s->dirty = true;
        } else if (in.key != INPUT_NONE) {
            const enum chooser_result result = model_chooser_input(c, &in);
            s->dirty = true;
            *left = result == CHOOSER_LEFT;
            if (result == CHOOSER_CHOSEN || result == CHOOSER_LEFT)
                return 0;
            *left = true;
        }
    }
}

int
model_screen_run(struct model_list *list, const struct model_screen_options *o, size_t *chosen, bool *left,
                 struct err *err)
{
    struct screen screen = {0};
    struct model_chooser c = {.list = list, .at = o->at};
    int status = 1;
    *left = true;
    if (o->message != NULL)
        snprintf(c.message, sizeof c.message, "%s", o->message);
    if (screen_open(&screen, true, err)) {
        screen_first_theme(&screen, o->theme, o->data_dir, NULL); /* the scope reports an error later */
        screen.dirty = true;
        status = choose(&screen, &c, left, err);
    }
    screen_close(&screen);
    *chosen = c.at;
    return status == 0 && terminal_ended_by() != 0 ? 128 + terminal_ended_by() : status;
}
