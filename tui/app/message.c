#include "tui/app/message.h"
#include "engine/base/printable.h"

#include <stdarg.h>
#include <string.h>

void
message_say(struct message *m, const char *format, ...)
{
    char text[sizeof m->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printable_text(text, strlen(text), m->text, sizeof m->text);
    m->role = ROLE_STATUS;
}

void
message_fail(struct message *m, const struct err *err)
{
    message_say(m, "%s", err->text);
    m->role = ROLE_ERROR;
}
