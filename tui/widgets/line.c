#include "tui/widgets/line.h"
#include "tui/terminal/text.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *verb, *lead; /* of the command; before the text on the screen */
} uses[LINE_USES] = {[LINE_COMMAND] = {"", ":"},
                     [LINE_PROMPT] = {"prompt ", ""},
                     [LINE_SEARCH] = {"search ", "/"},
                     [LINE_EXPORT] = {"export ", "export to: "}};

void
line_begin(struct line *l, const char *history_path, char *const *prompts, size_t n_prompts)
{
    *l = (struct line){.offers = {.prompts = prompts, .n = n_prompts}};
    for (int i = 0; i < LINE_USES; i++)
        history_open(&l->history[i], i == LINE_PROMPT ? history_path : NULL);
}

void
line_end(struct line *l, struct err *err)
{
    for (int i = 0; i < LINE_USES; i++)
        history_close(&l->history[i], err);
    editor_close(&l->editor);
    offers_begin(&l->offers);
}

bool
line_open(struct line *l, enum line_use use, const char *text)
{
    editor_close(&l->editor);
    l->use = use;
    offers_begin(&l->offers);
    return editor_open(&l->editor, text, use == LINE_PROMPT, &l->history[use]);
}

enum editor_result
line_key(struct line *l, int key)
{
    if (l->use == LINE_PROMPT && !l->editor.pasting && offers_key(&l->offers, &l->editor, key))
        return EDITOR_OPEN;
    return editor_key(&l->editor, &l->history[l->use], key);
}

const char *
line_verb(const struct line *l)
{
    return uses[l->use].verb;
}

bool
line_is_text(const struct line *l)
{
    return l->use == LINE_PROMPT || l->use == LINE_SEARCH;
}

char *
line_command(struct line *l)
{
    const char *verb = uses[l->use].verb;
    const size_t lead = strlen(verb);
    size_t n = l->editor.length;
    while (!line_is_text(l) && n > 0 && l->editor.text[n - 1] == ' ') /* as Tab leaves one behind a word */
        n--;
    if (n == 0 && l->use == LINE_SEARCH)
        return strdup("search-next");
    char *command = n > 0 ? malloc(lead + n + 1) : NULL;
    if (command == NULL)
        return NULL;
    memcpy(command, verb, lead);
    memcpy(command + lead, l->editor.text, n);
    command[lead + n] = '\0';
    history_add(&l->history[l->use], command + lead);
    return command;
}

void
line_draw(const struct line *l, const struct canvas *c)
{
    editor_draw(&l->editor, c, uses[l->use].lead);
}

void
line_draw_prompt(struct line *l, const struct canvas *c)
{
    const int cols = c->cols > 110 ? 100 : c->cols - 6;
    int rows = editor_rows(&l->editor, cols - 4), offers = offers_rows(&l->offers);
    const int most = c->rows - (c->rows >= 24 ? 10 : 5); /* something of what it covers is seen */
    if (rows + offers > most)
        offers = 0;
    rows = rows < 3 ? 3 : rows;
    rows = rows > most ? most : rows;
    const struct canvas box =
        canvas_inside(c, (c->rows - rows - offers) / 3, (c->cols - cols) / 2, rows + offers + 2, cols);
    const struct canvas inside = canvas_inside(&box, 1, 2, rows, box.cols - 4),
                        below = canvas_inside(&box, 1 + rows, 2, offers, box.cols - 4);
    canvas_clear(&box);
    canvas_box(&box, "prompt", "Enter starts a run   Ctrl-J breaks the line   ↑ earlier ones   Esc leaves", true);
    l->editor.cols = inside.cols; /* ↑ goes up a row of what is seen */
    editor_draw(&l->editor, &inside, uses[LINE_PROMPT].lead);
    if (offers > 0)
        offers_draw(&l->offers, &below);
}
