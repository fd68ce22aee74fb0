#include "tui/app/key_row.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tui/terminal/input.h"

/* ---- clicks ---- */

void
clicks_add(struct clicks *clicks, const struct canvas *c, int y, int x, int cols, const char *line)
{
    if (clicks == NULL || clicks->n == CLICKS)
        return;
    struct click *click = &clicks->at[clicks->n++];
    *click = (struct click){.y = c->y + y, .x = c->x + x, .cols = cols};
    snprintf(click->line, sizeof click->line, "%s", line);
}

const char *
clicks_find(const struct clicks *clicks, int y, int x)
{
    for (int i = clicks->n - 1; i >= 0; i--) {
        const struct click *click = &clicks->at[i];
        if (click->y == y && x >= click->x && x < click->x + click->cols)
            return click->line;
    }
    return NULL;
}

/* ---- rows ---- */

#define GAP 2 /* columns between items */

void
key_row_add(struct key_row *bar, int rank, enum role role, const char *key, const char *what)
{
    for (struct key_item *same = bar->item; same < bar->item + bar->n && key[0] != '\0'; same++)
        if (strcmp(same->key, key) == 0) { /* a panel has the key before the program */
            if (rank < same->rank)
                snprintf(same->what, sizeof same->what, "%s", what);
            return;
        }
    if (bar->n == KEY_ITEMS)
        return;
    struct key_item *item = &bar->item[bar->n++];
    *item = (struct key_item){.role = role, .rank = rank, .parts = bar->parts};
    bar->parts = false;
    snprintf(item->key, sizeof item->key, "%s", key);
    snprintf(item->what, sizeof item->what, "%s", what);
}

void
key_row_pairs(struct key_row *bar, int rank, const char *pairs)
{
    while (pairs != NULL && pairs[0] != '\0') {
        const char *end = strstr(pairs, "  ");
        const size_t n = end == NULL ? strlen(pairs) : (size_t)(end - pairs);
        size_t key = 0;
        for (size_t i = 0; i < n; i++) /* the meaning is the last word, or everything after a key of one word */
            if (pairs[i] == ' ' && (unsigned char)pairs[i + 1] < 0x80 && pairs[i + 1] != ' ') {
                key = i;
                break;
            }
        char keys[16], what[48];
        snprintf(keys, sizeof keys, "%.*s", (int)(key < sizeof keys ? key : sizeof keys - 1), pairs);
        snprintf(what, sizeof what, "%.*s", (int)(n - key > 0 ? n - key - (key > 0) : 0), pairs + key + (key > 0));
        key_row_add(bar, rank, ROLE_DIM, keys, what);
        pairs += n + (end != NULL ? 2 : 0);
    }
}

static int
width_of(const struct key_item *item)
{
    const int key = text_width(item->key);
    return key + (key > 0) + text_width(item->what) + GAP;
}

/* Returns the columns of the shown items with the lines between groups. */
static int
width_of_all(const struct key_row *bar, const bool shown[KEY_ITEMS])
{
    int width = 0;
    bool parts = false;
    for (int i = 0; i < bar->n; i++) {
        parts = parts || bar->item[i].parts;
        if (!shown[i])
            continue;
        width += width_of(&bar->item[i]) + (parts && width > 0 ? GAP : 0);
        parts = false;
    }
    return width;
}

static void
fit(const struct key_row *bar, int room, bool shown[KEY_ITEMS])
{
    for (int rank = 0; rank < 10; rank++)
        for (int i = 0; i < bar->n; i++) {
            if (bar->item[i].rank != rank)
                continue;
            shown[i] = true;
            shown[i] = width_of_all(bar, shown) <= room;
        }
}

static bool
add_click(struct clicks *clicks, const struct canvas *c, int x, int cols, const char *name)
{
    char line[24];
    if (input_named(name) == INPUT_NONE)
        return false;
    snprintf(line, sizeof line, "key %s", name);
    clicks_add(clicks, c, 0, x, cols, line);
    return true;
}

/* Adds the clicks of an item's keys: names between blanks, or adjacent signs ("<>"). */
static void
add_clicks(struct clicks *clicks, const struct canvas *c, int x, const struct key_item *item)
{
    const char *key = item->key;
    if (strchr(key, ' ') == NULL && add_click(clicks, c, x, width_of(item) - GAP, key))
        return;
    while (key[0] != '\0') {
        char name[sizeof item->key];
        size_t n = strcspn(key, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, key);
        if (input_named(name) == INPUT_NONE && !strpbrk(name, "abcdefghijklmnopqrstuvwxyz")) {
            n = text_fit(key, 1, NULL);
            snprintf(name, sizeof name, "%.*s", (int)n, key);
        }
        if (n > 0)
            add_click(clicks, c, x, text_width(name), name);
        x += n > 0 ? text_width(name) : 1;
        key += n > 0 ? n : 1;
    }
}

void
key_row_draw(const struct key_row *bar, const struct canvas *c, struct clicks *clicks)
{
    bool shown[KEY_ITEMS] = {false}, any = false, parts = false;
    fit(bar, c->cols - 2 + GAP, shown);
    int x = 1;
    for (int i = 0; i < bar->n; i++) {
        const struct key_item *item = &bar->item[i];
        parts = parts || item->parts;
        if (!shown[i])
            continue;
        if (parts && any)
            x += canvas_text(c, 0, x, ROLE_BORDER, "│ ");
        add_clicks(clicks, c, x, item);
        const int key = canvas_text(c, 0, x, ROLE_KEY, item->key);
        x += key + (key > 0);
        x += canvas_text(c, 0, x, item->role, item->what) + GAP;
        any = true;
        parts = false;
    }
}

void
key_row_draw_pairs(const char *pairs, const struct canvas *c, struct clicks *clicks)
{
    struct key_row row = {.n = 0};
    key_row_pairs(&row, 0, pairs);
    key_row_draw(&row, c, clicks);
}

/* ---- the keys of every panel ---- */

const struct app_key app_keys[] = {
    {'?', "?  F1", "help", "this help; / in it shows the rows with a text"},
    {INPUT_F1, "F1", "help", NULL},
    {' ', "Space", "toggle", "pause and resume; in a replay: play and pause"},
    {'n', "n", "step 1", "one round"},
    {'.', ".", "step token", "one drafted or emitted token"},
    {']', "[  ]", "jump next", "to the previous or next round with a rejected draft, or with what :until named last"},
    {'[', "[", "jump previous", NULL},
    {'r', "r", "restart", "again from the same prompt; in a replay: from its start"},
    {'p', "p", "prompt", "edit a prompt; in a chat the next turn"},
    {'F', "F", "next", "the next prompt of the list"},
    {'P', "P", "policy", "choose the policy"},
    {'O', "O", "open", "another model: those on this machine"},
    {'H', "H", "head other", "the layers by the lens, or by their trained heads"},
    {'u', "u  U", "undo", "undo the last change of a knob, policy or head; redo it"},
    {'U', "U", "redo", NULL},
    {'w', "w", "what-if", "a grid of forecasts: other values of two knobs on the same text"},
    {'b', "b", "baseline", "run autoregressively: measures the speedup, checks losslessness"},
    {'x', "x", "extend", "generate more tokens"},
    {'e', "e", "export", "export the run as CSV"},
    {'<', "<  >", "pace slower", "slower, faster: a live run's tokens a second, a replay's speed"},
    {'>', ">", "pace faster", NULL},
    {'1', "1 … 9, 0", "panel 1", "to the panel of that number; 0: to the tenth"},
    {INPUT_TAB, "Tab  S-Tab", "panel next", "move the focus"},
    {INPUT_SHIFT_TAB, "S-Tab", "panel previous", NULL},
    {'}', "{  }", "sequence next", "the sequence before, or after, of a batch or two settings"},
    {'{', "{", "sequence previous", NULL},
    {'v', "v", "window next", "rounds that the numbers are computed from: the segment, the last 32, the run"},
    {'z', "z", "zoom", "the focused panel alone, and back"},
    {'/', "/  N", "search", "search the text; Enter alone: the next place; N: the one before"},
    {'N', "N", "search-back", NULL},
    {'m', "m", "command note ", "write a note at the cursor, kept in the trace; without a text it is removed"},
    {'\'', "'", "note-next", "to the next note"},
    {'M', "M", "messages", "the messages so far"},
    {'t', "t", "theme", "choose the theme"},
    {':', ":", "command", "a command; Tab completes, arrows recall earlier ones"},
    {INPUT_CTRL('l'), "Ctrl-L", "redraw", "draw the screen again"},
    {INPUT_CTRL('z'), "Ctrl-Z", "suspend", "back to the shell; fg returns"},
    {'q', "q  Ctrl-C", "quit", "quit; asks when an unsaved run would be lost"},
    {INPUT_CTRL('c'), "Ctrl-C", "quit", NULL},
    {INPUT_NONE, NULL, NULL, NULL},
};
