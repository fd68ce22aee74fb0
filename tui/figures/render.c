#include "tui/figures/render.h"

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

#include "engine/base/file_replace.h"
#include "engine/base/utf8.h"

#define PNG_DPI  300.0
#define PNG_SIDE 30000 /* pixels at most */
#define FONT     "Helvetica"

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

/* Cairo takes one font for a text, whatever that font lacks: so the family is asked for by the text's characters. */
static void
choose_font(cairo_t *c, const char *text, bool bold)
{
    char family[128] = FONT;
    FcCharSet *characters = FcCharSetCreate();
    FcPattern *pattern = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, FONT, (char *)NULL);
    bool common = true;
    uint32_t code;
    for (size_t n; (n = utf8_character(text, strlen(text), &code)) > 0; text += n) {
        common = common && code < 0x250;
        FcCharSetAddChar(characters, code);
    }
    if (!common && pattern != NULL && FcPatternAddCharSet(pattern, FC_CHARSET, characters)) {
        FcResult result;
        FcChar8 *name;
        FcConfigSubstitute(NULL, pattern, FcMatchPattern);
        FcDefaultSubstitute(pattern);
        FcPattern *found = FcFontMatch(NULL, pattern, &result);
        if (found != NULL && FcPatternGetString(found, FC_FAMILY, 0, &name) == FcResultMatch)
            snprintf(family, sizeof family, "%s", (const char *)name);
        if (found != NULL)
            FcPatternDestroy(found);
    }
    if (pattern != NULL)
        FcPatternDestroy(pattern);
    FcCharSetDestroy(characters);
    cairo_select_font_face(c, family, CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
}

static void
paint_text(cairo_t *c, const struct drawing *d, const struct shape *s)
{
    const struct lettering *l = &s->lettering;
    const char *text = d->texts + s->text;
    const struct point at = d->points[s->first];
    cairo_text_extents_t size;
    choose_font(c, text, l->bold);
    cairo_set_font_size(c, l->size);
    cairo_text_extents(c, text, &size);
    const double narrow = l->room > 0 && size.x_advance > l->room ? l->room / size.x_advance : 1;
    cairo_save(c);
    cairo_translate(c, at.x, at.y);
    if (l->upwards)
        cairo_rotate(c, -1.5707963267948966);
    cairo_scale(c, narrow, 1);
    cairo_move_to(c,
                  l->anchor == ANCHOR_LEFT     ? 0
                  : l->anchor == ANCHOR_MIDDLE ? -size.x_advance / 2
                                               : -size.x_advance,
                  0);
    set_colour(c, l->colour);
    cairo_show_text(c, text);
    cairo_new_path(c);
    cairo_restore(c);
}

static void
paint(cairo_t *c, const struct drawing *d)
{
    set_colour(c, 0xffffff);
    cairo_paint(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < d->n_shapes; i++) {
        const struct shape *s = &d->shapes[i];
        const struct point *p = d->points + s->first;
        if (s->kind == SHAPE_TEXT) {
            paint_text(c, d, s);
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
render(const struct drawing *d, enum render_format format, struct sink *s, struct err *err)
{
    const double scale = format == RENDER_PNG ? PNG_DPI / 72 : 1;
    if (format == RENDER_PNG && (d->width * scale > PNG_SIDE || d->height * scale > PNG_SIDE))
        return err_set(err, ERR_USAGE,
                       "%s: too large for a PNG of 300 dots an inch; write .svg or .pdf, or a smaller --width",
                       s->file.name);
    cairo_surface_t *surface = surface_of(d, format, scale, s);
    cairo_t *c = cairo_create(surface);
    cairo_scale(c, scale, scale);
    paint(c, d);
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

bool
render_file(const struct drawing *d, enum render_format format, const char *file, struct err *err)
{
    struct sink s = {.err = err};
    if (!file_replace_begin(&s.file, AT_FDCWD, file, 0666, err))
        return false;
    const bool fine = render(d, format, &s, err);
    cairo_debug_reset_static_data(); /* fonts that were found: a scope goes on for days */
    FcFini();
    return file_replace_end(&s.file, fine, err);
}

#else

bool
render_file(const struct drawing *d, enum render_format format, const char *file, struct err *err)
{
    (void)d, (void)format;
    return err_set(err, ERR_WORK,
                   "%.120s: figures need cairo, which this program was built without: install libcairo2-dev (Fedora: "
                   "cairo-devel, Arch: cairo) and build again",
                   file);
}

#endif
