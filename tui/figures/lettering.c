/* How wide texts are: by the widths of DejaVu Sans, which is the widest of the fonts that figures are commonly set in. */
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "tui/figures/drawing.h"

/* thousandths of the size, from ' ' to '~' */
static const short widths[] = {
    318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, /* ' ' to '/' */
    636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, /* '0' to '?' */
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, /* '@' to 'O' */
    603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, /* 'P' to '_' */
    500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, /* '`' to 'o' */
    635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,      /* 'p' to '~' */
};

/* Thousandths of the size; *bytes is the character's length. */
static int
width_at(const char *utf8, size_t *bytes)
{
    uint32_t code = 0;
    *bytes = utf8_character(utf8, strlen(utf8), &code);
    if (*bytes == 0) {
        *bytes = 1;
        return widths['?' - ' '];
    }
    if (code >= ' ' && code <= '~')
        return widths[code - ' '];
    if (code == 0x2026)
        return 1000;
    const int columns = utf8proc_charwidth((utf8proc_int32_t)code);
    if (code >= 0x300 && columns == 0) /* marks, joiners */
        return 0;
    if (code >= 0x1f000)
        return 1250; /* emoji */
    return columns == 2                      ? 1000
           : code < 0x1100                   ? 640
           : code < 0x2e80                   ? 840
           : code >= 0xff61 && code < 0xffa0 ? 500
                                             : 1000;
}

double
lettering_width(const struct lettering *l, const char *utf8)
{
    double sum = 0;
    for (size_t bytes; *utf8 != '\0'; utf8 += bytes)
        sum += width_at(utf8, &bytes);
    return sum * 0.001 * l->size * (l->bold ? 1.12 : 1);
}

char *
lettering_fit(const struct lettering *l, const char *utf8, double room, char *out, size_t size)
{
    const double dots = lettering_width(l, "…");
    size_t whole = 0, cut = 0; /* bytes that fit; bytes that fit with dots behind them */
    double used = 0;
    const double unit = 0.001 * l->size * (l->bold ? 1.12 : 1);
    while (utf8[whole] != '\0') {
        size_t bytes;
        used += width_at(utf8 + whole, &bytes) * unit;
        if (used > room || whole + bytes + sizeof "…" > size)
            break;
        whole += bytes;
        if (used + dots <= room)
            cut = whole;
    }
    if (utf8[whole] == '\0')
        snprintf(out, size, "%s", utf8);
    else if (cut > 0)
        snprintf(out, size, "%.*s…", (int)cut, utf8);
    else
        out[0] = '\0';
    return out;
}
