/* Which of the machine's fonts have which characters. Cairo sets a text in one font, whatever that font lacks, so a text is cut into
 * stretches that one font has, the figure's own wherever it has them. */
#ifndef TUI_FIGURES_FONTS_H
#define TUI_FIGURES_FONTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FONT      "Helvetica" /* or what stands in for it */
#define FONTS     16          /* other families that are remembered */
#define FONT_NAME 128

struct font_family {
    char name[FONT_NAME];
    void *has; /* fontconfig's set of its characters */
};

struct fonts {
    struct font_family family[FONTS]; /* (n), in the order in which they were needed */
    size_t n;
    uint32_t lacked; /* the first character that no font has; 0: all were there */
    size_t n_lacked; /* how often any was lacked */
};

/* Bytes of the first stretch of a text, 0 at its end, and the family to set it in. What only joins or varies its neighbours, which
 * takes more than a font, is a stretch of its own with family "": to be left out. */
size_t fonts_stretch(struct fonts *, const char *utf8, char family[FONT_NAME]);

#endif
