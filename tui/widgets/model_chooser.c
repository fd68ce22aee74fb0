#include "tui/widgets/model_chooser.h"

#include <ctype.h>
#include <string.h>

#include "tui/terminal/text.h"

#define NOWHERE SIZE_MAX

void
model_chooser_begin(struct model_chooser *c, struct model_list *list)
{
    *c = (struct model_chooser){.list = list};
}

bool
model_chooser_outdated(const struct model_chooser *c)
{
    return model_list_seen(c->list) != c->seen;
}

/* ---- which are listed ---- */

bool
model_chooser_listed(const struct model_chooser *c, size_t i)
{
    const char *name = model_list_name(c->list, i);
    char word[sizeof c->filter];
    for (const char *at = c->filter; *(at += strspn(at, " ")) != '\0';) {
        const size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (strcasestr(name, word) == NULL)
            return false;
        at += n;
    }
    return true;
}

/* Goes so many of those listed on, as far as there are any. */
static enum chooser_result
move(struct model_chooser *c, int by)
{
    const size_t n = model_list_count(c->list), from = c->at;
    for (size_t i = from; by != 0 && (by > 0 ? i + 1 < n : i > 0);) {
        i = by > 0 ? i + 1 : i - 1;
        if (model_chooser_listed(c, i)) {
            c->at = i;
            by += by > 0 ? -1 : 1;
        }
    }
    return c->at != from ? CHOOSER_MOVED : CHOOSER_STAYS;
}

/* Another filter: stands at the first of those that it leaves, unless it leaves the one stood at. */
static enum chooser_result
filtered(struct model_chooser *c)
{
    const size_t n = model_list_count(c->list);
    for (size_t i = 0; i < n && !model_chooser_listed(c, c->at); i++)
        if (model_chooser_listed(c, i))
            c->at = i;
    return CHOOSER_MOVED;
}

/* The one so many rows below the list's first in view; NOWHERE: there is none. */
static size_t
in_row(const struct model_chooser *c, size_t row)
{
    row += c->top;
    for (size_t i = 0; i < model_list_count(c->list); i++)
        if (model_chooser_listed(c, i) && row-- == 0)
            return i;
    return NOWHERE;
}

/* ---- keys ---- */

/* Of hf:ORG/NAME either may be what somebody begins to type. */
static bool
begins_a_name(const struct model_chooser *c, char letter)
{
    for (size_t i = 0; i < model_list_count(c->list); i++) {
        const char *name = model_list_name(c->list, i);
        for (const char *at = name; *at != '\0'; at++)
            if (tolower((unsigned char)*at) == letter && (at == name || at[-1] == '/' || at[-1] == ':'))
                return true;
    }
    return false;
}

static enum chooser_result
letter(struct model_chooser *c, int key)
{
    const size_t n = strlen(c->filter);
    if (key == 'q' && (n == 0 ? !begins_a_name(c, 'q') : strcmp(c->filter, "q") == 0))
        return CHOOSER_LEFT;
    if (n + 1 == sizeof c->filter || (n == 0 && key == ' '))
        return CHOOSER_STAYS;
    c->filter[n] = (char)key;
    c->filter[n + 1] = '\0';
    return filtered(c);
}

static enum chooser_result
press(struct model_chooser *c, int key)
{
    const size_t n = strlen(c->filter);
    switch (key) {
    case INPUT_UP:
    case INPUT_SHIFT_TAB: return move(c, -1);
    case INPUT_DOWN:
    case INPUT_TAB: return move(c, 1);
    case INPUT_PAGE_UP: return move(c, -c->rows);
    case INPUT_PAGE_DOWN: return move(c, c->rows);
    case INPUT_HOME: return move(c, -INT32_MAX);
    case INPUT_END: return move(c, INT32_MAX);
    case INPUT_ENTER: return model_chooser_listed(c, c->at) ? CHOOSER_CHOSEN : CHOOSER_STAYS;
    case INPUT_BACKSPACE:
    case INPUT_CTRL('h'):
        if (n > 0)
            c->filter[n - 1] = '\0';
        return filtered(c);
    case INPUT_CTRL('u'): c->filter[0] = '\0'; return filtered(c);
    case INPUT_CTRL('c'): return CHOOSER_LEFT;
    case INPUT_ESCAPE:
        if (n == 0)
            return CHOOSER_LEFT;
        c->filter[0] = '\0';
        return filtered(c);
    default: return key >= ' ' && key < INPUT_BACKSPACE ? letter(c, key) : CHOOSER_STAYS;
    }
}

enum chooser_result
model_chooser_input(struct model_chooser *c, const struct input *in)
{
    if (in->key != INPUT_MOUSE) {
        c->message[0] = '\0';
        return press(c, in->key);
    }
    if (in->mouse == MOUSE_WHEEL_UP || in->mouse == MOUSE_WHEEL_DOWN)
        return move(c, in->mouse == MOUSE_WHEEL_UP ? -1 : 1);
    const size_t row = in->y >= c->y && in->y < c->y + c->rows ? in_row(c, (size_t)(in->y - c->y)) : NOWHERE;
    if (row == NOWHERE || (in->mouse != MOUSE_PRESS && in->mouse != MOUSE_DOUBLE))
        return CHOOSER_STAYS;
    c->at = row;
    return in->mouse == MOUSE_DOUBLE ? CHOOSER_CHOSEN : CHOOSER_MOVED;
}
