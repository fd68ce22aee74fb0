#include "tui/frame/key_bar.h"
#include "tui/scope/batch.h"
#include "tui/widgets/key_row.h"

#include <string.h>

static void
add_panels(struct key_row *bar, const struct panes *p)
{
    for (int i = 0; i < p->n; i++) {
        char digit[12];
        const int number = panes_number(p, i);
        if (number < 1 || number > 9)
            continue;
        snprintf(digit, sizeof digit, "%d", number);
        key_row_add(bar, i == p->focus ? 2 : 4, i == p->focus ? ROLE_FOCUS : ROLE_DIM, digit, panel_registry[i]->name);
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
        key_row_pairs(bar, 5, replay_status(run->source->replay).playing ? "Space pause" : "Space play");
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
    key_row_pairs(bar, 5, scope_now(run->scope)->running ? "Space pause" : "Space go on");
    key_row_pairs(bar, 6, "n round  . token  b baseline  P policy");
    key_row_pairs(bar, 7, "p prompt  e export");
}

void
key_bar_draw(const struct panes *p, const struct followed *run, const struct canvas *c)
{
    struct key_row bar = {.n = 0};
    const bool over = follow_live(run) && scope_now(run->scope)->end[0] != '\0';
    if (over) /* what is over stands first: it is what one waits for */
        add_run(&bar, run);
    const struct scope_note *note =
        p->selection.follow ? NULL : scope_note_at(run->scope, scope_focus(run->scope), p->selection.pos);
    if (note != NULL) /* of the place that is pointed at */
        key_row_add(&bar, 0, ROLE_WARN, "", note->text);
    bar.parts = true;
    if (p->layout.tab_bar.rows == 0)
        add_panels(&bar, p);
    bar.parts = true;
    key_row_pairs(&bar, 3, panel_registry[p->focus]->brief);
    bar.parts = true;
    if (!over)
        add_run(&bar, run);
    key_row_pairs(&bar, 0, "? help");
    key_row_pairs(&bar, 1, ": command");
    key_row_draw(&bar, c);
}
