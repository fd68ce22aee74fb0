#include "tui/app/key_table.h"
#include "tui/terminal/input.h"

#include <stddef.h>

const struct app_key app_keys[] = {
    {'?', "?  F1", "help", "this help"},
    {INPUT_F1, "F1", "help", NULL},
    {' ', "Space", "toggle", "pause and go on; in a replay: play and pause"},
    {'n', "n", "step 1", "one round"},
    {'.', ".", "step token", "one drafted or emitted token"},
    {'r', "r", "restart", "again from the same prompt; in a replay: from its start"},
    {'p', "p", "prompt", "edit the prompt"},
    {'P', "P", "policy", "choose the policy"},
    {'H', "H", "head other", "the layers by the lens, or by their trained heads"},
    {'b', "b", "baseline", "run autoregressively: measures the speedup, checks losslessness"},
    {'x', "x", "extend", "go on for more tokens"},
    {'e', "e", "export", "export the run as CSV"},
    {'<', "<  >", "speed slower", "slower, faster: a live run's tokens a second, a replay's speed"},
    {'>', ">", "speed faster", NULL},
    {INPUT_TAB, "Tab  S-Tab", "panel next", "move the focus"},
    {INPUT_SHIFT_TAB, "S-Tab", "panel previous", NULL},
    {'z', "z", "zoom", "the focused panel alone, and back"},
    {'/', "/", "search", "search the text; N: the next place"},
    {'N', "N", "search-next", NULL},
    {'m', "m", "bookmark", "set or remove a bookmark at the cursor"},
    {'\'', "'", "bookmark next", "to the next bookmark"},
    {'t', "t", "theme", "choose the theme"},
    {':', ":", "command", "a command; Tab completes, arrows bring back earlier ones"},
    {INPUT_CTRL('l'), "Ctrl-L", "redraw", "draw the screen again"},
    {INPUT_CTRL('z'), "Ctrl-Z", "suspend", "back to the shell; fg returns"},
    {'q', "q  Ctrl-C", "quit", "quit; asks when an unsaved run would be lost"},
    {INPUT_CTRL('c'), "Ctrl-C", "quit", NULL},
    {INPUT_NONE, NULL, NULL, NULL},
};
