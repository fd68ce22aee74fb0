#include "tui/figures/figure_kind.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

static const char *const endings[] = {[RENDER_SVG] = ".svg", [RENDER_PDF] = ".pdf", [RENDER_PNG] = ".png"};

bool
render_format_of(const char *file, enum render_format *format, struct err *err)
{
    const size_t n = strlen(file);
    for (int i = 0; i <= RENDER_PNG; i++)
        if (n > 4 && strcasecmp(file + n - 4, endings[i]) == 0) {
            *format = (enum render_format)i;
            return true;
        }
    return err_set(err, ERR_USAGE, "'%.200s': a figure's file ends in .svg, .pdf or .png", file);
}

#ifdef SPECSCOPE_CAIRO

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <fontconfig/fontconfig.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/file_replace.h"
#include "base/plural.h"
#include "base/subprocess.h"
#include "base/utf8.h"

#define PNG_DPI  300.0
#define PNG_SIDE 30000 /* pixels at most */

/* ---- fonts ---- */

/* Cairo sets a text in one font even if the font lacks characters. So a text is split into runs that one font can set,
 * the figure's own font wherever possible. */
#define FONT  "Helvetica" /* or the font that replaces it */
#define FONTS 16          /* that are cached */

struct fonts {
    FcPattern *found[FONTS]; /* (n) in the order in which they were needed; the first replaces FONT */
    size_t n;
    uint32_t lacked; /* the first character that no font has; 0: none */
    size_t n_lacked; /* number of missing characters */
};

/* Zero-width joiners and variation selectors. */
static bool
is_unseen(uint32_t code)
{
    return code == 0x200c || code == 0x200d || (code >= 0xfe00 && code <= 0xfe0f);
}

/* True for a mark, which combines with the character before it. */
static bool
is_mark(uint32_t code)
{
    return (code >= 0x300 && code < 0x370) || (code >= 0x1ab0 && code < 0x1b00) || (code >= 0x20d0 && code < 0x2100) ||
           code == 0x3099 || code == 0x309a;
}

static bool
has(const FcPattern *font, uint32_t code)
{
    FcCharSet *characters;
    return font != NULL && FcPatternGetCharSet(font, FC_CHARSET, 0, &characters) == FcResultMatch &&
           FcCharSetHasChar(characters, code);
}

/* Returns fontconfig's font for the character, which is like FONT; NULL: none. The process ends soon and frees
 * nothing. */
static FcPattern *
match(uint32_t code)
{
    FcResult result;
    FcPattern *pattern = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, FONT, (char *)NULL);
    FcCharSet *characters = FcCharSetCreate();
    if (pattern == NULL || characters == NULL || !FcCharSetAddChar(characters, code) ||
        !FcPatternAddCharSet(pattern, FC_CHARSET, characters))
        return NULL;
    FcConfigSubstitute(NULL, pattern, FcMatchPattern);
    FcDefaultSubstitute(pattern);
    return FcFontMatch(NULL, pattern, &result);
}

/* Returns the family that has the character, FONT if possible; NULL: none. */
static const char *
family_of(struct fonts *f, uint32_t code)
{
    FcChar8 *name = NULL;
    size_t i = 0;
    if (f->n == 0)
        f->found[f->n++] = match('a');
    while (i < f->n && !has(f->found[i], code))
        i++;
    if (i == f->n) {
        FcPattern *found = match(code);
        if (!has(found, code))
            return NULL;
        i -= i == FONTS; /* more scripts than in any usual figure */
        f->found[i] = found;
        f->n = i + 1;
    }
    if (i > 0)
        FcPatternGetString(f->found[i], FC_FAMILY, 0, &name);
    return name != NULL ? (const char *)name : FONT;
}

/* Returns the bytes of the first run of a text, 0 at its end, and its family. Joiners and variation selectors need more
 * than a font; they are a run without a family, which the caller omits. */
static size_t
first_run(struct fonts *f, const char *utf8, const char **family)
{
    uint32_t code;
    size_t bytes = utf8_character(utf8, strlen(utf8), &code), more;
    *family = NULL;
    if (bytes == 0 || is_unseen(code))
        return bytes > 0 ? bytes : strlen(utf8) > 0;
    const char *own = family_of(f, code);
    *family = own != NULL ? own : FONT;
    for (;;) {
        if (own == NULL && !is_mark(code))
            f->lacked = f->n_lacked++ == 0 ? code : f->lacked;
        more = utf8_character(utf8 + bytes, strlen(utf8 + bytes), &code);
        if (more == 0 || is_unseen(code) || (!is_mark(code) && family_of(f, code) != own))
            return bytes;
        bytes += more;
    }
}

/* ---- drawings ---- */

static void
set_colour(cairo_t *c, int32_t rgb)
{
    cairo_set_source_rgb(c, (rgb >> 16 & 0xff) / 255.0, (rgb >> 8 & 0xff) / 255.0, (rgb & 0xff) / 255.0);
}

static void
paint_path(cairo_t *c, const struct pen *pen)
{
    static const double dashes[DASHES][4] = {{0}, {4, 2, 4, 2}, {1.8, 1.4, 1.8, 1.4}, {0.7, 1.3, 0.7, 1.3}};
    if (pen->fill != NO_COLOUR) {
        set_colour(c, pen->fill);
        cairo_fill_preserve(c);
    }
    if (pen->stroke != NO_COLOUR) {
        set_colour(c, pen->stroke);
        cairo_set_line_width(c, pen->line > 0 ? pen->line : LINE_FINE);
        cairo_set_dash(c, dashes[pen->dash], pen->dash == DASH_NONE ? 0 : 4, 0);
        cairo_stroke_preserve(c);
    }
    cairo_new_path(c);
}

struct text_run { /* of a text, in one font */
    const char *family;
    char text[256];
    double advance;
};

static void
choose(cairo_t *c, const char *family, const struct lettering *l)
{
    cairo_select_font_face(c, family, CAIRO_FONT_SLANT_NORMAL,
                           l->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, l->size);
}

/* Reads and measures the next run, as long as it fits. Returns false at the text's end. */
static bool
next_text_run(cairo_t *c, struct fonts *fonts, const struct lettering *l, const char **text, struct text_run *s)
{
    cairo_text_extents_t size;
    do {
        size_t n = first_run(fonts, *text, &s->family);
        if (n == 0)
            return false;
        while (n >= sizeof s->text || ((*text)[n] & 0xc0) == 0x80) /* between characters */
            n = n >= sizeof s->text ? sizeof s->text - 1 : n - 1;
        snprintf(s->text, sizeof s->text, "%.*s", (int)n, *text);
        *text += n;
    } while (s->family == NULL);
    choose(c, s->family, l);
    cairo_text_extents(c, s->text, &size);
    s->advance = size.x_advance;
    return true;
}

static void
paint_words(cairo_t *c, struct fonts *fonts, const struct lettering *l, struct point at, const char *text)
{
    const size_t lacked = fonts->n_lacked;
    struct text_run run;
    double advance = 0, x;
    for (const char *rest = text; next_text_run(c, fonts, l, &rest, &run);)
        advance += run.advance;
    fonts->n_lacked = lacked; /* they are counted once, as they are painted */
    const double narrow = l->room > 0 && advance > l->room ? l->room / advance : 1;
    cairo_save(c);
    cairo_translate(c, at.x, at.y);
    if (l->upwards)
        cairo_rotate(c, -1.5707963267948966);
    cairo_scale(c, narrow, 1);
    set_colour(c, l->colour);
    x = l->anchor == ANCHOR_LEFT ? 0 : l->anchor == ANCHOR_MIDDLE ? -advance / 2 : -advance;
    for (const char *rest = text; next_text_run(c, fonts, l, &rest, &run); x += run.advance) {
        cairo_move_to(c, x, 0);
        cairo_show_text(c, run.text);
    }
    cairo_new_path(c);
    cairo_restore(c);
}

/* Composes letters and marks if Unicode has such a character, because text is not shaped. */
static void
paint_text(cairo_t *c, struct fonts *fonts, const struct drawing *d, const struct shape *s)
{
    const char *text = d->texts + s->text;
    utf8proc_uint8_t *composed = utf8proc_NFC((const utf8proc_uint8_t *)text);
    paint_words(c, fonts, &s->lettering, d->points[s->first], composed != NULL ? (const char *)composed : text);
    free(composed);
}

static void
paint(cairo_t *c, struct fonts *fonts, const struct drawing *d)
{
    set_colour(c, 0xffffff);
    cairo_paint(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < d->n_shapes; i++) {
        const struct shape *s = &d->shapes[i];
        const struct point *p = d->points + s->first;
        if (s->kind == SHAPE_TEXT) {
            paint_text(c, fonts, d, s);
            continue;
        }
        if (s->kind == SHAPE_CIRCLE)
            cairo_arc(c, p->x, p->y, s->radius, 0, 6.283185307179586);
        for (size_t k = 0; k < s->n && s->kind == SHAPE_PATH; k++)
            (k == 0 ? cairo_move_to : cairo_line_to)(c, p[k].x, p[k].y);
        if (s->closed)
            cairo_close_path(c);
        paint_path(c, &s->pen);
    }
}

static const struct file_kind pdf_file = {.what = "a PDF document", .begins = "%PDF-"};
static const struct file_kind png_file = {.what = "a PNG picture", .begins = "\x89PNG"};
static const struct file_kind *const kinds[] = {
    [RENDER_SVG] = &svg_file, [RENDER_PDF] = &pdf_file, [RENDER_PNG] = &png_file};

struct sink {
    struct file_replace file;
    struct err *err;
    bool failed;
};

static cairo_status_t
put(void *user, const unsigned char *bytes, unsigned n)
{
    struct sink *s = user;
    s->failed = s->failed || !file_replace_put(&s->file, bytes, n, s->err);
    return s->failed ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static cairo_surface_t *
surface_of(const struct drawing *d, enum render_format format, double scale, struct sink *s)
{
    switch (format) {
    case RENDER_SVG: {
        cairo_surface_t *svg = cairo_svg_surface_create_for_stream(put, s, d->width, d->height);
        cairo_svg_surface_set_document_unit(svg, CAIRO_SVG_UNIT_PT);
        return svg;
    }
    case RENDER_PDF: return cairo_pdf_surface_create_for_stream(put, s, d->width, d->height);
    case RENDER_PNG: break;
    }
    return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(d->width * scale + 0.5),
                                      (int)(d->height * scale + 0.5));
}

static bool
render(const struct drawing *d, enum render_format format, struct fonts *fonts, struct sink *s, struct err *err)
{
    const double scale = format == RENDER_PNG ? PNG_DPI / 72 : 1;
    if (format == RENDER_PNG && (d->width * scale > PNG_SIDE || d->height * scale > PNG_SIDE))
        return err_set(err, ERR_USAGE,
                       "%s: too large for a PNG of 300 dots an inch; write .svg or .pdf, or a smaller --width",
                       s->file.name);
    cairo_surface_t *surface = surface_of(d, format, scale, s);
    cairo_t *c = cairo_create(surface);
    cairo_scale(c, scale, scale);
    paint(c, fonts, d);
    cairo_status_t status = cairo_status(c);
    if (status == CAIRO_STATUS_SUCCESS && format == RENDER_PNG)
        status = cairo_surface_write_to_png_stream(surface, put, s);
    cairo_destroy(c);
    cairo_surface_finish(surface); /* the rest is written */
    status = status == CAIRO_STATUS_SUCCESS ? cairo_surface_status(surface) : status;
    cairo_surface_destroy(surface);
    if (s->failed)
        return false;
    return status == CAIRO_STATUS_SUCCESS ||
           err_set(err, ERR_WORK, "%s: %s", s->file.name, cairo_status_to_string(status));
}

/* "no font here has 家 (U+5BB6): boxes stand in its place; …" */
static void
note_lacking(const struct fonts *f, char note[FIGURE_NOTE])
{
    char character[5] = "";
    note[0] = '\0';
    if (f->n_lacked == 0)
        return;
    character[utf8_put(character, f->lacked)] = '\0';
    const bool wide = f->lacked >= 0x1100 && f->lacked < 0x1f000;
    snprintf(note, FIGURE_NOTE, "no font here has %s (U+%04X): %zu character%s drawn as boxes; install %s", character,
             (unsigned)f->lacked, f->n_lacked, f->n_lacked == 1 ? " is" : "s are",
             f->lacked >= 0x1f000 ? "a font of emoji (Debian: fonts-noto-color-emoji)"
             : wide               ? "a font of Chinese, Japanese and Korean (Debian: fonts-noto-cjk)"
                                  : "a font that does (Debian: fonts-noto-core)");
}

struct rendering {
    const struct drawing *d;
    enum render_format format;
    struct sink sink;
};

/* Runs in a separate process, because fontconfig and cairo end the process if memory runs out. */
static bool
render_apart(void *user, void *note, struct err *err)
{
    struct rendering *r = user;
    struct fonts fonts = {0};
    r->sink.err = err;
    const bool fine = render(r->d, r->format, &fonts, &r->sink, err);
    note_lacking(&fonts, note);
    return fine;
}

bool
render_file(const struct drawing *d, enum render_format format, const char *file, char note[FIGURE_NOTE],
            struct err *err)
{
    struct rendering r = {.d = d, .format = format};
    note[0] = '\0';
    if (!file_replaceable(AT_FDCWD, file, kinds[format], err) ||
        !file_replace_begin(&r.sink.file, AT_FDCWD, file, 0666, err))
        return false;
    return file_replace_end(&r.sink.file, subprocess_run(render_apart, &r, note, FIGURE_NOTE, file, err), err);
}

#else

bool
render_file(const struct drawing *d, enum render_format format, const char *file, char note[FIGURE_NOTE],
            struct err *err)
{
    (void)d, (void)format, note[0] = '\0';
    return err_set(err, ERR_WORK,
                   "%.120s: figures need cairo, which this program was built without: install libcairo2-dev (Fedora: "
                   "cairo-devel, Arch: cairo) and build again",
                   file);
}

#endif
