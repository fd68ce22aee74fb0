#include "tui/widgets/help_search.h"

#include <string.h>

#include "tui/terminal/input.h"

/* Moves to the first match from the top, after the text has changed. */
static void
search_again(struct help_search *s)
{
    s->at = -1;
    s->jump = s->text[0] != '\0' ? 1 : 0;
}

bool
help_search_key(struct help_search *s, int key)
{
    const size_t n = strlen(s->text);
    if (!s->typing) {
        const int step = key == 'n' ? 1 : key == 'N' ? -1 : 0;
        if (key != '/') {
            s->jump += step;
            return s->text[0] != '\0' && step != 0;
        }
        *s = (struct help_search){.typing = true, .at = -1};
        return true;
    }
    if (key == INPUT_ENTER || key == INPUT_ESCAPE) {
        s->typing = false;
        if (key == INPUT_ESCAPE)
            s->text[0] = '\0';
    } else if (key == INPUT_BACKSPACE) {
        s->text[n > 0 ? n - 1 : 0] = '\0';
        search_again(s);
    } else if (key >= ' ' && key < 0x7f && n + 1 < sizeof s->text) {
        s->text[n] = (char)key;
        s->text[n + 1] = '\0';
        search_again(s);
    }
    return true;
}
