#include "tui/widgets/message.h"
#include "engine/base/utf8.h"

#include <stdarg.h>
#include <string.h>

static void
keep(struct message *m)
{
    const uint32_t at = m->n++ % MESSAGES_KEPT;
    memcpy(m->said[at].text, m->text, sizeof m->text);
    m->said[at].role = m->role == ROLE_ERROR ? ROLE_WARN : ROLE_TEXT;
}

void
message_show(struct message *m, const char *text)
{
    printable_text(text, strlen(text), m->text, sizeof m->text);
    m->role = ROLE_STATUS;
    m->of_run = false;
}

void
message_is_of_run(struct message *m)
{
    m->of_run = true;
}

void
message_run_begins(struct message *m)
{
    if (m->of_run)
        m->text[0] = '\0';
}

void
message_print(struct message *m, const char *format, ...)
{
    char text[sizeof m->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    message_show(m, text);
    keep(m);
}

void
message_fail(struct message *m, const struct err *err)
{
    message_show(m, err->text);
    m->role = ROLE_ERROR;
    keep(m);
}

static int
lines(const struct message *m, int top, const struct canvas *c)
{
    int line = 0;
    for (uint32_t i = m->n > MESSAGES_KEPT ? m->n - MESSAGES_KEPT : 0; i < m->n; i++) {
        const char *text = m->said[i % MESSAGES_KEPT].text;
        for (bool first = true; text[0] != '\0'; first = false, line++) {
            const size_t n = text_wrap(text, c->cols - 2);
            const int y = line - top;
            if (y >= 0 && y < c->rows) {
                canvas_text(c, y, 0, ROLE_DIM, first ? "·" : "");
                canvas_print(c, y, 2, m->said[i % MESSAGES_KEPT].role, "%.*s", (int)n, text);
            }
            text += n + strspn(text + n, " ");
        }
    }
    return line;
}

void
messages_draw(const struct message *m, int *top, const struct canvas *c)
{
    const int cols = c->cols > 96 ? 92 : c->cols - 4;
    const struct canvas inner = {.cols = cols - 4};
    const int n = lines(m, 0, &inner), most = c->rows - 5, rows = n < 1 ? 1 : n < most ? n : most;
    const struct canvas box = canvas_inside(c, (c->rows - rows - 2) / 3, (c->cols - cols) / 2, rows + 2, cols);
    const struct canvas inside = canvas_inside(&box, 1, 2, rows, box.cols - 4);
    *top = *top > n - rows ? n - rows : *top;
    *top = *top < 0 ? 0 : *top;
    canvas_clear(&box);
    canvas_box(&box, "messages", n > rows ? "arrows scroll, any other key closes" : "any key closes", true);
    if (n == 0)
        canvas_text(&inside, 0, 0, ROLE_DIM, "nothing was said yet");
    lines(m, *top, &inside);
}
