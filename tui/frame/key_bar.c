#include "tui/frame/key_bar.h"
#include "tui/scope/batch.h"
#include "tui/widgets/key_row.h"

#include <string.h>

/* What every user needs first. It has the same place all the time. */
static void
add_always(struct key_row *bar, const struct panes *p, const struct followed *run)
{
    const bool live = follow_live(run),
               moves = live ? scope_now(run->scope)->running : replay_status(run->source->replay).playing;
    if (!live || scope_now(run->scope)->end[0] == '\0') /* a text at its end goes on by other keys */
        key_row_pairs(bar, 0, moves ? "Space pause" : live ? "Space go on" : "Space play");
    if (p->layout.tab_bar.rows == 0) /* tabs have digits of their own */
        key_row_pairs(bar, 0, "1…9 panel");
    key_row_pairs(bar, 0, "? help  q quit");
    bar->parts = true;
}

/* The panels that are not on the screen; the others have their digit in their title. */
static void
add_panels(struct key_row *bar, const struct panes *p)
{
    for (int i = 0; i < p->n; i++) {
        char digit[2];
        if (p->layout.panel[i].rows == 0 && panes_digit(p, i, digit))
            key_row_add(bar, 4, ROLE_DIM, digit, panel_registry[i]->name);
    }
}

static void
add_run(struct key_row *bar, const struct followed *run)
{
    static const struct {
        const char *end, *say, *pairs;
    } ends[] = {
        {"eos", "the text has come to its end", "x go on  F next prompt  r again  p new prompt  e export"},
        {"batch", "all sequences have ended", "x more  r again  e export"},
        {"tokens", "all tokens that were asked for", "x more  F next prompt  r again  p new prompt  e export"},
        {"context", "the context is full", "F next prompt  r again  p new prompt  e export"},
    };
    const char *end = scope_now(run->scope)->end;
    if (!follow_live(run)) {
        key_row_pairs(bar, 6, "n round  . token  <> speed");
        return;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(end, ends[i].end) == 0) {
            key_row_add(bar, 1, ROLE_WARN, "", ends[i].say);
            key_row_pairs(bar, 1, ends[i].pairs);
            key_row_pairs(bar, 7, "b baseline  P policy");
            return;
        }
    key_row_pairs(bar, 6, "n round  . token  b baseline  P policy");
    key_row_pairs(bar, 7, "p prompt  e export");
}

void
key_bar_draw(const struct panes *p, const struct followed *run, const struct canvas *c, struct clicks *clicks)
{
    struct key_row bar = {.n = 0};
    const bool over = follow_live(run) && scope_now(run->scope)->end[0] != '\0';
    add_always(&bar, p, run);
    if (over) /* the end of the text is what the user waits for */
        add_run(&bar, run);
    const struct scope_note *note =
        p->selection.follow ? NULL : scope_note_at(run->scope, scope_focus(run->scope), p->selection.pos);
    if (note != NULL) /* of the token that is pointed at */
        key_row_add(&bar, 1, ROLE_WARN, "", note->text);
    bar.parts = true;
    const struct panel_ops *panel = panel_registry[p->focus];
    key_row_pairs(&bar, 3, panel->brief_now != NULL ? panel->brief_now(&p->view) : panel->brief);
    bar.parts = true;
    if (!over)
        add_run(&bar, run);
    key_row_pairs(&bar, 2, ": command");
    bar.parts = true;
    if (p->layout.tab_bar.rows == 0)
        add_panels(&bar, p);
    key_row_draw(&bar, c, clicks);
}
