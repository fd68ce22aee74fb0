#include "tui/figures/drawing.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"

#define TEXT_MOST 1000 /* bytes of a text, escaped */

void
drawing_open(struct drawing *d, double width)
{
    *d = (struct drawing){.width = width};
}

void
drawing_close(struct drawing *d)
{
    free(d->shapes);
    free(d->points);
    free(d->texts);
    *d = (struct drawing){0};
}

bool
drawing_whole(const struct drawing *d)
{
    return !d->no_memory;
}

/* Room for `more` elements behind n; NULL: there is no memory. */
static void *
grow(struct drawing *d, void *list, size_t n, size_t more, size_t *most, size_t element)
{
    if (d->no_memory)
        return NULL;
    if (n + more <= *most)
        return list;
    const size_t wanted = 2 * (n + more) + 64;
    void *longer = realloc(list, wanted * element);
    if (longer == NULL)
        d->no_memory = true;
    else
        *most = wanted;
    return longer;
}

static void
add_shape(struct drawing *d, struct shape shape, const struct point *points, size_t n)
{
    struct shape *shapes = grow(d, d->shapes, d->n_shapes, 1, &d->most_shapes, sizeof *shapes);
    if (shapes == NULL)
        return;
    d->shapes = shapes;
    struct point *all = grow(d, d->points, d->n_points, n, &d->most_points, sizeof *all);
    if (all == NULL)
        return;
    d->points = all;
    memcpy(d->points + d->n_points, points, n * sizeof *points);
    shape.first = d->n_points;
    shape.n = n;
    d->n_points += n;
    d->shapes[d->n_shapes++] = shape;
}

void
drawing_path(struct drawing *d, const struct point *points, size_t n, bool closed, struct pen pen)
{
    if (n > 1)
        add_shape(d, (struct shape){.kind = SHAPE_PATH, .pen = pen, .closed = closed}, points, n);
}

void
drawing_line(struct drawing *d, double x1, double y1, double x2, double y2, struct pen pen)
{
    drawing_path(d, (struct point[]){{x1, y1}, {x2, y2}}, 2, false, pen);
}

void
drawing_rect(struct drawing *d, double x, double y, double width, double height, struct pen pen)
{
    const struct point corners[] = {{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
    drawing_path(d, corners, 4, true, pen);
}

void
drawing_circle(struct drawing *d, double x, double y, double radius, struct pen pen)
{
    add_shape(d, (struct shape){.kind = SHAPE_CIRCLE, .pen = pen, .radius = radius}, &(struct point){x, y}, 1);
}

void
drawing_text(struct drawing *d, double x, double y, struct lettering lettering, const char *utf8)
{
    char shown[TEXT_MOST];
    const size_t n = printable_text(utf8, strlen(utf8), shown, sizeof shown) + 1;
    if (n == 1)
        return;
    char *texts = grow(d, d->texts, d->n_texts, n, &d->most_texts, 1);
    if (texts == NULL)
        return;
    d->texts = texts;
    memcpy(d->texts + d->n_texts, shown, n);
    const size_t at = d->n_texts;
    d->n_texts += n;
    add_shape(d, (struct shape){.kind = SHAPE_TEXT, .lettering = lettering, .text = at}, &(struct point){x, y}, 1);
}

void
drawing_print(struct drawing *d, double x, double y, struct lettering lettering, const char *format, ...)
{
    char text[TEXT_MOST];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    drawing_text(d, x, y, lettering, text);
}

/* ---- the list as text ---- */

static double
hundredth(double value) /* never "-0.00" */
{
    return value > -0.005 && value < 0.005 ? 0 : value;
}

static void
list_pen(const struct pen *pen, FILE *out)
{
    static const char *const dashes[DASHES] = {"", " long", " short", " dots"};
    if (pen->fill != NO_COLOUR)
        fprintf(out, " fill %06x", (unsigned)pen->fill);
    if (pen->stroke != NO_COLOUR)
        fprintf(out, " line %06x %.2f%s", (unsigned)pen->stroke, pen->line > 0 ? pen->line : LINE_FINE,
                dashes[pen->dash]);
}

static void
list_text(const struct drawing *d, const struct shape *s, FILE *out)
{
    static const char *const anchors[] = {"left", "middle", "right"};
    const struct lettering *l = &s->lettering;
    fprintf(out, " %s %.2f %06x%s%s \"%s\"", anchors[l->anchor], l->size, (unsigned)l->colour, l->bold ? " bold" : "",
            l->upwards ? " upwards" : "", d->texts + s->text);
}

bool
drawing_list(const struct drawing *d, FILE *out)
{
    static const char *const names[] = {"path", "circle", "text"};
    fprintf(out, "drawing %.2f %.2f\n", d->width, d->height);
    for (size_t i = 0; i < d->n_shapes; i++) {
        const struct shape *s = &d->shapes[i];
        fputs(s->closed ? "area" : names[s->kind], out);
        for (size_t k = 0; k < s->n; k++)
            fprintf(out, " %.2f,%.2f", hundredth(d->points[s->first + k].x), hundredth(d->points[s->first + k].y));
        if (s->kind == SHAPE_CIRCLE)
            fprintf(out, " r %.2f", s->radius);
        if (s->kind == SHAPE_TEXT)
            list_text(d, s, out);
        else
            list_pen(&s->pen, out);
        fputc('\n', out);
    }
    return ferror(out) == 0;
}
