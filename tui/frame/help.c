#include "tui/frame/frame.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tui/widgets/key_row.h"

/* The meaning of each number of the bars and panels. docs/methods.md has the formulas. */
static const struct glossary {
    const char *name, *what;
} glossary[] = {
    {"tokens/round", "emitted tokens by rounds: accepted drafts and the target's own"},
    {"segment, last 32 rounds, run",
     "the rounds that all numbers on the screen are of; a segment: those since the settings changed last (v)"},
    {"acceptance", "accepted by verified drafts"},
    {"eTPL", "emitted tokens by layers loaded; a load is one layer's weights read once"},
    {"discard", "drafts thrown away by emitted tokens"},
    {"eq. 5", "SpecBound's equation 5: the speedup that acceptance and depth promise"},
    {"modelled ×", "weights that autoregressive decoding reads for the same tokens, by the weights that were read; no "
                   "time is in it"},
    {"measured of modelled",
     "measured speedup by the modelled one; below 1 is time that reading weights does not explain"},
    {"draft heads verify probe",
     "where the rounds' time went; draft is without its head calls, probe is the scope's own"},
    {"waited, learned", "time paused within rounds; passes that a policy learns in (SWIFT's search)"},
    {"tok/s", "emitted tokens by the time of drafting and verifying"},
    {"12 ±3", "one standard error, over the rounds that the number is of; of × ar, the baseline's is in it"},
    {"25/s shown · 410 engine", "what the run is slowed down to, and how fast the engine is in its rounds"},
    {"goodput", "the same of a batch: tokens of all its sequences by the rounds' time"},
    {"a tile's tok/s",
     "its tokens by the whole time of the rounds that it took part in: the speed that its reader sees"},
    {"× ar", "tok/s by those of the same text generated autoregressively (b measures it, again: further, between "
             "rounds), slowed "
             "down alike or not at all"},
    {"lossless ✓ 214", "the autoregressive tokens were generated too and are the same, one by one, so many of them"},
    {"┊", "a knob, a policy or a head was changed before this round"},
    {"p, H, KL, rank",
     "of a layer's prediction: confidence; entropy in nats; divergence from the last layer's; the rank that it "
     "gives the last layer's token, of which 1 is the best"},
    {"▒ exited, ▓ spurious",
     "layers after the exit; confident and wrong: above the threshold, with another token than the last layer's"},
    {"experts a layer",
     "of a mixture: how many of a layer's experts the sweep that verified a round had to read, on average over layers; "
     "one row "
     "reads as many as it goes to, rows together more, which is what makes verifying many of them dear"},
    {"ECE", "how far acceptance was from confidence, on average over drafts; 0: accepted as often as confident"},
    {"✓ ✗ ◆ + ◌",
     "a draft accepted, rejected; a correction; a bonus token; a draft not yet verified. The number is its exit layer"},
    {NULL, NULL},
};

#define MATCHES 512

struct page {                    /* writes lines; the visible ones reach the screen */
    const struct canvas *canvas; /* NULL: lines are only counted */
    int cols, line, top;
    const char *needle;          /* "": none */
    int match[MATCHES], matches; /* first lines of the rows that contain it, ascending */
};

/* Returns the needle's place in the text; NULL: it is not there. */
static const char *
find(const char *text, const char *needle)
{
    const size_t n = strlen(needle);
    for (; n > 0 && *text != '\0'; text++)
        if (strncasecmp(text, needle, n) == 0)
            return text;
    return NULL;
}

/* Draws text with its matches reversed. */
static void
draw_text(const struct page *p, int y, int x, enum role role, const char *text, size_t n)
{
    char line[400];
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    canvas_text(p->canvas, y, x, role, line);
    for (const char *at = line; (at = find(at, p->needle)) != NULL; at++) {
        char before[sizeof line], match[sizeof line];
        snprintf(before, sizeof before, "%.*s", (int)(at - line), line);
        snprintf(match, sizeof match, "%.*s", (int)strlen(p->needle), at);
        canvas_styled(p->canvas, y, x + text_width(before), ROLE_FOCUS, NAN, MARK_CURSOR, match);
    }
}

/* Draws a key and its meaning, which is wrapped beside it. */
static void
row(struct page *p, enum role left_role, const char *left, const char *right)
{
    const int used = text_width(left), column = p->cols < 60 ? 12 : 26, x = used < column - 1 ? column : used + 3;
    bool first = true;
    if ((find(left, p->needle) != NULL || (right != NULL && find(right, p->needle) != NULL)) && p->matches < MATCHES)
        p->match[p->matches++] = p->line;
    do {
        const int y = p->line++ - p->top;
        const size_t n = right == NULL ? 0 : text_wrap(right, p->cols - x);
        if (p->canvas != NULL && y >= 0 && y < p->canvas->rows) {
            draw_text(p, y, 1, left_role, left, first ? strlen(left) : 0);
            draw_text(p, y, x, ROLE_TEXT, right == NULL ? "" : right, n);
        }
        right = right == NULL ? NULL : right + n + strspn(right + n, " ");
        first = false;
    } while (right != NULL && right[0] != '\0');
}

static void
write_page(struct page *p, const struct panes *panes, const struct verb *verbs)
{
    row(p, ROLE_TITLE, "Keys everywhere", NULL);
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++)
        if (k->what != NULL)
            row(p, ROLE_KEY, k->keys, k->what);
    row(p, ROLE_KEY, "mouse", "click focuses, wheel scrolls, drag moves knobs and the time line");
    for (int i = 0; i < panes->n; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (!panes_active(panes, i) || ops->keys == NULL || ops->keys[0].keys == NULL)
            continue;
        char heading[80];
        snprintf(heading, sizeof heading, "In %s%s", ops->title_now != NULL ? ops->title_now(&panes->view) : ops->title,
                 i == panes->focus ? " (focused)" : "");
        row(p, ROLE_TEXT, "", NULL);
        row(p, ROLE_TITLE, heading, NULL);
        for (const struct key_help *k = ops->keys; k->keys != NULL; k++)
            row(p, ROLE_KEY, k->keys, k->what);
    }
    row(p, ROLE_TEXT, "", NULL);
    row(p, ROLE_TITLE, "Measures and marks", NULL);
    for (const struct glossary *g = glossary; g->name != NULL; g++)
        row(p, ROLE_KEY, g->name, g->what);
    row(p, ROLE_TEXT, "", NULL);
    row(p, ROLE_TITLE, "Commands, after ':' (Tab completes)", NULL);
    for (const struct verb *v = verbs; v->name != NULL; v++) {
        char usage[80];
        if (v->what == NULL)
            continue;
        snprintf(usage, sizeof usage, ":%s %s", v->name, v->arguments);
        row(p, ROLE_KEY, usage, v->what);
    }
}

/* Moves the first line to the requested match; after the last match comes the first. Returns the match's number; 0: none. */
static int
go_to_match(const struct page *p, struct help_search *s, int *top)
{
    int at = 0; /* number of the last match moved to */
    while (at < p->matches && p->match[at] <= s->at)
        at++;
    if (p->matches > 0 && s->jump != 0) {
        const int to = (at - 1 + s->jump) % p->matches;
        at = (to < 0 ? to + p->matches : to) + 1;
        *top = s->at = p->match[at - 1];
    }
    s->jump = 0;
    return at;
}

void
help_draw(int *top, struct help_search *search, const struct panes *panes, const struct verb *verbs,
          const struct canvas *c)
{
    const int cols = c->cols > 96 ? 92 : c->cols - 4;
    const struct canvas box = canvas_inside(c, 1, (c->cols - cols) / 2, c->rows - 3, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct page page = {.cols = inside.cols, .needle = search->text};
    char note[100];
    write_page(&page, panes, verbs);
    const int last = page.line > inside.rows ? page.line - inside.rows : 0, at = go_to_match(&page, search, top);
    *top = *top > last ? last : *top < 0 ? 0 : *top;
    if (search->typing)
        snprintf(note, sizeof note, "/%s_", search->text);
    else if (search->text[0] != '\0' && page.matches == 0)
        snprintf(note, sizeof note, "\"%s\" is not in the help", search->text);
    else if (search->text[0] != '\0')
        snprintf(note, sizeof note, "\"%s\" %d of %d", search->text, at, page.matches);
    else
        snprintf(note, sizeof note, last > 0 ? "arrows scroll, any other key closes" : "any key closes");
    canvas_clear(&box);
    canvas_box(&box, "help", note, true);
    page = (struct page){.canvas = &inside, .cols = inside.cols, .top = *top, .needle = search->text};
    write_page(&page, panes, verbs);
}

#define END 10000

bool
help_key(int *top, int page, int key)
{
    *top = *top > END ? END : *top; /* the help may not have been drawn since */
    switch (key) {
    case INPUT_UP:
    case 'k': --*top; break;
    case INPUT_DOWN:
    case 'j': ++*top; break;
    case INPUT_PAGE_UP: *top -= page; break;
    case INPUT_PAGE_DOWN:
    case ' ': *top += page; break;
    case INPUT_HOME: *top = 0; break;
    case INPUT_END: *top = END; break; /* drawing limits it to the last page */
    default: return false;
    }
    return true;
}
