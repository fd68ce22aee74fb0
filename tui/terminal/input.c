#include "tui/terminal/input.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/utf8.h"

/* ---- names of keys ---- */

static const struct {
    const char *name;
    int key;
} names[] = {
    {"Enter", INPUT_ENTER},
    {"Return", INPUT_ENTER},
    {"Tab", INPUT_TAB},
    {"S-Tab", INPUT_SHIFT_TAB},
    {"Esc", INPUT_ESCAPE},
    {"Escape", INPUT_ESCAPE},
    {"Space", ' '},
    {"Backspace", INPUT_BACKSPACE},
    {"↑", INPUT_UP},
    {"↓", INPUT_DOWN},
    {"←", INPUT_LEFT},
    {"→", INPUT_RIGHT},
    {"Up", INPUT_UP},
    {"Down", INPUT_DOWN},
    {"Left", INPUT_LEFT},
    {"Right", INPUT_RIGHT},
    {"S-Up", INPUT_SHIFT_UP},
    {"S-Down", INPUT_SHIFT_DOWN},
    {"S-Left", INPUT_SHIFT_LEFT},
    {"S-Right", INPUT_SHIFT_RIGHT},
    {"Home", INPUT_HOME},
    {"End", INPUT_END},
    {"PageUp", INPUT_PAGE_UP},
    {"PageDown", INPUT_PAGE_DOWN},
    {"Insert", INPUT_INSERT},
    {"Delete", INPUT_DELETE},
    {"F1", INPUT_F1},
    {"F2", INPUT_F1 + 1},
    {"F3", INPUT_F1 + 2},
    {"F4", INPUT_F1 + 3},
    {"F5", INPUT_F1 + 4},
    {"F6", INPUT_F1 + 5},
    {"F7", INPUT_F1 + 6},
    {"F8", INPUT_F1 + 7},
    {"F9", INPUT_F1 + 8},
    {"F10", INPUT_F1 + 9},
    {"F11", INPUT_F1 + 10},
    {"F12", INPUT_F12},
};

int
input_named(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i].name) == 0)
            return names[i].key;
    const size_t length = strlen(name);
    if (length == 3 && (name[0] | 0x20) == 'c' && name[1] == '-') {
        const char letter = (char)(name[2] | 0x20);
        return letter >= 'a' && letter <= 'z' ? INPUT_CTRL(letter) : INPUT_NONE;
    }
    uint32_t code;
    return length > 0 && utf8_character(name, length, &code) == length && code >= ' ' && code != 0x7f ? (int)code
                                                                                                      : INPUT_NONE;
}

/* ---- reports ---- */

const char *const report_question = "\033[48;2;1;2;3m\033P$qm\033\\\033[0m\033[c";

void
report_begin(struct report *r, enum report_kind kind)
{
    *r = (struct report){.kind = kind};
}

/* True if the character ends the report. */
static bool
ends(const struct report *r, uint32_t code)
{
    switch (r->kind) {
    case REPORT_MOUSE: return code == 'M' || code == 'm';
    case REPORT_OLD_MOUSE: return r->n == 2;
    case REPORT_STATE: return code == '\\' && r->n > 0 && r->text[r->n - 1] == '\033';
    case REPORT_ATTRIBUTES: return code == 'c';
    case REPORT_NONE: break;
    }
    return true;
}

static bool
belongs(const struct report *r, uint32_t code)
{
    const bool number = (code >= '0' && code <= '9') || code == ';';
    switch (r->kind) {
    case REPORT_MOUSE: return number;
    case REPORT_OLD_MOUSE: return code >= ' ' && code < 0x7f; /* larger values are changed by a UTF-8 locale */
    case REPORT_STATE: return (code >= ' ' && code < 0x7f) || code == '\033';
    case REPORT_ATTRIBUTES: return number;
    case REPORT_NONE: break;
    }
    return false;
}

enum report_result
report_take(struct report *r, uint32_t code)
{
    const bool last = ends(r, code);
    if ((!last || r->kind == REPORT_OLD_MOUSE || r->kind == REPORT_NONE) && !belongs(r, code))
        return REPORT_BROKEN;
    if (r->n + 1 >= sizeof r->text)
        return REPORT_BROKEN;
    r->text[r->n++] = (char)code; /* with its end, which distinguishes press and release */
    return last ? REPORT_WHOLE : REPORT_OPEN;
}

/* xterm's button byte: two bits of the button, modifiers, 32 for a movement, 64 for the wheel. */
static bool
mouse_action(unsigned button, bool released, enum mouse_action *action)
{
    const unsigned which = button & ~(4U | 8U | 16U); /* without Shift, Meta, Control */
    if (which == 64 || which == 65)
        *action = which == 64 ? MOUSE_WHEEL_UP : MOUSE_WHEEL_DOWN;
    else if (which == 0)
        *action = released ? MOUSE_RELEASE : MOUSE_PRESS;
    else if (which == 32)
        *action = MOUSE_DRAG;
    else
        return false;
    return true;
}

/* Parses three numbers separated by ';' and a character; false: it is something else. */
static bool
three_numbers(const char *text, unsigned number[3], char *end)
{
    for (int i = 0; i < 3; i++) {
        char *behind = NULL;
        const unsigned long value = strtoul(text, &behind, 10);
        if (behind == text || value > 0xffff || behind[0] == '\0' || (i < 2 && behind[0] != ';'))
            return false;
        number[i] = (unsigned)value;
        *end = behind[0];
        text = behind + 1;
    }
    return text[0] == '\0';
}

bool
report_mouse(const struct report *r, struct input *in)
{
    unsigned button, x, y, number[3];
    char end;
    *in = (struct input){.key = INPUT_NONE};
    if (r->kind == REPORT_MOUSE) {
        if (!three_numbers(r->text, number, &end) || !mouse_action(number[0], end == 'm', &in->mouse))
            return false;
        x = number[1];
        y = number[2];
        if (x == 0 || y == 0)
            return false;
    } else if (r->kind == REPORT_OLD_MOUSE && r->n == 3) {
        button = (unsigned)(r->text[0] - ' ');
        x = (unsigned)(r->text[1] - ' ');
        y = (unsigned)(r->text[2] - ' ');
        const bool released = (button & 3) == 3 && button < 32; /* of whichever button it was */
        if (x == 0 || y == 0 || !mouse_action(released ? 0 : button, released, &in->mouse))
            return false;
    } else {
        return false;
    }
    in->key = INPUT_MOUSE;
    in->x = (int)x - 1;
    in->y = (int)y - 1;
    return true;
}

bool
report_says_direct(const struct report *r)
{
    return r->kind == REPORT_STATE && (strstr(r->text, ":1:2:3") != NULL || strstr(r->text, ";1;2;3") != NULL);
}

struct step
input_step(int key, long page)
{
    switch (key) {
    case 'h':
    case INPUT_LEFT: return (struct step){.right = -1};
    case 'l':
    case INPUT_RIGHT: return (struct step){.right = 1};
    case 'k':
    case INPUT_UP: return (struct step){.down = -1};
    case 'j':
    case INPUT_DOWN: return (struct step){.down = 1};
    case INPUT_PAGE_UP: return (struct step){.down = -page};
    case INPUT_PAGE_DOWN: return (struct step){.down = page};
    default: return (struct step){0};
    }
}

int
mouse_wheel(enum mouse_action action)
{
    return action == MOUSE_WHEEL_UP ? -1 : action == MOUSE_WHEEL_DOWN;
}
