#include "tui/app/message.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <string.h>

static void
keep(struct message *m, const char *text, enum role role)
{
    const uint32_t at = m->n++ % MESSAGES_KEPT;
    printable_text(text, strlen(text), m->said[at].text, sizeof m->said[at].text);
    m->said[at].role = role;
}

void
message_show(struct message *m, const char *text)
{
    printable_text(text, strlen(text), m->text, sizeof m->text);
    m->role = ROLE_STATUS;
    m->of_run = false;
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
    keep(m, text, ROLE_TEXT);
}

void
message_report(struct message *m, const char *text)
{
    keep(m, text, ROLE_TEXT);
    if (m->text[0] != '\0' && m->role == ROLE_ERROR)
        return;
    message_show(m, text);
    m->of_run = true;
}

void
message_fail(struct message *m, const struct err *err)
{
    message_show(m, err->text);
    m->role = ROLE_ERROR;
    keep(m, err->text, ROLE_WARN);
}
