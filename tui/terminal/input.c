#include "tui/terminal/input.h"
#include "engine/base/utf8.h"

#include <string.h>
#include <strings.h>

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
