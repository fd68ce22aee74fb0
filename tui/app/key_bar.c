#include "tui/app/key_bar.h"
#include "tui/scope/batch.h"

#include <string.h>

#define ITEMS 48
#define GAP   2 /* columns between items */

struct item {
    char key[16], what[256];
    enum role role; /* of what it does */
    int rank;       /* the highest go first when there is no room */
    bool parts;     /* another group begins here */
};

struct items {
    struct item item[ITEMS];
    int n;
    bool parts;
};

static void
add(struct items *bar, int rank, enum role role, const char *key, const char *what)
{
    if (bar->n == ITEMS)
        return;
    struct item *item = &bar->item[bar->n++];
    *item = (struct item){.role = role, .rank = rank, .parts = bar->parts};
    bar->parts = false;
    snprintf(item->key, sizeof item->key, "%s", key);
    snprintf(item->what, sizeof item->what, "%s", what);
}

/* Pairs of keys and what they do: "← → turn  = default". */
static void
add_pairs(struct items *bar, int rank, const char *pairs)
{
    while (pairs != NULL && pairs[0] != '\0') {
        const char *end = strstr(pairs, "  ");
        const size_t n = end == NULL ? strlen(pairs) : (size_t)(end - pairs);
        size_t key = 0;
        for (size_t i = 0; i < n; i++) /* what it does is the last word, or all behind a key of one word */
            if (pairs[i] == ' ' && (unsigned char)pairs[i + 1] < 0x80 && pairs[i + 1] != ' ') {
                key = i;
                break;
            }
        char keys[16], what[48];
        snprintf(keys, sizeof keys, "%.*s", (int)(key < sizeof keys ? key : sizeof keys - 1), pairs);
        snprintf(what, sizeof what, "%.*s", (int)(n - key > 0 ? n - key - (key > 0) : 0), pairs + key + (key > 0));
        add(bar, rank, ROLE_DIM, keys, what);
        pairs += n + (end != NULL ? 2 : 0);
    }
}

static void
add_panels(struct items *bar, const struct panes *p)
{
    for (int i = 0; i < p->n; i++) {
        char digit[12];
        const int number = panes_number(p, i);
        if (number < 1 || number > 9)
            continue;
        snprintf(digit, sizeof digit, "%d", number);
        add(bar, i == p->focus ? 2 : 4, i == p->focus ? ROLE_FOCUS : ROLE_DIM, digit, panel_registry[i]->name);
    }
}

static void
add_run(struct items *bar, const struct followed *run)
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
        add_pairs(bar, 5, replay_status(run->source->replay).playing ? "Space pause" : "Space play");
        add_pairs(bar, 6, "n round  . token  <> speed");
        return;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(end, ends[i].end) == 0) {
            add(bar, 1, ROLE_WARN, "", ends[i].say);
            add_pairs(bar, 1, ends[i].pairs);
            add_pairs(bar, 7, "b baseline  P policy");
            return;
        }
    add_pairs(bar, 5, scope_now(run->scope)->running ? "Space pause" : "Space go on");
    add_pairs(bar, 6, "n round  . token  b baseline  P policy");
    add_pairs(bar, 7, "p prompt  e export");
}

static int
width_of(const struct item *item)
{
    const int key = text_width(item->key);
    return key + (key > 0) + text_width(item->what) + GAP;
}

static void
fit(const struct items *bar, int room, bool shown[ITEMS])
{
    for (int rank = 0; rank < 10; rank++)
        for (int i = 0; i < bar->n; i++) {
            if (bar->item[i].rank != rank)
                continue;
            const int width = width_of(&bar->item[i]) + (bar->item[i].parts ? GAP : 0);
            shown[i] = width <= room;
            room -= shown[i] ? width : 0;
        }
}

static void
draw(const struct items *bar, const struct canvas *c)
{
    bool shown[ITEMS] = {false}, any = false, parts = false;
    fit(bar, c->cols - 2 + GAP, shown);
    int x = 1;
    for (int i = 0; i < bar->n; i++) {
        const struct item *item = &bar->item[i];
        parts = parts || item->parts;
        if (!shown[i])
            continue;
        if (parts && any)
            x += canvas_text(c, 0, x, ROLE_BORDER, "│ ");
        const int key = canvas_text(c, 0, x, ROLE_KEY, item->key);
        x += key + (key > 0);
        x += canvas_text(c, 0, x, item->role, item->what) + GAP;
        any = true;
        parts = false;
    }
}

void
key_bar_say(const char *pairs, const struct canvas *c)
{
    struct items bar = {.n = 0};
    add_pairs(&bar, 0, pairs);
    draw(&bar, c);
}

void
key_bar_draw(const struct panes *p, const struct followed *run, const struct canvas *c)
{
    struct items bar = {.n = 0};
    const bool over = follow_live(run) && scope_now(run->scope)->end[0] != '\0';
    if (over) /* what is over stands first: it is what one waits for */
        add_run(&bar, run);
    const struct scope_note *note =
        p->selection.follow ? NULL : scope_note_at(run->scope, scope_focus(run->scope), p->selection.pos);
    if (note != NULL) /* of the place that is pointed at */
        add(&bar, 0, ROLE_WARN, "", note->text);
    bar.parts = true;
    if (p->layout.tab_bar.rows == 0)
        add_panels(&bar, p);
    bar.parts = true;
    add_pairs(&bar, 3, panel_registry[p->focus]->brief);
    bar.parts = true;
    if (!over)
        add_run(&bar, run);
    add_pairs(&bar, 0, "? help");
    add_pairs(&bar, 1, ": command");
    draw(&bar, c);
}
