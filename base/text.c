#include "base/text.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t
text_incomplete(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++)
        if (utf8_is_cut(bytes + n - back, back))
            return back;
    return 0;
}

/* Terminals draw the vowel and the final consonant of a decomposed Hangul syllable in the cells of its first
 * consonant. */
static bool
follows_in_syllable(uint32_t code)
{
    return (code >= 0x1160 && code <= 0x11ff) || (code >= 0xd7b0 && code <= 0xd7fb);
}

int
text_columns(uint32_t code)
{
    const int width = follows_in_syllable(code) ? 0 : utf8proc_charwidth((int32_t)code);
    return width < 0 ? 0 : width > 2 ? 2 : width;
}

size_t
text_cluster(const char *utf8, int *columns)
{
    *columns = 1;
    const size_t n = strnlen(utf8, 64);
    if (n == 0)
        return 0;
    uint32_t code;
    size_t length = utf8_character(utf8, n, &code);
    if (length == 0)
        return 1;
    const int width = text_columns(code);
    *columns = width == 0 ? 1 : width; /* a mark without a character has a cell of its own */
    while (length < n) {
        const size_t used = utf8_character(utf8 + length, n - length, &code);
        if (used == 0 || (unsigned char)utf8[length] < 0x80 || text_columns(code) != 0)
            break;
        length += used;
    }
    return length;
}

int
text_width(const char *utf8)
{
    int total = 0, columns = 0;
    for (size_t used; (used = text_cluster(utf8, &columns)) != 0; utf8 += used)
        total += columns;
    return total;
}

size_t
text_fit(const char *utf8, int columns, int *used)
{
    size_t length = 0;
    int total = 0, width = 0;
    for (size_t n; (n = text_cluster(utf8 + length, &width)) != 0; length += n) {
        if (total + width > columns)
            break;
        total += width;
    }
    if (used != NULL)
        *used = total;
    return length;
}

size_t
text_wrap(const char *utf8, int columns)
{
    int width;
    const size_t fits = text_fit(utf8, columns, NULL);
    if (utf8[fits] == '\0' || utf8[fits] == ' ')
        return fits > 0 ? fits : text_cluster(utf8, &width);
    size_t n = fits;
    while (n > 0 && utf8[n] != ' ')
        n--;
    return n > 0 ? n : fits > 0 ? fits : text_cluster(utf8, &width);
}

size_t
text_before(const char *utf8, size_t at)
{
    size_t before = 0;
    int width = 0;
    for (size_t i = 0, n; i < at && (n = text_cluster(utf8 + i, &width)) != 0; i += n)
        before = i;
    return before;
}

/* ASCII for the glyphs of this program. */
static const struct fallback {
    const char *utf8, *ascii;
} fallbacks[] = {
    {"─", "-"},  {"━", "="}, {"│", "|"}, {"┃", "|"}, {"┌", "+"}, {"┐", "+"}, {"└", "+"}, {"┘", "+"}, {"┏", "+"},
    {"┓", "+"},  {"┗", "+"}, {"┛", "+"}, {"├", "|"}, {"┤", "|"}, {"┼", "+"}, {"╵", "'"}, {"╌", "~"}, {"●", "o"},
    {"○", "o"},  {"■", "#"}, {"□", "."}, {"▒", ":"}, {"▓", "!"}, {"░", "."}, {"█", "#"}, {"▸", ">"}, {"▶", ">"},
    {"◄", "<"},  {"►", ">"}, {"…", "~"}, {"⏎", "$"}, {"·", "-"}, {"–", "-"}, {"—", "-"}, {"×", "x"}, {"÷", "/"},
    {"✓", "y"},  {"✗", "x"}, {"τ", "t"}, {"α", "a"}, {"γ", "g"}, {"ω", "w"}, {"ρ", "r"}, {"↑", "^"}, {"↓", "v"},
    {"←", "<"},  {"→", ">"}, {"‹", "<"}, {"›", ">"}, {"┆", ":"}, {"◌", "o"}, {"‖", "="}, {"∞", "*"}, {"≥", ">"},
    {"▁", "1"},  {"▂", "2"}, {"▃", "3"}, {"▄", "4"}, {"▅", "5"}, {"▆", "6"}, {"▇", "7"}, {"’", "'"}, {"“", "\""},
    {"”", "\""}, {"‘", "'"}, {"¼", "1"}, {"½", "2"}, {"▲", "^"}, {"−", "-"}, {"Π", "P"}, {"p̂", "p"}, {"≤", "<"},
    {"±", "+"},  {"≈", "~"}, {"Δ", "d"}, {"β", "b"}, {"ε", "e"}, {"₀", "0"}, {"␣", "_"}, {"┊", ":"}, {"▼", "v"},
    {"◀", "<"},  {"◂", "<"}, {"▫", ","}, {"◦", "-"}, {"▾", "v"}, {"▀", "^"}, {"≠", "!"}, {"◆", "*"}, {"◇", "o"},
    {"★", "*"},  {"☆", "'"},
};

static const char *
ascii_of(const char *utf8, size_t bytes)
{
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
        if (strlen(fallbacks[i].utf8) == bytes && memcmp(fallbacks[i].utf8, utf8, bytes) == 0)
            return fallbacks[i].ascii;
    return "?";
}

size_t
text_ascii_cluster(const char *utf8, char out[TEXT_ASCII], int *columns)
{
    static const char plus_minus[] = " ±";
    if (strncmp(utf8, plus_minus, sizeof plus_minus - 1) == 0) {
        memcpy(out, "+-", 2);
        *columns = 2;
        return sizeof plus_minus - 1;
    }
    const size_t n = text_cluster(utf8, columns);
    out[0] = n == 1 && utf8[0] >= ' ' && utf8[0] < 0x7f ? utf8[0] : ascii_of(utf8, n)[0];
    out[1] = '?';
    return n;
}

void
text_ascii(char *text)
{
    char *to = text, ascii[TEXT_ASCII];
    int columns = 0;
    for (size_t n; (n = text_ascii_cluster(text, ascii, &columns)) != 0; text += n) {
        ascii[0] = text[0] == '\n' ? '\n' : ascii[0];
        for (int i = 0; i < columns; i++) /* never more columns than bytes */
            *to++ = ascii[i];
    }
    *to = '\0';
}
