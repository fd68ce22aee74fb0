#include "tui/terminal/terminal_keys.h"
#include "tui/terminal/input.h"
#include "tui/terminal/report.h"

#include <curses.h>

enum { CODE_PASTE_BEGIN = 600, CODE_PASTE_END };

void
keys_declare(void)
{
    static const struct {
        const char *sequence;
        int code;
    } keys[] = {
        {"\033[1;2A", KEY_SR},
        {"\033[1;2B", KEY_SF},
        {"\033[1;2C", KEY_SRIGHT},
        {"\033[1;2D", KEY_SLEFT},
        {"\033[a", KEY_SR},
        {"\033[b", KEY_SF},
        {"\033[c", KEY_SRIGHT},
        {"\033[d", KEY_SLEFT},
        {"\033[H", KEY_HOME},
        {"\033OH", KEY_HOME},
        {"\033[1~", KEY_HOME},
        {"\033[7~", KEY_HOME},
        {"\033[F", KEY_END},
        {"\033OF", KEY_END},
        {"\033[4~", KEY_END},
        {"\033[8~", KEY_END},
        {"\033[5~", KEY_PPAGE},
        {"\033[6~", KEY_NPAGE},
        {"\033[3~", KEY_DC},
        {"\033[Z", KEY_BTAB},
        {"\033[A", KEY_UP},
        {"\033[B", KEY_DOWN},
        {"\033[C", KEY_RIGHT},
        {"\033[D", KEY_LEFT},
        {"\033[200~", CODE_PASTE_BEGIN},
        {"\033[201~", CODE_PASTE_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (key_defined(keys[i].sequence) <= 0)
            define_key(keys[i].sequence, keys[i].code);
    /* Over whatever terminfo says: reports are read here. */
    define_key("\033[<", KEYS_REPORT + REPORT_MOUSE);
    define_key("\033[M", KEYS_REPORT + REPORT_OLD_MOUSE);
    define_key("\033[?", KEYS_REPORT + REPORT_ATTRIBUTES);
    define_key("\033P1$r", KEYS_REPORT + REPORT_STATE);
    define_key("\033P0$r", KEYS_REPORT + REPORT_STATE);
}

int
keys_named(unsigned code)
{
    static const struct {
        unsigned code;
        int key;
    } keys[] = {
        {KEY_UP, INPUT_UP},
        {KEY_DOWN, INPUT_DOWN},
        {KEY_LEFT, INPUT_LEFT},
        {KEY_RIGHT, INPUT_RIGHT},
        {KEY_SR, INPUT_SHIFT_UP},
        {KEY_SF, INPUT_SHIFT_DOWN},
        {KEY_SLEFT, INPUT_SHIFT_LEFT},
        {KEY_SRIGHT, INPUT_SHIFT_RIGHT},
        {KEY_HOME, INPUT_HOME},
        {KEY_END, INPUT_END},
        {KEY_PPAGE, INPUT_PAGE_UP},
        {KEY_NPAGE, INPUT_PAGE_DOWN},
        {KEY_IC, INPUT_INSERT},
        {KEY_DC, INPUT_DELETE},
        {KEY_BTAB, INPUT_SHIFT_TAB},
        {KEY_BACKSPACE, INPUT_BACKSPACE},
        {KEY_ENTER, INPUT_ENTER},
        {CODE_PASTE_BEGIN, INPUT_PASTE_BEGIN},
        {CODE_PASTE_END, INPUT_PASTE_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].code == code)
            return keys[i].key;
    if (code >= KEY_F(1) && code <= KEY_F(12))
        return INPUT_F1 + (int)(code - KEY_F(1));
    return INPUT_NONE;
}
