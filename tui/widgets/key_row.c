#include "tui/widgets/key_row.h"

#include <string.h>

#include "tui/terminal/input.h"
#include "tui/terminal/text.h"

#define GAP 2 /* columns between items */

void
key_row_add(struct key_row *bar, int rank, enum role role, const char *key, const char *what)
{
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
        for (size_t i = 0; i < n; i++) /* what it does is the last word, or all behind a key of one word */
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

/* Columns of the items that are shown, with the lines between groups. */
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

/* The keys of an item: names between blanks, or signs beside each other ("<>"). */
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
key_row_say(const char *pairs, const struct canvas *c, struct clicks *clicks)
{
    struct key_row row = {.n = 0};
    key_row_pairs(&row, 0, pairs);
    key_row_draw(&row, c, clicks);
}
