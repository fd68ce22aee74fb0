/* Conditions at which a run pauses, and which a replay can jump to: "reject", "text WORD", "confidence 0.3",
 * "spurious", "round 40". */
#ifndef ENGINE_EVENTS_UNTIL_H
#define ENGINE_EVENTS_UNTIL_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum until_kind {
    UNTIL_NOTHING,
    UNTIL_REJECT,     /* a round in which a draft was rejected */
    UNTIL_TEXT,       /* a round that ends this text, in any case */
    UNTIL_CONFIDENCE, /* a round with a draft of a confidence below `below` */
    UNTIL_SPURIOUS,   /* a round that emitted a token for which a layer before the last was confident and wrong */
    UNTIL_ROUND       /* that round */
};

#define UNTIL_TEXT_MOST 64 /* bytes of the text, terminated */

struct until {
    enum until_kind kind;
    float below;
    uint32_t round;
    char text[UNTIL_TEXT_MOST];
};

/* Reads a condition. Returns false with a message for the user if the text is none. */
bool until_parse(const char *, struct until *, struct err *);
void until_print(const struct until *, char *out, size_t n); /* in the form that until_parse() reads */
/* Does the text end within the last `fresh` of n bytes? Letters of ASCII count as equal in either case. */
bool until_ends_text(const struct until *, const char *bytes, size_t n, size_t fresh);

#endif
