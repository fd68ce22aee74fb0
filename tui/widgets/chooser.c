#include "tui/widgets/chooser.h"
#include "tui/terminal/input.h"
#include "tui/terminal/theme.h"

#include <string.h>

static void
stand_at(struct chooser *ch, const char *name)
{
    for (int i = 0; i < ch->n; i++)
        if (strcmp(ch->name[i], name) == 0)
            ch->at = i;
}

bool
chooser_policies(struct chooser *ch, const struct run_info *info, const char *now)
{
    *ch = (struct chooser){.title = "policy", .verb = "policy"};
    for (uint32_t i = 0; i < info->n_policies && ch->n < CHOICES; i++, ch->n++) {
        snprintf(ch->name[i], sizeof ch->name[0], "%s", info->policies[i].name);
        char missing[96];
        const struct policy_info *p = &info->policies[i];
        snprintf(ch->about[i], sizeof ch->about[0], "%s%s", p->missing != 0 ? "needs " : "",
                 p->missing != 0 ? policy_missing(p->missing, missing, sizeof missing) : p->title);
    }
    stand_at(ch, now);
    return ch->n > 0;
}

void
chooser_themes(struct chooser *ch, const char *data_dir, const char *now)
{
    *ch = (struct chooser){.title = "theme", .verb = "theme", .preview = true};
    ch->n = theme_list(ch->name, CHOICES, data_dir);
    stand_at(ch, now);
}

enum chooser_result
chooser_key(struct chooser *ch, int key)
{
    switch (key) {
    case INPUT_UP:
    case 'k': ch->at = (ch->at + ch->n - 1) % ch->n; return CHOOSER_MOVED;
    case INPUT_DOWN:
    case 'j':
    case INPUT_TAB: ch->at = (ch->at + 1) % ch->n; return CHOOSER_MOVED;
    case INPUT_HOME: ch->at = 0; return CHOOSER_MOVED;
    case INPUT_END: ch->at = ch->n - 1; return CHOOSER_MOVED;
    case INPUT_ENTER:
    case ' ': return CHOOSER_CHOSEN;
    case INPUT_ESCAPE:
    case INPUT_CTRL('c'):
    case 'q': return CHOOSER_LEFT;
    default: return CHOOSER_STAYS;
    }
}

void
chooser_draw(const struct chooser *ch, const struct canvas *c)
{
    int widest = 24;
    for (int i = 0; i < ch->n; i++) {
        const int width = 16 + text_width(ch->about[i]);
        widest = width > widest ? width : widest;
    }
    const int cols = widest + 6 < c->cols - 4 ? widest + 6 : c->cols - 4;
    const int rows = ch->n + 2 < c->rows - 4 ? ch->n + 2 : c->rows - 4;
    const struct canvas box = canvas_inside(c, (c->rows - rows) / 3, (c->cols - cols) / 2, rows, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    canvas_clear(&box);
    canvas_box(&box, ch->title, "Enter chooses", true);
    const int top = ch->at >= inside.rows ? ch->at - inside.rows + 1 : 0;
    for (int y = 0; y < inside.rows && top + y < ch->n; y++) {
        const bool here = top + y == ch->at;
        canvas_text(&inside, y, 1, here ? ROLE_FOCUS : ROLE_TEXT, here ? "▸" : " ");
        canvas_text(&inside, y, 3, here ? ROLE_FOCUS : ROLE_TEXT, ch->name[top + y]);
        canvas_text(&inside, y, 17, here ? ROLE_TEXT : ROLE_DIM, ch->about[top + y]);
    }
}
