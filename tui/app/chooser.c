/* Menus: of policies, of themes. */
#include "tui/app/app_state.h"

#include <string.h>

bool
chooser_open_policies(struct app *app)
{
    struct chooser *ch = &app->chooser;
    *ch = (struct chooser){.title = "policy", .verb = "policy"};
    const struct policy_info *now = scope_policy(app->scope);
    for (uint32_t i = 0; i < app->info->n_policies && ch->n < CHOICES; i++) {
        const struct policy_info *p = &app->info->policies[i];
        snprintf(ch->name[ch->n], sizeof ch->name[0], "%s", p->name);
        snprintf(ch->about[ch->n], sizeof ch->about[0], "%s", p->title);
        if (now != NULL && strcmp(now->name, p->name) == 0)
            ch->at = ch->n;
        ch->n++;
    }
    app->mode = ch->n > 0 ? MODE_CHOOSER : MODE_PANELS;
    return ch->n > 0;
}

bool
chooser_open_themes(struct app *app)
{
    struct chooser *ch = &app->chooser;
    *ch = (struct chooser){.title = "theme", .verb = "theme", .preview = true};
    ch->n = theme_list(ch->name, CHOICES, app->options.data_dir);
    for (int i = 0; i < ch->n; i++)
        if (strcmp(ch->name[i], app->theme.name) == 0)
            ch->at = i;
    app->mode = ch->n > 0 ? MODE_CHOOSER : MODE_PANELS;
    return ch->n > 0;
}

/* Shows the theme that the bar is on; the chosen one stays in app->theme. */
static void
preview(struct app *app)
{
    struct theme theme;
    if (app->chooser.preview && theme_load(&theme, app->chooser.name[app->chooser.at], app->options.data_dir, NULL))
        paint_theme(&app->paint, &theme);
}

void
chooser_key(struct app *app, int key)
{
    struct chooser *ch = &app->chooser;
    char line[64];
    switch (key) {
    case INPUT_UP:
    case 'k': ch->at = (ch->at + ch->n - 1) % ch->n; break;
    case INPUT_DOWN:
    case 'j':
    case INPUT_TAB: ch->at = (ch->at + 1) % ch->n; break;
    case INPUT_HOME: ch->at = 0; break;
    case INPUT_END: ch->at = ch->n - 1; break;
    case INPUT_ENTER:
    case ' ':
        app->mode = MODE_PANELS;
        snprintf(line, sizeof line, "%s %s", ch->verb, ch->name[ch->at]);
        app_command(app, line);
        return;
    case INPUT_ESCAPE:
    case INPUT_CTRL('c'):
    case 'q':
        app->mode = MODE_PANELS;
        if (ch->preview)
            paint_theme(&app->paint, &app->theme);
        return;
    default: return;
    }
    preview(app);
}

void
chooser_draw(const struct app *app, const struct canvas *c)
{
    const struct chooser *ch = &app->chooser;
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
