/* What a terminal sends that is no key: the mouse, and answers to what it was asked. A report comes character by
 * character behind its introducer, perhaps in pieces. */
#ifndef TUI_TERMINAL_REPORT_H
#define TUI_TERMINAL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/terminal/input.h"

#define REPORT_MAX 96

enum report_kind {
    REPORT_NONE,
    REPORT_MOUSE,      /* CSI < button ; x ; y M, or m for a release: any column */
    REPORT_OLD_MOUSE,  /* CSI M and three characters: columns up to 223 */
    REPORT_STATE,      /* DCS 1 $ r … ST: what was asked for with DECRQSS */
    REPORT_ATTRIBUTES, /* CSI ? … c: what every terminal says of itself */
};

struct report {
    enum report_kind kind;
    char text[REPORT_MAX]; /* behind the introducer, with its end, NUL-terminated */
    size_t n;
};

enum report_result { REPORT_OPEN, REPORT_WHOLE, REPORT_BROKEN };

void report_begin(struct report *, enum report_kind);
/* The next character. After REPORT_WHOLE the text is read and report_begin(r, REPORT_NONE) closes it. */
enum report_result report_take(struct report *, uint32_t code);
/* Of a whole mouse report. False: an event that nobody asked for, such as moving with no button down. INPUT_MOUSE with
 * MOUSE_PRESS, _DRAG, _RELEASE or a wheel; who remembers the last click makes MOUSE_DOUBLE of it. */
bool report_mouse(const struct report *, struct input *);

/* Asks for 24-bit colours by setting one and asking which is set (DECRQSS), and for the terminal's attributes, which
 * all terminals tell, so that the end of answers is known. */
extern const char *const report_question;
bool report_says_direct(const struct report *); /* of a whole REPORT_STATE: the colour that was set is there */

#endif
