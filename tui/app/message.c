#include "tui/app/message.h"
#include "base/utf8.h"

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
