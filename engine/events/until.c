#include "engine/events/until.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KINDS "reject, text WORD, confidence 0.3, spurious, round 40"

static bool
number(const char *text, double low, double high, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= low && *out <= high;
}

bool
until_parse(const char *words, struct until *u, struct err *err)
{
    const size_t n = strcspn(words, " \t");
    const char *rest = words + n + strspn(words + n, " \t");
    double value;
    *u = (struct until){0};
    if (n == 6 && strncmp(words, "reject", n) == 0 && rest[0] == '\0') {
        u->kind = UNTIL_REJECT;
    } else if (n == 8 && strncmp(words, "spurious", n) == 0 && rest[0] == '\0') {
        u->kind = UNTIL_SPURIOUS;
    } else if (n == 4 && strncmp(words, "text", n) == 0) {
        if (rest[0] == '\0' || strlen(rest) >= sizeof u->text)
            return err_set(err, ERR_USAGE, "until which text? give 1 to %d bytes", UNTIL_TEXT_MOST - 1);
        u->kind = UNTIL_TEXT;
        snprintf(u->text, sizeof u->text, "%s", rest);
    } else if (n == 10 && strncmp(words, "confidence", n) == 0) {
        if (!number(rest, 0, 1, &value))
            return err_set(err, ERR_USAGE, "until a confidence below what? give a number from 0 to 1");
        u->kind = UNTIL_CONFIDENCE;
        u->below = (float)value;
    } else if (n == 5 && strncmp(words, "round", n) == 0) {
        if (!number(rest, 1, UINT32_MAX, &value) || value != (double)(uint32_t)value)
            return err_set(err, ERR_USAGE, "until which round? give a number from 1");
        u->kind = UNTIL_ROUND;
        u->round = (uint32_t)value;
    } else {
        return err_set(err, ERR_USAGE, "until what? \"%.30s\" is none of " KINDS, words);
    }
    return true;
}

void
until_print(const struct until *u, char *out, size_t n)
{
    switch (u->kind) {
    case UNTIL_NOTHING: snprintf(out, n, "nothing"); break;
    case UNTIL_REJECT: snprintf(out, n, "reject"); break;
    case UNTIL_TEXT: snprintf(out, n, "text %s", u->text); break;
    case UNTIL_CONFIDENCE: snprintf(out, n, "confidence %g", (double)u->below); break;
    case UNTIL_SPURIOUS: snprintf(out, n, "spurious"); break;
    case UNTIL_ROUND: snprintf(out, n, "round %u", (unsigned)u->round); break;
    }
}

bool
until_ends_text(const struct until *u, const char *bytes, size_t n, size_t fresh)
{
    const size_t length = strlen(u->text);
    if (length == 0 || length > n)
        return false;
    const size_t old = n > fresh ? n - fresh : 0;
    for (size_t at = old >= length ? old - length + 1 : 0; at + length <= n; at++)
        if (at + length > old && strncasecmp(bytes + at, u->text, length) == 0)
            return true;
    return false;
}
