#include "tui/figures/fonts.h"

#ifdef SPECSCOPE_CAIRO

#include <fontconfig/fontconfig.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

/* Zero-width joiners and variation selectors. */
static bool
is_unseen(uint32_t code)
{
    return code == 0x200c || code == 0x200d || (code >= 0xfe00 && code <= 0xfe0f);
}

/* Marks sit on what is before them. */
static bool
is_mark(uint32_t code)
{
    return (code >= 0x300 && code < 0x370) || (code >= 0x1ab0 && code < 0x1b00) || (code >= 0x20d0 && code < 0x2100) ||
           code == 0x3099 || code == 0x309a;
}

/* What fontconfig would take for the character beside FONT. NULL: nothing. */
static FcPattern *
match(uint32_t code)
{
    FcResult result;
    FcPattern *found = NULL, *pattern = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, FONT, (char *)NULL);
    FcCharSet *characters = FcCharSetCreate();
    if (pattern != NULL && characters != NULL && FcCharSetAddChar(characters, code) &&
        FcPatternAddCharSet(pattern, FC_CHARSET, characters)) {
        FcConfigSubstitute(NULL, pattern, FcMatchPattern);
        FcDefaultSubstitute(pattern);
        found = FcFontMatch(NULL, pattern, &result);
    }
    if (characters != NULL)
        FcCharSetDestroy(characters);
    if (pattern != NULL)
        FcPatternDestroy(pattern);
    return found;
}

/* Remembers it. Whether it has the character. */
static bool
add(struct fonts *f, FcPattern *found, uint32_t code)
{
    FcChar8 *name;
    FcCharSet *has;
    if (FcPatternGetString(found, FC_FAMILY, 0, &name) != FcResultMatch ||
        FcPatternGetCharSet(found, FC_CHARSET, 0, &has) != FcResultMatch || !FcCharSetHasChar(has, code))
        return false;
    if (f->n == FONTS) /* hardly any figure has so many scripts */
        FcCharSetDestroy(f->family[--f->n].has);
    struct font_family *family = &f->family[f->n++];
    snprintf(family->name, sizeof family->name, "%s", (const char *)name);
    family->has = FcCharSetCopy(has);
    return true;
}

#define LACKED (FONTS + 1)

/* Index of the family that has the character; 0: FONT is to be taken; LACKED: none has it. */
static size_t
family_of(struct fonts *f, uint32_t code)
{
    FcPattern *found = f->n == 0 ? match('a') : NULL; /* what stands in for FONT is the first */
    if (found != NULL) {
        add(f, found, 'a');
        FcPatternDestroy(found);
    }
    for (size_t i = 0; i < f->n; i++)
        if (FcCharSetHasChar(f->family[i].has, code))
            return i;
    found = match(code);
    const bool has = found != NULL && add(f, found, code);
    if (found != NULL)
        FcPatternDestroy(found);
    return has ? f->n - 1 : LACKED;
}

static void
count(struct fonts *f, size_t family, uint32_t code)
{
    if (family == LACKED)
        f->lacked = f->n_lacked++ == 0 ? code : f->lacked;
}

size_t
fonts_stretch(struct fonts *f, const char *utf8, char family[FONT_NAME])
{
    uint32_t code;
    size_t bytes = utf8_character(utf8, strlen(utf8), &code), more;
    family[0] = '\0';
    if (bytes == 0 || is_unseen(code))
        return bytes > 0 ? bytes : strlen(utf8) > 0;
    const size_t own = family_of(f, code);
    snprintf(family, FONT_NAME, "%s", own > 0 && own != LACKED ? f->family[own].name : FONT);
    count(f, own, code);
    while ((more = utf8_character(utf8 + bytes, strlen(utf8 + bytes), &code)) > 0 && !is_unseen(code) &&
           (is_mark(code) || family_of(f, code) == own)) {
        count(f, is_mark(code) ? 0 : own, code);
        bytes += more;
    }
    return bytes;
}

#else

typedef int fonts_are_only_needed_with_cairo;

#endif
